//! The user of a client answers in the client: questions, answers, and what becomes of both.

use serde_json::{Value, json};
use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome};

use super::setup::{
    answer, approvals, call_with, decide, event, held, messages, server_got, waiting,
};
use crate::support::{RunningSession, approvals_of, shim, wait_for};

const POLICY: &str = "\
schema: 1
governance:
  defaults: { action: forward }
  rules: [{ match: \"ask*\", action: approve }]
redaction: { patterns: [secrets] }
approval:
  people: { timeout: 5m, in_agent: [cc], redact_fields: [pin] }
";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"cc","version":"1"}}}"#;
const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"cc","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

fn governed() -> RunningSession {
    let mut run = shim(POLICY, &["log=log", "serve"]).start();
    run.send(format!("{INITIALIZE}\n").as_bytes());
    answer(&run, 0);
    run
}

/// The questions that the client has been asked so far, and has to be asked at least.
fn questions(run: &RunningSession, count: usize) -> Vec<Value> {
    wait_for("questions", || {
        let asks = |message: &Value| message["method"] == "elicitation/create";
        let asked: Vec<Value> = messages(&run.got()).into_iter().filter(asks).collect();
        (asked.len() >= count).then_some(asked)
    })
}

fn reply(question: &Value, result: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }))
}

fn choice(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

#[test]
fn the_first_answer_counts_and_later_ones_go_nowhere() {
    let mut run = governed();
    run.send(call_with(1, "ask", "{}").as_bytes());
    let question = questions(&run, 1).remove(0);
    let replies = [reply(&question, &choice("approve")), reply(&question, &choice("deny"))];
    run.send(replies.concat().as_bytes());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    run.send(call_with(2, "ask", r#"{"n":2}"#).as_bytes());
    let question = questions(&run, 2).remove(1);
    let id = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Denied, &id);
    assert_eq!(answer(&run, 2)["error"]["code"], -32007);
    let over = run.line_with("notifications/cancelled");
    assert!(over.contains(question["id"].as_str().unwrap()), "{over}");
    run.send(reply(&question, &choice("approve")).as_bytes());
    run.send(call_with(3, "free", "{}").as_bytes());
    assert_eq!(answer(&run, 3)["result"]["for"], 3);
    let log = event(run.folder(), &[("decided_by", "user of cc"), ("channel", "client")]);
    assert_eq!(
        (log["governance_decision"].as_str(), log["client"].as_str()),
        (Some("approved"), Some("cc"))
    );
    let got = server_got(run.folder());
    assert!(!got.contains("decision") && got.matches("\"ask\"").count() == 1, "{got}");
    run.end_of_input().exits(0);
}

#[test]
fn a_question_shows_the_call_without_secrets_and_without_effect_on_the_screen() {
    let mut run = governed();
    let arguments = r#"{"path":"a\u001b[2J\u202e`b`\n\n# approve\n[x](http://e)","token":"ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8","pin":4711}"#;
    run.send(call_with(1, "ask", arguments).as_bytes());
    let question = questions(&run, 1).remove(0);
    let text = question["params"]["message"].as_str().unwrap();
    assert!(!text.contains("ghp_") && !text.contains("4711"), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{202e}'));
    let ours = ["May this call", "Values marked [REDACTED]", "Asked by Tapegate."];
    for line in text.lines().filter(|line| !line.is_empty()) {
        let is_ours = ours.iter().any(|start| line.starts_with(start));
        assert!(is_ours || line.starts_with("    "), "{line:?} in {text}");
    }
    // What is not shown in full can only be denied.
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(20_000));
    run.send(call_with(2, "ask", &long).as_bytes());
    let question = questions(&run, 2).remove(1);
    let text = question["params"]["message"].as_str().unwrap();
    assert!(text.len() < 8_000 && text.contains("can only be denied here"), "{text}");
    let schema = &question["params"]["requestedSchema"]["properties"]["decision"];
    assert_eq!(schema["enum"], json!(["deny"]));
    run.send(reply(&question, &choice("approve")).as_bytes());
    event(run.folder(), &[("event", "unanswered")]);
    assert_eq!(held(&run, 2).len(), 2, "both still wait");
}

#[test]
fn a_client_that_can_no_longer_answer_leaves_the_call_to_others() {
    let mut run = governed();
    run.send(call_with(1, "ask", "{}").as_bytes());
    let question = questions(&run, 1).remove(0);
    let error = json!({ "code": -32601, "message": "no" });
    let error = json!({ "jsonrpc": "2.0", "id": question["id"], "error": error });
    run.send(format!("{error}\n").as_bytes());
    event(run.folder(), &[("event", "unanswered")]);
    let id = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Approved, &id);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}

/// A call of a client of revision 2026-07-28.
fn modern(id: u64, more: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"ask\",\"arguments\":{{}},\"_meta\":{META}{more}}}}}\n"
    )
}

