//! Calls wait for approval while everything else goes on.

use std::fs;

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::setup::{
    answer, answer_in, approvals, ask, call, call_with, decide, event, events, held, is_refused,
    messages, rules, server_got, state, tapegate_on, tapes, waiting,
};
use crate::support::{RunningSession, accept_policy, key_flags, replace_file, shim};
use tapegate_store::approvals::ApprovalOutcome;

fn asking() -> String {
    rules(&[("ask*", "approve"), ("no", "deny")])
}

fn governed() -> RunningSession {
    shim(&asking(), &["log=log", "serve"]).start()
}

#[test]
fn a_held_call_is_sent_when_a_person_says_yes_and_nothing_waits_behind_it() {
    // The earlier tool stopped reading: pings and other calls were stuck behind an approval.
    let mut run = governed();
    let line = call_with(1, "ask", r#"{"a":1}"#);
    run.send(line.as_bytes());
    let id = held(&run, 1).remove(0);
    run.send([ask(2, "ping"), call(3, "other"), call(4, "no")].concat().as_bytes());
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    assert_eq!(answer(&run, 3)["result"]["for"], 3);
    assert_eq!(answer(&run, 4)["error"]["code"], -32014);
    assert!(!server_got(run.folder()).contains("\"ask\""));
    decide(&run, ApprovalOutcome::Approved, &id);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert!(server_got(run.folder()).ends_with(&line), "byte for byte");
    let end = run.end_of_input().exits(0);
    let kinds = events(end.run.folder());
    let about: Vec<_> = kinds.iter().filter(|event| event["approval_id"] == id.as_str()).collect();
    assert!(
        about.iter().any(|event| event["governance_decision"] == "pending_approval"),
        "{about:?}"
    );
    assert!(
        about.iter().any(|event| event["decided_by"].is_string()),
        "the outcome is logged: {about:?}"
    );
}

#[test]
fn a_person_s_no_is_told_to_the_caller() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Denied, &id);
    is_refused(&answer(&run, 1), -32007, "approval", "ask", "approval_rejected");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), "");
}

#[test]
fn no_name_takes_a_secret_into_a_request_a_denial_or_the_end_of_a_text_that_is_cut() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let policy = format!("{}redaction: {{}}\n", asking());
    let mut run = shim(&policy, &["log=log", "serve"]).start();
    run.send(call(1, &format!("ask-{secret}")).as_bytes());
    let id = held(&run, 1).remove(0);
    let shown = tapegate_on(&run, &["approvals", "--format", "jsonl"]);
    decide(&run, ApprovalOutcome::Denied, &id);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    // The last character of the secret is the first one that the log truncates.
    for (id, room) in [(2, 1024), (3, 2048)] {
        let blank = "x ".repeat((room + 1 - secret.len()) / 2);
        run.send(call(id, &format!("{blank}{secret}")).as_bytes());
        answer(&run, id);
    }
    let end = run.end_of_input().exits(0);
    let state = end.run.folder().join("state");
    let request = approvals(&end.run).path().join(format!("{id}.request.json"));
    let kept = [state.join("activity.jsonl"), request].map(|path| std::fs::read(path).unwrap());
    for text in [&kept[0], &kept[1], &shown.stdout, &end.stderr.as_bytes().to_vec()] {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains(&secret[..30]), "{text}");
    }
}

#[test]
fn the_request_shows_the_call_and_masks_its_secrets() {
    let policy = format!("{}redaction: {{ enabled: true }}\n", asking());
    let mut run = shim(&policy, &["serve"]).start();
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    run.send(
        call_with(1, "ask", &format!("{{\"token\":\"{secret}\",\"path\":\"/tmp/x\"}}")).as_bytes(),
    );
    held(&run, 1);
    let request = format!("{:?}", waiting(&run).remove(0));
    assert!(
        request.contains("/tmp/x") && request.contains("ask") && !request.contains(secret),
        "{request}"
    );
}

