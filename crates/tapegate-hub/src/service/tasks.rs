//! Approval requests: opened for calls that wait, decided by approvers.
//!
//! They are files that outlive the hub, and other processes decide about them too. So the state
//! here is only what was last seen in the folder.

mod task_request;
mod task_sweep;

pub(super) use task_request::{OpenedTask, TaskRequest, hash_of};

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tapegate_core::activity::{ActivityEvent, EventComponent};
use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_policy::approval_channel::UserAnswer;
use tapegate_policy::redact::RedactionKey;
use tapegate_store::activity::{self, settled_event, vote_event};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalRecord, ApprovalState, ApprovalStore,
    RequestStamp,
};
use tokio::sync::watch;
use tokio::time::Instant;

use super::Hub;
use super::channel_set::channel_member;
use super::response::ApiRefusal;
use crate::api::{
    AnswerRequest, ApprovalAnswer, ApprovalItem, ApprovalsAnswer, GovernanceDecision,
    GovernanceEvaluateRequest, GovernanceEvaluateResponse, SettleRequest, TaskAnswer, TaskStatus,
};
use crate::token::HubToken;

/// The longest time that a request for a task's status is kept open.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Why a caller waits no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// It has withdrawn the call.
    Withdrawn,
    /// It has given up, but may repeat the call.
    Abandoned,
    /// Nobody has decided in time.
    TimedOut,
}

/// The approval requests of a state folder.
pub(super) struct ApprovalTasks {
    pub(super) approvals: ApprovalStore,
    /// Masks what approvers must not see. New in each run: masked values need not be
    /// comparable.
    pub(super) key: RedactionKey,
    /// Requests that were pending when last seen.
    open: RefCell<BTreeMap<String, ApprovalRecord>>,
    /// Requests that have been decided and counted.
    done: RefCell<BTreeSet<String>>,
    /// What the files about those that were pending were when last read, and when each expires. By
    /// no clock that can be set back.
    stamps: RefCell<BTreeMap<String, (RequestStamp, Instant)>>,
    /// The kind of the channel whose answer is being counted, by the id of the request.
    decided_through: RefCell<BTreeMap<String, &'static str>>,
    /// Through what requests were decided, if through this hub.
    answered: RefCell<BTreeMap<String, String>>,
    /// Notifies when the folder has changed.
    changes: watch::Sender<()>,
}

impl ApprovalTasks {
    pub(super) fn open(user_state: &Path, state: &Path) -> Result<Self, ApprovalError> {
        let approvals = ApprovalStore::open_project(user_state, state)?;
        let secret = HubToken::generate().map_err(|source| ApprovalError::Io {
            path: approvals.path().to_owned(),
            source: io::Error::other(source),
        })?;
        let key = RedactionKey::from_secret(secret.reveal().as_bytes());
        let (open, done) = (RefCell::default(), RefCell::default());
        let (stamps, decided_through) = (RefCell::default(), RefCell::default());
        let changes = watch::Sender::new(());
        let answered = RefCell::default();
        Ok(Self { approvals, key, open, done, stamps, decided_through, answered, changes })
    }

    /// Has every pending request read again.
    pub(super) fn forget_stamps(&self) {
        self.stamps.borrow_mut().clear();
    }

    /// How many are pending.
    pub(super) fn pending_count(&self) -> usize {
        self.open.borrow().len()
    }
}

impl Hub {
    /// The status of a task, or its new status if it changes within `wait_ms`.
    pub(super) async fn task(&self, id: &str, wait_ms: u64) -> Result<TaskAnswer, ApiRefusal> {
        let until = Instant::now() + Duration::from_millis(wait_ms).min(WAIT_MAX);
        // Before the first look, so that a decision in between is not missed.
        let mut news = self.tasks.changes.subscribe();
        let mut stopping = self.stopping.subscribe();
        loop {
            let (request, answer) = self.task_state(id)?;
            if answer.status != TaskStatus::Pending || answer.shutdown || Instant::now() >= until {
                return Ok(answer);
            }
            let left_us = request.expires_us.saturating_sub(self.asker_now_us(&request)).max(0);
            let expiry = Instant::now() + Duration::from_micros(left_us as u64);
            tokio::select! {
                _ = news.changed() => {}
                _ = stopping.wait_for(|stopping| *stopping) => {}
                () = tokio::time::sleep_until(until.min(expiry)) => {}
            }
        }
    }

