//! Orphans: answers that no request waits for, and requests that get no answer. The gate is told of
//! both, whichever side sent them; nothing else becomes of them here.

use super::{Relay, Way};
use crate::frame::{Body, Envelope, Frame, Kind, envelopes};
use crate::gate::{Gate, Topic};
use crate::side::Side;
use crate::time::At;

/// How many late requests of one side are told of at once; the others are passed over.
const LATE_MAX: usize = 64;

impl Relay {
    /// Tells the gate of answers in a message that no request waits for. `topic` is what is known of
    /// the request that a single answer is for.
    pub(super) fn note_orphan_replies<G: Gate + ?Sized>(
        &self,
        way: Way,
        frame: &Frame<'_>,
        topic: Option<Topic>,
        gate: &mut G,
    ) {
        // A stream that is taken up again may repeat answers.
        if way.resumed {
            return;
        }
        match frame.body() {
            Body::Message(said) if topic.is_none() => self.note_orphan_reply(way, said, gate),
            Body::Batch => {
                for said in envelopes(frame) {
                    self.note_orphan_reply(way, &said, gate);
                }
            }
            _ => {}
        }
    }

    fn note_orphan_reply<G: Gate + ?Sized>(&self, way: Way, said: &Envelope<'_>, gate: &mut G) {
        let Some(id) = said.id else { return };
        let answers = match said.kind() {
            Kind::Response => true,
            // An error without an id answers something that could not be read.
            Kind::Error => id != b"null",
            _ => false,
        };
        let asker = way.from.other();
        let known = || {
            self.asks_of(asker).find(way.lane, id).is_some() || self.holds.has(way.lane, asker, id)
        };
        if answers && !known() {
            gate.orphan_reply(way.at, way.lane, way.from, id);
        }
    }

    /// Has requests that wait looked at once the first of them may be late.
    pub(super) fn schedule_late_check<G: Gate + ?Sized>(&mut self, at: At, gate: &G) {
        let waits = self.from_client.wanted() > 0 || self.from_server.wanted() > 0;
        if self.late_check_ns.is_none() && waits {
            let timeout_ns = gate.answer_timeout_ns();
            self.late_check_ns = timeout_ns.map(|timeout_ns| at.mono_ns.saturating_add(timeout_ns));
        }
    }

    /// Tells the gate of requests whose answers are late, each once.
    pub(super) fn check_late<G: Gate + ?Sized>(&mut self, at: At, gate: &mut G) {
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
            let (late, left_ns) = self.asked_by(asker).late(before_ns, LATE_MAX);
            for request in late {
                gate.orphan_request(at, asker, &request);
            }
            oldest_ns = oldest_ns.into_iter().chain(left_ns).min();
        }
        self.late_check_ns = oldest_ns.map(|oldest_ns| oldest_ns.saturating_add(timeout_ns));
    }
}
