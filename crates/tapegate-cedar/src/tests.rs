//! Loading and evaluating policies.

mod answers;
mod dialects;
mod folders;
mod props;
mod readings;
mod words;

use crate::{Answer, Caller, Cedar, Fault, Question, Text, Tool};

/// Loads one text named `p.cedar`.
fn load(text: &str, tools: &[Tool]) -> (Option<Cedar>, Vec<Fault>) {
    let text = Text { name: "p.cedar".to_owned(), text: text.to_owned() };
    Cedar::load(&[text], None, tools)
}

/// Loads one text that must have no faults.
fn fine(text: &str, tools: &[Tool]) -> Cedar {
    let (cedar, faults) = load(text, tools);
    assert!(faults.is_empty(), "{faults:#?}");
    cedar.unwrap()
}

/// Loads one text that may have warnings only.
fn usable(text: &str, tools: &[Tool]) -> Cedar {
    let (cedar, faults) = load(text, tools);
    assert!(!faults.iter().any(|fault| fault.error), "{faults:#?}");
    cedar.unwrap()
}

/// The faults of a text, as `line:column: message`.
fn faults(text: &str, tools: &[Tool]) -> Vec<String> {
    let (cedar, faults) = load(text, tools);
    assert_eq!(cedar.is_none(), faults.iter().any(|fault| fault.error));
    let say = |fault: &Fault| {
        let mark = if fault.error { "" } else { "warning: " };
        format!("{}:{}: {mark}{}", fault.line, fault.column, fault.words)
    };
    faults.iter().map(say).collect()
}

fn tool(server: &str, name: &str, input_schema: &str) -> Tool {
    Tool { server: server.to_owned(), name: name.to_owned(), input_schema: input_schema.to_owned() }
}

/// A call of a tool of the server `files`.
fn call(cedar: &Cedar, name: &str, arguments: &str) -> Answer {
    ask(cedar, "tools/call", name, Some(arguments))
}

fn ask(cedar: &Cedar, method: &str, name: &str, arguments: Option<&str>) -> Answer {
    let caller = Caller {
        name: "ann",
        namespace: "local",
        service_account: "local",
        roles: &["dev".to_owned()],
        client: Some("claude"),
    };
    let question = Question {
        caller,
        server: "files",
        method,
        name,
        arguments: arguments.map(str::as_bytes),
        policy_id: "main",
        wall_us: 1_700_000_000_000_000,
        url_reader: None,
    };
    let answer = cedar.ask(&question);
    // From the third time on, answers come from the plan.
    for _ in 0..3 {
        assert_eq!(cedar.ask(&question), answer);
    }
    answer
}
