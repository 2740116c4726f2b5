//! Tasks of our own, which stand for held calls: their states, and what is kept of their outcomes.
//!
//! A task belongs to the session of its client and is unknown to all others. Its number and the
//! memory for outcomes are bounded: the tasks that ended first are forgotten first.

mod task_json;
mod task_tools;

use super::CODE_GONE;
use crate::frame::{OWN_DATA, error_object, same_id};
use crate::gate::{Refusal, TaskHandle};
use crate::json;
use crate::side::{Lane, Side};
use crate::time::Timestamp;

pub(super) use task_json::{OwnTaskAnswer, RelatedResult, list_with};
use task_tools::TaskTools;
pub(super) use task_tools::without_task;

/// How many tasks of one session, and of all, are kept.
const TASKS_MAX: usize = 64;
const TASKS_TOTAL_MAX: usize = 1024;
/// How many bytes of outcomes are kept.
const OUTCOME_BYTES_MAX: usize = 32 << 20;
/// How many requests may wait for the end of one task.
pub(super) const WAITERS_MAX: usize = 32;

/// All tasks, the oldest first.
#[derive(Debug, Default)]
pub(super) struct OwnTasks {
    tasks: Vec<OwnTask>,
    /// Whether there has ever been one.
    is_used: bool,
    /// The tools that the server runs as tasks.
    pub(super) tools: TaskTools,
}

/// A task that stands for a call.
#[derive(Debug)]
pub(super) struct OwnTask {
    pub(super) handle: TaskHandle,
    pub(super) lane: Lane,
    pub(super) step: TaskStep,
    /// The requests that wait for its end.
    pub(super) waiters: Vec<ResultWaiter>,
    created: Timestamp,
    updated: Timestamp,
}

/// How far a task has got.
#[derive(Debug)]
pub(super) enum TaskStep {
    /// Its call is held; the text says what for.
    Held(String),
    /// The server has the call, or was asked for its result.
    Sent(OutcomeRequest),
    /// The server has made this task of its own of the call, and answers for it.
    Linked(String),
    /// It has ended.
    Ended(TaskOutcome),
}

/// Our own request to the server that will bring the outcome.
#[derive(Debug, Clone)]
pub(super) struct OutcomeRequest {
    /// Its raw id.
    pub(super) id: Vec<u8>,
    pub(super) at: Timestamp,
    /// Its number on the tape.
    pub(super) n: u64,
    /// The task that the server has made of the call, once it has.
    pub(super) server_task: Option<String>,
}

/// How a task ended. The texts are what the gate has let through.
#[derive(Debug)]
pub(super) enum TaskOutcome {
    /// The server's result, with the reference to our task.
    Result(RelatedResult),
    /// The text of an error object, and its message.
    Error(Vec<u8>, String),
    /// The client cancelled it.
    Cancelled,
}

/// A `tasks/result` that waits.
#[derive(Debug)]
pub(super) struct ResultWaiter {
    pub(super) lane: Lane,
    /// The raw id.
    pub(super) id: Vec<u8>,
    pub(super) at: Timestamp,
    pub(super) n: u64,
}

/// What we ask a server about a task of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerTaskMethod {
    Result,
    Cancel,
}

impl ServerTaskMethod {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Result => "tasks/result",
            Self::Cancel => "tasks/cancel",
        }
    }
}

impl OwnTasks {
    /// Whether a message can be about a task of ours at all.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Makes room for one more task of a session; false if too many have not ended.
    pub(super) fn make_room(&mut self, now: Timestamp, session: u32) -> bool {
        self.forget_expired(now);
        let of_session = |task: &OwnTask| task.lane.session == session;
        let count = self.tasks.iter().filter(|task| of_session(task)).count();
        (count < TASKS_MAX || self.forget_first(of_session))
            && (self.tasks.len() < TASKS_TOTAL_MAX || self.forget_first(|_| true))
    }

    /// Adds a task whose call is held; `awaits` says what for.
    pub(super) fn insert(
        &mut self,
        now: Timestamp,
        lane: Lane,
        handle: TaskHandle,
        awaits: &str,
    ) -> &OwnTask {
        self.is_used = true;
        let step = TaskStep::Held(awaits.to_owned());
        let (waiters, created, updated) = (Vec::new(), now, now);
        self.tasks.push(OwnTask { handle, lane, step, waiters, created, updated });
        &self.tasks[self.tasks.len() - 1]
    }

    /// The task of a session with this id.
    pub(super) fn find(
        &mut self,
        now: Timestamp,
        session: u32,
        task_id: &str,
    ) -> Option<&mut OwnTask> {
        self.forget_expired(now);
        self.tasks
            .iter_mut()
            .find(|task| task.lane.session == session && task.handle.task_id == task_id)
    }

    /// The tasks of a session, the newest first.
    pub(super) fn of_session(&mut self, now: Timestamp, session: u32) -> Vec<&OwnTask> {
        self.forget_expired(now);
        self.tasks.iter().rev().filter(|task| task.lane.session == session).collect()
    }

    /// The task whose outcome this request of ours brings.
    pub(super) fn awaiting(&self, request_id: &[u8]) -> Option<(&OwnTask, &OutcomeRequest)> {
        self.tasks.iter().find_map(|task| match &task.step {
            TaskStep::Sent(request) if same_id(&request.id, request_id) => Some((task, request)),
            _ => None,
        })
    }

    /// Notes that the server has the call of a task, or was asked for its result.
    pub(super) fn set_sent(&mut self, now: Timestamp, task_id: &str, request: OutcomeRequest) {
        if let Some(task) = self.by_id(task_id) {
            task.step = TaskStep::Sent(request);
            task.updated = now;
        }
    }

