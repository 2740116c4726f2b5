//! Reloads the policy when its files change and on SIGHUP.
//!
//! A policy that is accepted, or that provably permits nothing more, takes effect with the next
//! message. One that does not load or is not accepted changes nothing, and a warning is printed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_store::activity;
use tokio::sync::Notify;

use crate::file_watch::FileWatch;
use crate::plan::ShimProject;
use crate::policy_updater::PolicyUpdater;
use crate::shim_policy::ShimPolicyLoad;

/// The event of a session without a policy; `tapegate log` counts these.
pub const NO_POLICY: &str = "no_policy";

/// A policy that was loaded from changed files, and how the files relate to it.
pub struct ReloadedPolicy {
    /// The policy to put in force; with the file's faults if the file does not load.
    pub policy_load: ShimPolicyLoad,
    /// What to report about its acceptance.
    pub notice: Option<PolicyNotice>,
    /// Whether the files have the accepted content.
    pub is_accepted: bool,
    /// The texts in force, by path.
    pub texts: BTreeMap<String, String>,
}

/// How a policy file relates to the policy in force, for reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyNotice {
    /// The name of the event in the activity log.
    pub event: &'static str,
    /// The notice as text.
    pub message: String,
    /// The hash of the texts concerned.
    pub hash: String,
    /// Whether a person should act on it.
    pub is_warning: bool,
}

/// Reloads the policy when its files change and on SIGHUP.
pub(crate) struct PolicyReloader<'a> {
    updater: PolicyUpdater<'a>,
    project: &'a dyn ShimProject,
    hang_up: Arc<Notify>,
    /// The last notice about the policy file, so that each change is reported once.
    reported: RefCell<Option<PolicyNotice>>,
}

impl<'a> PolicyReloader<'a> {
    pub(crate) fn new(
        updater: PolicyUpdater<'a>,
        project: &'a dyn ShimProject,
        hang_up: Arc<Notify>,
    ) -> Self {
        Self { updater, project, hang_up, reported: RefCell::default() }
    }
}

impl PolicyReloader<'_> {
    /// Loads the policy whenever one of its files changes, and never returns.
    pub(crate) async fn run(&self, watch: &mut FileWatch) {
        loop {
            let changed = tokio::select! {
                changed = watch.changed() => Some(changed),
                () = self.hang_up.notified() => None,
            };
            match self.project.policy_file() {
                Some(path) => self.load(&path, watch, changed),
                None => {
                    let message = "there is still no tapegate.yaml: observing only";
                    self.updater.journal.print_message(EventLevel::Warn, message);
                }
            }
        }
    }

    /// Checks once more when the session is over, so that a change just before its end is logged
    /// too.
    pub(crate) fn check_final_change(&self, watch: &mut FileWatch) {
        let changed = watch.take_changes();
        if let Some(path) = self.project.policy_file().filter(|_| !changed.is_empty()) {
            self.load(&path, watch, Some(changed));
        }
    }

    /// Loads the policy because these files have changed, or on request if `changed` is `None`.
    fn load(&self, path: &Path, watch: &mut FileWatch, changed: Option<BTreeSet<PathBuf>>) {
        let reloaded = self.project.reload(path);
        // The new text may name other Cedar files. Watch them even if it is rejected, so that a
        // correction there is noticed.
        watch.add_files(reloaded.policy_load.files.clone());
        // The accepted copies are watched too, but other processes write them.
        let is_written = |path: &PathBuf| reloaded.texts.contains_key(&*path.to_string_lossy());
        let is_same = reloaded.is_accepted
            && changed.as_ref().is_some_and(|changed| changed.iter().any(is_written));
        let is_taken = self.apply_reloaded(reloaded, changed.is_none());
        if is_same && !is_taken {
            self.note_rewritten(path);
        }
    }

    /// Logs that the policy files were written but have the accepted content: they may have had
    /// other content in between, too briefly to be noticed.
    fn note_rewritten(&self, path: &Path) {
        let reason = format!("`{}` was written again, with the accepted content", path.display());
        self.updater.journal.log_event(ActivityEvent {
            wall_us: self.updater.plan.clock.now().wall_us,
            level: EventLevel::Info,
            kind: ActivityKind::Policy,
            policy_reason: Some(reason.into()),
            policy_version: self.updater.version().map(Into::into),
            extra: activity::extra(&json!({ "event": "rewritten" })),
            ..ActivityEvent::default()
        });
    }

    /// Puts a policy loaded from files in force unless it already is; returns whether it did.
    fn apply_reloaded(&self, reloaded: ReloadedPolicy, requested: bool) -> bool {
        let ReloadedPolicy { policy_load: found, notice, .. } = reloaded;
        let in_force = self.updater.version();
        let same = found
            .active_policy
            .as_ref()
            .is_some_and(|active_policy| in_force.as_deref() == Some(active_policy.version()));
        // A policy that does not load goes through `apply` too, which reports it. So does a SIGHUP
        // without a change, since its sender looks for the line in the log.
        let is_taken = found.active_policy.is_none() || requested || !same;
        if is_taken {
            self.updater.apply(found);
        }
        match notice {
            Some(notice) if self.reported.borrow().as_ref() != Some(&notice) => {
                self.note_acceptance(&notice);
            }
            Some(_) => {}
            // The file is as accepted again, so the same change is reported if it comes back.
            None => drop(self.reported.take()),
        }
        is_taken
    }

    /// Logs how the policy file relates to the policy in force.
    pub(crate) fn note_acceptance(&self, notice: &PolicyNotice) {
        self.reported.replace(Some(notice.clone()));
        self.updater.journal.log_event(ActivityEvent {
            wall_us: self.updater.plan.clock.now().wall_us,
            level: if notice.is_warning { EventLevel::Warn } else { EventLevel::Info },
            kind: ActivityKind::Policy,
            policy_reason: Some(notice.message.clone().into()),
            policy_version: self.updater.version().map(Into::into),
            extra: activity::extra(&json!({ "event": notice.event, "policy_hash": notice.hash })),
            ..ActivityEvent::default()
        });
    }
}
