//! A gate in its relay: what reaches the server and the client, over whole sessions.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use tapegate_core::frame::{Frame, array_items};
use tapegate_core::gate::{Approval, HoldId, HoldOutcome, Refusal};
use tapegate_core::json::{Cursor, JsonKind, member};
use tapegate_core::relay::{Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::{Policy, Profile};

use crate::gate_harness::{GateHarness, GateRecord, policy};
use crate::lenient_readers::calls_in_line;
use crate::properties::{POLICY, call, may_run, twisted, twists};

/// In addition, `ask` needs approval.
static SHARED: LazyLock<Arc<Policy>> =
    LazyLock::new(|| Arc::new(policy(&format!("{POLICY}    - {{match: ask, action: approve}}\n"))));

/// Something that happens in a session.
#[derive(Debug, Clone)]
enum SessionStep {
    Client(String),
    Server(String),
    Approve(u64),
    Reject(u64),
    Tick(u64),
}

fn step() -> impl Strategy<Value = SessionStep> {
    let id = || proptest::sample::select(&["1", "2", "\"1\"", "1.0", "null"][..]);
    let ask = id().prop_map(|id| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask"}}}}"#)
    });
    let list =
        id().prop_map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#));
    let cancel = id().prop_map(|id| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    });
    let key = proptest::sample::select(&["tools", "Tools", r"t\u006fols", "tool_s"][..]);
    let reply = (id(), key).prop_map(|(id, key)| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"{key}":[{{"name":"hidden"}},{{"name":"ls"}}]}}}}"#)
    });
    prop_oneof![
        4 => (call(), twists()).prop_map(|(text, twists)| SessionStep::Client(twisted(&text, &twists))),
        2 => ask.prop_map(SessionStep::Client),
        1 => list.prop_map(SessionStep::Client),
        1 => cancel.prop_map(SessionStep::Client),
        3 => (reply, twists()).prop_map(|(text, twists)| SessionStep::Server(twisted(&text, &twists))),
        1 => (1..6_u64).prop_map(SessionStep::Approve),
        1 => (1..6_u64).prop_map(SessionStep::Reject),
        1 => (0..700_u64).prop_map(SessionStep::Tick),
    ]
}

/// Whether a client that is lenient about names finds the hidden tool in a response: in a list that
/// is a member of the result, by its name.
fn shows_hidden(answer: &[u8]) -> bool {
    let frame = Frame::read(answer);
    let Some(envelope) = frame.envelope() else {
        return String::from_utf8_lossy(answer).contains("hidden");
    };
    let Some(mut cursor) = envelope.result.and_then(|result| Cursor::new(result).ok()) else {
        return false;
    };
    if !matches!(cursor.open(), Ok(JsonKind::Object)) {
        return false;
    }
    while let Ok(Some(key)) = cursor.next_key() {
        let is_list = key.decode().replace(['_', '-'], "").eq_ignore_ascii_case("tools");
        let list = array_items(cursor.value().unwrap());
        let is_hidden = |item: &&[u8]| member(item, "name") == Some(b"\"hidden\"");
        if is_list && list.iter().any(is_hidden) {
            return true;
        }
    }
    false
}

proptest! {
    #[test]
    fn nothing_reaches_the_server_without_a_permit_nor_the_client_that_is_hidden(
        steps in proptest::collection::vec(step(), 1..40)
    ) {
        let policy = Some(Arc::clone(&SHARED));
        let mut harness = GateHarness::sharing(GateRecord::default(), TransportKind::Lines, policy, Profile::Production);
        let mut relay = Relay::default();
        let (mut now, mut approved) = (Timestamp::default(), BTreeSet::new());
        for step in &steps {
            let lane = Lane::ONLY;
            let frame;
            let event = match step {
                // A line cannot contain a line end.
                SessionStep::Client(text) | SessionStep::Server(text) if text.contains('\n') => continue,
                SessionStep::Client(text) => {
                    frame = Frame::read(text.as_bytes());
                    RelayEvent::Received { lane, from: Side::Client, frame: &frame, terminated: true }
                }
                SessionStep::Server(text) => {
                    frame = Frame::read(text.as_bytes());
                    RelayEvent::Received { lane, from: Side::Server, frame: &frame, terminated: true }
                }
                SessionStep::Approve(hold) => {
                    let hold_id = HoldId(*hold);
                    approved.insert(hold_id);
                    let approval = Approval { hold_id, by: "bob".to_owned() };
                    RelayEvent::HoldSettled { hold_id, outcome: HoldOutcome::Approved(approval) }
                }
                SessionStep::Reject(hold) => {
                    let (message, data, reason) = (String::new(), "{}".to_owned(), String::new());
                    let refusal = Refusal { code: -32007, message, data, reason };
                    let outcome = HoldOutcome::Refused(refusal);
                    RelayEvent::HoldSettled { hold_id: HoldId(*hold), outcome }
                }
                SessionStep::Tick(seconds) => {
                    now.mono_ns += seconds * 1_000_000_000;
                    RelayEvent::Tick
                }
            };
            let mut sent = Vec::new();
            relay.handle(now, event, &mut harness.gate, &mut |action| {
                if let RelayAction::Forward { to, message, .. } = action {
                    sent.push((to, message.hold_id(), message.bytes().to_vec()));
                }
            });
            for (to, ticket, bytes) in sent {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                match to {
                    Side::Server => {
                        let by_person = ticket.is_some_and(|ticket| approved.contains(&ticket));
                        for call in calls_in_line(&bytes) {
                            let may = may_run(&call) || (call.tool == "ask" && by_person);
                            prop_assert!(may, "{call:?} in {text}");
                        }
                    }
                    Side::Client => {
                        prop_assert!(!shows_hidden(&bytes), "{text}");
                    }
                }
            }
        }
    }
}
