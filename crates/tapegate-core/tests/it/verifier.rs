//! Tests the verifier with servers that repeat the tape or deviate from it.

mod echo_server;
mod finding_text;
mod findings;
mod harness;

use finding_text::shown;
use harness::{HarnessResult, VerifyHarness};
use serde_json::Value;
use tapegate_core::verifier::{CallSelection, SkipReason, VerifyNoteKind};

const SESSION: &str = r#"
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
< {"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{}}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
< {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","description":"Reads.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"rm","annotations":{"destructiveHint":true}},{"name":"plain"}]}}
> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"a":1},"_meta":{"progressToken":2}}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":2}}
< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"one"}]}}
> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"rm","arguments":{}}}
< {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
< {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"removed"}}
> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"plain"}}
< {"jsonrpc":"2.0","id":4,"error":{"code":-1,"message":"no"}}
> {"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"x:y"}}
< {"jsonrpc":"2.0","id":5,"result":{"contents":[]}}
> {"jsonrpc":"2.0","id":6,"method":"strange/method"}
< {"jsonrpc":"2.0","id":6,"result":{}}
"#;

fn methods(done: &HarnessResult) -> Vec<String> {
    let name = |line: &String| {
        let msg: Value = serde_json::from_str(line).unwrap();
        let method = msg["method"].as_str().unwrap_or("answer").to_owned();
        msg["params"]["name"].as_str().map_or(method.clone(), |name| format!("{method} {name}"))
    };
    done.sent.iter().map(name).collect()
}

/// Replaces a text wherever it occurs.
fn replacing<'a>(old: &'a str, new: &'a str) -> impl FnMut(&str) -> Vec<String> + 'a {
    move |said| vec![said.replace(old, new)]
}

#[test]
fn a_server_that_has_not_changed_gives_nothing_to_report() {
    for calls in [CallSelection::List, CallSelection::ReadOnly, CallSelection::All] {
        let done = VerifyHarness::new(SESSION).calls(calls).echo();
        assert_eq!(shown(&done), "", "{calls:?}");
        assert!(!done.report.has_findings());
        assert!(done.ms < 1000, "{}", done.ms);
    }
}

#[test]
fn nothing_is_called_unless_it_was_asked_for() {
    let sent = |calls| methods(&VerifyHarness::new(SESSION).calls(calls).echo());
    let list = ["initialize", "notifications/initialized", "tools/list"];
    assert_eq!(sent(CallSelection::List), list);
    let read_only = [&list[..], &["tools/call read", "resources/read"]].concat();
    assert_eq!(sent(CallSelection::ReadOnly), read_only);
    assert_eq!(sent(CallSelection::All).len(), 8);
    let skipped = VerifyHarness::new(SESSION).calls(CallSelection::ReadOnly).echo().report.skipped;
    let reason: Vec<_> =
        skipped.iter().map(|skipped| (skipped.about.number, skipped.skip_reason)).collect();
    let expected = [
        (Some(10), SkipReason::NotReadOnlyOnTape),
        (Some(13), SkipReason::NotReadOnlyOnTape),
        (Some(17), SkipReason::NotAskedFor),
    ];
    assert_eq!(reason, expected);
}

#[test]
fn what_a_server_may_read_otherwise_is_not_sent_unless_everything_is() {
    let tape = r#"
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
< {"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"s","version":"1"},"capabilities":{}}}
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"},"method":"tools/list"}
< {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}}
> {"jsonrpc":"2.0","method":"tools/call","params":{"name":"rm"},"method":"notifications/initialized"}
> {"jsonrpc":"2.0","id":2,"method":"ping","params":{"name":"rm"},"Method":"tools/call"}
< {"jsonrpc":"2.0","id":2,"result":{}}
> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read","Name":"rm"}}
< {"jsonrpc":"2.0","id":3,"result":{}}
"#;
    for (calls, sent) in
        [(CallSelection::List, 1), (CallSelection::ReadOnly, 1), (CallSelection::All, 5)]
    {
        let done = VerifyHarness::new(tape).calls(calls).echo();
        assert_eq!(done.sent.len(), sent, "{calls:?} {:?}", done.sent);
    }
    let skipped = VerifyHarness::new(tape).calls(CallSelection::ReadOnly).echo().report.skipped;
    let doubtful = skipped.iter().filter(|one| one.skip_reason == SkipReason::Doubtful).count();
    assert_eq!((skipped.len(), doubtful), (4, 2));
}

#[test]
fn changes_are_told_field_by_field() {
    let drill = VerifyHarness::new(SESSION);
    for (old, new, found) in [
        (
            "Reads.",
            "Reads everything.",
            r#"#5 tools/list: Tools read description: "Reads." > "Reads everything.""#,
        ),
        (
            r#""type":"object""#,
            r#""type":"string""#,
            r#"#5 tools/list: Tools read inputSchema.type: "object" > "string""#,
        ),
        (r#""version":"1""#, r#""version":"2""#, r#"#2 initialize: version "1" > "2""#),
        (
            r#""capabilities":{"tools":{}}"#,
            r#""capabilities":{}"#,
            "#2 initialize: server result.capabilities.tools: {} > ",
        ),
        (
            r#""text":"one""#,
            r#""text":"two""#,
            r#"#9 tools/call: result.content[0].text: "one" > "two""#,
        ),
        (
            r#""destructiveHint":true"#,
            "",
            r"#5 tools/list: Tools rm annotations.destructiveHint: true > ",
        ),
        (
            r#"{"name":"plain"}"#,
            r#"{"name":"new"}"#,
            "#5 tools/list: Tools plain removed {\"name\":\"plain\"}\n#5 tools/list: Tools new added {\"name\":\"new\"}",
        ),
    ] {
        let done = drill.altered(&mut replacing(old, new));
        assert_eq!(shown(&done), found, "{new}");
    }
}

#[test]
fn an_error_is_no_result_and_a_result_no_error() {
    let drill = VerifyHarness::new(SESSION);
    let done = drill.altered(&mut |said| match said.contains(r#""text":"one""#) {
        true => vec![r#"{"id":2,"error":{"code":-32000,"message":"broken"}}"#.to_owned()],
        false => vec![said.to_owned()],
    });
    let error = r#"#9 tools/call: error {"id":2,"error":{"code":-32000,"message":"broken"}}"#;
    assert_eq!(shown(&done), error);
    let done = drill.altered(&mut |said| match said.contains(r#""message":"no""#) {
        true => vec![r#"{"id":4,"result":{}}"#.to_owned()],
        false => vec![said.to_owned()],
    });
    assert_eq!(shown(&done), r#"#14 tools/call: result {"id":4,"result":{}}"#);
}

#[test]
fn what_is_ignored_is_not_compared_and_shapes_can_be_all_that_is() {
    let mut other = replacing(r#""text":"one""#, r#""text":"two""#);
    let drill = VerifyHarness::new(SESSION).ignore("result.content[*].text");
    assert_eq!(shown(&drill.altered(&mut other)), "");
    let drill = VerifyHarness::new(SESSION).shape_only();
    assert_eq!(shown(&drill.altered(&mut other)), "");
    let done = drill.altered(&mut replacing(r#""text":"one""#, r#""text":1"#));
    assert_eq!(shown(&done), r#"#9 tools/call: result.content[0].text: "string" > "number""#);
    // A tool's description is compared even so.
    let done = drill.altered(&mut replacing("Reads.", "Writes."));
    assert_eq!(shown(&done), r#"#5 tools/list: Tools read description: "Reads." > "Writes.""#);
    let drill = VerifyHarness::new(SESSION).ignore("result.tools");
    assert_eq!(shown(&drill.altered(&mut replacing("plain", "new"))), "");
}

#[test]
fn notifications_are_missed_and_noticed() {
    let drill = VerifyHarness::new(SESSION);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#;
    let without = drill.altered(&mut |said| match said.contains(r#""progress":1"#) {
        true => Vec::new(),
        false => vec![said.to_owned()],
    });
    assert_eq!(shown(&without), format!("#7 notifications/progress: notice removed {progress}"));
    let twice = drill.altered(&mut |said| match said.contains(r#""progress":1"#) {
        true => vec![said.to_owned(), said.to_owned()],
        false => vec![said.to_owned()],
    });
    assert_eq!(shown(&twice), format!("notifications/progress: notice added {progress}"));
    let other = drill.altered(&mut replacing(r#""progress":2"#, r#""progress":3"#));
    assert_eq!(shown(&other), "#8 notifications/progress: notice params.progress: 2 > 3");
    let log = drill.altered(&mut |said| match said.contains("removed") {
        true => Vec::new(),
        false => vec![said.to_owned()],
    });
    assert!(shown(&log).starts_with("#12 notifications/message: notice removed"));
    assert!((500..2000).contains(&log.ms), "{}", log.ms);
}

#[test]
fn a_server_that_hangs_is_waited_for_and_then_given_up() {
    let mute = |method: &'static str| {
        move |said: &str| match said.contains(method) {
            true => Vec::new(),
            false => vec![said.to_owned()],
        }
    };
    let done = VerifyHarness::new(SESSION).altered(&mut mute(r#""text":"one""#));
    assert_eq!(shown(&done), "#9 tools/call: silence of 30000 ms");
    assert!(done.sent.iter().any(|line| line.contains(r#""requestId":2"#)), "{:?}", done.sent);
    let done = VerifyHarness::new(SESSION).altered(&mut mute("serverInfo"));
    let gone = "#2 initialize: silence of 30000 ms\n: ended: it no longer answers";
    assert_eq!((shown(&done), done.sent.len()), (gone.to_owned(), 1));
    assert!(
        done.report.skipped.iter().all(|skipped| skipped.skip_reason == SkipReason::ServerGone)
    );
    let done = VerifyHarness::new(SESSION).altered(&mut mute("id"));
    assert_eq!(done.ms, 30_000);
    let mut said = 0;
    let done = VerifyHarness::new(SESSION).altered(&mut |line| {
        said += 1;
        if said < 3 { vec![line.to_owned()] } else { Vec::new() }
    });
    assert_eq!((done.report.findings.len(), done.ms), (4, 90_000));
}

#[test]
fn a_server_that_ends_too_early_is_told() {
    let ends_at = |text: &'static str| {
        move |said: &str| match said.contains(text) {
            true => vec!["gone".to_owned()],
            false => vec![said.to_owned()],
        }
    };
    let done = VerifyHarness::new(SESSION).altered(&mut ends_at(r#""text":"one""#));
    assert_eq!(shown(&done), ": ended: it fell over");
    let gone = |skipped: &&tapegate_core::verifier::SkippedMessage| {
        skipped.skip_reason == SkipReason::ServerGone
    };
    assert_eq!(done.report.skipped.iter().filter(gone).count(), 4);
    // Nothing more was expected of it.
    let done =
        VerifyHarness::new(SESSION).calls(CallSelection::List).altered(&mut |said| match said
            .contains("plain")
        {
            true => vec![said.to_owned(), "gone".to_owned()],
            false => vec![said.to_owned()],
        });
    assert_eq!(shown(&done), "");
}

#[test]
fn what_the_live_server_mints_is_handed_back() {
    let tape = r#"
        > {"id":0,"method":"server/discover"}
        < {"id":0,"error":{}}
        > {"id":1,"method":"prompts/list"}
        < {"id":1,"result":{"prompts":[{"name":"a"}],"nextCursor":"p2"}}
        > {"id":2,"method":"prompts/list","params":{"cursor":"p2"}}
        < {"id":2,"result":{"prompts":[{"name":"b"}]}}
        > {"id":3,"method":"tools/call","params":{"name":"t"}}
        < {"id":3,"result":{"resultType":"input_required","requestState":"s","inputRequests":{}}}
        > {"id":4,"method":"tools/call","params":{"name":"t","requestState":"s","inputResponses":{}}}
        < {"id":4,"result":{"task":{"taskId":"t1","status":"working"}}}
        > {"id":5,"method":"tasks/result","params":{"taskId":"t1"}}
        < {"id":5,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}},"content":[]}}
    "#;
    let mut mint = |said: &str| {
        vec![said.replace("p2", "q2").replace(r#":"s""#, r#":"live""#).replace("t1", "u1")]
    };
    // The echo server only knows the tape, so it gets the recorded values again.
    let done = VerifyHarness::new(tape).altered(&mut mint);
    let sent = done.sent.join("\n");
    for live in [r#""cursor":"q2""#, r#""requestState":"live""#] {
        assert!(sent.contains(live), "{live}: {sent}");
    }
}

#[test]
fn lists_that_are_cut_into_other_pages_are_the_same_lists() {
    let whole = r#"
        > {"id":1,"method":"tools/list","params":{"_meta":{"progressToken":9,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        < {"id":1,"result":{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}}
    "#;
    let mut pages = |said: &str| {
        vec![match said {
            _ if said.contains(r#""id":1"#) => r#"{"id":1,"result":{"tools":[{"name":"a"}],"nextCursor":"x"}}"#,
            _ if said.contains("tapegate-1") => r#"{"id":"tapegate-1","result":{"tools":[{"name":"c"},{"name":"b"}],"nextCursor":"y"}}"#,
            _ => r#"{"id":"tapegate-2","result":{"tools":[{"name":"d"}]}}"#,
        }.to_owned()]
    };
    let done = VerifyHarness::new(whole).altered(&mut pages);
    assert_eq!(shown(&done), r#"#2 tools/list: Tools d added {"name":"d"}"#);
    assert!(matches!(done.report.notes[0].kind, VerifyNoteKind::Reordered(_)));
    let page = r#"{"jsonrpc":"2.0","id":"tapegate-1","method":"tools/list","params":{"cursor":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    assert_eq!(done.sent[1], page);
    let cut = r#"
        > {"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        < {"id":1,"result":{"tools":[{"name":"a"}],"nextCursor":"x"}}
        > {"id":2,"method":"tools/list","params":{"cursor":"x"}}
        < {"id":2,"result":{"tools":[{"name":"b"}],"nextCursor":"y"}}
        > {"id":3,"method":"tools/list","params":{"cursor":"y"}}
        < {"id":3,"result":{"tools":[{"name":"c"}]}}
    "#;
    let mut joined =
        |_: &str| vec![r#"{"id":1,"result":{"tools":[{"name":"a"},{"name":"c"}]}}"#.to_owned()];
    let done = VerifyHarness::new(cut).altered(&mut joined);
    assert_eq!(shown(&done), r#"#2 tools/list: Tools b removed {"name":"b"}"#);
    assert_eq!((done.sent.len(), done.report.skipped.len()), (1, 2));
}

#[test]
fn what_every_session_finds_is_told_once() {
    let tape: String = ["a", "b", "c"]
        .iter()
        .map(|session| {
            SESSION.trim().lines().map(|line| format!("#{session} {line}\n")).collect::<String>()
        })
        .collect();
    let done = VerifyHarness::new(&tape).altered(&mut replacing("Reads.", "Kills."));
    assert_eq!(shown(&done), r#"#5 tools/list: Tools read description: "Reads." > "Kills." ×3"#);
    assert_eq!(done.report.sessions, 3);
}

#[test]
fn a_client_that_the_tape_does_not_introduce_is_introduced() {
    let tape = r#"
        > {"id":7,"method":"tools/call","params":{"name":"t"}}
        < {"id":1,"method":"roots/list"}
        > {"id":1,"result":{"roots":[]}}
        < {"id":7,"result":{}}
    "#;
    let mut welcome = |said: &str| match said.contains("-32601") {
        true => vec![r#"{"id":"tapegate-1","result":{}}"#.to_owned()],
        false => vec![said.to_owned()],
    };
    let done = VerifyHarness::new(tape).altered(&mut welcome);
    assert_eq!(shown(&done), "");
    let methods = methods(&done);
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call t", "answer"]);
    assert!(done.sent[0].contains(r#""capabilities":{"roots":{}}"#), "{}", done.sent[0]);
    assert_eq!(done.report.notes[0].kind, VerifyNoteKind::Introduced);
    // A server that refuses still gets the other messages.
    assert_eq!(VerifyHarness::new(tape).echo().sent.len(), 3);
}

#[test]
fn an_answer_that_was_meant_for_a_call_is_not_given_away_without_it() {
    let tape = format!(
        "{SESSION}\n{}",
        r#"
        > {"id":9,"method":"tools/call","params":{"name":"rm","arguments":{}}}
        < {"id":1,"method":"elicitation/create","params":{"message":"Your password?"}}
        > {"id":1,"result":{"action":"accept","content":{"password":"secret"}}}
        < {"id":9,"result":{"content":[]}}
        > {"id":10,"method":"ping"}
        < {"id":10,"result":{}}
        "#
    );
    let ask = r#"{"id":"q","method":"elicitation/create","params":{"message":"Your password?"}}"#;
    let mut asks = |said: &str| match said.contains("serverInfo") {
        true => vec![said.to_owned(), ask.to_owned()],
        false => vec![said.to_owned()],
    };
    for calls in [CallSelection::List, CallSelection::ReadOnly] {
        let done = VerifyHarness::new(&tape).calls(calls).altered(&mut asks);
        assert!(!done.sent.iter().any(|line| line.contains("secret")), "{:?}", done.sent);
        assert_eq!(done.report.notes[0].kind, VerifyNoteKind::Withheld);
    }
    let done = VerifyHarness::new(&tape).echo();
    assert!(done.sent.iter().any(|line| line.contains("secret")));
    assert_eq!(shown(&done), "");
}

#[test]
fn a_message_that_readers_may_disagree_on_is_a_call() {
    let tape = r#"
        > {"id":1,"method":"initialize"}
        < {"id":1,"result":{}}
        > {"id":2,"method":"tools/call","params":{"name":"rm"},"method":"tools/list"}
        < {"id":2,"result":{"tools":[]}}
        > {"id":3,"method":"tools/call","params":{"name":"rm","name":"read"}}
        < {"id":3,"result":{"content":[]}}
        > {"id":4,"method":"tools/list"}
        < {"id":4,"result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}}
    "#;
    for calls in [CallSelection::List, CallSelection::ReadOnly] {
        let done = VerifyHarness::new(tape).calls(calls).echo();
        assert_eq!(methods(&done), ["initialize", "tools/list"]);
    }
}

#[test]
fn a_long_run_of_messages_goes_out_in_parts() {
    let long = "x".repeat(300_000);
    let note = format!("> {{\"method\":\"notifications/x\",\"params\":{{\"long\":\"{long}\"}}}}\n");
    let tape = format!("{SESSION}\n{}", note.repeat(10));
    let done = VerifyHarness::new(&tape).echo();
    assert_eq!((shown(&done).as_str(), done.sent.len()), ("", 18));
    assert_eq!(done.steps, VerifyHarness::new(SESSION).echo().steps + 2);
}

#[test]
fn batches_are_read_and_what_is_no_message_is_noted() {
    let mut noisy = |said: &str| {
        let junk = ["Starting…", "", "[]", "{}", "{\"jsonrpc\":"].map(str::to_owned);
        junk.into_iter().chain([format!("[{said}]")]).collect()
    };
    let done = VerifyHarness::new(SESSION).altered(&mut noisy);
    assert_eq!(shown(&done), "");
    let sorts: Vec<_> = done.report.notes.iter().map(|note| &note.kind).collect();
    let junk = ["Starting…", "{}", "{\"jsonrpc\":"];
    let junk = junk.map(|start| VerifyNoteKind::NoMessage { start: start.to_owned() });
    assert_eq!(sorts, junk.iter().collect::<Vec<_>>());
}

#[test]
fn an_answer_twice_or_to_nothing_is_told() {
    let done =
        VerifyHarness::new(SESSION).altered(&mut |said| match said.contains(r#""text":"one""#) {
            true => vec![said.to_owned(), said.to_owned(), r#"{"error":{"code":1}}"#.to_owned()],
            false => vec![said.to_owned()],
        });
    assert_eq!(done.report.findings.len(), 2, "{}", shown(&done));
    assert!(shown(&done).starts_with(": Stray"), "{}", shown(&done));
}

#[test]
fn requests_with_the_same_id_at_the_same_time_are_told_apart() {
    let tape = r#"
        > {"id":1,"method":"server/discover"}
        > {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}
        > {"id":1,"method":"tools/call","params":{"name":"b","_meta":{"progressToken":1}}}
        < {"id":1,"result":{"of":"discover"}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":5}}
        < {"id":1,"result":{"of":"a"}}
        < {"id":1,"result":{"of":"b"}}
    "#;
    let done = VerifyHarness::new(tape).echo();
    assert_eq!(shown(&done), "");
    let ids: Vec<Value> = done
        .sent
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(
        ids.iter().map(Value::to_string).collect::<Vec<_>>(),
        ["1", "\"tapegate-1\"", "\"tapegate-2\""]
    );
}

#[test]
fn a_call_that_was_cancelled_is_cancelled_after_what_it_had_said() {
    let tape = r#"
        > {"id":1,"method":"server/discover"}
        < {"id":1,"result":{}}
        > {"id":2,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":7}}}
        @400 < {"method":"notifications/progress","params":{"progressToken":7,"progress":1}}
        > {"method":"notifications/cancelled","params":{"requestId":2}}
        > {"id":3,"method":"ping"}
        < {"id":3,"result":{}}
    "#;
    let done = VerifyHarness::new(tape).echo();
    assert_eq!(shown(&done), "");
    let methods = methods(&done);
    assert_eq!(methods, ["server/discover", "tools/call slow", "notifications/cancelled", "ping"]);
    // A server that sees the cancellation late has sent more.
    let more = VerifyHarness::new(tape).altered(&mut |said| match said.contains("progress") {
        true => vec![said.to_owned(), said.replace("\"progress\":1", "\"progress\":2")],
        false => vec![said.to_owned()],
    });
    assert_eq!(shown(&more), "");
    // If it is missing, the verifier waits twice as long as it took, and a bit more.
    let without = VerifyHarness::new(tape).altered(&mut |said| match said.contains("progress") {
        true => Vec::new(),
        false => vec![said.to_owned()],
    });
    assert!(shown(&without).contains("notifications/progress: notice removed"));
    assert!((1300..1500).contains(&without.ms), "{}", without.ms);
}
