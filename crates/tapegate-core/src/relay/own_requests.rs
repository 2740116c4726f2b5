//! Requests of our own: what the gate needs from the server before it decides about a call.
//!
//! The call is held meanwhile. The answer is recorded and passed to the gate, and never forwarded. The
//! gate chooses ids that no client can guess, so an answer is recognised by its id alone.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::gate_dispatch::{refusal, too_many_held_refusal};
use super::holds::HeldRequest;
use super::own_message::OwnMessage;
use super::{ActionSink, CODE_UNAVAILABLE, MessageOrigin, Relay, RelayAction, send_own_answer};
use crate::frame::{Envelope, Frame, MessageKind, same_id};
use crate::gate::{
    Gate, GateInput, Hold, HoldEnd, HoldId, ListFirst, ListStep, OwnRequest, Verdict,
};
use crate::side::{Lane, Side};
use crate::tape::{EntryBody, EntryElement, GateOutcome, ReplyLink};
use crate::time::Timestamp;

/// How many requests of our own may be pending; more than there can be held calls of a session.
const WAITING_MAX: usize = 64;
/// How many ids are remembered whose answers would come too late.
const STALE_MAX: usize = 256;
/// How often one call may wait for further lists before it is refused.
const ROUNDS_MAX: u32 = 4;
const RESTLESS: &str = "the server's lists change faster than they can be compared";

/// Requests of our own that the server has not answered.
#[derive(Debug, Default)]
pub(super) struct OwnRequests {
    waiting: VecDeque<PendingOwnRequest>,
    stale: VecDeque<Vec<u8>>,
}

#[derive(Debug)]
struct PendingOwnRequest {
    id: Vec<u8>,
    lane: Lane,
    /// The call that is held for it.
    hold_id: HoldId,
    at: Timestamp,
    /// Its number on the tape.
    n: u64,
}

impl OwnRequests {
    fn insert(&mut self, waiting: PendingOwnRequest) {
        if self.waiting.len() == WAITING_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            // The call that waits for the oldest request is not lost: its hold times out and it is
            // judged again.
            self.mark_cancelled(oldest.id);
        }
        self.waiting.push_back(waiting);
    }

    fn take(&mut self, id: &[u8]) -> Option<PendingOwnRequest> {
        let index = self.waiting.iter().position(|one| same_id(&one.id, id))?;
        self.waiting.remove(index)
    }

    /// Stops waiting for the requests that were made for a call.
    fn cancel_for_hold(&mut self, hold_id: HoldId) {
        while let Some(index) = self.waiting.iter().position(|one| one.hold_id == hold_id)
            && let Some(one) = self.waiting.remove(index)
        {
            self.mark_cancelled(one.id);
        }
    }

    /// Remembers a request whose answer is for no one.
    pub(super) fn mark_cancelled(&mut self, id: Vec<u8>) {
        if self.stale.len() == STALE_MAX {
            self.stale.pop_front();
        }
        self.stale.push_back(id);
    }

    fn is_stale(&self, id: &[u8]) -> bool {
        self.stale.iter().any(|one| same_id(one, id))
    }

    /// Whether no answer to a request of our own can still arrive.
    pub(super) fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.stale.is_empty()
    }
}

/// The envelope and the id of an answer; `None` for any other message.
pub(super) fn answer_envelope<'f>(frame: &'f Frame<'_>) -> Option<(&'f Envelope<'f>, &'f [u8])> {
    let envelope = frame.envelope()?;
    let answers = matches!(envelope.kind(), MessageKind::Response | MessageKind::Error);
    envelope.id.filter(|_| answers).map(|id| (envelope, id))
}

