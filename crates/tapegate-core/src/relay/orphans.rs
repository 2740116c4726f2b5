//! Orphans: answers that match no request, and requests that get no answer. Both are reported to the
//! gate, whichever side sent them; only an answer that a client may take for another is refused.

use super::gate_dispatch::{CODE_INVALID, refusal};
use super::{ActionSink, MessageOrigin, Relay};
use crate::frame::{Envelope, Frame, FrameBody, MessageKind, envelopes};
use crate::gate::{Gate, Topic};
use crate::json;
use crate::side::Side;
use crate::time::Timestamp;

/// How many late requests of one side are reported at once; the others are ignored.
const LATE_MAX: usize = 64;

/// Why an answer is refused that lenient clients would accept.
const MISTAKEN: &str = "the server's answer has an id of another type than the request";

impl Relay {
    /// Reports answers in a message that match no request to the gate. `topic` is that of the request
    /// that a single answer is for, if known.
    pub(super) fn note_orphan_replies<G: Gate + ?Sized>(
        &self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        topic: Option<Topic>,
        gate: &mut G,
    ) {
        // A resumed stream may repeat answers.
        if origin.resumed {
            return;
        }
        match frame.body() {
            FrameBody::Message(envelope) if topic.is_none() => {
                self.note_orphan_reply(origin, envelope, gate)
            }
            FrameBody::Batch => {
                for envelope in envelopes(frame) {
                    self.note_orphan_reply(origin, &envelope, gate);
                }
            }
            _ => {}
        }
    }

    fn note_orphan_reply<G: Gate + ?Sized>(
        &self,
        origin: MessageOrigin,
        envelope: &Envelope<'_>,
        gate: &mut G,
    ) {
        let Some(id) = envelope.id else { return };
        let answers = match envelope.kind() {
            MessageKind::Response => true,
            // An error without an id answers something that could not be read.
            MessageKind::Error => id != b"null",
            _ => false,
        };
        // An answer to a held call is not an orphan: it is refused later, with a reason of its own.
        let asker = origin.from.other();
        let known = || {
            self.pending(asker).find(origin.lane, id).is_some()
                || self.holds.contains(origin.lane, asker, id)
        };
        if answers && !known() {
            gate.note_orphan_reply(origin.place(), id);
        }
    }

    /// Refuses an answer of the server that matches no request, but that lenient clients take for the
    /// answer to a pending one: `"7"` for `7`. The sender of that request gets one error. Returns
    /// whether the answer was refused.
    pub(super) fn refuse_lookalike_answer<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        if origin.from != Side::Server {
            return false;
        }
        let mistaken: Vec<Vec<u8>> = match frame.body() {
            FrameBody::Message(envelope) => {
                self.lookalike_request_id(origin, envelope).into_iter().collect()
            }
            FrameBody::Batch => envelopes(frame)
                .iter()
                .filter_map(|envelope| self.lookalike_request_id(origin, envelope))
                .collect(),
            FrameBody::Garbage(_) => return false,
        };
        if mistaken.is_empty() || !gate.is_enforcing() {
            return false;
        }
        gate.note_unsent(origin.place(), frame, MISTAKEN);
        let refusal = refusal(CODE_INVALID, MISTAKEN);
        self.refuse(origin, frame, &refusal, emit);
        for id in mistaken {
            self.refuse_to_requester(origin, &id, &refusal, emit);
        }
        true
    }

    /// The id of a pending request, if an answer with another id may be taken for its answer.
    fn lookalike_request_id(
        &self,
        origin: MessageOrigin,
        envelope: &Envelope<'_>,
    ) -> Option<Vec<u8>> {
        let id = envelope
            .id
            .filter(|_| matches!(envelope.kind(), MessageKind::Response | MessageKind::Error))?;
        let asks = self.pending(origin.from.other());
        // If a request with exactly this id is pending, the answer is for that one.
        let other = lookalike_id(id).filter(|_| asks.find(origin.lane, id).is_none())?;
        asks.find(origin.lane, &other).map(|_| other)
    }

    /// Schedules a check for when the first pending request may be late.
    pub(super) fn schedule_late_check<G: Gate + ?Sized>(&mut self, at: Timestamp, gate: &G) {
        let waits = self.from_client.wanted_count() > 0 || self.from_server.wanted_count() > 0;
        // A scheduled check schedules its successor, so the oldest request is never overlooked.
        if self.late_check_ns.is_none() && waits {
            let timeout_ns = gate.answer_timeout_ns();
            self.late_check_ns = timeout_ns.map(|timeout_ns| at.mono_ns.saturating_add(timeout_ns));
        }
    }

    /// Reports requests whose answers are late to the gate, each once.
    pub(super) fn check_late<G: Gate + ?Sized>(&mut self, at: Timestamp, gate: &mut G) {
        let (Some(due_ns), Some(timeout_ns)) = (self.late_check_ns, gate.answer_timeout_ns())
        else {
            return;
        };
        if at.mono_ns < due_ns {
            return;
        }
        let mut oldest_ns: Option<u64> = None;
        for asker in [Side::Client, Side::Server] {
            let before_ns = at.mono_ns.saturating_sub(timeout_ns);
            let (late, left_ns) = self.pending_mut(asker).take_late(before_ns, LATE_MAX);
            for request in late {
                gate.note_orphan_request(at, asker, &request);
            }
            // `left_ns` does not count requests that were just reported, so they do not trigger the
            // next check.
            oldest_ns = oldest_ns.into_iter().chain(left_ns).min();
        }
        self.late_check_ns = oldest_ns.map(|oldest_ns| oldest_ns.saturating_add(timeout_ns));
    }
}

/// The id of the other type that lenient readers take an id for: clients turn strings into numbers
/// (`Number("7")` in JavaScript, `int("7")` in Python), or numbers into strings.
fn lookalike_id(id: &[u8]) -> Option<Vec<u8>> {
    if !id.starts_with(b"\"") {
        return Some([b"\"", id, b"\""].concat());
    }
    let text = json::string(id)?;
    // Python's `int` ignores surrounding space and underscores between digits.
    let digits = text.trim().replace('_', "");
    // JavaScript's `Number` reads these prefixes.
    let based = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(|(prefix, radix)| {
        let rest = digits.to_ascii_lowercase();
        i64::from_str_radix(rest.strip_prefix(prefix)?, radix).ok()
    });
    let whole =
        // Below 9e15, and so below 2^53, every integer is exact in the double that JavaScript uses.
        |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
    let number = match digits.is_empty() {
        // `Number("")` is 0 in JavaScript.
        true => Some(0),
        false => based.or_else(|| digits.parse().ok().and_then(whole)),
    };
    number.map(|number| number.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_two_types_are_taken_for_one() {
        for (id, other) in [
            (r#""7""#, Some("7")),
            (r#"" 7\n""#, Some("7")),
            (r#""7.0""#, Some("7")),
            (r#""+7""#, Some("7")),
            (r#""0x10""#, Some("16")),
            (r#""1_0""#, Some("10")),
            (r#""\u0037""#, Some("7")),
            (r#""""#, Some("0")),
            ("7", Some(r#""7""#)),
            (r#""seven""#, None),
            (r#""7.5""#, None),
            (r#""nan""#, None),
        ] {
            let other = other.map(|other| other.as_bytes().to_vec());
            assert_eq!(lookalike_id(id.as_bytes()), other, "{id}");
        }
    }
}