#[test]
fn ec_stdio_021_if_nobody_decides_in_time_production_refuses() {
    let policy = asking().replace("timeout: 5m", "timeout: 5s");
    let mut run = shim(&policy, &["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    is_refused(&answer(&run, 1), -32008, "approval", "ask", "approval_timeout");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), "");
    assert_eq!(waiting(&end.run).len(), 0);
}

#[test]
fn on_timeout_can_be_to_send_it_on() {
    let policy = asking().replace("timeout: 5m", "timeout: 5s, on_timeout: approve");
    let mut run = shim(&policy, &["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    // The log shows that no person decided, and why the call was let through.
    let end = run.end_of_input().exits(0);
    let ended = event(end.run.folder(), &[("kind", "approval"), ("outcome", "expired")]);
    let opened = event(end.run.folder(), &[("governance_decision", "pending_approval")]);
    for key in ["rule", "principal", "approval_id", "workflow", "policy_version", "request_id"] {
        assert!(opened[key].is_string(), "{key}: {opened}");
        assert_eq!(ended[key], opened[key], "{key}: {ended}");
    }
    let workflow = ended["workflow"].as_str().unwrap();
    assert_eq!(ended["decided_by"], format!("timeout of workflow `{workflow}`"));
    assert_eq!(
        (&ended["governance_decision"], &ended["forwarded"]),
        (&json!("forward"), &json!(true))
    );
    let reason = ended["policy_reason"].as_str().unwrap();
    assert_eq!(
        reason,
        format!(
            "no person decided within 5 s, and workflow `{workflow}` has `on_timeout: approve`"
        )
    );
    let shown = tapegate_on(&end.run, &["log", "--decision", "forward"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("allowed") && shown.contains(reason), "{shown}");
    assert!(shown.contains(&format!("by timeout of workflow `{workflow}`")), "{shown}");
}

#[test]
fn ec_stdio_021_if_nobody_can_be_asked_production_refuses_and_development_sends_it_on() {
    for (profile, code) in [("production", Some(-32013)), ("development", None)] {
        let setup = shim(&asking(), &["log=log", "serve"]).flags(&["--profile", profile]);
        let state = setup.folder().join("state");
        std::fs::create_dir(&state).unwrap();
        std::fs::write(state.join("private"), "a file in the place of the folder").unwrap();
        let mut run = setup.start();
        run.send([call(1, "ask"), call(2, "other")].concat().as_bytes());
        let first = answer(&run, 1);
        assert_eq!(first["error"]["code"].as_i64(), code, "{first}");
        assert_eq!(answer(&run, 2)["result"]["for"], 2, "the rest flows on");
        let end = run.end_of_input().exits(0);
        if code.is_some() {
            let ended = [("tool", "ask"), ("outcome", "unanswered")];
            let ended = event(end.run.folder(), &ended);
            assert_eq!(ended["governance_decision"], "service_unavailable");
            assert_eq!(ended["forwarded"], false);
        }
    }
}

#[test]
fn in_development_nobody_is_asked_and_the_log_says_so() {
    let setup = shim(&asking(), &["log=log", "serve"]).flags(&["--profile", "development"]);
    let end = setup.run(call(1, "ask").as_bytes()).exits(0);
    assert_eq!(answer_in(&end.stdout, &1.into())["result"]["for"], 1);
    let noted = event(end.run.folder(), &[("tool", "ask")]);
    assert_eq!(noted["governance_decision"], "WOULD_REQUIRE_APPROVAL");
    assert_eq!(noted["auto_approved"], true);
}

#[test]
fn ec_stdio_031_a_cancelled_call_is_not_asked_about_any_more_and_reaches_nobody() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    held(&run, 1);
    run.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    held(&run, 0);
    run.send(ask(2, "ping").as_bytes());
    answer(&run, 2);
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), ask(2, "ping"), "the cancellation ends with the hold");
    assert_eq!(messages(&end.stdout).len(), 1, "nobody waits for an answer");
}

#[test]
fn progress_is_told_by_the_caller_s_own_token_or_not_at_all() {
    // The earlier tool invented a token, which clients ignore or reject.
    let mut run = governed();
    let with = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ask\",\"_meta\":{\"progressToken\":\"mine\"}}}\n";
    run.send([with, &call(2, "ask2")].concat().as_bytes());
    held(&run, 2);
    let first = run.line_with("notifications/progress");
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["params"]["progressToken"], "mine", "{first}");
    assert!(first["params"]["message"].as_str().unwrap().contains("`people`"), "{first}");
    let got = String::from_utf8(run.got()).unwrap();
    assert_eq!(got.lines().count(), 1, "{got}");
}

#[test]
fn a_hundred_approvals_in_a_row_are_no_more_trouble_than_one() {
    // After ten approvals the earlier tool refused everything for good.
    let mut run = governed();
    for id in 0..100 {
        run.send(call_with(id, "ask", &format!("{{\"n\":{id}}}")).as_bytes());
        let name = held(&run, 1).remove(0);
        decide(&run, ApprovalOutcome::Approved, &name);
        assert_eq!(answer(&run, id)["result"]["for"], id);
    }
}

/// Asserts that what was sent behind 32 held calls is answered, and recorded as not sent.
fn nothing_behind_the_held_is_lost(steps: &[&str], end: impl FnOnce(&RunningSession)) {
    let mut run = shim(&asking(), steps).start();
    let lines: String =
        (0..40).map(|id| call_with(id, "ask", &format!("{{\"n\":{id}}}"))).collect();
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n";
    run.send([&lines, note, &ask(40, "ping")].concat().as_bytes());
    held(&run, 32);
    end(&run);
    let end = run.end().leaves_no_process();
    for id in 0..=40 {
        let error = answer_in(&end.stdout, &id.into());
        assert_eq!(error["error"]["code"], -32000, "{error}");
    }
    assert_eq!(server_got(end.run.folder()), "");
    let tape = tapes(end.run.folder()).remove(0);
    let kept = fs::read_to_string(&tape).unwrap();
    let (sent, unsent): (Vec<_>, Vec<_>) = kept
        .lines()
        .filter(|line| line.contains("\"dir\":\"c2s\""))
        .partition(|line| !line.contains("\"refused\":"));
    assert_eq!((sent.len(), unsent.len()), (32, 10), "{kept}");
}

#[test]
fn what_waits_behind_32_held_calls_is_answered_when_a_signal_comes() {
    nothing_behind_the_held_is_lost(&["log=log", "serve"], |run| run.signal(Signal::TERM));
}

#[test]
fn what_waits_behind_32_held_calls_is_answered_when_the_server_dies() {
    nothing_behind_the_held_is_lost(&["log=log", "serve"], |run| {
        run.others().into_iter().for_each(|pid| _ = kill_process(pid, Signal::KILL));
    });
}

#[test]
fn no_more_than_32_are_held_and_the_rest_waits_its_turn() {
    let mut run = governed();
    let lines: String =
        (0..40).map(|id| call_with(id, "ask", &format!("{{\"n\":{id}}}"))).collect();
    run.send([lines, ask("\"last\"", "ping")].concat().as_bytes());
    let ids = held(&run, 32);
    assert!(!String::from_utf8_lossy(&run.got()).contains("last"), "nothing more is read");
    ids.iter().for_each(|id| decide(&run, ApprovalOutcome::Approved, id));
    let rest = held(&run, 8);
    assert_eq!(answer(&run, "\"last\"")["result"]["for"], "last");
    rest.iter().for_each(|id| decide(&run, ApprovalOutcome::Denied, id));
    run.lines(41);
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()).matches("\"ask\"").count(), 32);
}

