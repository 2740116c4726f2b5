//! Messages about a call that was not sent: its caller cancels it, or the other side answers it without
//! having received it.

use std::borrow::Cow;

use super::gate_dispatch::{CODE_INVALID, refusal};
use super::{ActionSink, MessageOrigin, Relay, RelayAction};
use crate::frame::{self, Envelope, Frame, FrameBody, MessageKind};
use crate::gate::{Gate, HoldEnd, Refusal};
use crate::json;
use crate::tape::GateOutcome;

impl Relay {
    /// Whether a message must not be sent on because of an unsent call: it cancels a call that is held or
    /// was refused, or answers one that is still held.
    pub(super) fn stop_if_unsent<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        let FrameBody::Message(msg) = frame.body() else {
            let elements = match frame.body() {
                FrameBody::Batch => frame::elements(frame.bytes()),
                _ => Vec::new(),
            };
            let answers = |one: &Frame<'_>| {
                one.envelope().is_some_and(|msg| self.is_premature_answer(origin, msg))
            };
            if elements.iter().any(answers) {
                self.refuse(origin, frame, &premature_answer_refusal(), emit);
                return true;
            }
            // Sessionless clients may share ids, so a batch cancels held calls only where ids are
            // unique.
            if origin.lane.exchange == 0 {
                for msg in elements.iter().filter_map(Frame::envelope) {
                    self.cancel_held(origin, msg, gate);
                }
            }
            return false;
        };
        // The server never received this call. Forwarding the answer would end it unapproved.
        if self.is_premature_answer(origin, msg) {
            self.refuse(origin, frame, &premature_answer_refusal(), emit);
            return true;
        }
        let Some(id) = cancelled_id(msg) else { return false };
        let Some(reason) = self.cancel_unsent(origin, msg, id, gate) else { return false };
        // The tape shows the cancellation although it is not sent: it records what the client did.
        let what = self.note_frame(origin, frame, true);
        let gate_outcome = GateOutcome::Refused(reason.to_owned());
        emit(RelayAction::Record(&origin.entry(Cow::Borrowed(frame.bytes()), what, gate_outcome)));
        true
    }

    /// Ends the hold of a cancelled call, and returns why the cancellation is not sent on: the call was
    /// never sent. `None` if it was sent or is unknown.
    fn cancel_unsent<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        msg: &Envelope<'_>,
        id: &[u8],
        gate: &mut G,
    ) -> Option<&'static str> {
        let MessageOrigin { lane, from, .. } = origin;
        let is_sent = self.pending(from).is_waiting_in(lane, id);
        let held = self.holds.count_reachable(lane, from, id);
        // Sessionless clients may use the same id: cancel only if it is certain which call is meant.
        let is_sure = lane.exchange == 0 || (held == 1 && !is_sent);
        if held > 0 && is_sure {
            self.cancel_held(origin, msg, gate);
        }
        match held {
            _ if is_sent => None,
            // A gate that only observes drops nothing.
            0 => (self.unsent.contains(lane, from, id) && gate.is_enforcing()).then_some(UNSENT),
            _ if is_sure => Some(HELD),
            _ => Some(ONE_OF_MANY),
        }
    }

    /// Whether a message answers a held call and no pending one.
    fn is_premature_answer(&self, origin: MessageOrigin, msg: &Envelope<'_>) -> bool {
        let (MessageKind::Response | MessageKind::Error, Some(id)) = (msg.kind(), msg.id) else {
            return false;
        };
        let asker = origin.from.other();
        self.holds.contains(origin.lane, asker, id)
            && self.pending(asker).find(origin.lane, id).is_none()
    }

    /// Ends the holds of calls that their caller cancels.
    fn cancel_held<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        msg: &Envelope<'_>,
        gate: &mut G,
    ) {
        let Some(id) = cancelled_id(msg) else { return };
        // A caller that timed out may retry, so a decision about its call is still useful.
        let how = match timed_out(msg) {
            true => HoldEnd::Abandoned,
            false => HoldEnd::Cancelled,
        };
        // The same id may be held several times; the cancellation names all of them.
        while let Some(held_request) = self.holds.take_reachable(origin.lane, origin.from, id) {
            self.unsent.insert(held_request.lane, held_request.from, &held_request.id);
            gate.hold_ended(origin.at, held_request.hold_id, how);
        }
    }
}

/// Why a cancellation is not sent on.
const HELD: &str = "it cancels a call that was held and never sent";
const UNSENT: &str = "it cancels a call that was never sent";
const ONE_OF_MANY: &str = "it cancels one of several calls that are held and were never sent";

/// The id of the call that a message cancels.
fn cancelled_id<'a>(msg: &Envelope<'a>) -> Option<&'a [u8]> {
    msg.request_id.filter(|_| msg.is_method("notifications/cancelled"))
}

/// The error code that SDKs use for a request that timed out.
const CODE_TIMED_OUT: &str = "-32001";

/// Prefixes of reasons without a code: TypeScript 2.x, rmcp, Python 2.x, and Codex, which also says this
/// when its user has interrupted it.
const TIMED_OUT: [&str; 4] =
    ["request timed out", "request timeout", "timed out after ", "mcp response future dropped"];

/// Whether a call is cancelled because its caller timed out. In the protocol only the reason shows this:
/// clients put their error message there, sometimes after its class. With an unknown reason the call counts
/// as cancelled, which is safe: nothing passes later.
fn timed_out(msg: &Envelope<'_>) -> bool {
    let reason = msg.params.and_then(|params| json::member(params, "reason"));
    let reason = reason.and_then(json::string).unwrap_or_default().to_lowercase();
    let mut words = reason.split(|c: char| c != '-' && !c.is_alphanumeric());
    let last_part = reason.rsplit(": ").next().unwrap_or_default().trim();
    words.any(|word| word == CODE_TIMED_OUT)
        || TIMED_OUT.iter().any(|sign| last_part.starts_with(sign))
}

fn premature_answer_refusal() -> Refusal {
    refusal(CODE_INVALID, "it answers a call that was not sent")
}
