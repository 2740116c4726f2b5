//! Requests that the other side will not answer: they are forgotten, or we answer them.

use super::gate_dispatch::refusal;
use super::own_message::OwnMessage;
use super::{ActionSink, CODE_GONE, CODE_UNAVAILABLE, HoldsEndedCause, Relay, send_own_entry};
use crate::frame::own_data;
use crate::gate::{Gate, HoldEnd, HoldId, Refusal};
use crate::json;
use crate::pending::UnansweredRequest;
use crate::side::{Lane, Side};
use crate::tape::{EntryBody, EntryElement, ReplyLink};
use crate::time::Timestamp;

/// An unanswered request, and its hold if it was held.
type UnansweredCall = (UnansweredRequest, Option<HoldId>);

impl Relay {
    /// Forgets requests, and answers them with an error if a reason is given.
    pub(super) fn dismiss_requests<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        (lane, asker): (Lane, Side),
        ids: Option<&[Vec<u8>]>,
        reason: Option<&str>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let dismissed = match ids {
            None => {
                let mut dismissed = self.take_unanswered(Some(lane), asker);
                dismissed.extend(self.end_holds(at, Some(lane), asker, HoldEnd::Cancelled, gate));
                if asker == Side::Client {
                    match reason {
                        Some(reason) => self.fail_tasks(at, Some(lane), reason, emit),
                        None => self.tasks.forget_lane(Some(lane)),
                    }
                }
                dismissed
            }
            Some(ids) => self.dismiss_by_id(at, (lane, asker), ids, gate),
        };
        // The gate knows of held calls by `hold_ended`; an orphan is a request that was sent.
        for (request, _) in dismissed.iter().filter(|(_, held_request)| held_request.is_none()) {
            note_orphan_request(at, asker, request, gate);
        }
        if let Some(reason) = reason {
            dismissed
                .into_iter()
                .for_each(|one| self.answer_unanswered(at, asker, one, (reason, None), emit));
        }
    }

    /// Forgets the requests with these ids.
    fn dismiss_by_id<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        (lane, asker): (Lane, Side),
        ids: &[Vec<u8>],
        gate: &mut G,
    ) -> Vec<UnansweredCall> {
        let mut dismissed = Vec::new();
        for id in ids {
            if let Some(pending_request) = self.pending_mut(asker).take_answered(lane, id) {
                dismissed.push((UnansweredRequest { lane, id: id.clone(), pending_request }, None));
            } else if let Some(held_request) = self.holds.take_id(lane, asker, id) {
                gate.hold_ended(at, held_request.hold_id, HoldEnd::Cancelled);
                dismissed.push(held_request.into_unanswered());
            }
        }
        dismissed
    }

    /// Answers a request with the given error object.
    pub(super) fn answer_with_error<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        (lane, asker): (Lane, Side),
        (id, error): (&[u8], &[u8]),
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        if asker == Side::Client {
            // The id may be that of a request of our own, which no client waits for.
            if self.task_request_failed(at, id, error, emit) {
                return;
            }
            let message = json::member(error, "message").and_then(json::string);
            let reason = message.as_deref().unwrap_or("it could not be delivered");
            if self.own_request_failed(at, id, reason, gate, emit) {
                return;
            }
        }
        let (pending_request, hold_id) = match self.pending_mut(asker).take_answered(lane, id) {
            Some(pending_request) => {
                let request = UnansweredRequest { lane, id: id.to_vec(), pending_request };
                note_orphan_request(at, asker, &request, gate);
                (request.pending_request, None)
            }
            None => {
                let Some(held_request) = self.holds.take_id(lane, asker, id) else { return };
                gate.hold_ended(at, held_request.hold_id, HoldEnd::Closed);
                let (unanswered, hold_id) = held_request.into_unanswered();
                (unanswered.pending_request, hold_id)
            }
        };
        if pending_request.cancelled {
            return;
        }
        self.count += 1;
        let reply =
            ReplyLink { to: pending_request.n, latency_ms: at.ms_since(pending_request.at) };
        let body = EntryBody::Message(EntryElement { n: self.count, reply: Some(reply) });
        send_own_entry((at, lane, asker), body, OwnMessage::error_object(id, error), hold_id, emit);
    }

    /// Answers, in place of a side that is gone, every request the other side still waits for.
    pub(super) fn answer_for_gone_side<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        (lane, side): (Option<Lane>, Side),
        reason: (&str, Option<&str>),
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let mut unanswered = self.take_unanswered(lane, side.other());
        unanswered.extend(self.end_holds(at, lane, side.other(), HoldEnd::Closed, gate));
        // Held calls come last in this list, but answers go out in the order of the requests.
        unanswered.sort_by_key(|one| one.0.pending_request.n);
        match side {
            Side::Server => self.fail_tasks(at, lane, reason.0, emit),
            Side::Client => self.tasks.forget_lane(lane),
        }
        for (request, _) in unanswered.iter().filter(|(_, held_request)| held_request.is_none()) {
            note_orphan_request(at, side.other(), request, gate);
        }
        // Requests of the side that is gone are forgotten without an answer, which it could not
        // read.
        for request in self.pending_mut(side).take_all(lane) {
            note_orphan_request(at, side, &request, gate);
        }
        self.end_holds(at, lane, side, HoldEnd::Closed, gate);
        for one in unanswered {
            self.answer_unanswered(at, side.other(), one, reason, emit);
        }
    }

    /// Answers every held call, because no decision can be waited for any longer.
    pub(super) fn refuse_all_held<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        (lane, keeps_lists): (Option<Lane>, bool),
        (cause, reason): (HoldsEndedCause, &str),
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        for asker in [Side::Client, Side::Server] {
            while let Some(held_request) = self.holds.take_oldest_of(lane, asker, keeps_lists) {
                // As if the request for approval had noticed first that its service is gone.
                if cause == HoldsEndedCause::ServiceGone && !held_request.awaits_list {
                    gate.hold_ended(at, held_request.hold_id, HoldEnd::Unanswered);
                    self.refuse_held(at, held_request, &unavailable(reason), emit);
                    continue;
                }
                gate.hold_ended(at, held_request.hold_id, HoldEnd::Closed);
                self.end_task_of(at, &held_request, &refusal(CODE_GONE, reason), emit);
                self.answer_unanswered(
                    at,
                    asker,
                    held_request.into_unanswered(),
                    (reason, None),
                    emit,
                );
            }
        }
    }

    /// Ends the holds of `asker`, in one lane or all, and returns the requests.
    fn end_holds<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        lane: Option<Lane>,
        asker: Side,
        how: HoldEnd,
        gate: &mut G,
    ) -> Vec<UnansweredCall> {
        let mut unanswered = Vec::new();
        while let Some(held_request) = self.holds.take_oldest_of(lane, asker, false) {
            gate.hold_ended(at, held_request.hold_id, how);
            unanswered.push(held_request.into_unanswered());
        }
        unanswered
    }

    /// Takes the pending requests of `asker` that were sent on, in one lane or all.
    fn take_unanswered(&mut self, lane: Option<Lane>, asker: Side) -> Vec<UnansweredCall> {
        self.pending_mut(asker).take_all(lane).into_iter().map(|one| (one, None)).collect()
    }

    fn answer_unanswered(
        &mut self,
        at: Timestamp,
        asker: Side,
        (unanswered, hold_id): UnansweredCall,
        (reason, error_type): (&str, Option<&str>),
        emit: &mut ActionSink<'_, '_>,
    ) {
        let UnansweredRequest { lane, id, pending_request } = unanswered;
        if pending_request.cancelled {
            return;
        }
        self.count += 1;
        let reply =
            ReplyLink { to: pending_request.n, latency_ms: at.ms_since(pending_request.at) };
        let body = EntryBody::Message(EntryElement { n: self.count, reply: Some(reply) });
        let message = match error_type {
            Some(error_type) => {
                let data = own_data(&[("error_type", &json::quoted(error_type))]);
                OwnMessage::error_with(&id, CODE_GONE, reason, &data)
            }
            None => OwnMessage::error(&id, CODE_GONE, reason),
        };
        send_own_entry((at, lane, asker), body, message, hold_id, emit);
    }
}

/// The error of a call that nobody can decide about any more.
fn unavailable(reason: &str) -> Refusal {
    let data = own_data(&[("error_type", b"\"service_unavailable\"")]);
    Refusal { data, ..refusal(CODE_UNAVAILABLE, reason) }
}

/// Reports a request that will not be answered to the gate, unless it was cancelled or reported
/// before.
fn note_orphan_request<G: Gate + ?Sized>(
    at: Timestamp,
    asker: Side,
    request: &UnansweredRequest,
    gate: &mut G,
) {
    if gate.is_active() && !request.pending_request.cancelled && !request.pending_request.late {
        gate.note_orphan_request(at, asker, request);
    }
}
