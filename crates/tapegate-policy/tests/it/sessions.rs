//! Behaviour over the course of a session: holds, reloads, introductions, failures.

use std::sync::Arc;

use tapegate_core::gate::{Approval, Gate, HoldEnd, HoldId, MessagePlace, Topic, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::Profile;
use tapegate_policy::redact::{RedactionKey, RedactionRules, Redactor};

use crate::gate_harness::{GateHarness, GateRecord, call, policy, refused, request, shown};

const POLICY: &str = "
schema: 1
governance:
  defaults: {action: forward}
  rules:
    - {match: ask, action: approve, approval: slow}
    - {match: lax, action: approve, approval: lax}
    - {method: 'logging/*', action: deny}
    - {method: sampling/createMessage, action: deny}
    - {method: elicitation/create, action: approve, approval: slow}
approval:
  slow: {destination: {type: cli}, timeout: 10m, blocking_timeout: 1m}
  lax: {destination: {type: cli}, timeout: 5s, on_timeout: approve}
";

fn harness() -> GateHarness {
    GateHarness::new(Some(policy(POLICY)), Profile::Production)
}

fn approval(ticket: u64) -> Approval {
    Approval { hold_id: HoldId(ticket), by: "bob".to_owned() }
}

#[test]
fn a_call_that_needs_a_person_waits_and_goes_on_when_one_has_said_yes() {
    let mut harness = harness();
    let verdict = harness.client(&call("ask"));
    let Verdict::Hold(hold) = verdict else { panic!("{verdict:?}") };
    assert_eq!((hold.hold_id, hold.timeout_ms), (HoldId(1), 600_000));
    assert_eq!(hold.on_timeout.unwrap().code, -32008);
    assert_eq!(
        harness.people(),
        ["ask 1 tool ask by slow for nobody: rule `rules[0]` requires approval"]
    );
    let text = call("ask");
    let verdict = harness.judge_approved(Side::Client, None, text.as_bytes(), Some(&approval(1)));
    assert_eq!(shown(&verdict), "forward");
    assert_eq!(harness.people(), [""; 0]);
    assert_eq!(harness.noted(), ["approval pending_approval ask", "approval forward ask"]);
}

#[test]
fn over_http_a_call_waits_as_long_as_a_connection_may() {
    let mut harness =
        GateHarness::over(TransportKind::Http, Some(policy(POLICY)), Profile::Production);
    let Verdict::Hold(hold) = harness.client(&call("ask")) else { panic!() };
    assert_eq!(hold.timeout_ms, 60_000);
}

#[test]
fn a_call_that_was_approved_under_a_policy_that_has_changed_is_refused() {
    let mut harness = harness();
    harness.client(&call("ask"));
    let text = POLICY.replace(
        "action: approve, approval: slow}\n    - {match: lax",
        "action: deny}\n    - {match: lax",
    );
    harness.policy_handle.set_policy(Some(Arc::new(policy(&text))));
    let text = call("ask");
    let verdict = harness.judge_approved(Side::Client, None, text.as_bytes(), Some(&approval(1)));
    let refusal = refused(verdict);
    assert_eq!(refusal.code, -32011);
    assert!(refusal.data.contains(r#""error_type":"policy_drift""#), "{}", refusal.data);
    assert!(refusal.data.contains(r#""correlation_id":"c-1""#), "{}", refusal.data);
}

#[test]
fn an_approval_of_one_call_is_none_of_another() {
    let mut harness = harness();
    harness.client(&call("ask"));
    assert_eq!(shown(&harness.client(&call("ask"))), "hold 2");
}

#[test]
fn a_hold_that_ends_by_itself_is_noted_and_people_are_told() {
    for (how, word) in [
        (HoldEnd::TimedOut, "approval_timeout"),
        (HoldEnd::Cancelled, "cancelled"),
        (HoldEnd::Closed, "closed"),
    ] {
        let mut harness = harness();
        harness.client(&call("ask"));
        harness.people();
        harness.noted();
        harness.gate.hold_ended(Timestamp::default(), HoldId(1), how);
        assert_eq!(harness.people(), [format!("withdraw 1 {how:?}")]);
        assert_eq!(harness.noted(), [format!("approval {word} ask")]);
        harness.gate.hold_ended(Timestamp::default(), HoldId(1), how);
        assert_eq!(harness.noted(), [""; 0]);
    }
    let mut harness = harness();
    let Verdict::Hold(hold) = harness.client(&call("lax")) else { panic!() };
    assert_eq!((hold.timeout_ms, hold.on_timeout), (5_000, None));
    harness.noted();
    harness.gate.hold_ended(Timestamp::default(), HoldId(1), HoldEnd::TimedOut);
    assert_eq!(harness.noted(), ["approval forward lax"]);
}

#[test]
fn development_asks_nobody_and_says_that_production_would() {
    let mut harness = GateHarness::new(Some(policy(POLICY)), Profile::Development);
    assert_eq!(shown(&harness.client(&call("ask"))), "forward");
    assert_eq!(harness.people(), [""; 0]);
    let note = harness.memory.notes.lock().unwrap().remove(0);
    assert!(note.event.auto_approved && note.event.forwarded == Some(true));
    assert_eq!(note.decision().as_str(), "WOULD_REQUIRE_APPROVAL");
}

#[test]
fn a_new_policy_holds_from_the_next_message_on() {
    let mut harness = harness();
    assert_eq!(shown(&harness.client(&call("ls"))), "forward");
    let text = "schema: 1\ngovernance: {defaults: {action: deny}}\n";
    harness.policy_handle.set_policy(Some(Arc::new(policy(text))));
    assert_eq!(shown(&harness.client(&call("ls"))), "refuse -32014");
    harness.policy_handle.set_policy(None);
    assert_eq!(shown(&harness.client(&call("ls"))), "forward");
}

#[test]
fn other_methods_pass_unless_a_rule_names_them() {
    let mut harness = harness();
    for method in ["tools/list", "tasks/get", "ping", "initialize"] {
        assert_eq!(shown(&harness.client(&request(method, "{}"))), "forward");
    }
    assert_eq!(harness.noted(), [""; 0]);
    let refusal = refused(harness.client(&request("logging/setLevel", r#"{"level":"debug"}"#)));
    assert_eq!(refusal.code, -32014);
    assert!(
        refusal.message.starts_with("Tapegate: method `logging/setLevel`"),
        "{}",
        refusal.message
    );
}

#[test]
fn what_a_server_asks_of_the_agent_is_noted_and_rules_can_name_it() {
    let mut harness = harness();
    assert_eq!(shown(&harness.server(&request("roots/list", "{}"))), "forward");
    assert_eq!(harness.noted(), ["decision forward roots/list"]);
    assert_eq!(shown(&harness.server(&request("sampling/createMessage", "{}"))), "refuse -32014");
    assert_eq!(shown(&harness.server(&request("elicitation/create", "{}"))), "hold 1");
    assert_eq!(shown(&harness.server(&request("ping", "{}"))), "forward");
    harness.noted();
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    assert_eq!(shown(&harness.server(notice)), "forward");
    assert_eq!(harness.noted(), [""; 0]);
}

#[test]
fn what_a_server_asks_for_before_it_answers_is_a_request_of_its_own() {
    let reply = |method: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"{method}","params":{{}}}}}},"requestState":"s"}}}}"#
        )
    };
    let mut harness = harness();
    assert_eq!(shown(&harness.server(&reply("roots/list"))), "forward");
    assert_eq!(harness.noted(), ["decision forward roots/list"]);
    assert_eq!(shown(&harness.server(&reply("sampling/createMessage"))), "refuse -32014");
    // A response cannot wait for approval.
    assert_eq!(shown(&harness.server(&reply("elicitation/create"))), "refuse -32600");
}

