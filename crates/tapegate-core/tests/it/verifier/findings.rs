//! Tests of findings, and of the notes about messages not sent and lists not read to their end.

use tapegate_core::verifier::{CallSelection, ListKind, SkipReason, VerifyNoteKind};

use super::harness::VerifyHarness;

/// A client that makes a call before it has sent `initialized`.
const HASTY: &str = r#"
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
    < {"id":0,"result":{"serverInfo":{"name":"s","version":"1"},"capabilities":{}}}
    > {"id":1,"method":"tools/call","params":{"name":"rm"}}
    < {"id":1,"result":{}}
    > {"id":2,"method":"resources/read","params":{"uri":"x:y"}}
    < {"id":2,"result":{}}
    > {"id":3,"method":"ping"}
    < {"id":3,"result":{}}
"#;

#[test]
fn only_what_was_sent_after_something_was_left_out_is_said_to_come_after_it() {
    let mut other = |said: &str| {
        vec![
            said.replace(r#""capabilities":{}"#, r#""capabilities":{"x":1}"#)
                .replace(r#""id":3,"result":{}"#, r#""id":3,"result":{"x":1}"#),
        ]
    };
    let done = VerifyHarness::new(HASTY).calls(CallSelection::List).altered(&mut other);
    let found = done.report.findings.iter();
    let found: Vec<_> =
        found.map(|finding| (finding.about.method.as_str(), finding.after_skipped)).collect();
    assert_eq!(found, [("initialize", false), ("ping", true)]);
}

#[test]
fn what_only_reads_is_not_said_to_change_something() {
    let done = VerifyHarness::new(HASTY).calls(CallSelection::List).echo();
    let skipped = done.report.skipped.iter().map(|skipped| skipped.skip_reason);
    assert_eq!(skipped.collect::<Vec<_>>(), [SkipReason::NotAskedFor, SkipReason::OnlyListed]);
}

#[test]
fn a_list_that_never_ends_is_said_to_go_on() {
    let list = r#"
        > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"id":0,"result":{"serverInfo":{"name":"s","version":"1"},"capabilities":{}}}
        > {"id":1,"method":"tools/list"}
        < {"id":1,"result":{"tools":[{"name":"a"}]}}
        > {"id":2,"method":"tools/call","params":{"name":"a"}}
        < {"id":2,"result":{}}
    "#;
    let mut endless = |said: &str| {
        let page = |id: &str, number: &str| {
            format!(
                r#"{{"id":{id},"result":{{"tools":[{{"name":"a{number}"}}],"nextCursor":"c{number}"}}}}"#
            )
        };
        let own = said.split_once("\"tapegate-").and_then(|(_, rest)| rest.split_once('"'));
        vec![match own {
            Some((number, _)) => page(&format!("\"tapegate-{number}\""), number),
            None if said.contains("\"tools\"") => page("1", ""),
            None => said.to_owned(),
        }]
    };
    let done = VerifyHarness::new(list).calls(CallSelection::List).altered(&mut endless);
    let notes: Vec<_> = done.report.notes.iter().map(|note| &note.kind).collect();
    assert_eq!(notes, [&VerifyNoteKind::Unfinished { list: ListKind::Tools, pages: 1001 }]);
    assert_eq!(done.report.notes[0].about.method, "tools/list");
}

#[test]
fn requests_without_an_answer_on_the_tape_are_noted_by_name() {
    let tape = r#"
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
< {"jsonrpc":"2.0","id":0,"result":{"capabilities":{}}}
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}
> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}
> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}}
> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"c"}}
> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}
> {"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{}}
"#;
    let done = VerifyHarness::new(tape).echo();
    assert!(!done.report.has_findings());
    // Nobody expects an answer to what was cancelled or stays open.
    assert_eq!((done.report.requests, done.report.not_compared), (6, 3));
    let notes = done.report.notes.iter();
    let notes: Vec<_> = notes.map(|note| (&note.kind, note.about.name.as_deref())).collect();
    let kind = &VerifyNoteKind::NotCompared;
    assert_eq!(notes, [(kind, Some("a")), (kind, Some("b"))]);
}