    /// Whether an approved call may still be sent. Uses up its approval if so.
    pub(super) fn revalidate(
        &self,
        id: &str,
        request: &GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, ApiRefusal> {
        let (kept, answer) = self.task_state(id)?;
        if answer.status != TaskStatus::Approved {
            let message = format!("`{id}` is {}, not approved", answer.status.name());
            return Err(conflict(&message));
        }
        let (mut response, call_hash) = self.reevaluate(request, &kept)?;
        // The caller sends the call again: an approval must not serve for other arguments.
        if call_hash.is_none_or(|hash| hash != kept.call_hash) {
            let message = format!("`{id}` was approved for another call, or by another workflow");
            return Err(conflict(&message));
        }
        // Used up only if the call may be sent: a policy that denies it now may permit it later.
        if response.decision == GovernanceDecision::Forward
            && !self.tasks.approvals.use_approval(id)?
        {
            return Err(conflict(&format!("approval `{id}` has already been used")));
        }
        response.task_id = Some(id.to_owned());
        Ok(response)
    }

    /// Withdraws a task; a finished one stays as it is. A task whose caller has only given up, or
    /// that other callers wait for, can still be decided.
    pub(super) fn cancel(&self, id: &str, end: WaitEnd) -> Result<TaskAnswer, ApiRefusal> {
        let (request, answer) = self.task_state(id)?;
        if answer.status == TaskStatus::Pending {
            let waiting = self.tasks.approvals.remove_waiter(id, self.clock.now().wall_us)?;
            // The request stays open: an approval lets the same call pass once.
            if end == WaitEnd::Abandoned || waiting > 0 {
                return Ok(answer);
            }
            if end == WaitEnd::TimedOut {
                // The hub opened the request a little later, so by its clock there is time left.
                self.expire(&request);
                self.sweep();
                return self.task_state(id).map(|(_, answer)| answer);
            }
            let decided = self.new_decision(ApprovalOutcome::Cancelled, "caller", None);
            let log = || self.log_settled(&request, &decided, "");
            match self.tasks.approvals.decide_and_log(id, &decided, log) {
                Ok(_) => {}
                Err(ApprovalError::AlreadyDecided { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            // Callers that wait for this task are woken now, not at the next look.
            self.sweep();
        }
        self.task_state(id).map(|(_, answer)| answer)
    }

    /// Approves or denies on behalf of a person.
    pub(super) fn settle(
        &self,
        id: &str,
        approve: bool,
        who: SettleRequest,
    ) -> Result<TaskAnswer, ApiRefusal> {
        self.note_answer(id, "api", self.settle_logged(id, approve, who, ""))
    }

    /// The same for an answer from a channel, which must be one of the request's workflow.
    pub(super) fn settle_through(
        &self,
        id: &str,
        approve: bool,
        who: SettleRequest,
        channel: &str,
    ) -> Result<TaskAnswer, ApiRefusal> {
        let request = self.tasks.approvals.request(id)?;
        let channels = self.channels_of(&request, self.asker_now_us(&request));
        if !channels.iter().any(|name| name == channel) {
            let message = format!("the workflow of `{id}` does not use the channel `{channel}`");
            return Err(ApiRefusal::new(StatusCode::FORBIDDEN, "forbidden", &message));
        }
        let kind = self.channels.settings(channel).map(|settings| settings.kind.as_str());
        self.tasks.decided_through.borrow_mut().extend(kind.map(|kind| (id.to_owned(), kind)));
        let done = self.settle_logged(id, approve, who, &channel_member(channel));
        // The decision was counted with its channel, or was not made.
        self.tasks.decided_through.borrow_mut().remove(id);
        self.note_answer(id, channel, done)
    }

    /// The same for the user of a client, if the workflow lets that user answer in the client.
    pub(super) fn settle_as_user(
        &self,
        id: &str,
        answer: &AnswerRequest,
    ) -> Result<TaskAnswer, ApiRefusal> {
        let AnswerRequest { approve, client } = answer;
        let request = self.tasks.approvals.request(id)?;
        let policy = self.active_policy().policy.clone();
        let workflow = policy.as_ref().and_then(|policy| policy.workflows.get(&request.workflow));
        if !workflow.is_some_and(|workflow| workflow.allows_answers_in(client)) {
            let message = format!("the workflow of `{id}` does not let users answer in `{client}`");
            return Err(ApiRefusal::new(StatusCode::FORBIDDEN, "forbidden", &message));
        }
        let extra = activity::extra(&json!({ "channel": "client", "client": client }));
        let answer = UserAnswer { choice: None, client: client.clone() };
        let who = SettleRequest { by: answer.by(), ..SettleRequest::default() };
        self.note_answer(id, "client", self.settle_logged(id, *approve, who, &extra))
    }

    /// Remembers through what a request was decided.
    fn note_answer(
        &self,
        id: &str,
        channel: &str,
        answer: Result<TaskAnswer, ApiRefusal>,
    ) -> Result<TaskAnswer, ApiRefusal> {
        if answer.as_ref().is_ok_and(|answer| answer.status != TaskStatus::Pending) {
            self.tasks.answered.borrow_mut().insert(id.to_owned(), channel.to_owned());
        }
        answer
    }

    /// Through what a request was decided, if through this hub.
    pub(super) fn answered_by(&self, id: &str) -> Option<String> {
        self.tasks.answered.borrow().get(id).cloned()
    }

    fn settle_logged(
        &self,
        id: &str,
        approve: bool,
        who: SettleRequest,
        extra: &str,
    ) -> Result<TaskAnswer, ApiRefusal> {
        // An agent can start a hub itself; such a hub must not decide about its calls.
        if let Some(cause_text) = &self.options.undecided {
            return Err(ApiRefusal::new(StatusCode::FORBIDDEN, "forbidden", cause_text));
        }
        if who.by.trim().is_empty() {
            return Err(ApiRefusal::bad_request("`by` must name who decides"));
        }
        let (request, _) = self.task_state(id)?;
        let ruling = if approve { ApprovalOutcome::Approved } else { ApprovalOutcome::Denied };
        // By the asker's clock, since the hub's may be an hour off and the decision would look
        // late.
        let at_us = self.asker_now_us(&request);
        let decided = ApprovalDecision { at_us, ..self.new_decision(ruling, &who.by, who.reason) };
        // If it cannot be logged now, a later sweep logs it.
        let log = || self.log_settled(&request, &decided, extra);
        match self.tasks.approvals.decide_and_log(id, &decided, log) {
            Err(error @ ApprovalError::NeedsMore { .. }) => {
                self.log_vote(&request, &decided, &error.to_string());
            }
            done => drop(done?),
        }
        self.sweep();
        self.task_state(id).map(|(_, answer)| answer)
    }

    /// All requests that can still be decided.
    pub(super) fn pending_approvals(&self) -> Result<ApprovalsAnswer, ApiRefusal> {
        let pending = self.tasks.approvals.pending(self.clock.now().wall_us)?;
        Ok(ApprovalsAnswer { approvals: pending.into_iter().map(item).collect() })
    }

    /// A request and its state.
    pub(super) fn approval(&self, id: &str) -> Result<ApprovalAnswer, ApiRefusal> {
        let (_, task) = self.task_state(id)?;
        let entry = self.tasks.approvals.entry(id)?;
        let (approved_by, used) = (entry.votes, entry.used);
        Ok(ApprovalAnswer { approval: item(entry.request), task, approved_by, used })
    }

    /// The current status of a task. Expires it first if its time is over.
    fn task_state(&self, id: &str) -> Result<(ApprovalRecord, TaskAnswer), ApiRefusal> {
        let request = self.tasks.approvals.request(id)?;
        let mut decided = self.tasks.approvals.decision(id)?;
        let now_us = match decided {
            None => self.asker_now_us(&request),
            Some(_) => self.clock.now().wall_us,
        };
        if decided.is_none() && now_us >= request.expires_us {
            self.expire(&request);
            decided = self.tasks.approvals.decision(id)?;
        }
        let state = decided.as_ref().map(|decided| ApprovalState::of(decided.ruling));
        let status = TaskStatus::from(state.unwrap_or(ApprovalState::Pending));
        let pending = status == TaskStatus::Pending;
        let answer = TaskAnswer {
            task_id: id.to_owned(),
            status,
            decided_by: decided.as_ref().map(|decided| decided.by.clone()),
            decided_at: decided.as_ref().map(|decided| time_text(decided.at_us)),
            reason: decided.and_then(|decided| decided.reason),
            expires_at: Some(time_text(request.expires_us)),
            grant_id: None,
            poll_interval_ms: pending.then(|| poll_interval_ms(request.expires_us - now_us)),
            shutdown: self.is_stopping(),
        };
        Ok((request, answer))
    }

    /// The current time by the clock of the process that asked, which may differ from the hub's.
    pub(super) fn asker_now_us(&self, request: &ApprovalRecord) -> i64 {
        self.tasks.approvals.asker_now_us(request, self.clock.now().wall_us)
    }

    fn new_decision(
        &self,
        ruling: ApprovalOutcome,
        by: &str,
        reason: Option<String>,
    ) -> ApprovalDecision {
        ApprovalDecision { ruling, by: by.to_owned(), at_us: self.clock.now().wall_us, reason }
    }

    /// Logs how a request ended through the hub.
    fn log_settled(
        &self,
        request: &ApprovalRecord,
        decided: &ApprovalDecision,
        extra: &str,
    ) -> Result<(), String> {
        let (component, profile) = (Some(EventComponent::Hub), Some(self.active_policy().profile));
        let extra = extra.into();
        let event = ActivityEvent { component, profile, extra, ..settled_event(request, decided) };
        self.journal
            .write(&[event])
            .inspect_err(|cause_text| (self.options.notice)(super::NoticeLevel::Error, cause_text))
    }

    /// Logs an approval that needs others.
    fn log_vote(&self, request: &ApprovalRecord, decided: &ApprovalDecision, text: &str) {
        let (component, profile) = (Some(EventComponent::Hub), Some(self.active_policy().profile));
        let event = ActivityEvent { component, profile, ..vote_event(request, decided, text) };
        if let Err(cause_text) = self.journal.write(&[event]) {
            (self.options.notice)(super::NoticeLevel::Error, &cause_text);
        }
    }

    /// Logs decisions whose deciders were killed before they could log them.
    fn log_unlogged(&self) {
        let state = &self.options.state_folder;
        self.tasks.approvals.log_unlogged(state, |request, decided| {
            self.log_settled(request, decided, "\"recovered\":true").is_ok()
        });
    }
}

impl From<ApprovalError> for ApiRefusal {
    fn from(error: ApprovalError) -> Self {
        let message = error.to_string();
        match error {
            ApprovalError::Unknown { .. } => Self::not_found(&message),
            ApprovalError::AlreadyDecided { .. }
            | ApprovalError::Exists { .. }
            | ApprovalError::NeedsMore { .. }
            | ApprovalError::Expired { .. } => conflict(&message),
            ApprovalError::NotAnApprover { .. } | ApprovalError::OwnRequest { .. } => {
                Self::new(StatusCode::FORBIDDEN, "forbidden", &message)
            }
            ApprovalError::Private(_) | ApprovalError::Io { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", &message)
            }
        }
    }
}

fn conflict(message: &str) -> ApiRefusal {
    ApiRefusal::new(StatusCode::CONFLICT, "conflict", message)
}

/// How often to poll, by how much time is left.
fn poll_interval_ms(left_us: i64) -> u64 {
    match left_us / 1_000_000 {
        ..=60 => 2_000,
        61..=300 => 5_000,
        301..=900 => 10_000,
        _ => 30_000,
    }
}

pub(super) fn time_text(wall_us: i64) -> String {
    let mut text = Vec::new();
    write_rfc3339(&mut text, wall_us, SubSecond::Micros);
    String::from_utf8_lossy(&text).into_owned()
}

fn item(request: ApprovalRecord) -> ApprovalItem {
    let arguments = request.arguments().map(str::to_owned);
    let second = request.escalation.as_ref();
    ApprovalItem {
        escalates_to: second.map(|second| second.workflow.clone()),
        escalates_at: second.map(|second| time_text(second.at_us)),
        created_at: time_text(request.created_us),
        expires_at: time_text(request.expires_us),
        id: request.id,
        server_id: request.server_id,
        method: request.method,
        tool: request.tool,
        arguments,
        params: request.params,
        asked: request.call_count,
        waiting: request.waiting,
        principal: request.principal,
        workflow: request.workflow,
        reason: request.reason,
        approvers: request.approvers,
        request_id: request.request_id,
    }
}
