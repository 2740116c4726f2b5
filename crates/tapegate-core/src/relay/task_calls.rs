//! Held calls that are tasks: they begin, go to the server in a request of our own, and end.
//!
//! The client has the answer to its call, which names the task, before a person decides. What the
//! server answers later passes the gate as any other answer does, and is then kept for the client.

use std::borrow::Cow;

use super::gate_dispatch::{CODE_INVALID, refusal};
use super::holds::HeldRequest;
use super::own_message::OwnMessage;
use super::own_tasks::{
    OutcomeRequest, RelatedResult, ResultWaiter, ServerTaskMethod, TaskOutcome, without_task,
};
use super::permit::PermittedMessage;
use super::refusals::record_undelivered;
use super::{ActionSink, CODE_GONE, MessageOrigin, Relay, RelayAction, send_own_answer};
use crate::frame::{Frame, MessageKind};
use crate::gate::{
    Gate, GateInput, HoldEnd, HoldId, Refusal, TaskDialect, TaskHandle, Topic, Verdict,
};
use crate::json::{self, JsonEdits};
use crate::side::{Lane, Side};
use crate::tape::{EntryBody, EntryElement, GateOutcome, Provenance, ReplyLink};
use crate::time::Timestamp;

const NO_RESULT: &str = "the MCP server's answer has no result that can be kept";

impl Relay {
    /// Whether one more held call of this lane's session can be a task.
    pub(super) fn has_room_for_task(&mut self, at: Timestamp, lane: Lane) -> bool {
        self.holds.has_room_for_task() && self.tasks.make_room(at, lane.session)
    }

    /// Makes the held call a task, and answers its caller.
    pub(super) fn start_task(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        handle: TaskHandle,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let Some(held) = self.holds.get(hold_id) else { return };
        let (lane, from, id, n, asked_at) =
            (held.lane, held.from, held.id.clone(), held.n, held.at);
        let task = self.tasks.insert(at, lane, handle.clone(), held.awaits());
        let message = OwnMessage::task_answer(&id, &task.created_answer());
        self.holds.set_task(hold_id, handle);
        // The server never sees this id, so neither may it see a cancellation of it.
        self.unsent.insert(lane, from, &id);
        self.count += 1;
        let reply = ReplyLink { to: n, latency_ms: at.ms_since(asked_at) };
        let element = EntryElement { n: self.count, reply: Some(reply) };
        send_own_answer(at, lane, from, element, message, emit);
    }

    /// Sends the released call of a task. The client's id is answered, so the call gets one of ours. It
    /// asks the server for a task too if the tool may run as one.
    pub(super) fn release_task(
        &mut self,
        at: Timestamp,
        (hold_id, lane): (HoldId, Lane),
        handle: &TaskHandle,
        text: &[u8],
        emit: &mut ActionSink<'_, '_>,
    ) {
        let mut id = Vec::new();
        json::write_str(&mut id, &handle.request_id);
        let frame = Frame::read(text);
        let mut edits = JsonEdits::new(text);
        if let Some(envelope) = frame.envelope() {
            edits.replace(envelope.id.unwrap_or_default(), &id);
            let name = envelope.name.map(|name| name.decode()).unwrap_or_default();
            let is_core = handle.dialect == TaskDialect::Core;
            let params = envelope.params.filter(|_| is_core && self.tasks.tools.excludes(&name));
            if let Some(params) = params
                && let Some(without) = without_task(params)
            {
                edits.replace(params, &without);
            }
        }
        let text = edits.finish().into_owned();
        let n = self.note_server_request(at, &handle.task_id, (id, None));
        let origin = MessageOrigin {
            provenance: Provenance::OWN,
            ..MessageOrigin::new(at, lane, Side::Client)
        };
        let body = EntryBody::Message(EntryElement { n, reply: None });
        emit(RelayAction::Record(&origin.entry(Cow::Borrowed(&text), body, GateOutcome::Sent)));
        let message = PermittedMessage::release_held(hold_id, text);
        emit(RelayAction::Forward { lane, to: Side::Server, message });
    }

