//! Requests and answers are paired correctly in any interleaving, both ways, with repeated ids.

use proptest::prelude::*;
use tapegate_core::frame::Frame;
use tapegate_core::gate::PermitAllGate;
use tapegate_core::relay::{Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{EntryBody, ReplyLink};
use tapegate_core::time::Timestamp;

#[derive(Debug, Clone)]
enum RelayStep {
    Ask(Side, usize),
    Answer(Side, usize),
    Cancel(Side, usize),
    Gone(Side),
}

const IDS: &[&str] = &["1", "\"1\"", "1.0", "null", "\"a\\nb\"", "-0", "18446744073709551616"];

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn step() -> impl Strategy<Value = RelayStep> {
    let id = || 0..IDS.len();
    prop_oneof![
        6 => (side(), id()).prop_map(|(side, id)| RelayStep::Ask(side, id)),
        6 => (side(), id()).prop_map(|(side, id)| RelayStep::Answer(side, id)),
        2 => (side(), id()).prop_map(|(side, id)| RelayStep::Cancel(side, id)),
        1 => side().prop_map(RelayStep::Gone),
    ]
}

/// A naive model of the pending requests.
#[derive(Default)]
struct PendingModel {
    count: u64,
    open: Vec<(Side, usize, u64, u64, bool)>,
}

impl PendingModel {
    fn answer(&mut self, asker: Side, id: usize) -> Option<(u64, u64)> {
        let at = self.open.iter().position(|one| (one.0, one.1) == (asker, id))?;
        let (_, _, n, ms, _) = self.open.remove(at);
        Some((n, ms))
    }
}

fn text(step: &RelayStep) -> (Side, String) {
    match step {
        RelayStep::Ask(side, id) => (*side, format!("{{\"id\":{},\"method\":\"m\"}}", IDS[*id])),
        RelayStep::Answer(side, id) => (*side, format!("{{\"result\":{{}},\"id\":{}}}", IDS[*id])),
        RelayStep::Cancel(side, id) => {
            let method = "notifications/cancelled";
            (
                *side,
                format!("{{\"method\":\"{method}\",\"params\":{{\"requestId\":{}}}}}", IDS[*id]),
            )
        }
        RelayStep::Gone(side) => (*side, String::new()),
    }
}

/// Takes one step in both and compares the results.
fn take(relay: &mut Relay, model: &mut PendingModel, ms: u64, step: &RelayStep) {
    let at = Timestamp { wall_us: 0, mono_ns: ms * 1_000_000 };
    let (from, text) = text(step);
    let lane = Lane::ONLY;
    let mut recorded = Vec::new();
    let mut sent = Vec::new();
    let frame = Frame::read_without_gate_details(text.as_bytes());
    let event = match step {
        RelayStep::Gone(side) => {
            RelayEvent::SideGone { lane: None, side: *side, reason: "gone", error_type: None }
        }
        _ => RelayEvent::Received { lane, from, frame: &frame, terminated: true },
    };
    relay.handle(at, event, &mut PermitAllGate, &mut |action| match action {
        RelayAction::Record(entry) => {
            assert_eq!(recorded.len(), sent.len(), "recorded, then sent");
            recorded.push((entry.from, entry.body.clone(), entry.bytes.to_vec()));
        }
        RelayAction::Forward { to, message, .. } => sent.push((to, message.bytes().to_vec())),
        RelayAction::Answer { to, message, .. } => sent.push((to, message.bytes().to_vec())),
        RelayAction::Held { .. } | RelayAction::HeldAgain { .. } | RelayAction::Consumed => {
            panic!("nothing is held")
        }
    });
    let same: Vec<_> =
        recorded.iter().map(|(from, _, bytes)| (from.other(), bytes.clone())).collect();
    assert_eq!(same, sent, "what is sent is what was recorded");
    let pairs: Vec<(u64, Option<(u64, u64)>)> = recorded
        .iter()
        .map(|(_, what, _)| match what {
            EntryBody::Message(element) => {
                (element.n, element.reply.map(|ReplyLink { to, latency_ms }| (to, ms - latency_ms)))
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let mut expected = Vec::new();
    match step {
        RelayStep::Ask(side, id) => {
            model.count += 1;
            model.open.push((*side, *id, model.count, ms, false));
            expected.push((model.count, None));
        }
        RelayStep::Answer(side, id) => {
            model.count += 1;
            expected.push((model.count, model.answer(side.other(), *id)));
        }
        RelayStep::Cancel(side, id) => {
            model.count += 1;
            let theirs = model.open.iter_mut().filter(|one| (one.0, one.1) == (*side, *id));
            theirs.for_each(|one| one.4 = true);
            expected.push((model.count, None));
        }
        RelayStep::Gone(side) => {
            for (asker, _, n, ms, cancelled) in std::mem::take(&mut model.open) {
                if asker == side.other() && !cancelled {
                    model.count += 1;
                    expected.push((model.count, Some((n, ms))));
                }
            }
        }
    }
    assert_eq!(pairs, expected, "{step:?}");
    for side in [Side::Client, Side::Server] {
        let wanted = model.open.iter().filter(|one| one.0 == side && !one.4).count();
        assert_eq!(relay.unanswered_requests(side), wanted);
    }
}

proptest! {
    #[test]
    fn any_interleaving_gives_the_right_pairs(steps in proptest::collection::vec((step(), 0u64..50), 0..120)) {
        let (mut relay, mut model, mut ms) = (Relay::default(), PendingModel::default(), 0);
        for (step, wait) in steps {
            ms += wait;
            take(&mut relay, &mut model, ms, &step);
        }
    }
}
