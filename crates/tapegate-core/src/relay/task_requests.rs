//! Requests of the client about tasks of ours. Those about tasks of the server pass to the server.

use std::borrow::Cow;

use super::own_message::OwnMessage;
use super::own_tasks::{
    OwnTaskAnswer, ResultWaiter, TaskOutcome, TaskStep, WAITERS_MAX, list_with,
};
use super::{ActionSink, MessageOrigin, Relay, RelayAction, send_own_answer};
use crate::frame::{Envelope, Frame, MessageKind, own_data};
use crate::gate::{Gate, HoldEnd, TASKS_EXTENSION, TaskDialect, Topic, Verdict, accepts_tasks};
use crate::json;
use crate::side::Side;
use crate::tape::{EntryBody, EntryElement, GateOutcome, ReplyLink};

/// Why the cancellation of a request that waits is not sent.
const TAKEN_BACK: &str = "it cancels a request about a task of Tapegate";
const CODE_INVALID_PARAMS: i32 = -32602;
const CODE_UNKNOWN_METHOD: i32 = -32601;
const CODE_MISSING_CAPABILITY: i32 = -32021;
const TOO_MANY_WAIT: &str = "too many requests wait for the result of this task";

/// A method about one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskMethod {
    Get,
    Result,
    Cancel,
    /// Of the extension alone.
    Update,
}

impl TaskMethod {
    pub(super) fn of(envelope: &Envelope<'_>) -> Option<Self> {
        let methods = [
            ("tasks/get", Self::Get),
            ("tasks/result", Self::Result),
            ("tasks/cancel", Self::Cancel),
            ("tasks/update", Self::Update),
        ];
        methods.into_iter().find(|(name, _)| envelope.is_method(name)).map(|(_, method)| method)
    }

    /// Whether requests of this method can be about tasks of this dialect. `tasks/result` is answered
    /// for all, since the server knows none of them.
    fn belongs_to(self, dialect: TaskDialect) -> bool {
        self != Self::Update || dialect == TaskDialect::Extension
    }
}

/// The error for a client that asks about a task without saying that it knows tasks.
fn missing_capability(id: &[u8]) -> OwnMessage {
    let required = format!("{{\"extensions\":{{\"{TASKS_EXTENSION}\":{{}}}}}}");
    let data = own_data(&[("requiredCapabilities", required.as_bytes())]);
    OwnMessage::error_with(id, CODE_MISSING_CAPABILITY, "Missing required client capability", &data)
}

impl Relay {
    /// Answers a request about a task of ours, or takes the cancellation of one that waits; false if
    /// the message is neither.
    pub(super) fn take_task_request<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> bool {
        let MessageOrigin { at, lane, from, .. } = origin;
        if from == Side::Server || !self.tasks.is_used() {
            return false;
        }
        let Some(envelope) = frame.envelope() else { return false };
        if envelope.kind() == MessageKind::Notification {
            let is_ours = envelope.is_method("notifications/cancelled")
                && envelope.request_id.is_some_and(|id| self.tasks.remove_waiter(lane, id));
            if is_ours {
                let outcome = GateOutcome::Refused(TAKEN_BACK.to_owned());
                self.record_for_us(origin, frame, outcome, emit);
            }
            return is_ours;
        }
        let (MessageKind::Request, Some(id), Some(method)) =
            (envelope.kind(), envelope.id, TaskMethod::of(envelope))
        else {
            return false;
        };
        let task_id = envelope.params.and_then(|params| json::member(params, "taskId"));
        let Some(task_id) = task_id.and_then(json::string) else { return false };
        let task = self.tasks.find(at, lane.session, &task_id);
        let dialect = task
            .filter(|task| !matches!(task.step, TaskStep::Linked(_)))
            .map(|task| task.handle.dialect);
        let Some(dialect) = dialect.filter(|dialect| method.belongs_to(*dialect)) else {
            return false;
        };
        // It is not refused: its answer, which is marked as ours, shows that the server has not got it.
        let n = self.record_for_us(origin, frame, GateOutcome::Sent, emit);
        let is_extension = dialect == TaskDialect::Extension;
        let message = match method {
            _ if is_extension && !accepts_tasks(envelope) => Some(missing_capability(id)),
            TaskMethod::Result if is_extension => {
                Some(OwnMessage::error(id, CODE_UNKNOWN_METHOD, "Method not found"))
            }
            TaskMethod::Update => Some(OwnMessage::task_answer(id, &OwnTaskAnswer::acknowledged())),
            TaskMethod::Get => self.task_state(origin, id, &task_id),
            TaskMethod::Result => self.task_result(origin, (id, n), &task_id),
            TaskMethod::Cancel => Some(self.cancel_task(origin, id, &task_id, gate, emit)),
        };
        if let Some(message) = message {
            self.count += 1;
            let reply = Some(ReplyLink { to: n, latency_ms: 0 });
            send_own_answer(at, lane, from, EntryElement { n: self.count, reply }, message, emit);
        }
        true
    }

