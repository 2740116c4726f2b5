//! Asks the gate about each message. Nothing is sent on that it has not let through.

use std::borrow::Cow;

use super::holds::Held;
use super::permit::Permitted;
use super::{Action, Emit, Relay, Way, answer_with};
use crate::frame::{Envelope, Frame, Kind};
use crate::gate::{Case, Gate, Hold, HoldEnd, Refusal, Settlement, Ticket, Topic, Verdict};
use crate::side::Side;
use crate::tape::{Element, Entry, Fate, What};
use crate::time::At;

/// The error code when a call would have to be held but too many are held already.
pub(super) const CODE_UNAVAILABLE: i32 = -32013;
/// The error code for a message that cannot be handled as it is.
pub(super) const CODE_INVALID: i32 = -32600;

impl Relay {
    /// Asks the gate about a message and carries out its verdict.
    pub(super) fn pass<'e, G: Gate + ?Sized>(
        &mut self,
        way: Way,
        frame: &Frame<'e>,
        gate: &mut G,
        emit: &mut Emit<'_, 'e>,
    ) {
        if self.is_own_answer(way, frame, gate, emit) {
            return;
        }
        let governed = gate.governs();
        let topic = if governed { self.topic(way, frame) } else { None };
        if governed {
            self.note_orphan_replies(way, frame, topic, gate);
        }
        if governed && topic.is_none() && self.refuses_mistaken(way, frame, gate, emit) {
            return;
        }
        let Way { at, lane, from, terminated, .. } = way;
        let n = self.count + 1;
        let case =
            Case { at, n, lane, from, frame, terminated, topic, approved: None, listed: None };
        match gate.judge(&case) {
            Verdict::Refuse(refusal) => self.refuse(way, frame, &refusal, emit),
            Verdict::Hold(hold) => self.hold(way, frame, (*hold, Fate::Held), gate, emit),
            Verdict::ListFirst(first) => self.hold_for_list(way, frame, *first, gate, emit),
            Verdict::Forward | Verdict::Rewrite(_)
                if (!self.holds.is_empty() || !self.unsent.is_empty())
                    && self.stops(way, frame, gate, emit) => {}
            Verdict::Forward => self.forward(way, frame, gate.governs(), emit),
            Verdict::Rewrite(text) => self.forward_instead(way, frame, text, emit),
        }
        if governed {
            self.schedule_late_check(at, gate);
        }
    }

    /// The topic of the request that a message answers.
    fn topic(&self, way: Way, frame: &Frame<'_>) -> Option<Topic> {
        let said = frame.envelope()?;
        let answers = matches!(said.kind(), Kind::Response | Kind::Error);
        let id = said.id.filter(|_| answers)?;
        self.asks_of(way.from.other()).find(way.lane, id).map(|asked| asked.topic)
    }

    /// Records a message, then sends it on unchanged.
    fn forward<'e>(&mut self, way: Way, frame: &Frame<'e>, topics: bool, emit: &mut Emit<'_, 'e>) {
        let what = self.note(way, frame, topics);
        emit(Action::Record(&way.entry(Cow::Borrowed(frame.bytes()), what, Fate::Sent)));
        let message = Permitted::as_received(frame);
        emit(Action::Forward { lane: way.lane, to: way.from.other(), message });
    }

    /// Sends `text` in a message's place. The tape keeps the client's view: what it sent, or what
    /// it got.
    fn forward_instead(
        &mut self,
        way: Way,
        frame: &Frame<'_>,
        text: Vec<u8>,
        emit: &mut Emit<'_, '_>,
    ) {
        let what = self.note(way, &Frame::read(&text), true);
        let kept = match way.from {
            Side::Client => frame.bytes(),
            Side::Server => &text,
        };
        emit(Action::Record(&way.entry(Cow::Borrowed(kept), what, Fate::Rewritten)));
        let message = Permitted::replaced(text);
        emit(Action::Forward { lane: way.lane, to: way.from.other(), message });
    }

    /// Holds a call, which the tape marks with `fate`, or refuses it if it cannot be held.
    pub(super) fn hold<G: Gate + ?Sized>(
        &mut self,
        way: Way,
        frame: &Frame<'_>,
        (hold, fate): (Hold, Fate),
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        let call = frame.envelope().filter(|said| said.kind() == Kind::Request);
        let (Some((said, id)), true) =
            (call.and_then(|said| Some((said, said.id?))), !self.holds.is_full(way.lane.session))
        else {
            gate.ended(way.at, hold.ticket, HoldEnd::Closed);
            let refusal = match call {
                Some(_) => too_many(),
                None => refusal(CODE_INVALID, "only a single request can be held for approval"),
            };
            return self.refuse(way, frame, &refusal, emit);
        };
        self.count += 1;
        let what = What::Message(Element { n: self.count, reply: None });
        emit(Action::Record(&way.entry(Cow::Borrowed(frame.bytes()), what, fate)));
        emit(Action::Held { lane: way.lane, ticket: hold.ticket });
        let call = (id, frame.bytes(), said.progress_token);
        self.holds.put(Held::new(way.at, (way.lane, way.from), call, self.count, hold));
    }

    /// Carries out the decision about a held call.
    pub(super) fn settle<G: Gate + ?Sized>(
        &mut self,
        at: At,
        ticket: Ticket,
        settlement: &Settlement,
        gate: &mut G,
        emit: &mut Emit<'_, '_>,
    ) {
        let Some(mut held) = self.holds.take(ticket) else { return };
        match settlement {
            Settlement::Approved(approval) => held.approval = Some(approval.clone()),
            Settlement::Refused(refusal) => return self.refuse_held(at, held, refusal, emit),
            Settlement::Unanswered(refusal) => {
                gate.ended(at, ticket, HoldEnd::Unanswered);
                return self.refuse_held(at, held, refusal, emit);
            }
        }
        self.judge_again(at, held, None, gate, emit);
    }

    /// Ends holds that have timed out, and sends progress to callers that still wait.
    pub(super) fn tick<G: Gate + ?Sized>(&mut self, at: At, gate: &mut G, emit: &mut Emit<'_, '_>) {
        self.check_late(at, gate);
        while let Some(mut held) = self.holds.take_late(at) {
            if held.awaits_list {
                self.list_late(at, held, gate, emit);
                continue;
            }
            gate.ended(at, held.ticket, HoldEnd::TimedOut);
            match held.on_timeout.take() {
                Some(refusal) => self.refuse_held(at, held, &refusal, emit),
                None => self.release(held, None, emit),
            }
        }
        for (ticket, way, text) in self.holds.told(at) {
            self.count += 1;
            let what = What::Message(Element { n: self.count, reply: None });
            answer_with(way, what, text, Some(ticket), emit);
        }
    }

    /// Ends the hold of a caller that is gone. It has not cancelled the call and may retry.
    pub(super) fn withdraw<G: Gate + ?Sized>(&mut self, at: At, ticket: Ticket, gate: &mut G) {
        if let Some(held) = self.holds.take(ticket) {
            self.unsent.put(held.lane, held.from, &held.id);
            gate.ended(at, ticket, HoldEnd::Abandoned);
        }
    }

    /// Sends a held call on. It was recorded when it arrived.
    pub(super) fn release(&mut self, held: Held, text: Option<Vec<u8>>, emit: &mut Emit<'_, '_>) {
        let Held { ticket, lane, from, id, bytes, at, n, .. } = held;
        let text = text.unwrap_or(bytes);
        let topic = Frame::read(&text).envelope().map_or(Topic::Other, topic_of);
        self.asked_by(from).ask(lane, &id, at, n, topic);
        let message = Permitted::released(ticket, text);
        emit(Action::Forward { lane, to: from.other(), message });
    }
}

/// The topic of a request.
pub(super) fn topic_of(said: &Envelope<'_>) -> Topic {
    said.method.map_or(Topic::Other, |method| Topic::of(&method.bytes()))
}

pub(super) fn refusal(code: i32, words: &str) -> Refusal {
    let (message, why) = (words.to_owned(), words.to_owned());
    Refusal { code, message, data: "{\"by\":\"tapegate\"}".to_owned(), why }
}

fn too_many() -> Refusal {
    refusal(CODE_UNAVAILABLE, "too many calls are waiting for approval")
}

impl Way {
    /// The tape entry for a message that arrived this way.
    pub(super) fn entry<'a>(self, bytes: Cow<'a, [u8]>, what: What, fate: Fate) -> Entry<'a> {
        let Self { at, lane, from, terminated, resumed, provenance } = self;
        let ours = provenance.ours;
        Entry { at, lane, from, bytes, what, terminated, ours, resumed, fate }
    }
}
