//! Asks for approval through the approvals folder, and passes decisions on to the wire.
//!
//! The request file is written before the call is held, so that no call waits for a request that
//! was never made. The folder is read whenever it changes. Identical calls share one request: its
//! approval sends the newest of them, once. If no caller waits any more, the approval lets the same
//! call pass once later.

mod decisions;
mod requests;
mod user_answers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, EventComponent};
use tapegate_core::gate::{HoldId, HoldOutcome};
use tapegate_core::relay::HELD_TOTAL_MAX;
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::policy_gate::PolicyHandle;
use tapegate_policy::redact::RedactionKey;
use tapegate_policy::request_state::RequestStateKey;
use tapegate_store::FolderWatcher;
use tapegate_store::activity::{
    self, escalated_event, log_event, refused_file_event, settled_event,
};
use tapegate_store::approvals::{ApprovalRecord, ApprovalStore};
use tapegate_wire::clock::Clock;
use tapegate_wire::port::StreamPort;
use tokio::io::Interest;
use tokio::sync::{Notify, mpsc};

use crate::client_patience::PatienceWarning;
use crate::journal::ShimJournal;

/// How long requests are kept after they can no longer be decided.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often the folder is searched for unmasked values that must be removed.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// How much may be queued: a decision and a question for each call that the relay can hold. An
/// approval that finds no room would be used up without its call being sent.
pub(crate) const SETTLEMENTS_MAX: usize = 2 * HELD_TOTAL_MAX;

/// The channel that decisions are sent to.
pub(crate) type HoldOutcomeSender = mpsc::Sender<(HoldId, HoldOutcome)>;

/// Approvals through files in a folder. Clones share the same state.
#[derive(Clone)]
pub(crate) struct FileApprovals(Arc<FileApprovalsInner>);

struct FileApprovalsInner {
    /// The state folder, which holds the activity log.
    state: PathBuf,
    /// The approvals folder, or why it cannot be used.
    approvals: Result<ApprovalStore, String>,
    /// The requests that calls of this session wait for, by id, as this process made them: their
    /// files may have been changed since. The register says which calls wait for each.
    requests: Mutex<BTreeMap<String, ApprovalRecord>>,
    holds: HoldRegister,
    settle: HoldOutcomeSender,
    journal: ShimJournal,
    policy_handle: PolicyHandle,
    key: RedactionKey,
    states: Option<RequestStateKey>,
    connection_id: String,
    folder: String,
    policy: String,
    clock: Clock,
    /// Wakes the task that watches for decisions.
    notify: Notify,
    patience: PatienceWarning,
}

/// What is needed to open the approvals.
pub(crate) struct FileApprovalsConfig {
    /// The user's own state folder, or why there is none.
    pub(crate) user_state: Result<PathBuf, String>,
    pub(crate) settle: HoldOutcomeSender,
    pub(crate) holds: HoldRegister,
    pub(crate) journal: ShimJournal,
    pub(crate) policy_handle: PolicyHandle,
    pub(crate) key: RedactionKey,
    pub(crate) connection_id: String,
    /// The folder that the session works in.
    pub(crate) folder: String,
    /// The policy's file.
    pub(crate) policy: String,
    pub(crate) clock: Clock,
}

impl FileApprovals {
    /// Opens the approvals of the project with this state folder. If they cannot be opened, calls
    /// that need approval are refused.
    pub(crate) fn open(state: &Path, begin: FileApprovalsConfig) -> Self {
        let approvals = begin.user_state.as_ref().map_err(Clone::clone).and_then(|user_state| {
            ApprovalStore::open_project(user_state, state).map_err(|error| error.to_string())
        });
        if let Ok(approvals) = &approvals {
            // Failures are ignored: the next cleanup removes what is left.
            let now_us = begin.clock.now().wall_us;
            approvals.remove_left_over();
            approvals.remove_expired_hourly(now_us, KEPT).ok();
            approvals.remove_stale_unmasked(now_us).ok();
        }
        let FileApprovalsConfig {
            user_state: _,
            settle,
            holds,
            journal,
            policy_handle,
            key,
            connection_id,
            folder,
            policy,
            clock,
        } = begin;
        let state = state.to_owned();
        let states = approvals.as_ref().map(ApprovalStore::request_state_key);
        let states = states.ok().map(RequestStateKey::new);
        let approval_service = Self(Arc::new(FileApprovalsInner {
            state,
            approvals,
            requests: Mutex::default(),
            settle,
            holds,
            journal,
            policy_handle,
            key,
            states,
            connection_id,
            folder,
            policy,
            clock,
            notify: Notify::new(),
            patience: PatienceWarning::default(),
        }));
        // A command that was killed may have left a decision that no log has yet.
        approval_service.0.log_unlogged();
        approval_service
    }

