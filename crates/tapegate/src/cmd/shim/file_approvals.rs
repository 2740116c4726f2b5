//! Asks for approval through the approvals folder, and passes decisions on to the wire.
//!
//! The request file is written before the call is held, so that no call waits for a request that
//! was never made. The folder is read whenever it changes. Identical calls share one request: its
//! approval sends the newest of them, once. If no caller waits any more, the approval lets the same
//! call pass once later.

mod decisions;
mod requests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapegate_core::activity::{ActivityEvent, EventComponent};
use tapegate_core::gate::{HoldId, HoldOutcome};
use tapegate_core::relay::HELD_TOTAL_MAX;
use tapegate_policy::policy_gate::PolicyHandle;
use tapegate_policy::redact::RedactionKey;
use tapegate_policy::refuse::RefusalSubject;
use tapegate_store::FolderWatcher;
use tapegate_store::activity::refused_file_event;
use tapegate_store::activity::settled_event;
use tapegate_store::approvals::{ApprovalRecord, ApprovalStore};
use tapegate_wire::clock::Clock;
use tapegate_wire::port::StreamPort;
use tokio::io::Interest;
use tokio::sync::{Notify, mpsc};

use super::journal::ShimJournal;
use crate::settings::user_state::user_state_dir;
use crate::state_folder::log_event;

/// How long requests are kept after they can no longer be decided.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often the folder is searched for unmasked values that must be removed.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// How many decisions may be queued: one for each call that the relay can hold. An approval that
/// finds no room would be used up without its call being sent.
pub(super) const SETTLEMENTS_MAX: usize = HELD_TOTAL_MAX;

/// The channel that decisions are sent to.
pub(super) type HoldOutcomeSender = mpsc::Sender<(HoldId, HoldOutcome)>;

/// Approvals through files in a folder. Clones share the same state.
#[derive(Clone)]
pub(super) struct FileApprovals(Arc<FileApprovalsInner>);

struct FileApprovalsInner {
    /// The state folder, which holds the activity log.
    state: PathBuf,
    /// The approvals folder, or why it cannot be used.
    approvals: Result<ApprovalStore, String>,
    open: Mutex<HashMap<HoldId, OpenApproval>>,
    settle: HoldOutcomeSender,
    journal: ShimJournal,
    policy_handle: PolicyHandle,
    key: RedactionKey,
    connection_id: String,
    folder: String,
    policy: String,
    clock: Clock,
    /// Wakes the task that watches for decisions.
    notify: Notify,
}

/// A call that waits for a decision. Several calls may wait for the same one.
#[derive(Clone)]
struct OpenApproval {
    /// The request as this process made it: the file may have been changed since.
    request: ApprovalRecord,
    subject: RefusalSubject,
    method: String,
}

/// What is needed to open the approvals.
pub(super) struct FileApprovalsConfig {
    pub(super) settle: HoldOutcomeSender,
    pub(super) journal: ShimJournal,
    pub(super) policy_handle: PolicyHandle,
    pub(super) key: RedactionKey,
    pub(super) connection_id: String,
    /// The folder that the session works in.
    pub(super) folder: String,
    /// The policy's file.
    pub(super) policy: String,
    pub(super) clock: Clock,
}

impl FileApprovals {
    /// Opens the approvals of the project with this state folder. If they cannot be opened, calls
    /// that need approval are refused.
    pub(super) fn open(state: &Path, begin: FileApprovalsConfig) -> Self {
        let approvals =
            user_state_dir().map_err(|failure| failure.message).and_then(|user_state| {
                ApprovalStore::open_project(&user_state, state).map_err(|error| error.to_string())
            });
        if let Ok(approvals) = &approvals {
            // Failures are ignored: the next cleanup removes what is left.
            let now_us = begin.clock.now().wall_us;
            approvals.remove_left_over();
            approvals.remove_expired_hourly(now_us, KEPT).ok();
            approvals.remove_stale_unmasked(now_us).ok();
        }
        let FileApprovalsConfig {
            settle,
            journal,
            policy_handle,
            key,
            connection_id,
            folder,
            policy,
            clock,
        } = begin;
        let state = state.to_owned();
        let approval_service = Self(Arc::new(FileApprovalsInner {
            state,
            approvals,
            open: Mutex::default(),
            settle,
            journal,
            policy_handle,
            key,
            connection_id,
            folder,
            policy,
            clock,
            notify: Notify::new(),
        }));
        // A command that was killed may have left a decision that no log has yet.
        approval_service.0.log_unlogged();
        approval_service
    }

    /// Watches for decisions; never returns.
    pub(super) async fn run(&self) {
        let Ok(approvals) = &self.0.approvals else { return std::future::pending().await };
        // Before the first look at the folder, so that a decision in between wakes the loop.
        let watcher = approvals.watch();
        let notifier = watcher.handle().and_then(|fd| fd.try_clone_to_owned().ok());
        let notifier =
            notifier.and_then(|fd| StreamPort::from_own_descriptor(fd, Interest::READABLE).ok());
        loop {
            self.process_decisions(approvals);
            if self.0.open().is_empty() {
                // No call is waiting; read the folder again when one is.
                self.0.notify.notified().await;
                continue;
            }
            folder_changed(&watcher, notifier.as_ref()).await;
        }
    }

    /// Removes the unmasked values of expired requests for as long as the session lasts. Their
    /// callers may be gone without having cancelled them.
    pub(super) async fn forget_stale(&self) {
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
    fn open(&self) -> MutexGuard<'_, HashMap<HoldId, OpenApproval>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, hold_id: HoldId, outcome: HoldOutcome) {
        if let HoldOutcome::Refused(_) = &outcome {
            self.journal.forget_hold(hold_id);
        }
        // The channel has room for all held calls; if the wire is gone, no caller waits.
        self.settle.try_send((hold_id, outcome)).ok();
    }

    /// Logs decisions of deciders that were killed before they could log them.
    fn log_unlogged(&self) {
        let Ok(approvals) = &self.approvals else { return };
        approvals.log_unlogged(&self.state, |request, decided| {
            let extra = "\"recovered\":true".into();
            let event = ActivityEvent {
                component: Some(EventComponent::Shim),
                extra,
                ..settled_event(request, decided)
            };
            log_event(&self.state, &event).is_ok()
        });
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
