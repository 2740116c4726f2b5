//! What one question costs: a call with three arguments, held against twenty policies.
//!
//! `cargo bench -p tapegate-cedar` prints microseconds, the best of many rounds, because the
//! machines this runs on are shared. For comparisons between builds, not for promises.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
#![expect(clippy::unwrap_used, reason = "a bench may stop")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use tapegate_cedar::{CedarPolicies, CedarPrincipal, CedarQuery, CedarText, ToolDefinition};

const SCHEMA: &str = r#"{"type":"object","required":["path"],"properties":{
    "path":{"type":"string"},"limit":{"type":"integer"},"amount":{"type":"number"}}}"#;

fn main() {
    let tools: Vec<ToolDefinition> = (0..20)
        .map(|n| ToolDefinition {
            server: "files".to_owned(),
            name: format!("tool{n}"),
            input_schema: SCHEMA.to_owned(),
        })
        .collect();
    let started = Instant::now();
    let pinned = load(&pinned(), &tools);
    println!("load 20 policies with 20 tools: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    let call = question("tool7", r#"{"path":"/srv/a/b.txt","limit":10,"amount":2.5}"#);
    measure("3 arguments, 20 policies about one tool each", &pinned, &call);
    let open = load(&open(), &tools);
    measure("3 arguments, 20 policies about all tools", &open, &call);
    let plain = load("permit(principal, action, resource);", &[]);
    measure("3 arguments, 1 policy that reads none", &plain, &call);
    let odd = question("tool7", r#"{"path":["/srv"],"limit":10,"amount":2.5}"#);
    measure("an argument that is not as it should be", &open, &odd);
}

fn pinned() -> String {
    (0..20).fold(String::new(), |mut text, n| {
        let _ = writeln!(
            text,
            "permit(principal, action, resource == Tool::\"tool{n}\") when {{ \
             context.arguments.path like \"/srv/*\" && context.arguments has limit && \
             context.arguments.limit < 100 }};"
        );
        text
    })
}

fn open() -> String {
    (0..20).fold("permit(principal, action, resource);".to_owned(), |mut text, n| {
        let _ = writeln!(
            text,
            "forbid(principal, action, resource is Tool) when {{ \
             context.arguments.path like \"/etc/{n}*\" && context.arguments has limit && \
             context.arguments.limit > 100 }};"
        );
        text
    })
}

fn load(text: &str, tools: &[ToolDefinition]) -> CedarPolicies {
    let text = CedarText { name: "bench".to_owned(), text: text.to_owned() };
    let (cedar, faults) = CedarPolicies::load(&[text], None, tools);
    assert!(faults.is_empty(), "{faults:?}");
    cedar.unwrap()
}

fn question<'a>(name: &'a str, arguments: &'a str) -> CedarQuery<'a> {
    CedarQuery {
        caller: CedarPrincipal { name: "ann", namespace: "local", ..CedarPrincipal::default() },
        server: "files",
        method: "tools/call",
        name,
        arguments: Some(arguments.as_bytes()),
        policy_id: "main",
        wall_us: 1_700_000_000_000_000,
        url_reader: None,
    }
}

fn measure(what: &str, cedar: &CedarPolicies, question: &CedarQuery<'_>) {
    const ROUNDS: u32 = 200;
    const ASKED: u32 = 200;
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..ASKED {
            black_box(cedar.authorize(black_box(question)));
        }
        best = best.min(started.elapsed().as_secs_f64() / f64::from(ASKED));
    }
    println!("{what}: {:.2} us ({})", best * 1e6, cedar.authorize(question).reason);
}
