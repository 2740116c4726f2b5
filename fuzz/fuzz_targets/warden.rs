//! Whatever a client sends: what any careless server could take for a call that is denied is not sent on.
#![no_main]

#[path = "../gate.rs"]
mod gate;
#[path = "../../crates/tapegate-policy/tests/it/readers.rs"]
mod readers;

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::Frame;
use tapegate_core::gate::Verdict;
use tapegate_core::json;
use tapegate_core::side::Side;
use tapegate_policy::inspect::Carrier;
use tapegate_policy::model::Policy;

const POLICY: &str = "
schema: 1
sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: [hidden]}}]
governance:
  defaults: {action: deny}
  rules:
    - {match: ls, action: forward}
    - {match: write, action: forward, arguments: {path: '/data/*'}}
";

static SHARED: LazyLock<Arc<Policy>> = LazyLock::new(|| gate::policy(POLICY));

fn may_run(call: &readers::Found) -> bool {
    match call.tool.as_str() {
        "ls" => true,
        "write" => call.path.as_deref().is_some_and(|path| path.starts_with("/data/")),
        _ => false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    // A line has no line end in it.
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    for (carrier, bytes) in [(Carrier::Lines, line), (Carrier::Http, bytes)] {
        let mut warden = gate::warden(&SHARED, carrier);
        let mut judge = |from| gate::judge(&mut warden, from, bytes);
        if let Verdict::Forward = judge(Side::Client) {
            let calls = match carrier {
                Carrier::Lines => readers::calls_in_line(bytes),
                Carrier::Http => readers::calls_in_body(bytes),
            };
            assert!(calls.iter().all(may_run), "{calls:?}");
        }
        match judge(Side::Server) {
            Verdict::Rewrite(text) => {
                assert!(json::check(&text).is_ok());
                let again = Frame::read(&text);
                assert!(again.envelope().is_some_and(|said| said.lists));
            }
            Verdict::Forward => {}
            Verdict::Refuse(refusal) => assert!(json::check(refusal.data.as_bytes()).is_ok()),
            Verdict::Hold(_) | Verdict::ListFirst(_) => panic!("nothing here is held"),
        }
    }
});