#[test]
fn a_call_that_was_approved_after_its_client_gave_up_passes_once() {
    let mut run = governed();
    let asked = |id: i64| call_with(id, "ask", r#"{"b":2,"a":[1]}"#);
    run.send(asked(1).as_bytes());
    let id = held(&run, 1).remove(0);
    // The client ends, and with it the shim; the request can still be decided.
    run.signal(rustix::process::Signal::KILL);
    let end = run.end();
    decide(&end.run, ApprovalOutcome::Approved, &id);
    let mut again = shim("", &["log=log", "serve"]).within(end.run.folder()).start();
    // The same call with its members in another order.
    again.send(call_with(5, "ask", r#"{"a":[1],"b":2}"#).as_bytes());
    assert_eq!(answer(&again, 5)["result"]["for"], 5);
    again.send(asked(6).as_bytes());
    again.send(ask(7, "ping").as_bytes());
    answer(&again, 7);
    assert!(!String::from_utf8_lossy(&again.got()).contains("\"id\":6"), "only once");
}

#[test]
fn an_approval_outlives_a_client_that_has_waited_long_enough() {
    // The wording of the SDKs TypeScript 1.x and 2.x, rmcp, Python 2.x and Codex.
    outlives("McpError: MCP error -32001: Request timed out");
    outlives("SdkError: Request timed out");
    outlives("request timeout");
    outlives("timed out after 2.5s");
    outlives("MCP response future dropped");
}

fn outlives(reason: &str) {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    let taken_back = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1, "reason": reason } });
    run.send(format!("{taken_back}\n").as_bytes());
    run.send(ask(2, "ping").as_bytes());
    answer(&run, 2);
    decide(&run, ApprovalOutcome::Approved, &id);
    run.send(call(3, "ask").as_bytes());
    assert_eq!(answer(&run, 3)["result"]["for"], 3, "{reason}");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), [ask(2, "ping"), call(3, "ask")].concat());
}

