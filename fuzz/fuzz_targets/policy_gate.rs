//! Whatever a client sends: a message that any lenient server could take for a denied call is not forwarded.
#![no_main]

#[path = "../gate.rs"]
mod gate;
#[path = "../../crates/tapegate-policy/tests/it/lenient_readers.rs"]
mod lenient_readers;

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::Frame;
use tapegate_core::gate::Verdict;
use tapegate_core::json;
use tapegate_core::side::Side;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::Policy;

const POLICY_TEXT: &str = "
schema: 1
sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: [hidden]}}]
governance:
  defaults: {action: deny}
  rules:
    - {match: ls, action: forward}
    - {match: write, action: forward, arguments: {path: '/data/*'}}
";

static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| gate::policy(POLICY_TEXT));

fn may_run(call: &lenient_readers::FoundCall) -> bool {
    match call.tool.as_str() {
        "ls" => true,
        "write" => call.path.as_deref().is_some_and(|path| path.starts_with("/data/")),
        _ => false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    // A line cannot contain a line end.
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    for (transport, bytes) in [(TransportKind::Lines, line), (TransportKind::Http, bytes)] {
        let mut policy_gate = gate::policy_gate(&POLICY, transport);
        let mut judge = |from| gate::judge(&mut policy_gate, from, bytes);
        if let Verdict::Forward = judge(Side::Client) {
            let calls = match transport {
                TransportKind::Lines => lenient_readers::calls_in_line(bytes),
                TransportKind::Http => lenient_readers::calls_in_body(bytes),
            };
            assert!(calls.iter().all(may_run), "{calls:?}");
        }
        match judge(Side::Server) {
            Verdict::Rewrite(text) => {
                assert!(json::check(&text).is_ok());
                let rewritten = Frame::read(&text);
                assert!(rewritten.envelope().is_some_and(|envelope| envelope.lists));
            }
            Verdict::Forward => {}
            Verdict::Refuse(refusal) => assert!(json::check(refusal.data.as_bytes()).is_ok()),
            Verdict::Hold(_) | Verdict::ListFirst(_) => panic!("no rule here asks for approval"),
        }
    }
});