    /// Records a message that goes no further, and returns its number.
    fn record_for_us(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        outcome: GateOutcome,
        emit: &mut ActionSink<'_, '_>,
    ) -> u64 {
        self.count += 1;
        let body = EntryBody::Message(EntryElement { n: self.count, reply: None });
        emit(RelayAction::Record(&origin.entry(Cow::Borrowed(frame.bytes()), body, outcome)));
        self.count
    }

    fn task_state(
        &mut self,
        origin: MessageOrigin,
        id: &[u8],
        task_id: &str,
    ) -> Option<OwnMessage> {
        let task = self.tasks.find(origin.at, origin.lane.session, task_id)?;
        Some(OwnMessage::task_answer(id, &task.state_answer()))
    }

    /// The outcome of a task; `None` if the request waits for it.
    fn task_result(
        &mut self,
        origin: MessageOrigin,
        (id, n): (&[u8], u64),
        task_id: &str,
    ) -> Option<OwnMessage> {
        let MessageOrigin { at, lane, .. } = origin;
        let task = self.tasks.find(at, lane.session, task_id)?;
        if let Some(answer) = task.outcome_answer() {
            return Some(OwnMessage::task_answer(id, &answer));
        }
        if task.waiters.len() >= WAITERS_MAX {
            return Some(OwnMessage::error(id, CODE_INVALID_PARAMS, TOO_MANY_WAIT));
        }
        task.waiters.push(ResultWaiter { lane, id: id.to_vec(), at, n });
        None
    }

    /// Cancels a task: its call is no longer held, or the server is told. A task that has ended stays
    /// as it is.
    fn cancel_task<G: Gate + ?Sized>(
        &mut self,
        origin: MessageOrigin,
        id: &[u8],
        task_id: &str,
        gate: &mut G,
        emit: &mut ActionSink<'_, '_>,
    ) -> OwnMessage {
        let MessageOrigin { at, lane, .. } = origin;
        let gone = || OwnMessage::error(id, CODE_INVALID_PARAMS, "the task has expired");
        let Some(task) = self.tasks.find(at, lane.session, task_id) else { return gone() };
        match &task.step {
            TaskStep::Linked(_) => return gone(),
            TaskStep::Ended(_) if task.handle.dialect == TaskDialect::Extension => {
                return OwnMessage::task_answer(id, &OwnTaskAnswer::acknowledged());
            }
            TaskStep::Ended(_) => {
                let text = format!("the task cannot be cancelled: it is {}", task.status());
                return OwnMessage::error(id, CODE_INVALID_PARAMS, &text);
            }
            TaskStep::Sent(request) => {
                let (lane, request) = (task.lane, request.clone());
                self.cancel_server_request(at, lane, &request, emit);
            }
            TaskStep::Held(_) => {
                if let Some(held_request) = self.holds.take_task(task_id) {
                    gate.hold_ended(at, held_request.hold_id, HoldEnd::Cancelled);
                }
            }
        }
        self.end_task(at, task_id, TaskOutcome::Cancelled, emit);
        let task = self.tasks.find(at, lane.session, task_id);
        task.map_or_else(gone, |task| match task.handle.dialect {
            TaskDialect::Core => OwnMessage::task_answer(id, &task.state_answer()),
            TaskDialect::Extension => OwnMessage::task_answer(id, &OwnTaskAnswer::acknowledged()),
        })
    }

    /// The verdict about a server's answer to `tasks/list`, with our tasks in its first page.
    pub(super) fn with_own_tasks(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        topic: Option<Topic>,
        verdict: Verdict,
    ) -> Verdict {
        if let (Some(Topic::Tools), Some(answer)) = (topic, frame.envelope()) {
            self.tasks.tools.learn(answer);
        }
        if !self.tasks.is_used() {
            return verdict;
        }
        if topic != Some(Topic::Tasks) {
            return self.with_linked_id(origin, frame, verdict);
        }
        let text = match &verdict {
            Verdict::Forward => frame.bytes(),
            Verdict::Rewrite(text) => text,
            Verdict::Refuse(_) | Verdict::Hold(_) | Verdict::ListFirst(_) => return verdict,
        };
        let mut tasks = self.tasks.of_session(origin.at, origin.lane.session);
        // The extension has no lists.
        tasks.retain(|task| task.handle.dialect == TaskDialect::Core);
        match list_with(text, &tasks) {
            Some(merged) => Verdict::Rewrite(merged),
            None => verdict,
        }
    }
}
