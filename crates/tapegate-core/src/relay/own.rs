//! Requests of our own: what the gate needs from the server before it decides about a call.
//!
//! The call is held meanwhile. The answer is recorded and passed to the gate, and never forwarded. The
//! gate chooses ids that no client can guess, so an answer is recognised by its id alone.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::gating::{CODE_UNAVAILABLE, refusal};
use super::holds::Held;
use super::own_message::OwnMessage;
use super::{Action, Emit, Relay, Way, answer};
use crate::frame::{Frame, Kind, same_id};
use crate::gate::{Case, Gate, Hold, ListFirst, ListStep, OwnRequest, Ticket, Verdict};
use crate::side::{Lane, Side};
use crate::tape::{Element, Fate, Reply, What};
use crate::time::At;

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
    waiting: VecDeque<Waiting>,
    stale: VecDeque<Vec<u8>>,
}

#[derive(Debug)]
struct Waiting {
    id: Vec<u8>,
    lane: Lane,
    /// The call that is held for it.
    ticket: Ticket,
    at: At,
    /// Its number on the tape.
    n: u64,
}

impl OwnRequests {
    fn put(&mut self, waiting: Waiting) {
        if self.waiting.len() == WAITING_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.give_up(oldest.id);
        }
        self.waiting.push_back(waiting);
    }

    fn take(&mut self, id: &[u8]) -> Option<Waiting> {
        let place = self.waiting.iter().position(|one| same_id(&one.id, id))?;
        self.waiting.remove(place)
    }

    /// Stops waiting for the requests that were made for a call.
    fn give_up_on(&mut self, ticket: Ticket) {
        while let Some(place) = self.waiting.iter().position(|one| one.ticket == ticket)
            && let Some(one) = self.waiting.remove(place)
        {
            self.give_up(one.id);
        }
    }

    fn give_up(&mut self, id: Vec<u8>) {
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

impl Relay {
    /// Holds a call and sends the server the gate's first request.
    pub(super) fn hold_for_list<G: Gate + ?Sized>(
        &mut self,
        way: Way,
        frame: &Frame<'_>,
        first: ListFirst,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        let ListFirst { ticket, timeout_ms, request } = first;
        let hold = Hold { ticket, timeout_ms, on_timeout: None };
        self.hold(way, frame, (hold, Fate::HeldForList), gate, emit);
        if self.holds.await_list(ticket) {
            self.ask_server(way.at, way.lane, ticket, request, emit);
        }
    }

    fn ask_server(
        &mut self,
        at: At,
        lane: Lane,
        ticket: Ticket,
        request: OwnRequest,
        emit: &mut Emit<'_, '_>,
    ) {
        self.count += 1;
        let n = self.count;
        self.own.put(Waiting { id: request.id().to_owned(), lane, ticket, at, n });
        let element = Element { n, reply: None };
        answer(at, lane, Side::Server, element, OwnMessage::request(request), emit);
    }

    /// Handles a message of the server that answers a request of our own; returns false if it does not.
    pub(super) fn is_own_answer<G: Gate + ?Sized>(
        &mut self,
        way: Way,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) -> bool {
        if way.from == Side::Client || self.own.is_unused() {
            return false;
        }
        let answers = |kind| matches!(kind, Kind::Response | Kind::Error);
        let said = frame.envelope().filter(|said| answers(said.kind()));
        let Some(id) = said.and_then(|said| said.id) else { return false };
        let stale = self.own.is_stale(id);
        let waiting = self.own.take(id);
        if waiting.is_none() && !stale {
            return false;
        }
        self.count += 1;
        let reply = waiting.as_ref();
        let reply = reply.map(|one| Reply { to: one.n, latency_ms: way.at.ms_since(one.at) });
        let what = What::Message(Element { n: self.count, reply });
        let lane = waiting.as_ref().map_or(way.lane, |one| one.lane);
        let way = Way { lane, ..way };
        emit(Action::Record(&way.entry(Cow::Borrowed(frame.bytes()), what, Fate::Sent)));
        let Some(Waiting { id, lane, ticket, .. }) = waiting else { return true };
        // A second answer with the same id is not for the client either.
        self.own.give_up(id);
        if !self.holds.is_held(ticket) {
            return true;
        }
        match gate.own_answer(way.at, ticket, frame) {
            ListStep::Next(request) => self.ask_server(way.at, lane, ticket, request, emit),
            ListStep::Done => {
                if let Some(held) = self.holds.take(ticket) {
                    self.judge_again(way.at, held, Some(ticket), gate, emit);
                }
            }
        }
        true
    }

    /// Handles the failure of a request of our own; returns false if it was not ours.
    pub(super) fn own_failed<G: Gate + ?Sized>(
        &mut self,
        at: At,
        id: &[u8],
        why: &str,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) -> bool {
        let Some(Waiting { id, ticket, .. }) = self.own.take(id) else { return false };
        self.own.give_up(id);
        if let Some(held) = self.holds.take(ticket) {
            gate.own_failed(at, ticket, why);
            self.judge_again(at, held, Some(ticket), gate, emit);
        }
        true
    }

    /// Handles a timeout of the lists that a call was held for.
    pub(super) fn list_late<G: Gate + ?Sized>(
        &mut self,
        at: At,
        held: Held,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        self.own.give_up_on(held.ticket);
        let ticket = held.ticket;
        gate.own_failed(at, ticket, "the server did not answer in time");
        self.judge_again(at, held, Some(ticket), gate, emit);
    }

    /// Asks the gate about a held call again and carries out its verdict. `listed` is the id of the hold
    /// that waited for lists.
    pub(super) fn judge_again<G: Gate + ?Sized>(
        &mut self,
        at: At,
        mut held: Held,
        listed: Option<Ticket>,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        let frame = Frame::read(&held.bytes);
        let Held { n, lane, from, ticket: was, .. } = held;
        let (topic, terminated, frame) = (None, true, &frame);
        let approved = held.approval.as_ref();
        let case = Case { at, n, lane, from, frame, terminated, topic, approved, listed };
        match gate.judge(&case) {
            Verdict::Forward => self.release(held, None, emit),
            Verdict::Rewrite(text) => self.release(held, Some(text), emit),
            Verdict::Refuse(refusal) => self.refuse_held(at, held, &refusal, emit),
            Verdict::Hold(hold) => {
                emit(Action::HeldAgain { was, ticket: hold.ticket });
                self.holds.put(held.again(at, *hold));
            }
            Verdict::ListFirst(_) if held.rounds > ROUNDS_MAX => {
                self.refuse_held(at, held, &refusal(CODE_UNAVAILABLE, RESTLESS), emit);
            }
            Verdict::ListFirst(first) if held.rounds == ROUNDS_MAX => {
                held.rounds += 1;
                gate.own_failed(at, first.ticket, RESTLESS);
                self.judge_again(at, held, Some(first.ticket), gate, emit);
            }
            Verdict::ListFirst(first) => {
                let ListFirst { ticket, timeout_ms, request } = *first;
                emit(Action::HeldAgain { was, ticket });
                let hold = Hold { ticket, timeout_ms, on_timeout: None };
                self.holds.put(held.again(at, hold));
                self.holds.await_list(ticket);
                self.ask_server(at, lane, ticket, request, emit);
            }
        }
    }
}
