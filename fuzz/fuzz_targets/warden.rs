//! Whatever a client sends: what any careless server could take for a call that is denied is not sent on.
#![no_main]

#[path = "../../crates/tapegate-policy/tests/it/readers.rs"]
mod readers;

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::Frame;
use tapegate_core::gate::{Case, Gate, HoldEnd, Ticket, Verdict};
use tapegate_core::json;
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::At;
use tapegate_policy::inspect::Carrier;
use tapegate_policy::load::load;
use tapegate_policy::model::Policy;
use tapegate_policy::note::{Note, Notes};
use tapegate_policy::people::{Asking, People};
use tapegate_policy::warden::{Hands, Ids, Regime, Reins, Settings, Warden};
use tapegate_yaml::files::Held;

const POLICY: &str = "
schema: 1
sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: [hidden]}}]
governance:
  defaults: {action: deny}
  rules:
    - {match: ls, action: forward}
    - {match: write, action: forward, arguments: {path: '/data/*'}}
";

static SHARED: LazyLock<Arc<Policy>> = LazyLock::new(|| {
    let loaded = load("p.yaml", &Held::default().with("p.yaml", POLICY));
    Arc::new(loaded.policy.expect("the policy loads"))
});

struct Nobody;

impl Notes for Nobody {
    fn note(&mut self, _: &Note<'_>) {}
}

impl People for Nobody {
    fn ask(&mut self, _: Ticket, _: &Asking<'_>) {}

    fn withdraw(&mut self, _: At, _: Ticket, _: HoldEnd) {}
}

fn warden(carrier: Carrier) -> Warden {
    let policy = Some(Arc::clone(&SHARED));
    let hands = Hands {
        notes: Box::new(Nobody),
        people: Box::new(Nobody),
        ids: Ids::default(),
        clock: Box::new(|| 0),
    };
    let settings =
        Settings { source: "fs".to_owned(), client: carrier, server: carrier, ..Settings::default() };
    Warden::new(settings, hands, Reins::new(Regime { policy, ..Regime::default() }))
}

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
        let mut warden = warden(carrier);
        let frame = Frame::read(bytes);
        let mut judge = |from| {
            let (at, lane) = (At::default(), Lane::ONLY);
            let (terminated, topic, approved) = (true, None, None);
            warden.judge(&Case { at, n: 1, lane, from, frame: &frame, terminated, topic, approved })
        };
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
            Verdict::Hold(_) => panic!("nothing here is held"),
        }
    }
});