#[test]
fn what_a_server_asks_for_hides_behind_no_other_spelling_and_no_second_member() {
    let asks = r#""a":{"method":"sampling/createMessage","params":{}}"#;
    for result in [
        r#"{"inputRequests":{"a":{"method":"sampling/createMessage","method":"roots/list"}}}"#
            .to_owned(),
        r#"{"inputRequests":{"a":{"method":"roots/list","Method":"sampling/createMessage"}}}"#
            .to_owned(),
        format!(r#"{{"InputRequests":{{{asks}}}}}"#),
        format!(r#"{{"input_requests":{{{asks}}}}}"#),
    ] {
        let reply = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        assert_eq!(shown(&harness().server(&reply)), "refuse -32014", "{reply}");
    }
}

#[test]
fn what_a_server_asks_for_is_a_map_or_a_list_of_requests_or_goes_nowhere() {
    let asks = r#"{"method":"sampling/createMessage","params":{}}"#;
    for (requests, verdict) in [
        (format!("[{asks}]"), "refuse -32014"),
        (format!("{asks:?}"), "refuse -32600"),
        (format!(r#"{{"a":[{asks}]}}"#), "refuse -32600"),
        (format!("[[{asks}]]"), "refuse -32600"),
        (r#"{"a":{"method":["sampling/createMessage"]}}"#.to_owned(), "refuse -32600"),
        (r#"{"a":{}}"#.to_owned(), "refuse -32600"),
        ("7".to_owned(), "refuse -32600"),
        ("{}".to_owned(), "forward"),
        ("null".to_owned(), "forward"),
    ] {
        let reply =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"inputRequests":{requests}}}}}"#);
        assert_eq!(shown(&harness().server(&reply)), verdict, "{reply}");
        let mut open = GateHarness::new(None, Profile::Production);
        assert_eq!(shown(&open.server(&reply)), "forward", "{reply}");
    }
}

#[test]
fn a_caller_is_known_by_its_introduction_or_by_what_comes_with_the_call() {
    let mut harness = harness();
    let hello = r#"{"protocolVersion":"2025-11-25","clientInfo":{"name":"claude","version":"1"}}"#;
    harness.client(&request("initialize", hello));
    harness.client(&call("ask"));
    let params = r#"{"name":"ask","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"cursor"},"traceparent":"00-aa-bb-01"}}"#;
    harness.client(&request("tools/call", params));
    let asked = harness.people();
    assert!(asked[0].contains("for claude") && asked[1].contains("for cursor"), "{asked:?}");
    let note = harness.memory.notes.lock().unwrap().pop().unwrap();
    assert_eq!(note.event.traceparent.as_deref(), Some("00-aa-bb-01"));
    assert_eq!(note.event.principal.as_deref(), Some("ann"));
}

#[test]
fn when_nothing_can_be_noted_production_refuses_calls_and_development_goes_on() {
    let memory =
        GateRecord { failure: Some("the disk is full".to_owned()), ..GateRecord::default() };
    let harness = |profile| {
        GateHarness::with(memory.clone(), TransportKind::Lines, Some(policy(POLICY)), profile)
    };
    let refusal = refused(harness(Profile::Production).client(&call("ls")));
    assert_eq!(refusal.code, -32013);
    assert!(refusal.message.contains("the disk is full"), "{}", refusal.message);
    assert_eq!(shown(&harness(Profile::Production).client(&request("ping", "{}"))), "forward");
    assert_eq!(shown(&harness(Profile::Development).client(&call("ls"))), "forward");
    // Without a policy, the gate stops nothing.
    let mut alone =
        GateHarness::with(memory.clone(), TransportKind::Lines, None, Profile::Production);
    assert_eq!(shown(&alone.client(&call("ls"))), "forward");
}

#[test]
fn secrets_in_results_are_masked_on_the_wire_if_that_is_wished() {
    let redactor =
        Redactor::new(RedactionRules::parse(["secrets"]).unwrap(), RedactionKey::from_secret(b"k"));
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"key AKIAIOSFODNN7EXAMPLE"}]}}"#;
    for (profile, word) in [(Profile::Production, "redact"), (Profile::Development, "WOULD_REDACT")]
    {
        let mut harness = GateHarness::new(Some(policy(POLICY)), profile);
        let mut active_policy = harness.policy_handle.get();
        active_policy.redactor = Some(Arc::new(redactor.clone()));
        harness.policy_handle.set(active_policy);
        let verdict = harness.judge(Side::Server, Some(Topic::Call), text.as_bytes());
        let masked = shown(&verdict);
        match profile {
            Profile::Production => {
                assert!(masked.starts_with("rewrite") && !masked.contains("AKIA"), "{masked}");
            }
            Profile::Development => assert_eq!(masked, "forward"),
        }
        assert_eq!(harness.noted(), [format!("redaction {word} ")]);
        // The client gets no secrets, whatever it requested.
        for topic in [Topic::Hello, Topic::Tools, Topic::Prompts, Topic::Resources] {
            assert_eq!(shown(&harness.judge(Side::Server, Some(topic), text.as_bytes())), masked);
        }
    }
}

