//! The user of a client answers in the client, and the shim passes the answer on to the hub.

use serde_json::{Value, json};

use super::super::setup::{answer, event, server_got};
use super::HubProcess;
use crate::support::RunningSession;

const POLICY: &str = "\
schema: 1
governance:
  defaults: { action: forward }
  rules: [{ match: \"ask*\", action: approve }]
approval:
  people: { timeout: 5m, in_agent: [cc] }
";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"cc","version":"1"}}}"#;
const MODERN: &str = r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"ask","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cc","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}MORE}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":{"name":"ask"}}"#;

fn send(run: &mut RunningSession, text: &str, id: u64, more: &str) {
    let text = text.replace("ID", &id.to_string()).replace("MORE", more);
    run.send(format!("{text}\n").as_bytes());
}

fn choice(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

#[test]
fn the_answer_of_a_client_s_user_reaches_the_hub() {
    let hub = HubProcess::start_deciding(POLICY);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    send(&mut run, INITIALIZE, 0, "");
    answer(&run, 0);
    for (id, decision) in [(1, "approve"), (2, "deny")] {
        send(&mut run, CALL, id, "");
        run.until("the question", |run| {
            let text = String::from_utf8_lossy(&run.got()).into_owned();
            text.matches("elicitation/create").count() == id as usize
        });
        let text = String::from_utf8_lossy(&run.got()).into_owned();
        let line = text.lines().rfind(|line| line.contains("elicitation/create")).unwrap();
        let question: Value = serde_json::from_str(line).unwrap();
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": choice(decision) });
        run.send(format!("{reply}\n").as_bytes());
        let answered = answer(&run, id);
        match decision {
            "approve" => assert_eq!(answered["result"]["for"], id),
            _ => assert_eq!(answered["error"]["code"], -32007),
        }
    }
    let logged =
        event(hub.folder.path(), &[("channel", "client"), ("governance_decision", "denied")]);
    assert_eq!(logged["decided_by"], "user of cc");
    // Asked in the result.
    send(&mut run, MODERN, 3, "");
    let asked = answer(&run, 3);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let answers = json!({ "tapegate-approval": choice("approve") });
    let state = &asked["result"]["requestState"];
    let more = format!(",\"requestState\":{state},\"inputResponses\":{answers}");
    send(&mut run, MODERN, 4, &more);
    assert_eq!(answer(&run, 4)["result"]["for"], 4);
    let got = server_got(run.folder());
    assert!(!got.contains("requestState"), "{got}");
    run.end_of_input().exits(0);
}

#[test]
fn a_hub_that_no_person_started_takes_no_answer_of_a_client_s_user() {
    let hub = HubProcess::start(POLICY, &[]);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    send(&mut run, INITIALIZE, 0, "");
    answer(&run, 0);
    send(&mut run, CALL, 1, "");
    let question: Value =
        serde_json::from_str(&run.line_with("elicitation/create")).expect("a question");
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": choice("approve") });
    run.send(format!("{reply}\n").as_bytes());
    run.says("cannot pass on what the client's user has answered");
    assert!(!server_got(run.folder()).contains("\"ask\""));
}
