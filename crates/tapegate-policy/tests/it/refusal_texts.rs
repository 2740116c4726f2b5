//! What the client of a refused call reads.

use tapegate_core::side::Side;
use tapegate_policy::model::Profile;

use crate::gate_harness::{GateHarness, policy, refused};

#[test]
fn a_refusal_names_the_rule_its_description_and_whether_only_an_argument_was_wrong() {
    let text = r#"
schema: 1
governance:
  defaults: { action: deny }
  rules:
    - { id: no-rm, match: rm, action: deny, description: "Files are kept here." }
    - { id: no-force, match: push, action: deny, arguments: { force: true }, description: "History is shared" }
    - { id: staging, match: "push", action: forward }
    - { id: small, match: pay, action: forward, arguments: { amount: { max: 10 } } }
"#;
    let said = |tool: &str, arguments: &str| {
        let mut harness = GateHarness::new(Some(policy(text)), Profile::Production);
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        refused(harness.judge(Side::Client, None, line.as_bytes())).message
    };
    assert_eq!(
        said("rm", "{}"),
        "Tapegate: tool `rm` is denied by rule `no-rm` (gate: governance): Files are kept here. \
         Do not repeat the call; find another way, or ask the user."
    );
    assert_eq!(
        said("push", r#"{"force":true}"#),
        "Tapegate: tool `push` is allowed, but not with these arguments (rule `no-force`) \
         (gate: governance): History is shared. Call it with other arguments, or ask the user."
    );
    let output_text = said("pay", r#"{"amount":11}"#);
    assert!(output_text.contains("is allowed, but not with these arguments"), "{output_text}");
    assert!(
        !output_text.contains("10") && !output_text.contains("max"),
        "never the test itself: {output_text}"
    );
    let output_text = said("other", "{}");
    assert!(output_text.contains("is denied by the policy's default"), "{output_text}");
}
