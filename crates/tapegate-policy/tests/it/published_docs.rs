//! Published texts about policies match the tables, and every sample in them loads.

use std::path::{Path, PathBuf};

use tapegate_policy::decide::{CallFacts, DecisionOutcome, GateName, PolicyCall, decide};
use tapegate_policy::load;
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::pins::PinLock;
use tapegate_yaml::files::MemoryFiles;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Compares a file of the repository with `text`; `UPDATE_GOLDEN=1` rewrites it.
#[expect(clippy::disallowed_methods, reason = "a golden is a file")]
fn golden(path: &str, text: &str) {
    let path = repository(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "{} is old; write it anew by UPDATE_GOLDEN=1", path.display());
}

#[test]
fn the_published_schema_is_that_of_the_tables() {
    golden("docs/schema/policy.schema.json", &load::schema());
}

#[test]
fn the_published_reference_is_that_of_the_tables() {
    golden("docs/policy-reference.md", &load::reference());
}

/// A fenced block of a page: its info string and its text.
struct FencedBlock<'t> {
    line: usize,
    info: &'t str,
    text: String,
}

fn pieces(page: &str) -> Vec<FencedBlock<'_>> {
    let mut pieces: Vec<FencedBlock<'_>> = Vec::new();
    let mut open = false;
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(info), false) => {
                pieces.push(FencedBlock { line: at + 1, info, text: String::new() });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let piece = pieces.last_mut().unwrap();
                piece.text.push_str(line);
                piece.text.push('\n');
            }
            (None, false) => {}
        }
    }
    pieces
}

/// The decision about a call as text: `files tools/call read {…} -> forward`.
fn decided(policy: &Policy, call: &str) -> String {
    let (source, call) = match call.split_once(' ') {
        Some((source, rest)) if !source.contains('/') => (source, rest),
        _ => ("any", call),
    };
    let mut parts = call.splitn(3, ' ');
    let (method, name) = (parts.next().unwrap(), parts.next().unwrap_or_default());
    let arguments = parts.next().map(str::as_bytes);
    let call = PolicyCall { source, method, name, arguments };
    // A Wednesday at noon.
    let wall_us = 1_790_769_600_000_000;
    let facts = CallFacts { wall_us, principal: Some(&policy.principal), drift: None };
    let decision = decide(policy, Profile::Production, &call, &facts);
    match (decision.outcome, decision.gate) {
        (DecisionOutcome::Forward, _) => "forward".to_owned(),
        (DecisionOutcome::Hold { workflow }, _) => format!("hold {workflow}"),
        (DecisionOutcome::Deny, GateName::Visibility) => "deny (visibility)".to_owned(),
        (DecisionOutcome::Deny, GateName::Governance) => "deny (rules)".to_owned(),
        (DecisionOutcome::Deny, GateName::Policy) => "deny (cedar)".to_owned(),
        (DecisionOutcome::Deny, gate) => format!("deny ({gate:?})"),
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a page is a file")]
fn every_sample_of_the_page_loads_and_decides_as_the_page_says() {
    let page = std::fs::read_to_string(repository("docs/policy.md")).unwrap();
    let pieces = pieces(&page);
    let mut lock = PinLock::default();
    let tools =
        r#"{"tools":[{"name":"read","annotations":{"readOnlyHint":true}},{"name":"write"}]}"#;
    lock.learn("pinned", &[tools.as_bytes()]);
    let mut files =
        MemoryFiles::default().with_file("tapegate.lock", r#"{"schema": 1, "servers": {}}"#);
    for piece in &pieces {
        if let Some(path) = piece.info.strip_prefix("cedar ") {
            files = files.with_file(path, piece.text.as_str());
        }
    }
    let (mut policy, mut samples, mut calls) = (None, 0, 0);
    for FencedBlock { line, info, text } in &pieces {
        match *info {
            "yaml policy" => {
                let mut files = files.clone().with_file("p.yaml", text.as_str());
                if text.contains("annotations:") {
                    files = files.with_file("tapegate.lock", lock.write());
                }
                let loaded = load::load("p.yaml", &files);
                assert!(loaded.findings.is_empty(), "line {line}: {:?}", loaded.findings);
                policy = loaded.policy;
                samples += 1;
            }
            "decides" => {
                let policy = policy.as_ref().expect("a policy stands before what it decides");
                for said in text.lines() {
                    let (call, wanted) = said.split_once(" -> ").unwrap();
                    assert_eq!(decided(policy, call), wanted, "below line {line}: {call}");
                    calls += 1;
                }
            }
            info => assert!(!info.starts_with("yaml"), "line {line}: `{info}` is not tested"),
        }
    }
    assert!(samples >= 9 && calls >= 30, "{samples} {calls}");
}
