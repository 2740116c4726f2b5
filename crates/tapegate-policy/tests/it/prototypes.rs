//! Members named `__proto__`, which JavaScript merges into the object around them.

use tapegate_core::gate::Verdict;
use tapegate_core::side::Side;
use tapegate_policy::decide::{DecisionOutcome, PolicyPrincipal};
use tapegate_policy::inspect::MessageFault;
use tapegate_policy::judge::{PolicyJudge, SessionState};
use tapegate_policy::model::Profile;

use crate::bypasses::{harness, stopped};
use crate::gate_harness::{GateHarness, policy, refused, shown};

const POLICY: &str = "
schema: 1
governance:
  defaults: {action: forward}
  rules:
    - {match: write, action: deny, arguments: {options.path: {under: /etc}}}
    - {match: read, action: forward, arguments: {options.path: {under: /data}}}
    - {match: read, action: deny}
";

/// Messages with such a member, from a client and from a server.
const CLIENT: [&str; 7] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","__proto__":{"arguments":{"path":"/x"}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","\u005f_proto__":{"arguments":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","arguments":{"__proto__":{"path":"/x"}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","arguments":{"a":[{"b":{"__pr\u006fto__":1}}]}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{"method":"tools/call","params":{"name":"rm"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"__proto__":{}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"__proto__":{"action":"accept"}}}"#,
];
const SERVER: [&str; 5] = [
    r#"{"jsonrpc":"2.0","id":1,"result":{"__proto__":{"tools":[{"name":"rm"}]}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"ls","__proto__":{"description":"x"}}]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x","\u005f\u005fproto__":{}}]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x","data":{"__proto__":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"__proto__":{"method":"elicitation/create"},"params":{}}"#,
];

#[test]
fn a_member_that_is_merged_is_refused_and_named_whoever_sends_it() {
    for text in CLIENT {
        stopped(text.as_bytes(), -32600);
    }
    for text in SERVER {
        let refusal = refused(harness().judge(Side::Server, None, text.as_bytes()));
        assert_eq!(refusal.code, -32600, "{text}");
        let shapeless = !text.contains("result") && !text.contains("error");
        assert!(refusal.message.contains("`__proto__`") || shapeless, "{text}: {refusal:?}");
    }
    let refusal = refused(harness().client(CLIENT[0]));
    assert!(refusal.message.contains("a member `__proto__`"), "{refusal:?}");
}

#[test]
fn without_a_policy_it_passes_with_a_warning() {
    for (from, text) in [(Side::Client, CLIENT[0]), (Side::Server, SERVER[0])] {
        let mut harness = GateHarness::new(None, Profile::Production);
        assert!(matches!(harness.judge(from, None, text.as_bytes()), Verdict::Forward), "{text}");
        let noted = harness.noted();
        assert!(noted.iter().any(|note| note.starts_with("framing warn")), "{noted:?}");
    }
}

#[test]
fn a_text_about_it_passes() {
    for arguments in [
        r#"{"path":"/data/__proto__"}"#,
        r#"{"path":"/data/a","content":"x.__proto__ = {\"__proto__\":1}"}"#,
        r#"{"path":"/data/a","proto":"tcp","constructor":{"prototype":1}}"#,
    ] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"write","arguments":{arguments}}}}}"#
        );
        assert_eq!(shown(&harness().client(&text)), "forward", "{arguments}");
    }
}

#[test]
fn in_json_that_is_a_text_it_counts_as_merged() {
    let decided = |tool: &str, options: &str| {
        let mut harness = GateHarness::new(Some(policy(POLICY)), Profile::Production);
        let options = quoted(options);
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"options":{options}}}}}}}"#
        );
        shown(&harness.client(&text))
    };
    for options in [
        r#"{"path":"/etc/a"}"#,
        r#"{"__proto__":{"path":"/etc/a"}}"#,
        r#"{"a":1,"\u005f_proto__":{"__proto__":{"path":"/etc/a"}}}"#,
        "{__proto__: {path: '/etc/a'}}",
    ] {
        assert_eq!(decided("write", options), "refuse -32014", "{options}");
        assert_eq!(decided("read", options), "refuse -32014", "{options}");
    }
    assert_eq!(decided("write", r#"{"__proto__":{"path":"/data/a"}}"#), "forward");
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    tapegate_core::json::write_str(&mut out, text);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_call_that_is_only_described_is_judged_like_one_that_came() {
    let policy = policy(POLICY);
    let judge = PolicyJudge {
        policy: Some(&policy),
        profile: Profile::Production,
        source: "fs",
        explains: true,
    };
    let mut state = SessionState::new(PolicyPrincipal::default());
    let judgement =
        judge.judge_call("tools/call", "ls", Some(br#"{"a":{"__proto__":{}}}"#), 0, &mut state);
    assert_eq!(
        (judgement.strict_outcome(), &*judgement.faults),
        (DecisionOutcome::Deny, &[MessageFault::Prototype][..])
    );
    let judgement = judge.judge_call("tools/call", "ls", Some(br#"{"a":{}}"#), 0, &mut state);
    assert_eq!(judgement.strict_outcome(), DecisionOutcome::Forward);
}
