//! The official SDKs' clients call tools as tasks, and a person decides about the calls.

use std::path::Path;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use tapegate_store::approvals::ApprovalRecord;

use super::{GovernedFolder, approvals};
use crate::peers::{self, PeerClient, PeerServer, PeerTransport};
use crate::support::{approvals_of, wait_for};

/// The everything server makes tasks of its own for `simulate-research-query`.
const POLICY: &str = "\
schema: 1
sources:
  - id: peer
governance:
  defaults: { action: forward }
  rules:
    - { match: simulate-research-query, action: approve, approval: people }
    - { match: echo, action: approve, approval: people }
    - { match: get-sum, action: approve, approval: short }
approval:
  people: { timeout: 5m }
  short: { timeout: 5s }
";

const TS1: PeerClient = PeerClient { python: None, script: &["tasks.mjs", "1"] };
const TS2: PeerClient = PeerClient { python: None, script: &["tasks.mjs", "legacy"] };
const PY1: PeerClient = PeerClient { python: Some("py1"), script: &["tasks.py"] };

/// Tests on each line: client, and the link from the shim to the server.
macro_rules! has_tasks {
    ($($name:ident: $client:ident => $far:ident;)*) => {
        $(#[test]
        fn $name() {
            tasks($client, PeerTransport::$far);
        })*
    };
}

has_tasks! {
    ts1_has_tasks_over_stdio: TS1 => Stdio;
    ts1_has_tasks_with_a_server_over_http: TS1 => Http;
    ts2_has_tasks_over_stdio: TS2 => Stdio;
    py1_has_tasks_over_stdio: PY1 => Stdio;
    py1_has_tasks_with_a_server_over_http: PY1 => Http;
}

fn calls() -> Value {
    json!([
        ["echo", { "message": "approved" }, "poll"],
        ["echo", { "message": "denied" }, "wait"],
        // No one is asked about this one for long.
        ["get-sum", { "a": 1, "b": 2 }, "poll"],
        ["echo", { "message": "taken back" }, "cancel"],
        // The server makes a task of this one, whose result is that of ours.
        ["simulate-research-query", { "topic": "tapes" }, "wait"],
        ["echo", { "message": "without a task" }, "plain"],
    ])
}

/// Decides about the calls that wait for a person, in order.
fn decided(folder: &GovernedFolder) -> JoinHandle<()> {
    let state = folder.path("state").display().to_string();
    thread::spawn(move || {
        for (call, verb) in [
            ("approved", "approve"),
            ("denied", "deny"),
            ("tapes", "approve"),
            ("without a task", "approve"),
        ] {
            let store = approvals_of(Path::new(&state));
            let is_it = |request: &ApprovalRecord| format!("{request:?}").contains(call);
            let id = wait_for("a call that waits for a person", || {
                // A request is pending until its time is over by its own clock.
                let pending = store.pending(0).ok()?;
                pending.into_iter().find(is_it).map(|request| request.id)
            });
            approvals(&[verb, &id], &state);
        }
    })
}

fn tasks(client: PeerClient, far: PeerTransport) {
    let folder = GovernedFolder::with_policy(POLICY);
    let decider = decided(&folder);
    let links = (PeerTransport::Stdio, far);
    let told = folder.serve_with(PeerServer::Everything, links, |target| {
        let mut command = client.command(PeerTransport::Stdio, target);
        command.env("CALLS", calls().to_string());
        serde_json::from_str::<Value>(&peers::transcript(command)).expect("a driver prints JSON")
    });
    decider.join().expect("all calls are decided");
    let outcomes = told["outcomes"].as_array().expect("a list of outcomes");
    let codes: Vec<_> = outcomes.iter().map(|outcome| outcome["code"].as_i64()).collect();
    assert_eq!(codes, [None, Some(-32007), Some(-32008), Some(-32006), None, None], "{told:#}");
    let of = |key: &str| -> Vec<Value> { outcomes.iter().map(|one| one[key].clone()).collect() };
    let working = json!("working");
    assert_eq!(of("first")[..5], [(); 5].map(|()| working.clone()), "{told:#}");
    let last = ["completed", "failed", "failed", "cancelled", "completed"].map(Value::from);
    assert_eq!(of("last")[..5], last, "{told:#}");
    assert_eq!(outcomes[0]["text"], "Echo: approved");
    let report = outcomes[4]["text"].as_str().expect("a report");
    assert!(report.starts_with("# Research Report: tapes"), "{report}");
    assert_eq!(outcomes[5]["text"], "Echo: without a task");
    // All of ours are listed, the newest first, and then the server's.
    let listed = told["listed"].as_array().expect("a list of tasks");
    let ours =
        |task: &&Value| task["taskId"].as_str().expect("an id").starts_with("tapegate-task-");
    let states: Vec<_> = listed.iter().filter(ours).map(|task| task["status"].clone()).collect();
    assert_eq!(states, ["completed", "cancelled", "failed", "failed", "completed"], "{told:#}");
    assert_eq!(listed[0]["taskId"], outcomes[4]["related"], "{told:#}");
    assert_eq!(listed.len(), 6, "the server has one of its own: {told:#}");
    assert_eq!(folder.served(), ["echo", "simulate-research-query", "echo"]);
    peers::assert_none_left(folder.folder.path());
    for tape in std::fs::read_dir(folder.path("state/tapes/peer")).expect("tapes") {
        peers::assert_valid(&tape.expect("a tape").path());
    }
    peers::assert_valid(&folder.path("state/activity.jsonl"));
}