    /// Notes that a task of the server stands behind a task.
    pub(super) fn link(&mut self, now: Timestamp, task_id: &str, server_task: &str) {
        if let Some(task) = self.by_id(task_id) {
            task.step = TaskStep::Linked(server_task.to_owned());
            task.updated = now;
        }
    }

    /// Whether a task of the server stands behind any task.
    pub(super) fn has_links(&self) -> bool {
        self.tasks.iter().any(|task| matches!(task.step, TaskStep::Linked(_)))
    }

    /// The id by which the receiver of a message from `from` knows the task that the message calls
    /// `name`, if one is behind the other.
    pub(super) fn linked_name(
        &mut self,
        now: Timestamp,
        (session, from): (u32, Side),
        name: &str,
    ) -> Option<String> {
        self.forget_expired(now);
        let of_session = self.tasks.iter_mut().filter(|task| task.lane.session == session);
        of_session.into_iter().find_map(|task| {
            let TaskStep::Linked(server_task) = &task.step else { return None };
            let (ours, theirs) = (&task.handle.task_id, server_task);
            let (known, other) = match from {
                Side::Client => (ours, theirs),
                Side::Server => (theirs, ours),
            };
            // A task that is asked about is still wanted.
            (known == name).then(|| {
                task.updated = now;
                other.clone()
            })
        })
    }

    /// Ends a task. Returns the requests that waited for it, unless it has ended before.
    pub(super) fn end(
        &mut self,
        now: Timestamp,
        task_id: &str,
        outcome: TaskOutcome,
    ) -> Vec<ResultWaiter> {
        let open = self.by_id(task_id).filter(|task| !task.is_ended());
        let Some(task) = open else { return Vec::new() };
        task.step = TaskStep::Ended(outcome);
        task.updated = now;
        let waiters = std::mem::take(&mut task.waiters);
        while self.outcome_bytes() > OUTCOME_BYTES_MAX {
            // The newest outcome stays, whatever its size: its client has not seen it yet.
            if !self.forget_first(|task| task.handle.task_id != task_id) {
                break;
            }
        }
        waiters
    }

    /// The ids of the tasks in one lane or all that have not ended.
    pub(super) fn open_tasks(&self, lane: Option<Lane>) -> Vec<String> {
        let is_open =
            |task: &&OwnTask| !task.is_ended() && lane.is_none_or(|lane| lane == task.lane);
        self.tasks.iter().filter(is_open).map(|task| task.handle.task_id.clone()).collect()
    }

    /// Forgets the tasks in one lane or all, because their client is gone.
    pub(super) fn forget_lane(&mut self, lane: Option<Lane>) {
        self.tasks.retain(|task| lane.is_some_and(|lane| lane != task.lane));
    }

    /// Removes a request that waits for the end of a task; false if there is none with this id.
    pub(super) fn remove_waiter(&mut self, lane: Lane, id: &[u8]) -> bool {
        let is_it = |waiter: &ResultWaiter| waiter.lane == lane && same_id(&waiter.id, id);
        self.tasks.iter_mut().any(|task| task.waiters.extract_if(.., |one| is_it(one)).count() > 0)
    }

    /// How many requests wait for the end of a task.
    pub(super) fn waiting(&self) -> usize {
        self.tasks.iter().map(|task| task.waiters.len()).sum()
    }

    fn by_id(&mut self, task_id: &str) -> Option<&mut OwnTask> {
        self.tasks.iter_mut().find(|task| task.handle.task_id == task_id)
    }

    fn outcome_bytes(&self) -> usize {
        self.tasks.iter().map(OwnTask::outcome_bytes).sum()
    }

    /// Forgets the oldest ended task among those; false if none has ended.
    fn forget_first(&mut self, among: impl Fn(&OwnTask) -> bool) -> bool {
        let index = self.tasks.iter().position(|task| task.is_ended() && among(task));
        index.map(|index| self.tasks.remove(index)).is_some()
    }

    fn forget_expired(&mut self, now: Timestamp) {
        self.tasks.retain(|task| {
            let TaskHandle { ttl_ms, keep_ms, .. } = task.handle;
            let is_kept =
                now.ms_since(task.created) < ttl_ms || now.ms_since(task.updated) < keep_ms;
            !task.is_ended() || is_kept
        });
    }
}

impl TaskOutcome {
    /// The error of a call that was refused.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        let Refusal { code, message, data, .. } = refusal;
        Self::Error(error_object(*code, message, Some(data.as_bytes())), message.clone())
    }

    /// The error that the server has answered with, or that its transport has reported.
    pub(super) fn failed(error: &[u8]) -> Self {
        let is_object = error.first() == Some(&b'{') && json::check(error).is_ok();
        let error = match is_object {
            true => json::compact(error).into_owned(),
            false => error_object(CODE_GONE, "the request failed", Some(OWN_DATA.as_bytes())),
        };
        let message = json::member(&error, "message").and_then(json::string).unwrap_or_default();
        let message = message.into_owned();
        Self::Error(error, message)
    }
}

impl OwnTask {
    /// Whether no outcome is expected here any more.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.step, TaskStep::Ended(_) | TaskStep::Linked(_))
    }

    fn outcome_bytes(&self) -> usize {
        match &self.step {
            TaskStep::Ended(TaskOutcome::Result(result)) => result.bytes().len(),
            TaskStep::Ended(TaskOutcome::Error(error, _)) => error.len(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
