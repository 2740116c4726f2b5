//! Asks the gate about each message. Nothing is sent on that it has not let through.

use std::borrow::Cow;

use super::holds::HeldRequest;
use super::permit::PermittedMessage;
use super::{ActionSink, CODE_UNAVAILABLE, MessageOrigin, Relay, RelayAction, send_own_entry};
use crate::frame::{Envelope, Frame, MessageKind, OWN_DATA};
use crate::gate::{Gate, GateInput, Hold, HoldEnd, HoldId, HoldOutcome, Refusal, Topic, Verdict};
use crate::json;
use crate::side::Side;
use crate::tape::{EntryBody, EntryElement, GateOutcome, TapeEntry};
use crate::time::Timestamp;

/// The error code for a message that cannot be handled as it is.
pub(super) const CODE_INVALID: i32 = -32600;

impl Relay {
    /// Asks the gate about a message and carries out its verdict.
    pub(super) fn judge_and_forward<'e, G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        received: &'e Frame<'e>,
        gate: &mut G,
        emit: &mut ActionSink<'_, 'e>,
    ) {
        let governed = gate.is_active();
        // A gate must never see a message that was not read in full, whichever end scanned it.
        let detailed;
        let frame = match governed && !received.has_gate_details() {
            true => {
                detailed = Frame::read(received.bytes());
                &detailed
            }
            false => received,
        };
        // Answers to our own requests come first. They match no pending request and would otherwise
        // be reported as orphans, or forwarded.
        if self.take_own_answer(origin, frame, gate, emit)
            || self.take_task_answer(origin, frame, gate, emit)
            || self.take_user_answer(origin, frame, gate, emit)
        {
            return;
        }
        // The topic is read before the message is noted, because that removes the pending request.
        let topic = if governed { self.topic_of_answer(origin, frame) } else { None };
        if governed {
            self.note_orphan_replies(origin, frame, topic, gate);
        }
        if governed && topic.is_none() && self.refuse_lookalike_answer(origin, frame, gate, emit) {
            return;
        }
        let MessageOrigin { at, lane, from, terminated, .. } = origin;
        // The message has no number yet, but the gate's notes must name the one it will get.
        let n = self.count + 1;
        let case =
            GateInput { at, n, lane, from, frame, terminated, topic, approved: None, listed: None };
        let verdict = gate.judge(&case);
        match self.with_own_tasks(origin, frame, topic, verdict) {
            Verdict::Refuse(refusal) => self.refuse(origin, frame, &refusal, emit),
            Verdict::Hold(hold) => self.hold(origin, frame, (*hold, GateOutcome::Held), gate, emit),
            Verdict::ListFirst(first) => self.hold_for_list(origin, frame, *first, gate, emit),
            Verdict::Forward | Verdict::Rewrite(_)
                // Calls that were never sent are rare, so ordinary messages skip the search for
                // them.
                if (!self.holds.is_empty() || !self.unsent.is_empty())
                    && self.stop_if_unsent(origin, frame, gate, emit) => {}
            Verdict::Forward | Verdict::Rewrite(_)
                if self.take_task_request(origin, frame, gate, emit) => {}
            Verdict::Forward => self.forward(origin, received, governed, emit),
            Verdict::Rewrite(text) => self.forward_replacement(origin, frame, text, emit),
        }
        if governed {
            self.schedule_late_check(at, gate);
        }
    }

    /// The topic of the request that a message answers.
    fn topic_of_answer(&self, origin: MessageOrigin, frame: &Frame<'_>) -> Option<Topic> {
        let envelope = frame.envelope()?;
        let answers = matches!(envelope.kind(), MessageKind::Response | MessageKind::Error);
        let id = envelope.id.filter(|_| answers)?;
        self.pending(origin.from.other())
            .find(origin.lane, id)
            .map(|pending_request| pending_request.topic)
    }

    /// Records a message, then sends it on unchanged.
    fn forward<'e>(
        &mut self,
        origin: MessageOrigin,
        frame: &'e Frame<'e>,
        topics: bool,
        emit: &mut ActionSink<'_, 'e>,
    ) {
        let what = self.note_frame(origin, frame, topics);
        emit(RelayAction::Record(&origin.entry(
            Cow::Borrowed(frame.bytes()),
            what,
            GateOutcome::Sent,
        )));
        let message = PermittedMessage::as_received(frame);
        emit(RelayAction::Forward { lane: origin.lane, to: origin.from.other(), message });
    }

    /// Sends `text` in a message's place. The tape keeps the client's view: what it sent, or what
    /// it got.
    fn forward_replacement(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        text: Vec<u8>,
        emit: &mut ActionSink<'_, '_>,
    ) {
        // The pending requests follow the text that is sent, because the other side answers that
        // text.
        let what = self.note_frame(origin, &Frame::read(&text), true);
        let kept = match origin.from {
            Side::Client => frame.bytes(),
            Side::Server => &text,
        };
        emit(RelayAction::Record(&origin.entry(Cow::Borrowed(kept), what, GateOutcome::Rewritten)));
        let message = PermittedMessage::replacement(text);
        emit(RelayAction::Forward { lane: origin.lane, to: origin.from.other(), message });
    }

    /// Holds a call, which the tape marks with `fate`, or refuses it if it cannot be held.
    pub(super) fn hold<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        (mut hold, fate): (Hold, GateOutcome),
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let task = hold.task.take();
        let has_room = task.is_none() || self.has_room_for_task(origin.at, origin.lane);
        let call = frame.envelope().filter(|envelope| envelope.kind() == MessageKind::Request);
        let (Some((envelope, id)), true) = (
            call.and_then(|envelope| Some((envelope, envelope.id?))),
            has_room && !self.holds.is_full(origin.lane.session),
        ) else {
            // The gate has registered the hold. Unless it ends here, approvers see a call that
            // waits for nothing.
            gate.hold_ended(origin.at, hold.hold_id, HoldEnd::Closed);
            let refusal = match call {
                Some(_) => too_many_held_refusal(),
                None => refusal(CODE_INVALID, "only a single request can be held for approval"),
            };
            return self.refuse(origin, frame, &refusal, emit);
        };
        self.count += 1;
        let body = EntryBody::Message(EntryElement { n: self.count, reply: None });
        emit(RelayAction::Record(&origin.entry(Cow::Borrowed(frame.bytes()), body, fate)));
        emit(RelayAction::Held { lane: origin.lane, hold_id: hold.hold_id });
        let call = (id, frame.bytes(), envelope.progress_token);
        let (hold_id, from) = (hold.hold_id, (origin.lane, origin.from));
        self.holds.insert(HeldRequest::new(origin.at, from, call, self.count, hold));
        if let Some(task) = task {
            self.start_task(origin.at, hold_id, task, emit);
        }
    }

    /// Carries out the decision about a held call.
    pub(super) fn settle<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        outcome: &HoldOutcome,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        if let HoldOutcome::AskUser(question) = outcome {
            return self.ask_user(at, hold_id, question, emit);
        }
        let Some(mut held_request) = self.holds.take(hold_id) else { return };
        match outcome {
            HoldOutcome::AskUser(_) => {}
            HoldOutcome::AskInResult(question) => {
                gate.hold_ended(at, hold_id, HoldEnd::Asked);
                return self.ask_in_result(at, held_request, question, emit);
            }
            HoldOutcome::Approved(approval) => held_request.approval = Some(approval.clone()),
            HoldOutcome::Refused(refusal) => {
                gate.hold_refused(hold_id);
                return self.refuse_held(at, held_request, refusal, emit);
            }
            HoldOutcome::Unanswered(refusal) => {
                gate.hold_ended(at, hold_id, HoldEnd::Unanswered);
                return self.refuse_held(at, held_request, refusal, emit);
            }
        }
        // The policy may have changed while the call waited, so an approval alone does not release
        // it.
        self.judge_again(at, held_request, None, gate, emit);
    }

    /// Ends holds that have timed out, and sends progress to callers that still wait.
    pub(super) fn tick<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) {
        self.check_late(at, gate);
        // Timeouts come before progress: a caller that has its error must get no further message
        // about the call.
        while let Some(mut held_request) = self.holds.take_late(at) {
            if held_request.awaits_list {
                self.own_lists_timed_out(at, held_request, gate, emit);
                continue;
            }
            gate.hold_ended(at, held_request.hold_id, HoldEnd::TimedOut);
            match held_request.on_timeout.take() {
                Some(refusal) => self.refuse_held(at, held_request, &refusal, emit),
                None => self.release(at, held_request, None, emit),
            }
        }
        for (hold_id, way, text) in self.holds.keepalives_due(at) {
            self.count += 1;
            let body = EntryBody::Message(EntryElement { n: self.count, reply: None });
            send_own_entry(way, body, text, Some(hold_id), emit);
        }
    }

    /// Ends the hold of a caller that is gone. It has not cancelled the call and may retry.
    pub(super) fn withdraw_held<G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        gate: &mut G,
    ) {
        if let Some(held_request) = self.holds.take(hold_id) {
            // A late cancellation of this call must not reach a server that never saw it.
            self.unsent.insert(held_request.lane, held_request.from, &held_request.id);
            gate.hold_ended(at, hold_id, HoldEnd::Abandoned);
        }
    }

    /// Sends a held call on. It was recorded when it arrived.
    pub(super) fn release(
        &mut self,
        now: Timestamp,
        held_request: HeldRequest,
        text: Option<Vec<u8>>,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let HeldRequest { hold_id, lane, from, id, bytes, at, n, task, .. } = held_request;
        self.cancel_question(now, hold_id, hold_id, emit);
        let text = text.unwrap_or(bytes);
        if let Some(task) = task {
            return self.release_task(now, (hold_id, lane), &task, &text, emit);
        }
        let topic = Frame::read(&text).envelope().map_or(Topic::Other, topic_of);
        // Pending before the bytes leave (invariant 5). The arrival time counts, so the recorded
        // latency includes the wait.
        self.pending_mut(from).add(lane, &id, at, n, topic);
        let message = PermittedMessage::release_held(hold_id, text);
        emit(RelayAction::Forward { lane, to: from.other(), message });
    }
}

