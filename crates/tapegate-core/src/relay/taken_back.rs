//! Messages about a call that was not sent: its caller cancels it, or the other side answers it without
//! having received it.

use std::borrow::Cow;

use super::gating::{CODE_INVALID, refusal};
use super::{Action, Emit, Relay, Way};
use crate::frame::{self, Body, Envelope, Frame, Kind};
use crate::gate::{Gate, HoldEnd, Refusal};
use crate::json;
use crate::tape::Fate;

impl Relay {
    /// Whether a message must not be sent on because of an unsent call: it cancels a call that is held or
    /// was refused, or answers one that is still held.
    pub(super) fn stops<G: Gate + ?Sized>(
        &mut self,
        way: Way,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) -> bool {
        let Body::Message(said) = frame.body() else {
            let elements = match frame.body() {
                Body::Batch => frame::elements(frame.bytes()),
                _ => Vec::new(),
            };
            let answers =
                |one: &Frame<'_>| one.envelope().is_some_and(|said| self.guesses(way, said));
            if elements.iter().any(answers) {
                self.refuse(way, frame, &guessed(), emit);
                return true;
            }
            if way.lane.exchange == 0 {
                for said in elements.iter().filter_map(Frame::envelope) {
                    self.take_back(way, said, gate);
                }
            }
            return false;
        };
        if self.guesses(way, said) {
            self.refuse(way, frame, &guessed(), emit);
            return true;
        }
        let Some(id) = taken_back(said) else { return false };
        let Some(why) = self.take_back_unsent(way, said, id, gate) else { return false };
        let what = self.note(way, frame, true);
        let fate = Fate::Refused(why.to_owned());
        emit(Action::Record(&way.entry(Cow::Borrowed(frame.bytes()), what, fate)));
        true
    }

    /// Ends the hold of a cancelled call, and returns why the cancellation is not sent on: the call was
    /// never sent. `None` if it was sent or is unknown.
    fn take_back_unsent<G: Gate + ?Sized>(
        &mut self,
        way: Way,
        said: &Envelope<'_>,
        id: &[u8],
        gate: &mut G,
    ) -> Option<&'static str> {
        let Way { lane, from, .. } = way;
        let is_sent = self.asks_of(from).is_reached(lane, id);
        let held = self.holds.reached(lane, from, id);
        // Sessionless clients may use the same id: cancel only if it is certain which call is meant.
        let is_sure = lane.exchange == 0 || (held == 1 && !is_sent);
        if held > 0 && is_sure {
            self.take_back(way, said, gate);
        }
        match held {
            _ if is_sent => None,
            0 => (self.unsent.has(lane, from, id) && gate.enforces()).then_some(UNSENT),
            _ if is_sure => Some(HELD),
            _ => Some(ONE_OF_MANY),
        }
    }

    /// Whether a message answers a held call and no pending one.
    fn guesses(&self, way: Way, said: &Envelope<'_>) -> bool {
        let (Kind::Response | Kind::Error, Some(id)) = (said.kind(), said.id) else { return false };
        let asker = way.from.other();
        self.holds.has(way.lane, asker, id) && self.asks_of(asker).find(way.lane, id).is_none()
    }

    /// Ends the holds of calls that their caller cancels.
    fn take_back<G: Gate + ?Sized>(&mut self, way: Way, said: &Envelope<'_>, gate: &mut G) {
        let Some(id) = taken_back(said) else { return };
        let how = match timed_out(said) {
            true => HoldEnd::Abandoned,
            false => HoldEnd::Cancelled,
        };
        while let Some(held) = self.holds.take_reached(way.lane, way.from, id) {
            self.unsent.put(held.lane, held.from, &held.id);
            gate.ended(way.at, held.ticket, how);
        }
    }
}

/// Why a cancellation is not sent on.
const HELD: &str = "it cancels a call that was held and never sent";
const UNSENT: &str = "it cancels a call that was never sent";
const ONE_OF_MANY: &str = "it cancels one of several calls that are held and were never sent";

/// The id of the call that a message cancels.
fn taken_back<'a>(said: &Envelope<'a>) -> Option<&'a [u8]> {
    said.request_id.filter(|_| said.is_method("notifications/cancelled"))
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
fn timed_out(said: &Envelope<'_>) -> bool {
    let reason = said.params.and_then(|params| json::member(params, "reason"));
    let reason = reason.and_then(json::string).unwrap_or_default().to_lowercase();
    let mut words = reason.split(|c: char| c != '-' && !c.is_alphanumeric());
    let said = reason.rsplit(": ").next().unwrap_or_default().trim();
    words.any(|word| word == CODE_TIMED_OUT) || TIMED_OUT.iter().any(|sign| said.starts_with(sign))
}

fn guessed() -> Refusal {
    refusal(CODE_INVALID, "it answers a call that was not sent")
}
