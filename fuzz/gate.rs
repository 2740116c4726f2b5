//! A gate that asks nobody and notes nothing, for targets that try messages on it.

use std::sync::Arc;

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Case, Gate, HoldEnd, Ticket, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::At;
use tapegate_policy::inspect::Carrier;
use tapegate_policy::load::load;
use tapegate_policy::model::Policy;
use tapegate_policy::note::{Note, Notes};
use tapegate_policy::people::{Asking, People};
use tapegate_policy::warden::{Hands, Ids, Regime, Reins, Settings, Warden};
use tapegate_yaml::files::Held;

struct Nobody;

impl Notes for Nobody {
    fn note(&mut self, _: &Note<'_>) {}
}

impl People for Nobody {
    fn ask(&mut self, _: Ticket, _: &Asking<'_>) {}

    fn withdraw(&mut self, _: At, _: Ticket, _: HoldEnd) {}
}

/// A policy from its text.
pub fn policy(text: &str) -> Arc<Policy> {
    let loaded = load("p.yaml", &Held::default().with("p.yaml", text));
    Arc::new(loaded.policy.expect("the policy loads"))
}

/// A fresh gate under a policy.
pub fn warden(policy: &Arc<Policy>, carrier: Carrier) -> Warden {
    let policy = Some(Arc::clone(policy));
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

/// What a gate says about a message.
pub fn judge(warden: &mut Warden, from: Side, bytes: &[u8]) -> Verdict {
    let frame = Frame::read(bytes);
    let (at, lane) = (At::default(), Lane::ONLY);
    let (terminated, topic, listed, approved) = (true, None, None, None);
    warden.judge(&Case { at, n: 1, lane, from, frame: &frame, terminated, topic, listed, approved })
}