impl Relay {
    /// Holds a call and sends the server the gate's first request.
    pub(super) fn hold_for_list<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        first: ListFirst,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let ListFirst { hold_id, timeout_ms, request } = first;
        let hold = Hold { hold_id, timeout_ms, ..Hold::default() };
        self.hold(origin, frame, (hold, GateOutcome::HeldForList), gate, emit);
        // If too many calls are held, this one was refused and needs no list.
        if self.holds.await_list(hold_id) {
            self.send_own_request(origin.at, origin.lane, hold_id, request, emit);
        }
    }

    /// Records the answer to a request of our own. `request` is its lane, its number and its time,
    /// unless its answer is no longer awaited.
    pub(super) fn record_own_answer(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        request: Option<(Lane, u64, Timestamp)>,
        emit: &mut ActionSink<'_, '_>,
    ) {
        self.count += 1;
        let reply =
            request.map(|(_, n, at)| ReplyLink { to: n, latency_ms: origin.at.ms_since(at) });
        let body = EntryBody::Message(EntryElement { n: self.count, reply });
        // A reader of the tape finds request and answer in one lane.
        let lane = request.map_or(origin.lane, |(lane, ..)| lane);
        let entry = MessageOrigin { lane, ..origin };
        let entry = entry.entry(Cow::Borrowed(frame.bytes()), body, GateOutcome::Sent);
        emit(RelayAction::Record(&entry));
    }

    fn send_own_request(
        &mut self,
        at: Timestamp,
        lane: Lane,
        hold_id: HoldId,
        request: OwnRequest,
        emit: &mut ActionSink<'_, '_>,
    ) {
        self.count += 1;
        let n = self.count;
        // Pending before its bytes leave, as any other request (invariant 5).
        self.own.insert(PendingOwnRequest { id: request.id().to_owned(), lane, hold_id, at, n });
        let element = EntryElement { n, reply: None };
        send_own_answer(at, lane, Side::Server, element, OwnMessage::request(request), emit);
    }

    /// Handles a message of the server that answers a request of our own; returns false if it does not.
    pub(super) fn take_own_answer<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        if origin.from == Side::Client || self.own.is_unused() {
            return false;
        }
        let Some((_, id)) = answer_envelope(frame) else { return false };
        let stale = self.own.is_stale(id);
        let waiting = self.own.take(id);
        if waiting.is_none() && !stale {
            return false;
        }
        let request = waiting.as_ref().map(|one| (one.lane, one.n, one.at));
        self.record_own_answer(origin, frame, request, emit);
        let Some(PendingOwnRequest { id, lane, hold_id, .. }) = waiting else { return true };
        // A second answer with the same id is not for the client either.
        self.own.mark_cancelled(id);
        // The caller has cancelled or left meanwhile, so there is no call to judge.
        if !self.holds.is_held(hold_id) {
            return true;
        }
        match gate.own_request_answered(origin.at, hold_id, frame) {
            ListStep::Next(request) => {
                self.send_own_request(origin.at, lane, hold_id, request, emit)
            }
            ListStep::Done => {
                if let Some(held_request) = self.holds.take(hold_id) {
                    self.judge_again(origin.at, held_request, Some(hold_id), gate, emit);
                }
            }
        }
        true
    }

    /// Handles the failure of a request of our own; returns false if it was not ours.
    pub(super) fn own_request_failed<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        id: &[u8],
        reason: &str,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        let Some(PendingOwnRequest { id, hold_id, .. }) = self.own.take(id) else { return false };
        // The answer may still come, and must not reach a client that never made the request.
        self.own.mark_cancelled(id);
        // The gate decides what a missing list means for the call, so it judges again.
        if let Some(held_request) = self.holds.take(hold_id) {
            gate.own_request_failed(at, hold_id, reason);
            self.judge_again(at, held_request, Some(hold_id), gate, emit);
        }
        true
    }

    /// Handles a timeout of the lists that a call was held for.
    pub(super) fn own_lists_timed_out<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        held_request: HeldRequest,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        self.own.cancel_for_hold(held_request.hold_id);
        let hold_id = held_request.hold_id;
        gate.own_request_failed(at, hold_id, "the server did not answer in time");
        self.judge_again(at, held_request, Some(hold_id), gate, emit);
    }

    /// Asks the gate about a held call again and carries out its verdict. `listed` is the id of the hold
    /// that waited for lists.
    pub(super) fn judge_again<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        mut held_request: HeldRequest,
        listed: Option<HoldId>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let frame = Frame::read(&held_request.bytes);
        let HeldRequest { n, lane, from, hold_id: was, .. } = held_request;
        // Only a single request can be held, so the call has no topic of an answer.
        let (topic, terminated, frame) = (None, true, &frame);
        let approved = held_request.approval.as_ref();
        let case = GateInput { at, n, lane, from, frame, terminated, topic, approved, listed };
        match gate.judge(&case) {
            Verdict::Forward => self.release(at, held_request, None, emit),
            Verdict::Rewrite(text) => self.release(at, held_request, Some(text), emit),
            Verdict::Refuse(refusal) => self.refuse_held(at, held_request, &refusal, emit),
            Verdict::Hold(hold) => self.hold_again(at, held_request, *hold, gate, emit),
            // The gate was told that the lists failed and still asks for one. Refusing ends the
            // recursion.
            Verdict::ListFirst(_) if held_request.rounds > ROUNDS_MAX => {
                self.refuse_held(at, held_request, &refusal(CODE_UNAVAILABLE, RESTLESS), emit);
            }
            // The last round: the gate judges as if the server had not answered.
            Verdict::ListFirst(first) if held_request.rounds == ROUNDS_MAX => {
                held_request.rounds += 1;
                gate.own_request_failed(at, first.hold_id, RESTLESS);
                self.judge_again(at, held_request, Some(first.hold_id), gate, emit);
            }
            Verdict::ListFirst(first) => {
                let ListFirst { hold_id, timeout_ms, request } = *first;
                emit(RelayAction::HeldAgain { was, hold_id });
                let hold = Hold { hold_id, timeout_ms, ..Hold::default() };
                self.cancel_question(at, was, hold_id, emit);
                self.holds.insert(held_request.held_again(at, hold));
                self.holds.await_list(hold_id);
                self.send_own_request(at, lane, hold_id, request, emit);
            }
        }
    }

    /// Holds a held call again. It becomes a task only now if it has waited for a list before.
    fn hold_again<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        held_request: HeldRequest,
        mut hold: Hold,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let (was, hold_id) = (held_request.hold_id, hold.hold_id);
        let task = hold.task.take().filter(|_| held_request.task.is_none());
        if task.is_some() && !self.has_room_for_task(at, held_request.lane) {
            gate.hold_ended(at, hold_id, HoldEnd::Closed);
            return self.refuse_held(at, held_request, &too_many_held_refusal(), emit);
        }
        self.cancel_question(at, was, hold_id, emit);
        emit(RelayAction::HeldAgain { was, hold_id });
        self.holds.insert(held_request.held_again(at, hold));
        if let Some(task) = task {
            self.start_task(at, hold_id, task, emit);
        }
    }
}
