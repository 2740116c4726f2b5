//! The users of the official SDKs' clients are asked about held calls in the client itself.

use std::fs;

use serde_json::{Value, json};

use super::{GovernedFolder, approvals};
use crate::peers::{self, PeerClient, PeerTransport};
use crate::support::within;

const POLICY: &str = "\
schema: 1
sources:
  - id: peer
governance:
  defaults: { action: forward }
  rules:
    - { match: test_simple_text, action: approve, approval: long }
    - { match: test_image_content, action: approve, approval: short }
    - { match: echo, action: approve, approval: elsewhere }
redaction: { patterns: [secrets] }
approval:
  long: { timeout: 5m, in_agent: [asked] }
  short: { timeout: 5s, in_agent: [\"ask*\"] }
  elsewhere: { timeout: 5s, in_agent: [another-client] }
";

const TS1: PeerClient = PeerClient { python: None, script: &["asked.mjs", "1"] };
const TS2: PeerClient = PeerClient { python: None, script: &["asked.mjs", "legacy"] };
const TS2_AUTO: PeerClient = PeerClient { python: None, script: &["asked.mjs", "auto"] };
const TS2_MODERN: PeerClient = PeerClient { python: None, script: &["asked.mjs", "modern"] };
const PY1: PeerClient = PeerClient { python: Some("py1"), script: &["asked.py", "1"] };
const PY2: PeerClient = PeerClient { python: Some("py2"), script: &["asked.py", "legacy"] };
const PY2_AUTO: PeerClient = PeerClient { python: Some("py2"), script: &["asked.py", "auto"] };
const PY2_MODERN: PeerClient = PeerClient { python: Some("py2"), script: &["asked.py", "modern"] };

/// Tests on each line: client, and the links from client to shim and from shim to server.
macro_rules! is_asked {
    ($($name:ident: $client:ident, $near:ident => $far:ident;)*) => {
        $(#[test]
        fn $name() {
            asked($client, (PeerTransport::$near, PeerTransport::$far));
        })*
    };
}

is_asked! {
    ts1_is_asked_over_stdio: TS1, Stdio => Stdio;
    ts1_is_asked_through_the_proxy: TS1, Http => Http;
    ts2_is_asked_from_stdio_to_http: TS2, Stdio => Http;
    ts2_is_asked_from_http_to_stdio: TS2, Http => Stdio;
    ts2_auto_is_asked_over_stdio: TS2_AUTO, Stdio => Stdio;
    ts2_modern_is_asked_over_stdio: TS2_MODERN, Stdio => Stdio;
    ts2_modern_is_asked_through_the_proxy: TS2_MODERN, Http => Http;
    ts2_modern_is_asked_from_http_to_stdio: TS2_MODERN, Http => Stdio;
    py1_is_asked_over_stdio: PY1, Stdio => Stdio;
    py1_is_asked_from_http_to_stdio: PY1, Http => Stdio;
    py2_is_asked_over_stdio: PY2, Stdio => Stdio;
    py2_auto_is_asked_from_http_to_stdio: PY2_AUTO, Http => Stdio;
    py2_modern_is_asked_over_stdio: PY2_MODERN, Stdio => Stdio;
    py2_modern_is_asked_through_the_proxy: PY2_MODERN, Http => Http;
}

fn accept(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

fn run(
    client: PeerClient,
    near: PeerTransport,
    target: &[String],
    (calls, answers): (&Value, &Value),
) -> Value {
    let mut command = client.command(near, target);
    command.env("CALLS", calls.to_string()).env("ANSWERS", answers.to_string());
    serde_json::from_str(&peers::transcript(command)).expect("a driver prints JSON")
}

fn asked(client: PeerClient, links: (PeerTransport, PeerTransport)) {
    let folder = GovernedFolder::with_policy(POLICY);
    let call = |name: &str| json!([name, {}]);
    let calls = json!([
        call("test_simple_text"),
        call("test_simple_text"),
        call("test_simple_text"),
        call("test_image_content"),
        call("test_image_content"),
        ["echo", { "message": "no one is asked" }],
    ]);
    let answers = json!([
        accept("approve"),
        accept("deny"),
        { "action": "decline" },
        { "action": "cancel" },
        // A form without the choice decides nothing.
        { "action": "accept", "content": {} },
    ]);
    let told = folder.serve(links, |target| run(client, links.0, target, (&calls, &answers)));
    let outcomes = told["outcomes"].as_array().expect("a list of outcomes");
    let codes: Vec<_> = outcomes.iter().map(|outcome| outcome["code"].as_i64()).collect();
    let (denied, late) = (Some(-32007), Some(-32008));
    assert_eq!(codes, [None, denied, denied, late, late, late], "{told:#}");
    assert_eq!(outcomes[0]["text"], "This is a simple text response for testing.");
    let questions = told["questions"].as_array().expect("a list of questions");
    assert_eq!(questions.len(), 5, "{told:#}");
    let text = questions[0]["message"].as_str().expect("a text");
    assert!(text.contains("    tool: test_simple_text\n"), "{text}");
    assert_eq!(questions[0]["schema"]["required"], json!(["decision"]));
    assert_nothing_leaked(&folder);
    assert_eq!(folder.served(), ["test_simple_text"]);
    peers::assert_none_left(folder.folder.path());
    let events = fs::read_to_string(folder.path("state/activity.jsonl")).expect("a log");
    let by_user = |event: &&str| event.contains("\"decided_by\":\"user of asked\"");
    let decisions = events.lines().filter(by_user).filter(|event| event.contains("\"client\""));
    assert_eq!(decisions.count(), 3, "{events}");
    peers::assert_valid(&folder.path("state/activity.jsonl"));
}

/// The server has seen neither our questions nor the answers.
fn assert_nothing_leaked(folder: &GovernedFolder) {
    let tape = fs::read_to_string(folder.path("server.jsonl")).expect("a tape of the server");
    for part in ["\"decision\"", "inputResponses", "requestState", "\"id\":\"tapegate-"] {
        assert!(!tape.contains(part), "the server has seen {part}");
    }
}

#[test]
fn a_question_is_withdrawn_when_a_person_elsewhere_is_first() {
    for (client, links) in [
        (TS1, (PeerTransport::Stdio, PeerTransport::Stdio)),
        (TS2, (PeerTransport::Http, PeerTransport::Stdio)),
        (TS2, (PeerTransport::Http, PeerTransport::Http)),
    ] {
        let folder = GovernedFolder::with_policy(POLICY);
        let state = folder.path("state").display().to_string();
        let elsewhere = std::thread::spawn(move || {
            approvals(&["list", "--wait"], &state);
            approvals(&["approve", "--all"], &state);
        });
        let (calls, answers) = (json!([["test_simple_text", {}]]), json!(["never"]));
        let told = folder.serve(links, |target| run(client, links.0, target, (&calls, &answers)));
        assert!(elsewhere.join().is_ok(), "nothing waited for approval: {told:#}");
        assert_eq!(told["questions"][0]["withdrawn"], true, "{told:#}");
        assert_eq!(told["outcomes"][0]["failed"], false, "{told:#}");
        assert_eq!(folder.served(), ["test_simple_text"]);
        assert_nothing_leaked(&folder);
    }
}

#[test]
fn many_calls_that_are_asked_about_at_once_get_their_own_answers() {
    for (client, links) in [
        (TS1, (PeerTransport::Stdio, PeerTransport::Stdio)),
        (TS2_MODERN, (PeerTransport::Http, PeerTransport::Stdio)),
    ] {
        let folder = GovernedFolder::with_policy(POLICY);
        // Other arguments make another call, so each has a request of its own.
        let calls: Vec<Value> = (0..12).map(|n| json!(["test_simple_text", { "n": n }])).collect();
        let answers: Vec<Value> =
            (0..12).map(|n| accept(if n % 3 == 0 { "deny" } else { "approve" })).collect();
        let told = folder.serve(links, |target| {
            let mut command = client.command(links.0, target);
            command.env("CALLS", json!(calls).to_string()).env("TOGETHER", "1");
            command.env("ANSWERS", json!(answers).to_string());
            let told = peers::transcript(command);
            serde_json::from_str::<Value>(&told).expect("a driver prints JSON")
        });
        let outcomes = told["outcomes"].as_array().expect("a list of outcomes");
        let denied = outcomes.iter().filter(|outcome| outcome["code"] == -32007).count();
        assert_eq!((denied, folder.served().len()), (4, 8), "{told:#}");
        assert_nothing_leaked(&folder);
    }
}

#[test]
fn a_call_that_is_taken_back_is_no_longer_asked_about() {
    let folder = GovernedFolder::with_policy(POLICY);
    let client = PeerClient { python: None, script: &["withdraw.mjs"] };
    let links = (PeerTransport::Stdio, PeerTransport::Stdio);
    let told = folder.serve(links, |target| {
        let told = peers::transcript(client.command(links.0, target));
        serde_json::from_str::<Value>(&told).expect("a driver prints JSON")
    });
    assert_eq!(told, json!({ "withdrawn": true, "failed": true }));
    let is_over = within(std::time::Duration::from_secs(60), || {
        let log = fs::read_to_string(folder.path("state/activity.jsonl")).expect("a log");
        log.contains("\"outcome\":\"cancelled\"").then_some(())
    });
    assert!(is_over.is_some());
    assert_eq!(folder.served(), Vec::<String>::new());
}