    /// Handles the server's answer to the call of a task; false if it is not one.
    pub(super) fn take_task_answer<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        if origin.from == Side::Client || !self.tasks.is_used() {
            return false;
        }
        let answers = |kind| matches!(kind, MessageKind::Response | MessageKind::Error);
        let envelope = frame.envelope().filter(|envelope| answers(envelope.kind()));
        let Some(id) = envelope.and_then(|envelope| envelope.id) else { return false };
        let Some((task, request)) = self.tasks.awaiting(id) else { return false };
        let (task_id, lane, request) = (task.handle.task_id.clone(), task.lane, request.clone());
        // A second answer with the same id is not for the client.
        self.own.mark_cancelled(request.id.clone());
        let origin = MessageOrigin { lane, ..origin };
        let (n, topic, terminated) = (self.count + 1, Some(Topic::Call), origin.terminated);
        let case = GateInput {
            at: origin.at,
            n,
            lane,
            from: Side::Server,
            frame,
            terminated,
            topic,
            approved: None,
            listed: None,
        };
        let verdict = gate.judge(&case);
        let refused = match &verdict {
            Verdict::Forward | Verdict::Rewrite(_) => None,
            Verdict::Refuse(refusal) => Some((**refusal).clone()),
            Verdict::Hold(hold) => {
                gate.hold_ended(origin.at, hold.hold_id, HoldEnd::Closed);
                Some(refusal(CODE_INVALID, "an answer cannot be held for approval"))
            }
            Verdict::ListFirst(_) => {
                Some(refusal(CODE_INVALID, "an answer cannot be held for a list"))
            }
        };
        if let Some(refusal) = refused {
            record_undelivered(origin, frame.bytes(), &refusal.reason, emit);
            self.end_task(origin.at, &task_id, TaskOutcome::refused(&refusal), emit);
            return true;
        }
        let (text, outcome) = match verdict {
            Verdict::Rewrite(text) => (Cow::Owned(text), GateOutcome::Rewritten),
            _ => (Cow::Borrowed(frame.bytes()), GateOutcome::Sent),
        };
        self.count += 1;
        let reply = ReplyLink { to: request.n, latency_ms: origin.at.ms_since(request.at) };
        let body = EntryBody::Message(EntryElement { n: self.count, reply: Some(reply) });
        emit(RelayAction::Record(&origin.entry(Cow::Borrowed(&text), body, outcome)));
        self.keep_answer(origin.at, (&task_id, lane), &request, &text, emit);
        true
    }

    /// Keeps what the server has answered, or asks for the result of the task it has made.
    fn keep_answer(
        &mut self,
        at: Timestamp,
        (task_id, lane): (&str, Lane),
        request: &OutcomeRequest,
        text: &[u8],
        emit: &mut ActionSink<'_, '_>,
    ) {
        let frame = Frame::read(text);
        let envelope = frame.envelope();
        let (result, error) = envelope.map_or((None, None), |msg| (msg.result, msg.error));
        if let (TaskDialect::Extension, Some(result)) =
            (self.task_dialect(at, lane, task_id), result)
        {
            return self.keep_extension_result(at, (task_id, request), result, emit);
        }
        let made = result.filter(|_| request.server_task.is_none()).and_then(server_task_id);
        if let Some(server_task) = made {
            let id = followed_id(&request.id, "result");
            let method = ServerTaskMethod::Result;
            let message = OwnMessage::task_request(&id, method, &server_task);
            let n = self.note_server_request(at, task_id, (id, Some(server_task)));
            let element = EntryElement { n, reply: None };
            return send_own_answer(at, lane, Side::Server, element, message, emit);
        }
        let kept = result.and_then(|result| RelatedResult::new(result, task_id));
        let outcome = match (kept, error) {
            (Some(result), _) => TaskOutcome::Result(result),
            (None, Some(error)) => TaskOutcome::failed(error),
            (None, None) => TaskOutcome::refused(&refusal(CODE_GONE, NO_RESULT)),
        };
        self.end_task(at, task_id, outcome, emit);
    }

    /// Registers a request of ours that will bring the outcome of a task, and returns its number.
    fn note_server_request(
        &mut self,
        at: Timestamp,
        task_id: &str,
        (id, server_task): (Vec<u8>, Option<String>),
    ) -> u64 {
        // Pending before its bytes leave, as any other request (invariant 5).
        self.count += 1;
        let n = self.count;
        self.tasks.set_sent(at, task_id, OutcomeRequest { id, at, n, server_task });
        n
    }

    /// Ends the task of a call that was refused or can no longer be decided about; false if the call
    /// is not a task.
    pub(super) fn end_task_of(
        &mut self,
        at: Timestamp,
        held_request: &HeldRequest,
        refusal: &Refusal,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        let Some(task) = &held_request.task else { return false };
        self.end_task(at, &task.task_id, TaskOutcome::refused(refusal), emit);
        true
    }

    /// Ends the task whose request of ours has failed; false if the request is not that of a task.
    pub(super) fn task_request_failed(
        &mut self,
        at: Timestamp,
        id: &[u8],
        error: &[u8],
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        let Some((task, request)) = self.tasks.awaiting(id) else { return false };
        let (task_id, request_id) = (task.handle.task_id.clone(), request.id.clone());
        // The answer may still come, and must not reach a client that never made the request.
        self.own.mark_cancelled(request_id);
        self.end_task(at, &task_id, TaskOutcome::failed(error), emit);
        true
    }

    /// Ends all tasks in one lane or all, because the server will not answer any more.
    pub(super) fn fail_tasks(
        &mut self,
        at: Timestamp,
        lane: Option<Lane>,
        reason: &str,
        emit: &mut ActionSink<'_, '_>,
    ) {
        for task_id in self.tasks.open_tasks(lane) {
            let outcome = TaskOutcome::refused(&refusal(CODE_GONE, reason));
            self.end_task(at, &task_id, outcome, emit);
        }
    }

    /// Ends a task, and answers the requests that waited for it.
    pub(super) fn end_task(
        &mut self,
        at: Timestamp,
        task_id: &str,
        outcome: TaskOutcome,
        emit: &mut ActionSink<'_, '_>,
    ) {
        for waiter in self.tasks.end(at, task_id, outcome) {
            let ResultWaiter { lane, id, at: asked_at, n } = waiter;
            let task = self.tasks.find(at, lane.session, task_id);
            let Some(answer) = task.as_ref().and_then(|task| task.outcome_answer()) else {
                continue;
            };
            let message = OwnMessage::task_answer(&id, &answer);
            self.unsent.insert(lane, Side::Client, &id);
            self.count += 1;
            let reply = ReplyLink { to: n, latency_ms: at.ms_since(asked_at) };
            let element = EntryElement { n: self.count, reply: Some(reply) };
            send_own_answer(at, lane, Side::Client, element, message, emit);
        }
    }

    /// Withdraws a call that the server has, because its client cancels the task.
    pub(super) fn cancel_server_request(
        &mut self,
        at: Timestamp,
        lane: Lane,
        request: &OutcomeRequest,
        emit: &mut ActionSink<'_, '_>,
    ) {
        self.own.mark_cancelled(request.id.clone());
        self.count += 1;
        let element = EntryElement { n: self.count, reply: None };
        let message = match &request.server_task {
            None => OwnMessage::cancelled(&request.id, "the client cancelled the task"),
            Some(task_id) => {
                let id = followed_id(&request.id, "cancel");
                let message = OwnMessage::task_request(&id, ServerTaskMethod::Cancel, task_id);
                // Its answer changes nothing any more.
                self.own.mark_cancelled(id);
                message
            }
        };
        send_own_answer(at, lane, Side::Server, element, message, emit);
    }
}

/// The id of the task that a server has made of a call, if this is the result that says so.
fn server_task_id(result: &[u8]) -> Option<String> {
    let task =
        json::member(result, "task").filter(|_| json::member(result, "content").is_none())?;
    json::member(task, "taskId").and_then(json::string).map(Cow::into_owned)
}

/// The raw id of a request of ours that follows one with this raw id.
fn followed_id(id: &[u8], what: &str) -> Vec<u8> {
    let mut out = id.strip_suffix(b"\"").unwrap_or(id).to_vec();
    out.extend_from_slice(format!("-{what}\"").as_bytes());
    out
}
