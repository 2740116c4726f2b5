//! Requests that the other side will not answer: they are forgotten, or we answer them.

use super::own_message::OwnMessage;
use super::{CODE_GONE, Emit, Relay, answer_with};
use crate::frame::{self, Body, Frame};
use crate::gate::{Gate, HoldEnd, Ticket};
use crate::json;
use crate::pending::Unanswered;
use crate::side::{Lane, Side};
use crate::tape::{Element, Reply, What};
use crate::time::At;

/// An unanswered request, and its hold if it was held.
type Left = (Unanswered, Option<Ticket>);

impl Relay {
    /// Forgets requests, and answers them with an error if a reason is given.
    pub(super) fn dismiss<G: Gate + ?Sized>(
        &mut self,
        at: At,
        (lane, asker): (Lane, Side),
        bytes: Option<&[u8]>,
        why: Option<&str>,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        let dismissed = match bytes {
            None => {
                let mut dismissed = self.left(Some(lane), asker);
                dismissed.extend(self.unhold(at, Some(lane), asker, HoldEnd::Cancelled, gate));
                dismissed
            }
            Some(bytes) => self.dismiss_asked(at, (lane, asker), bytes, gate),
        };
        for (request, _) in dismissed.iter().filter(|(_, held)| held.is_none()) {
            orphaned(at, asker, request, gate);
        }
        if let Some(why) = why {
            dismissed
                .into_iter()
                .for_each(|one| self.answer_for(at, asker, one, (why, None), emit));
        }
    }

    /// Forgets the requests in a message.
    fn dismiss_asked<G: Gate + ?Sized>(
        &mut self,
        at: At,
        (lane, asker): (Lane, Side),
        bytes: &[u8],
        gate: &mut G,
    ) -> Vec<Left> {
        let frame = Frame::read(bytes);
        let frames = match frame.body() {
            Body::Batch => frame::elements(bytes),
            _ => vec![frame],
        };
        let mut dismissed = Vec::new();
        for id in frames.iter().filter_map(|frame| frame.envelope()?.id) {
            if let Some(asked) = self.asked_by(asker).answer(lane, id) {
                dismissed.push((Unanswered { lane, id: id.to_vec(), asked }, None));
            } else if let Some(held) = self.holds.take_id(lane, asker, id) {
                gate.ended(at, held.ticket, HoldEnd::Cancelled);
                dismissed.push(held.unanswered());
            }
        }
        dismissed
    }

    /// Answers a request with the given error object.
    pub(super) fn fail<G: Gate + ?Sized>(
        &mut self,
        at: At,
        (lane, asker): (Lane, Side),
        (id, error): (&[u8], &[u8]),
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        if asker == Side::Client {
            let message = json::member(error, "message").and_then(json::string);
            let why = message.as_deref().unwrap_or("it could not be delivered");
            if self.own_failed(at, id, why, gate, emit) {
                return;
            }
        }
        let (asked, ticket) = match self.asked_by(asker).answer(lane, id) {
            Some(asked) => {
                let request = Unanswered { lane, id: id.to_vec(), asked };
                orphaned(at, asker, &request, gate);
                (request.asked, None)
            }
            None => {
                let Some(held) = self.holds.take_id(lane, asker, id) else { return };
                gate.ended(at, held.ticket, HoldEnd::Closed);
                let (unanswered, ticket) = held.unanswered();
                (unanswered.asked, ticket)
            }
        };
        if asked.cancelled {
            return;
        }
        self.count += 1;
        let reply = Reply { to: asked.n, latency_ms: at.ms_since(asked.at) };
        let what = What::Message(Element { n: self.count, reply: Some(reply) });
        answer_with((at, lane, asker), what, OwnMessage::error_object(id, error), ticket, emit);
    }

    /// Answers, in place of a side that is gone, every request the other side still waits for.
    pub(super) fn give_up<G: Gate + ?Sized>(
        &mut self,
        at: At,
        (lane, side): (Option<Lane>, Side),
        why: (&str, Option<&str>),
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        let mut unanswered = self.left(lane, side.other());
        unanswered.extend(self.unhold(at, lane, side.other(), HoldEnd::Closed, gate));
        unanswered.sort_by_key(|one| one.0.asked.n);
        for (request, _) in unanswered.iter().filter(|(_, held)| held.is_none()) {
            orphaned(at, side.other(), request, gate);
        }
        for request in self.asked_by(side).take(lane) {
            orphaned(at, side, &request, gate);
        }
        self.unhold(at, lane, side, HoldEnd::Closed, gate);
        for one in unanswered {
            self.answer_for(at, side.other(), one, why, emit);
        }
    }

    /// Answers every held call, because no decision can be waited for any longer.
    pub(super) fn close_holds<G: Gate + ?Sized>(
        &mut self,
        at: At,
        (lane, keeps_lists): (Option<Lane>, bool),
        why: &str,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        for asker in [Side::Client, Side::Server] {
            while let Some(held) = self.holds.take_of(lane, asker, keeps_lists) {
                gate.ended(at, held.ticket, HoldEnd::Closed);
                self.answer_for(at, asker, held.unanswered(), (why, None), emit);
            }
        }
    }

    /// Ends the holds of `asker`, in one lane or all, and returns the requests.
    fn unhold<G: Gate + ?Sized>(
        &mut self,
        at: At,
        lane: Option<Lane>,
        asker: Side,
        how: HoldEnd,
        gate: &mut G,
    ) -> Vec<Left> {
        let mut unanswered = Vec::new();
        while let Some(held) = self.holds.take_of(lane, asker, false) {
            gate.ended(at, held.ticket, how);
            unanswered.push(held.unanswered());
        }
        unanswered
    }

    /// Takes the pending requests of `asker` that were sent on, in one lane or all.
    fn left(&mut self, lane: Option<Lane>, asker: Side) -> Vec<Left> {
        self.asked_by(asker).take(lane).into_iter().map(|one| (one, None)).collect()
    }

    fn answer_for(
        &mut self,
        at: At,
        asker: Side,
        (unanswered, ticket): Left,
        (why, error_type): (&str, Option<&str>),
        emit: &mut Emit<'_, '_>,
    ) {
        let Unanswered { lane, id, asked } = unanswered;
        if asked.cancelled {
            return;
        }
        self.count += 1;
        let reply = Reply { to: asked.n, latency_ms: at.ms_since(asked.at) };
        let what = What::Message(Element { n: self.count, reply: Some(reply) });
        let message = match error_type {
            Some(error_type) => {
                let mut data = b"{\"by\":\"tapegate\",\"error_type\":".to_vec();
                json::write_str(&mut data, error_type);
                data.push(b'}');
                OwnMessage::error_with(&id, CODE_GONE, why, &String::from_utf8_lossy(&data))
            }
            None => OwnMessage::error(&id, CODE_GONE, why),
        };
        answer_with((at, lane, asker), what, message, ticket, emit);
    }
}

/// Reports a request that will not be answered to the gate, unless it was cancelled or reported
/// before.
fn orphaned<G: Gate + ?Sized>(at: At, asker: Side, request: &Unanswered, gate: &mut G) {
    if gate.governs() && !request.asked.cancelled && !request.asked.late {
        gate.orphan_request(at, asker, request);
    }
}
