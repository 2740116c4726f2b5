//! Questions of our own to the client's user: whether a held call may be sent.
//!
//! A question is sent while the call is held. Its answer is recorded and passed to the gate, and never
//! forwarded. When the hold ends in another way, the question is cancelled before the caller gets
//! its answer. Ids are texts that no peer can guess, so an answer is recognised by its id alone.

use std::collections::VecDeque;

use super::holds::HeldRequest;
use super::own_message::OwnMessage;
use super::own_requests::answer_envelope;
use super::{ActionSink, MessageOrigin, Relay, RelayAction, send_own_entry};
use crate::frame::{Frame, same_id};
use crate::gate::{Gate, HoldId, InputQuestion, UserChoice, UserQuestion};
use crate::side::{Lane, Side};
use crate::tape::{EntryBody, EntryElement, ReplyLink};
use crate::time::Timestamp;

/// How many ids are remembered whose answers would come too late: more than calls can be held.
const STALE_MAX: usize = 2048;
/// Why a question is cancelled.
const OVER: &str = "the call no longer waits for a decision";

/// Questions of our own that the client has not answered. There is at most one for each held call.
#[derive(Debug, Default)]
pub(super) struct UserQuestions {
    waiting: Vec<PendingQuestion>,
    stale: VecDeque<(u32, Vec<u8>)>,
}

#[derive(Debug)]
struct PendingQuestion {
    id: Vec<u8>,
    lane: Lane,
    /// The call that it is about.
    hold_id: HoldId,
    may_approve: bool,
    at: Timestamp,
    /// Its number on the tape.
    n: u64,
}

impl UserQuestions {
    /// Takes the question with this id, which was sent in this session.
    fn take(&mut self, session: u32, id: &[u8]) -> Option<PendingQuestion> {
        let is_it = |one: &PendingQuestion| one.lane.session == session && same_id(&one.id, id);
        let index = self.waiting.iter().position(is_it)?;
        Some(self.waiting.swap_remove(index))
    }

    fn take_of(&mut self, hold_id: HoldId) -> Option<PendingQuestion> {
        let index = self.waiting.iter().position(|one| one.hold_id == hold_id)?;
        Some(self.waiting.swap_remove(index))
    }

    /// Remembers a question whose answer no longer counts.
    fn mark_stale(&mut self, session: u32, id: Vec<u8>) {
        if self.stale.len() == STALE_MAX {
            self.stale.pop_front();
        }
        self.stale.push_back((session, id));
    }

    fn is_stale(&self, session: u32, id: &[u8]) -> bool {
        self.stale.iter().any(|(of, stale)| *of == session && same_id(stale, id))
    }

    fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.stale.is_empty()
    }
}

impl Relay {
    /// Asks the client's user about a held call.
    pub(super) fn ask_user(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        question: &UserQuestion,
        emit: &mut ActionSink<'_, '_>,
    ) {
        // The call may have ended while the question was on its way here.
        let Some(lane) = self.holds.asking_lane(hold_id) else { return };
        self.cancel_question(at, hold_id, hold_id, emit);
        self.count += 1;
        let (n, id, may_approve) = (self.count, question.id().to_vec(), question.may_approve());
        // Pending before its bytes leave, as any other request (invariant 5).
        let pending = PendingQuestion { id, lane, hold_id, may_approve, at, n };
        self.questions.waiting.push(pending);
        let body = EntryBody::Message(EntryElement { n, reply: None });
        let message = OwnMessage::question(question);
        send_own_entry((at, lane, Side::Client), body, message, Some(hold_id), emit);
    }

    /// Answers a call with a question, after which its client makes it again.
    pub(super) fn ask_in_result(
        &mut self,
        at: Timestamp,
        held_request: HeldRequest,
        question: &InputQuestion,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let HeldRequest { hold_id, lane, from, id, n, at: asked_at, .. } = held_request;
        // A late cancellation of this call must not reach a server that never saw it.
        self.unsent.insert(lane, from, &id);
        self.count += 1;
        let reply = ReplyLink { to: n, latency_ms: at.ms_since(asked_at) };
        let body = EntryBody::Message(EntryElement { n: self.count, reply: Some(reply) });
        let message = OwnMessage::input_required(&id, question);
        send_own_entry((at, lane, from), body, message, Some(hold_id), emit);
    }

    /// Handles a message of the client that answers a question of our own; returns false if it does
    /// not.
    pub(super) fn take_user_answer<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        if origin.from == Side::Server || self.questions.is_unused() {
            return false;
        }
        let Some((envelope, id)) = answer_envelope(frame) else { return false };
        let session = origin.lane.session;
        let question = self.questions.take(session, id);
        if question.is_none() && !self.questions.is_stale(session, id) {
            return false;
        }
        let request = question.as_ref().map(|one| (one.lane, one.n, one.at));
        self.record_own_answer(origin, frame, request, emit);
        emit(RelayAction::Consumed);
        let Some(question) = question else { return true };
        let PendingQuestion { id, hold_id, may_approve, .. } = question;
        // A second answer with the same id is not for the server either.
        self.questions.mark_stale(session, id);
        if self.holds.is_held(hold_id) {
            let choice = envelope.result.and_then(UserChoice::read);
            let is_offered = |choice: &UserChoice| may_approve || *choice == UserChoice::Deny;
            gate.user_answered(origin.at, hold_id, choice.filter(is_offered));
        }
        true
    }

    /// Cancels the question about a call that no longer waits, or is now held as `current`.
    pub(super) fn cancel_question(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        current: HoldId,
        emit: &mut ActionSink<'_, '_>,
    ) {
        if let Some(question) = self.questions.take_of(hold_id) {
            self.send_cancellation(at, question, current, emit);
        }
    }

    /// Cancels the questions about calls that are no longer held, unless no client is listening.
    pub(super) fn cancel_ended_questions(
        &mut self,
        at: Timestamp,
        is_heard: bool,
        emit: &mut ActionSink<'_, '_>,
    ) {
        if self.questions.waiting.is_empty() {
            return;
        }
        let holds = &self.holds;
        let ended = self.questions.waiting.extract_if(.., |one| !holds.is_held(one.hold_id));
        let ended: Vec<PendingQuestion> = ended.collect();
        for question in ended {
            let hold_id = question.hold_id;
            match is_heard {
                true => self.send_cancellation(at, question, hold_id, emit),
                false => self.questions.mark_stale(question.lane.session, question.id),
            }
        }
    }

    fn send_cancellation(
        &mut self,
        at: Timestamp,
        question: PendingQuestion,
        hold_id: HoldId,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let PendingQuestion { id, lane, .. } = question;
        self.count += 1;
        let body = EntryBody::Message(EntryElement { n: self.count, reply: None });
        let message = OwnMessage::cancelled(&id, OVER);
        self.questions.mark_stale(lane.session, id);
        send_own_entry((at, lane, Side::Client), body, message, Some(hold_id), emit);
    }
}