/// The topic of a request.
pub(super) fn topic_of(envelope: &Envelope<'_>) -> Topic {
    let topic = envelope.method.map_or(Topic::Other, |method| Topic::of(&method.bytes()));
    // Our own tasks are part of the first page alone.
    let cursor = || envelope.params.and_then(|params| json::member(params, "cursor"));
    match topic {
        Topic::Tasks if cursor().is_some_and(|cursor| cursor != b"null") => Topic::Other,
        topic => topic,
    }
}

pub(super) fn refusal(code: i32, message_text: &str) -> Refusal {
    let (message, reason) = (message_text.to_owned(), message_text.to_owned());
    Refusal { code, message, data: OWN_DATA.to_owned(), reason }
}

pub(super) fn too_many_held_refusal() -> Refusal {
    refusal(CODE_UNAVAILABLE, "too many calls are waiting for approval")
}

impl MessageOrigin {
    /// The tape entry for a message that arrived this way.
    pub(super) fn entry<'a>(
        self,
        bytes: Cow<'a, [u8]>,
        body: EntryBody,
        gate_outcome: GateOutcome,
    ) -> TapeEntry<'a> {
        let Self { at, lane, from, terminated, resumed, provenance } = self;
        let ours = provenance.ours;
        TapeEntry { at, lane, from, bytes, body, terminated, ours, resumed, gate_outcome }
    }
}
