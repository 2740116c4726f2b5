//! Loading and evaluating policies.

mod decisions;
mod dialects;
mod folders;
mod messages;
mod properties;
mod readings;

use crate::{
    CedarAnswer, CedarFault, CedarPolicies, CedarPrincipal, CedarQuery, CedarText, ToolDefinition,
};

/// Loads one text named `p.cedar`.
fn load(text: &str, tools: &[ToolDefinition]) -> (Option<CedarPolicies>, Vec<CedarFault>) {
    let text = CedarText { name: "p.cedar".to_owned(), text: text.to_owned() };
    CedarPolicies::load(&[text], None, tools)
}

/// Loads one text that must have no faults.
fn fine(text: &str, tools: &[ToolDefinition]) -> CedarPolicies {
    let (cedar, faults) = load(text, tools);
    assert!(faults.is_empty(), "{faults:#?}");
    cedar.unwrap()
}

/// Loads one text that may have warnings only.
fn usable(text: &str, tools: &[ToolDefinition]) -> CedarPolicies {
    let (cedar, faults) = load(text, tools);
    assert!(!faults.iter().any(|fault| fault.error), "{faults:#?}");
    cedar.unwrap()
}

/// The faults of a text, as `line:column: message`.
fn faults(text: &str, tools: &[ToolDefinition]) -> Vec<String> {
    let (cedar, faults) = load(text, tools);
    assert_eq!(cedar.is_none(), faults.iter().any(|fault| fault.error));
    let say = |fault: &CedarFault| {
        let mark = if fault.error { "" } else { "warning: " };
        format!("{}:{}: {mark}{}", fault.line, fault.column, fault.message)
    };
    faults.iter().map(say).collect()
}

fn tool(server: &str, name: &str, input_schema: &str) -> ToolDefinition {
    ToolDefinition {
        server: server.to_owned(),
        name: name.to_owned(),
        input_schema: input_schema.to_owned(),
    }
}

/// A call of a tool of the server `files`.
fn call(cedar: &CedarPolicies, name: &str, arguments: &str) -> CedarAnswer {
    ask(cedar, "tools/call", name, Some(arguments))
}

fn ask(cedar: &CedarPolicies, method: &str, name: &str, arguments: Option<&str>) -> CedarAnswer {
    let caller = CedarPrincipal {
        name: "ann",
        namespace: "local",
        service_account: "local",
        roles: &["dev".to_owned()],
        client: Some("claude"),
    };
    let question = CedarQuery {
        caller,
        server: "files",
        method,
        name,
        arguments: arguments.map(str::as_bytes),
        policy_id: "main",
        wall_us: 1_700_000_000_000_000,
        url_reader: None,
    };
    cedar.authorize(&question)
}