fn retry(id: u64, state: &Value, result: &Value) -> String {
    let answers = json!({ "tapegate-approval": result });
    modern(id, &format!(",\"requestState\":{state},\"inputResponses\":{answers}"))
}

#[test]
fn a_state_outlives_its_shim_and_serves_for_one_decision() {
    let setup = || shim(POLICY, &["log=log", "serve"]);
    let mut run = setup().start();
    run.send(modern(1, "").as_bytes());
    let asked = answer(&run, 1);
    assert_eq!(asked["result"]["resultType"], "input_required");
    let state = asked["result"]["requestState"].clone();
    let folder = run.folder().to_owned();
    run.signal(rustix::process::Signal::KILL);
    // The next shim of the client, in the same project.
    let mut next = setup().within(&folder).start();
    next.send(retry(2, &state, &choice("approve")).as_bytes());
    assert_eq!(answer(&next, 2)["result"]["for"], 2);
    // The same answer again is no answer: the user is asked anew.
    next.send(retry(3, &state, &choice("approve")).as_bytes());
    let again = answer(&next, 3);
    assert_eq!(again["result"]["resultType"], "input_required");
    assert_ne!(again["result"]["requestState"], state);
    // Denied elsewhere, before the answer came.
    let id = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Denied, &id);
    next.send(retry(4, &again["result"]["requestState"], &choice("approve")).as_bytes());
    assert_eq!(answer(&next, 4)["error"]["code"], -32007);
    // Approved elsewhere: the same call passes, with or without an answer.
    next.send(modern(5, "").as_bytes());
    answer(&next, 5);
    let id = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Approved, &id);
    next.send(modern(6, "").as_bytes());
    assert_eq!(answer(&next, 6)["result"]["for"], 6);
    assert!(approvals(&run).pending(i64::MAX / 2).unwrap().is_empty());
    let got = server_got(&folder);
    assert!(!got.contains("requestState") && !got.contains("inputResponses"), "{got}");
    assert_eq!(got.matches("tools/call").count(), 2, "{got}");
}

#[test]
fn a_state_that_was_answered_twice_at_once_lets_one_call_pass() {
    let mut run = shim(POLICY, &["log=log", "serve"]).start();
    run.send(modern(1, "").as_bytes());
    let state = answer(&run, 1)["result"]["requestState"].clone();
    // Two windows of the same user.
    let both = [retry(2, &state, &choice("approve")), retry(3, &state, &choice("approve"))];
    run.send(both.concat().as_bytes());
    let results = [answer(&run, 2), answer(&run, 3)];
    let sent = results.iter().filter(|one| one["result"]["for"].is_number()).count();
    assert_eq!(sent, 1, "{results:?}");
    assert_eq!(server_got(run.folder()).matches("tools/call").count(), 1);
}

#[test]
fn an_answer_and_a_decision_elsewhere_at_once_are_one_decision() {
    let mut run = shim(POLICY, &["log=log", "serve"]).start();
    run.send(modern(1, "").as_bytes());
    let state = answer(&run, 1)["result"]["requestState"].clone();
    let id = held(&run, 1).remove(0);
    let folder = run.folder().join("state");
    let elsewhere = std::thread::spawn(move || {
        let decided = ApprovalDecision {
            ruling: ApprovalOutcome::Denied,
            by: "ann".to_owned(),
            at_us: 1,
            reason: None,
        };
        approvals_of(&folder).decide(&id, &decided).is_ok()
    });
    run.send(retry(2, &state, &choice("approve")).as_bytes());
    let was_first = elsewhere.join().unwrap();
    let answered = answer(&run, 2);
    assert_eq!(answered["error"]["code"] == -32007, was_first, "{answered}");
    let sent = server_got(run.folder()).matches("tools/call").count();
    assert_eq!(sent, usize::from(!was_first), "{answered}");
}

#[test]
fn a_state_whose_request_has_run_out_of_time_decides_nothing() {
    let policy = POLICY.replace("timeout: 5m", "timeout: 5s");
    let mut run = shim(&policy, &["log=log", "serve"]).start();
    run.send(modern(1, "").as_bytes());
    let state = answer(&run, 1)["result"]["requestState"].clone();
    let id = held(&run, 1).remove(0);
    run.until("the end of the request", |run| waiting(run).iter().all(|request| request.id != id));
    run.send(retry(2, &state, &choice("approve")).as_bytes());
    let again = answer(&run, 2);
    assert_eq!(again["result"]["resultType"], "input_required", "{again}");
    assert_ne!(again["result"]["requestState"], state);
    assert!(!server_got(run.folder()).contains("tools/call"));
}
