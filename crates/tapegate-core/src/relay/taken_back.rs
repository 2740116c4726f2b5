//! What a message means for a call that is held: its caller takes it back, or somebody answers what nobody
//! was asked.

use std::borrow::Cow;

use super::gating::{CODE_INVALID, refusal};
use super::{Action, Emit, Relay, Way};
use crate::frame::{self, Body, Envelope, Frame, Kind};
use crate::gate::{Gate, HoldEnd, Refusal};
use crate::json;
use crate::tape::Fate;

impl Relay {
    /// Whether a message goes nowhere because of what is held: it takes a held call back, or
    /// answers one that nobody has been asked yet.
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
            for said in elements.iter().filter_map(Frame::envelope) {
                self.take_back(way, said, gate);
            }
            return false;
        };
        if self.guesses(way, said) {
            self.refuse(way, frame, &guessed(), emit);
            return true;
        }
        let cancelled = self.take_back(way, said, gate);
        let sent = said.request_id.and_then(|id| self.asks_of(way.from).find(way.lane, id));
        let stops = cancelled && sent.is_none();
        if stops {
            let what = self.note(way, frame, true);
            let fate =
                Fate::Refused("it takes back a call that was held and never sent".to_owned());
            emit(Action::Record(&way.entry(Cow::Borrowed(frame.bytes()), what, fate)));
        }
        stops
    }

    /// Whether a message answers a call that is held, and no other.
    fn guesses(&self, way: Way, said: &Envelope<'_>) -> bool {
        let (Kind::Response | Kind::Error, Some(id)) = (said.kind(), said.id) else { return false };
        let asker = way.from.other();
        self.holds.has(way.lane, asker, id) && self.asks_of(asker).find(way.lane, id).is_none()
    }

    /// Ends the hold of a call that its caller takes back; false if there is none.
    fn take_back<G: Gate + ?Sized>(&mut self, way: Way, said: &Envelope<'_>, gate: &mut G) -> bool {
        let (true, Some(id)) = (said.is_method("notifications/cancelled"), said.request_id) else {
            return false;
        };
        let how = match timed_out(said) {
            true => HoldEnd::Abandoned,
            false => HoldEnd::Cancelled,
        };
        let mut any = false;
        while let Some(held) = self.holds.take_id(way.lane, way.from, id) {
            gate.ended(way.at, held.ticket, how);
            any = true;
        }
        any
    }
}

/// The code of the SDKs for a request whose answer did not come in time.
const CODE_TIMED_OUT: &str = "-32001";

/// How those begin who give no code: TypeScript 2.x, rmcp, Python 2.x, and Codex, which says this also
/// when its user has stopped it.
const TIMED_OUT: [&str; 4] =
    ["request timed out", "request timeout", "timed out after ", "mcp response future dropped"];

/// Whether a call is taken back because its caller would not wait any longer. The protocol has no sign
/// of it but the reason, in which clients put the error that they raise, perhaps after its class.
/// Without one that is known the call counts as taken back, which lets nothing pass later.
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