#[test]
fn why_a_call_was_taken_back_is_told_by_the_error_of_a_client_and_not_by_any_words() {
    for (reason, kept) in [
        ("McpError: MCP error -32001: Zeitüberschreitung", 1),
        ("the user said that it had timed out for them", 0),
        ("a deadline of 1-32001 was moved", 0),
        ("the user has stopped it", 0),
        ("", 0),
    ] {
        let mut run = governed();
        run.send(call(1, "ask").as_bytes());
        held(&run, 1);
        let params = json!({ "requestId": 1, "reason": reason });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        run.send(format!("{cancel}\n{}", ask(2, "ping")).as_bytes());
        answer(&run, 2);
        assert_eq!(waiting(&run).len(), kept, "{reason}");
    }
}

#[test]
fn a_call_is_decided_again_when_it_is_approved() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    replace_file(&run.folder().join("tapegate.yaml"), &rules(&[("ask", "deny")]));
    accept_policy(run.folder(), &state(&run), &[]);
    run.says("policy");
    run.until("the new policy", |run| {
        events(run.folder()).iter().any(|event| event["event"] == "reloaded")
    });
    decide(&run, ApprovalOutcome::Approved, &id);
    is_refused(&answer(&run, 1), -32011, "governance", "ask", "policy_drift");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()), "");
}

#[test]
fn an_approved_call_that_cedar_decides_about_is_no_drift() {
    // The earlier tool checked other actions after an approval, so that every such call was
    // refused.
    let policy = "schema: 1\ngovernance:\n  defaults: { action: policy, policy_id: p }\ncedar:\n  inline: |\n    @approval(\"people\") permit (principal, action, resource);\napproval:\n  people: { destination: { type: cli }, timeout: 5m }\n";
    let mut run = shim(policy, &["log=log", "serve"]).start();
    run.send(call(1, "x").as_bytes());
    let id = held(&run, 1).remove(0);
    decide(&run, ApprovalOutcome::Approved, &id);
    assert_eq!(answer(&run, 1)["result"], json!({ "for": 1 }));
}

