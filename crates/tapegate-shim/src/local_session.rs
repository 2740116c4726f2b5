//! A session whose policy is in files and whose approvals are in a folder, without a hub.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::policy_gate::{ActivePolicy, PolicyHandle};
use tapegate_store::activity;
use tapegate_wire::memory;
use tokio::sync::{Notify, mpsc};

use crate::file_approvals::{FileApprovals, FileApprovalsConfig, SETTLEMENTS_MAX};
use crate::file_watch::FileWatch;
use crate::journal::{EventSink, ShimJournal};
use crate::plan::{ServerDescription, ShimPlan, ShimProject, StartPolicy, StartWarning};
use crate::policy_updater::PolicyUpdater;
use crate::reload::PolicyReloader;
use crate::shim_session::ShimSession;

/// How often unused memory is released.
const TRIM_EVERY: Duration = Duration::from_secs(1);
/// How much of the program may stay resident after that.
const RESIDENT_CODE_KB_MAX: u64 = 6 << 10;

/// A session under the policy files, without a hub.
pub struct LocalSession<'a> {
    /// What to govern, and how.
    pub plan: &'a ShimPlan,
    /// The policy that it starts with.
    pub policy: &'a StartPolicy,
    /// Where changed policies come from.
    pub project: &'a dyn ShimProject,
    /// The policy files, watched since they were read.
    pub watch: FileWatch,
    /// Notified when the user asks for a reload.
    pub hang_up: Arc<Notify>,
    pub server: ServerDescription,
}

impl LocalSession<'_> {
    /// Runs the session for as long as `serve` moves its messages.
    pub async fn run<T>(mut self, serve: impl AsyncFnOnce(&mut ShimSession<'_>) -> T) -> T {
        let (plan, active_policy) = (self.plan, &self.policy.active_policy);
        // A log that cannot be opened does not stop the start. In production each call is then
        // refused with the reason, which clients show; they do not show why a server exits.
        let sink = EventSink::open(plan, active_policy).unwrap_or_else(EventSink::Nowhere);
        let journal = ShimJournal::open(plan, active_policy, sink);
        let policy_handle = PolicyHandle::new(active_policy.clone());
        let (settle, hold_outcomes) = mpsc::channel(SETTLEMENTS_MAX);
        let holds = HoldRegister::default();
        let approvals = FileApprovals::open(
            &plan.state,
            FileApprovalsConfig {
                user_state: plan.user_state.clone(),
                settle,
                holds: holds.clone(),
                journal: journal.clone(),
                policy_handle: policy_handle.clone(),
                key: plan.key.clone(),
                connection_id: plan.connection_id.clone(),
                folder: plan.folder.clone(),
                policy: plan.policy_name(),
                clock: plan.clock,
            },
        );
        let updater = PolicyUpdater::new(plan, &policy_handle, &journal);
        updater.note_policy(active_policy, "loaded");
        let reload = PolicyReloader::new(updater, self.project, self.hang_up);
        self.policy.notices.iter().for_each(|notice| reload.note_acceptance(notice));
        for warning in self.project.note_start() {
            log_warning(plan, &journal, warning);
        }
        warn_of_unsent_telemetry(plan, active_policy, &journal);
        warn_of_unused_channels(plan, active_policy, &journal);
        let trimmed = release_memory(policy_handle.clone());
        let mut shim_session =
            ShimSession::new(plan, active_policy, self.server, policy_handle, journal)
                .with_approvals(
                    Box::new(approvals.clone()),
                    approvals.states(),
                    (holds, hold_outcomes),
                );
        let watch = &mut self.watch;
        let background = async {
            tokio::join!(approvals.run(), approvals.forget_stale(), reload.run(watch), trimmed);
            std::future::pending::<Infallible>().await
        };
        let served = tokio::select! {
            served = serve(&mut shim_session) => served,
            never = background => match never {},
        };
        // An agent may rewrite the policy as its last act, before the watcher has a turn.
        reload.check_final_change(&mut self.watch);
        served
    }
}

/// Releases the memory left over from loading Cedar policies and from bursts of calls, for as long
/// as such policies are in force. Calls do not wait for it.
pub(crate) async fn release_memory(policy_handle: PolicyHandle) {
    loop {
        tokio::time::sleep(TRIM_EVERY).await;
        // Ask each time: a reload may add Cedar policies, or remove them.
        if policy_handle.get().uses_cedar() {
            memory::release_code_above(RESIDENT_CODE_KB_MAX);
        }
    }
}

/// Warns that telemetry is configured but only sent by a hub, which this session has not joined.
fn warn_of_unsent_telemetry(plan: &ShimPlan, active_policy: &ActivePolicy, journal: &ShimJournal) {
    if active_policy.policy.as_ref().is_some_and(|policy| policy.telemetry.enabled) {
        let text = format!(
            "the policy has `telemetry`, which only a hub sends, and this session has no hub: \
             nothing is sent; start one with `{}`, or remove `telemetry` from the policy",
            (plan.program.command)("hub")
        );
        log_warning(plan, journal, StartWarning { event: "unsent_telemetry", text });
    }
}

/// Warns that channels are configured but only used by a hub, which this session has not joined.
fn warn_of_unused_channels(plan: &ShimPlan, active_policy: &ActivePolicy, journal: &ShimJournal) {
    if active_policy.policy.as_ref().is_some_and(|policy| !policy.channels.is_empty()) {
        let text = format!(
            "the policy has `channels`, which only a hub uses, and this session has no hub: people \
             see waiting calls with `{}` only; `{}` starts a hub",
            (plan.program.command)("approvals"),
            (plan.program.command)("hub")
        );
        log_warning(plan, journal, StartWarning { event: "unused_channels", text });
    }
}

fn log_warning(plan: &ShimPlan, journal: &ShimJournal, warning: StartWarning) {
    journal.log_event(ActivityEvent {
        wall_us: plan.clock.now().wall_us,
        level: EventLevel::Warn,
        kind: ActivityKind::Session,
        policy_reason: Some(warning.text.into()),
        extra: activity::extra(&json!({ "event": warning.event })),
        ..ActivityEvent::default()
    });
}