    /// Authenticates what clients carry between a question and its answer.
    pub(crate) fn states(&self) -> Option<RequestStateKey> {
        self.0.states.clone()
    }

    /// Watches for decisions; never returns.
    pub(crate) async fn run(&self) {
        let Ok(approvals) = &self.0.approvals else { return std::future::pending().await };
        // Before the first look at the folder, so that a decision in between wakes the loop.
        let watcher = approvals.watch();
        let notifier = watcher.handle().and_then(|fd| fd.try_clone_to_owned().ok());
        let notifier =
            notifier.and_then(|fd| StreamPort::from_own_descriptor(fd, Interest::READABLE).ok());
        loop {
            self.process_decisions(approvals);
            if self.0.requests().is_empty() {
                // No call is waiting; read the folder again when one is.
                self.0.notify.notified().await;
                continue;
            }
            let next = self.0.log_escalations(approvals);
            let changed = folder_changed(&watcher, notifier.as_ref());
            // The time of the next escalation also ends the wait.
            tokio::time::timeout(next, changed).await.ok();
        }
    }

    /// Removes the unmasked values of expired requests for as long as the session lasts. Their
    /// callers may be gone without having cancelled them.
    pub(crate) async fn forget_stale(&self) {
        let Ok(approvals) = &self.0.approvals else { return };
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            // Failures are ignored: the next cleanup removes what is left.
            approvals.remove_stale_unmasked(self.0.clock.now().wall_us).ok();
            self.0.log_unlogged();
        }
    }
}

impl FileApprovalsInner {
    fn requests(&self) -> MutexGuard<'_, BTreeMap<String, ApprovalRecord>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, hold_id: HoldId, outcome: HoldOutcome) {
        // The channel has room for all held calls; if the wire is gone, no caller waits.
        self.settle.try_send((hold_id, outcome)).ok();
    }

    /// Logs decisions of deciders that were killed before they could log them.
    fn log_unlogged(&self) {
        let Ok(approvals) = &self.approvals else { return };
        approvals.log_unlogged(&self.state, |request, decided| {
            let extra = activity::extra(&json!({ "recovered": true }));
            let event = ActivityEvent {
                component: Some(EventComponent::Shim),
                extra,
                ..settled_event(request, decided)
            };
            log_event(&self.state, &event).is_ok()
        });
    }

    /// Logs each request that has gone to its second workflow, once for all processes. Returns how
    /// long it takes until the next one does.
    fn log_escalations(&self, approvals: &ApprovalStore) -> Duration {
        let now_us = self.clock.now().wall_us;
        let mut next_us = FORGET_EVERY.as_micros() as i64;
        let requests: Vec<ApprovalRecord> = self.requests().values().cloned().collect();
        for request in requests {
            let Some(second) = &request.escalation else { continue };
            if now_us < second.at_us {
                next_us = next_us.min(second.at_us - now_us);
            } else if approvals.mark_escalated(&request.id) {
                self.journal.log_event(escalated_event(&request, now_us));
            }
        }
        Duration::from_micros(next_us as u64)
    }

    /// Logs every approval file that was set aside.
    fn report_refused(&self, approvals: &ApprovalStore) {
        for file in approvals.take_refused() {
            self.journal.log_event(refused_file_event(&file, self.clock.now().wall_us));
        }
    }
}

/// Waits until the folder may have changed.
async fn folder_changed(watcher: &FolderWatcher, notifier: Option<&StreamPort>) {
    // The content does not matter: each wake-up looks up every open request.
    let mut news = [0; 4096];
    match (notifier, watcher.pause()) {
        (Some(notifier), None) if notifier.read(&mut news).await.is_ok_and(|bytes| bytes > 0) => {}
        (_, pause) => tokio::time::sleep(pause.unwrap_or(FALLBACK)).await,
    }
}

/// How often the folder is read if the system does not report changes.
const FALLBACK: Duration = Duration::from_millis(200);