#[test]
fn a_person_decides_by_command() {
    let mut run = governed();
    run.send([call(1, "ask"), call_with(2, "ask", r#"{"b":1}"#)].concat().as_bytes());
    held(&run, 2);
    for request in waiting(&run) {
        let first = request.arguments() == Some("{}");
        let verb = if first { "approve" } else { "deny" };
        let flags = key_flags(&state(&run));
        let flags = flags.each_ref().map(String::as_str);
        let done = tapegate_on(&run, &[&["approvals", verb, &request.id], &flags[..]].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    is_refused(&answer(&run, 2), -32007, "approval", "ask", "approval_rejected");
}

#[test]
fn repeats_of_a_call_are_asked_about_once_and_the_newest_is_sent() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    // A client that gave up without cancelling, and whose model repeats the call with other ids in
    // `_meta`.
    let again = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":9},"name":"ask","arguments":{}}}"#;
    run.send(format!("{again}\n{}", ask(3, "ping")).as_bytes());
    answer(&run, 3);
    let waits = waiting(&run);
    assert_eq!((waits.len(), waits[0].id.as_str(), waits[0].call_count), (1, id.as_str(), 2));
    let shown = tapegate_on(&run, &["approvals"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("asked 2×"), "{shown:?}");
    decide(&run, ApprovalOutcome::Approved, &id);
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    is_refused(&answer(&run, 1), -32007, "approval", "ask", "approval_used");
    let end = run.end_of_input().exits(0);
    assert_eq!(server_got(end.run.folder()).matches("\"ask\"").count(), 1);
}

#[test]
fn a_caller_that_gave_up_is_told_of_and_its_call_is_sent_only_when_it_asks_again() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    let given_up = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1, "reason": "Request timed out" } });
    run.send(format!("{given_up}\n").as_bytes());
    run.until("the caller is gone", |run| waiting(run)[0].waiting == 0);
    let shown = tapegate_on(&run, &["approvals"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("caller gave up"), "{shown:?}");
    decide(&run, ApprovalOutcome::Approved, &id);
    run.send(ask(2, "ping").as_bytes());
    answer(&run, 2);
    assert!(!server_got(run.folder()).contains("\"ask\""), "not run for nobody");
    // Other arguments make a different call; so does anything else in the params.
    let other = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask","arguments":{},"task":{"ttl":1}}}"#;
    run.send(format!("{other}\n").as_bytes());
    let waits = held(&run, 1);
    assert_ne!(waits[0], id);
    run.send(call(4, "ask").as_bytes());
    assert_eq!(answer(&run, 4)["result"]["for"], 4);
}

#[test]
fn a_client_that_leaves_ends_its_holds_at_once() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    held(&run, 1);
    let end = run.end_of_input().exits(0);
    assert_eq!(answer_in(&end.stdout, &1.into())["error"]["code"], -32000);
    assert_eq!(server_got(end.run.folder()), "");
    assert_eq!(waiting(&end.run).len(), 0);
}

#[test]
fn a_client_that_leaves_behind_more_calls_than_are_held_ends_all_of_them() {
    // At 32 the client is no longer read, and the end of its input is behind what it has sent.
    let mut run = governed();
    let calls: String =
        (1..=34).map(|id| call_with(id, "ask", &format!("{{\"n\":{id}}}"))).collect();
    run.send(calls.as_bytes());
    held(&run, 32);
    let end = run.end_of_input().exits(0);
    for id in 1..=34 {
        assert_eq!(answer_in(&end.stdout, &id.into())["error"]["code"], -32000, "{id}");
    }
    assert_eq!(server_got(end.run.folder()), "");
    assert_eq!(waiting(&end.run).len(), 0);
}

#[test]
fn the_reason_of_a_person_s_no_reaches_the_agent() {
    let mut run = governed();
    run.send(call(1, "ask").as_bytes());
    let id = held(&run, 1).remove(0);
    let flags = key_flags(&state(&run));
    let flags = flags.each_ref().map(String::as_str);
    let text = ["approvals", "deny", &id, "--reason", "use the staging database"];
    assert!(tapegate_on(&run, &[&text, &flags[..]].concat()).status.success());
    let refused = answer(&run, 1);
    is_refused(&refused, -32007, "approval", "ask", "approval_rejected");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("use the staging database"), "{message}");
}
