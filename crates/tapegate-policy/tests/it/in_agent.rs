//! The user of a client answers in the client itself, if the workflow names the client.

use tapegate_core::gate::{Gate, HoldId, UserChoice, Verdict};
use tapegate_core::time::Timestamp;
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_policy::request_state::{CarriedCall, RequestStateKey};

use crate::gate_harness::{GateHarness, STATE_KEY, policy};

const POLICY: &str = "
schema: 1
governance:
  defaults: {action: forward}
  rules:
    - {match: ask, action: approve}
approval:
  default: {timeout: 1m, in_agent: ['cc*']}
";

fn gate() -> GateHarness {
    GateHarness::new(Some(policy(POLICY)), Profile::Production)
}

const INIT: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":ELICITATION},"clientInfo":{"name":"CLIENT","version":"1"}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;
const MODERN: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"CLIENT","version":"1"},"io.modelcontextprotocol/clientCapabilities":CAN}MORE}}"#;
const CAN: &str = r#"{"elicitation":{}}"#;
const ACCEPT: &str = r#"{"action":"accept","content":{"decision":"approve"}}"#;

fn initialize(client: &str, elicitation: &str) -> String {
    INIT.replace("ELICITATION", elicitation).replace("CLIENT", client)
}

/// A call of a client of revision 2026-07-28, with more members in its params.
fn modern(client: &str, capabilities: &str, more: &str) -> String {
    MODERN.replace("CAN", capabilities).replace("CLIENT", client).replace("MORE", more)
}

/// How the user may be asked, as the approval channel is told; `None` if not at all.
fn asked(gate: &mut GateHarness) -> Option<String> {
    let lines = gate.people();
    let line = lines.iter().find(|line| line.starts_with("the user may be asked by a "))?;
    Some(line.split_whitespace().nth(7)?.to_owned())
}

#[test]
fn only_the_users_of_named_clients_that_can_ask_are_asked() {
    for (client, elicitation, mode) in [
        ("cc", "{}", Some("Request")),
        ("ccx", r#"{"form":{},"url":{}}"#, Some("Request")),
        ("cc", r#"{"url":{}}"#, None),
        ("cc", "null", None),
        ("cc", "true", None),
        ("other", "{}", None),
    ] {
        let mut gate = gate();
        gate.client(&initialize(client, elicitation));
        gate.client(CALL);
        assert_eq!(asked(&mut gate).as_deref(), mode, "{client} {elicitation}");
    }
    let mut unknown = gate();
    unknown.client(CALL);
    assert_eq!(asked(&mut unknown), None);
    for (text, mode) in [
        (modern("cc", CAN, ""), Some("Result")),
        (modern("cc", "{}", ""), None),
        (modern("other", CAN, ""), None),
        // Its state is the server's, which the client would lose.
        (modern("cc", CAN, r#","requestState":"s","inputResponses":{}"#), None),
    ] {
        let mut gate = gate();
        gate.client(&text);
        assert_eq!(asked(&mut gate).as_deref(), mode, "{text}");
    }
}

#[test]
fn an_answer_counts_only_while_the_policy_permits_it() {
    let mut gate = gate();
    gate.client(&initialize("cc", "{}"));
    gate.client(CALL);
    gate.people();
    let answer = |gate: &mut GateHarness| {
        gate.gate.user_answered(Timestamp::default(), HoldId(1), Some(UserChoice::Approve));
        gate.people()
    };
    assert_eq!(answer(&mut gate), ["user of cc answered 1 Some(Approve)"]);
    let stricter = policy(&POLICY.replace("in_agent: ['cc*']", "in_agent: [dd]"));
    gate.policy_handle.set(ActivePolicy {
        policy: Some(stricter.into()),
        profile: Profile::Production,
        ..ActivePolicy::default()
    });
    assert_eq!(answer(&mut gate), ["user of cc answered 1 None"]);
}

/// The state for the call of `modern`, and the call with it and an answer.
fn answered(gate: &mut GateHarness, expires_us: i64, answer: &str) -> String {
    gate.client(&modern("cc", CAN, ""));
    let lines = gate.people();
    let hash = lines[1].rsplit(' ').next().expect("a hash").to_owned();
    let state = CarriedCall {
        approval_id: "ap_0123456789abcdef".to_owned(),
        call_hash: hash,
        may_approve: true,
        expires_us,
    };
    let state = RequestStateKey::new(STATE_KEY).seal(&state);
    let more =
        format!(r#","requestState":"{state}","inputResponses":{{"tapegate-approval":{answer}}}"#);
    modern("cc", CAN, &more)
}

#[test]
fn an_answer_that_comes_with_its_call_is_passed_on_and_removed() {
    let mut gate = gate();
    let text = answered(&mut gate, 1, ACCEPT);
    let Verdict::Hold(hold) = gate.client(&text) else { panic!("it is held") };
    let kept = String::from_utf8(hold.replacement.expect("another text")).unwrap();
    assert_eq!(kept, modern("cc", CAN, ""));
    let lines = gate.people();
    assert!(lines[2].contains("choice: Some(Approve), client: \"cc\""), "{lines:?}");
    // If no approval is needed any more, our part is removed all the same.
    gate.policy_handle.set(ActivePolicy {
        policy: Some(policy("schema: 1\ngovernance: {defaults: {action: forward}}\n").into()),
        profile: Profile::Production,
        ..ActivePolicy::default()
    });
    let Verdict::Rewrite(sent) = gate.client(&text) else { panic!("it is sent") };
    assert!(!String::from_utf8(sent).unwrap().contains("tapegate"));
}

#[test]
fn a_state_that_is_forged_late_or_of_another_call_is_no_answer() {
    for (name, change) in [
        ("another call", ("\"arguments\":{}", "\"arguments\":{\"path\":\"/\"}")),
        ("forged", ("tapegate1.ap_0", "tapegate1.ap_1")),
        ("another client", ("\"cc\"", "\"dd\"")),
    ] {
        let mut gate = gate();
        let text = answered(&mut gate, 1, ACCEPT);
        let changed = text.replace(change.0, change.1);
        assert_ne!(text, changed, "{name}");
        let Verdict::Hold(hold) = gate.client(&changed) else { panic!("{name}") };
        let kept = String::from_utf8(hold.replacement.expect("another text")).unwrap();
        assert!(!kept.contains("requestState") && !kept.contains("inputResponses"), "{kept}");
        let lines = gate.people();
        assert!(!lines.iter().any(|line| line.contains("approval_id")), "{name}: {lines:?}");
    }
    let mut gate = gate();
    let late = answered(&mut gate, 0, ACCEPT);
    gate.client(&late);
    assert!(!gate.people().iter().any(|line| line.contains("approval_id")));
    let closed = answered(&mut gate, 1, r#"{"action":"cancel"}"#);
    gate.client(&closed);
    let lines = gate.people();
    assert!(lines[2].contains("choice: None"), "{lines:?}");
}
