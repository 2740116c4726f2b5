//! Holds that get another id, because their calls are held again.

use tapegate_core::frame::Frame;
use tapegate_core::gate::{
    GateInput, Hold, HoldEnd, ListFirst, ListMethod, MessagePlace, OwnRequest, Verdict,
};

use super::*;

/// Holds each call for a list first, and for approval once the list has failed.
#[derive(Debug, Default)]
struct ListingGate {
    last_id: u64,
}

impl Gate for ListingGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        self.last_id += 1;
        let hold_id = HoldId(self.last_id);
        if case.listed.is_some() {
            return Verdict::Hold(Box::new(Hold {
                hold_id,
                timeout_ms: 60_000,
                ..Hold::default()
            }));
        }
        let request = OwnRequest::new(&format!("own-{}", hold_id.0), ListMethod::Tools, None, None);
        Verdict::ListFirst(Box::new(ListFirst { hold_id, timeout_ms: 1_000, request }))
    }

    fn hold_ended(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}

    fn note_oversize(&mut self, _: MessagePlace, _: u64, _: &[u8]) {}

    fn note_unsent(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) {}

    fn reject_ambiguous(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) -> bool {
        false
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

#[test]
fn every_call_that_one_tick_holds_again_keeps_its_waiter() {
    let (_settle, hold_outcomes) = tokio::sync::mpsc::channel(1);
    let mut session = RecordedSession::with_gate(
        Box::new(NullRecorder),
        Box::new(ListingGate::default()),
        hold_outcomes,
        Clock::start(),
        OnTapeError::Stop,
    );
    let at = Timestamp::default();
    let lane = session.open_session();
    for id in 1..=3 {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{}}}}"#);
        let frame = &session.read(call.as_bytes());
        let received = RelayEvent::Received { lane, from: Side::Client, frame, terminated: true };
        session.feed(at, received, &mut |_| {});
    }
    let late = Timestamp { mono_ns: 5_000_000_000, ..at };
    session.feed(late, RelayEvent::Tick, &mut |_| {});
    let renamed = session.take_renamed_holds();
    assert_eq!(renamed.iter().map(|(was, _)| was.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(renamed.iter().all(|(_, now)| session.is_held(*now)), "{renamed:?}");
    assert_eq!(session.take_renamed_holds(), []);
}