#[test]
fn no_list_beside_a_result_and_no_error_keeps_a_secret_unmasked() {
    let redactor =
        Redactor::new(RedactionRules::parse(["secrets"]).unwrap(), RedactionKey::from_secret(b"k"));
    let mut harness = GateHarness::new(Some(policy(POLICY)), Profile::Production);
    let mut active_policy = harness.policy_handle.get();
    active_policy.redactor = Some(Arc::new(redactor));
    harness.policy_handle.set(active_policy);
    for said in [
        r#""result":{"tools":[],"content":[{"type":"text","text":"AKIAIOSFODNN7EXAMPLE"}]}"#,
        r#""error":{"code":1,"message":"no access by AKIAIOSFODNN7EXAMPLE"}"#,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{said}}}"#);
        let masked = shown(&harness.judge(Side::Server, Some(Topic::Call), text.as_bytes()));
        assert!(masked.starts_with("rewrite") && !masked.contains("AKIA"), "{masked}");
    }
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"AKIAIOSFODNN7EXAMPLE"}]}}"#;
    let verdict = harness.judge(Side::Server, Some(Topic::Tools), list.as_bytes());
    assert_eq!(shown(&verdict), "forward");
}

#[test]
fn secrets_in_notifications_and_requests_of_the_server_are_masked_too() {
    let redactor =
        Redactor::new(RedactionRules::parse(["secrets"]).unwrap(), RedactionKey::from_secret(b"k"));
    for (profile, word) in [(Profile::Production, "redact"), (Profile::Development, "WOULD_REDACT")]
    {
        let mut harness = GateHarness::new(Some(policy(POLICY)), profile);
        let mut active_policy = harness.policy_handle.get();
        active_policy.redactor = Some(Arc::new(redactor.clone()));
        harness.policy_handle.set(active_policy);
        for said in [
            r#""method":"notifications/message","params":{"level":"info","data":"key AKIAIOSFODNN7EXAMPLE"}"#,
            r#""method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"AKIAIOSFODNN7EXAMPLE"}"#,
            r#""id":4,"method":"roots/list","params":{"x":"AKIAIOSFODNN7EXAMPLE"}"#,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0",{said}}}"#);
            let masked = shown(&harness.server(&text));
            match profile {
                Profile::Production => {
                    assert!(masked.starts_with("rewrite") && !masked.contains("AKIA"), "{masked}");
                }
                Profile::Development => assert_eq!(masked, "forward"),
            }
            let noted = harness.noted();
            assert!(noted.contains(&format!("redaction {word} ")), "{noted:?}");
        }
        // Messages from the client are not masked.
        let call =
            request("tools/call", r#"{"name":"ls","arguments":{"key":"AKIAIOSFODNN7EXAMPLE"}}"#);
        assert_eq!(shown(&harness.client(&call)), "forward");
    }
}

#[test]
fn a_traceparent_that_is_none_is_not_noted() {
    let mut harness = harness();
    for text in ["ghp_0123456789abcdefghijABCDEFGHIJ012345", "00-A", ""] {
        let params = format!(r#"{{"name":"ls","_meta":{{"traceparent":"{text}"}}}}"#);
        harness.client(&request("tools/call", &params));
        let note = harness.memory.notes.lock().unwrap().pop().unwrap();
        assert_eq!(note.event.traceparent, None);
    }
}

#[test]
fn an_oversized_message_is_noted_in_both_profiles() {
    for profile in [Profile::Production, Profile::Development] {
        let mut harness = GateHarness::new(None, profile);
        let (at, lane, from) = (Timestamp::default(), Lane::ONLY, Side::Client);
        harness.gate.note_oversize(MessagePlace { at, lane, from }, 11_000_000, b"{");
        assert_eq!(harness.noted(), ["framing reject "]);
    }
}

#[test]
fn text_that_is_not_a_message_is_masked_by_the_same_rules() {
    let rules = RedactionRules::parse(["secrets", "..password"]).unwrap();
    let redactor = Redactor::new(rules, RedactionKey::from_secret(b"k"));
    for (profile, word) in [(Profile::Production, "redact"), (Profile::Development, "WOULD_REDACT")]
    {
        let mut harness = GateHarness::new(Some(policy(POLICY)), profile);
        let mask = |harness: &mut GateHarness, text: &str| {
            let masked = harness.gate.mask_text(
                Timestamp::default(),
                Lane::session(1),
                "a body",
                text.as_bytes(),
            );
            masked.map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(
            (harness.gate.masks(), mask(&mut harness, "AKIAIOSFODNN7EXAMPLE")),
            (false, None)
        );
        let mut active_policy = harness.policy_handle.get();
        active_policy.redactor = Some(Arc::new(redactor.clone()));
        harness.policy_handle.set(active_policy);
        assert!(harness.gate.masks());
        assert_eq!(mask(&mut harness, "Not Found"), None);
        for text in ["no AKIAIOSFODNN7EXAMPLE here", r#"{"a":[{"password":1}]}"#, "password: 1"] {
            let masked = mask(&mut harness, text);
            assert_eq!(masked.is_some(), profile == Profile::Production, "{text}");
            let is_masked = |text: String| text.contains("[REDACTED:") && !text.contains("AKIA");
            assert!(masked.is_none_or(is_masked), "{text}");
            let note = harness.memory.notes.lock().unwrap().pop().unwrap();
            assert_eq!(
                (note.decision().as_str(), note.event.policy_reason.as_deref()),
                (word, Some("a body"))
            );
        }
    }
}
