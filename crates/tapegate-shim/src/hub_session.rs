//! A shim that has joined a hub: the hub supplies the policy and handles approvals.
//!
//! Decisions are still made here, with the same loader and the same gate. A policy is valid for one
//! lease: if the hub is gone, the session ends in an orderly way; if it hangs, the session ends
//! with the lease. No call passes under a policy that the hub no longer confirms.

mod approval_session;
mod approvals;
mod event_uploader;
mod heartbeat;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tapegate_core::activity::EventLevel;
use tapegate_hub::api::Snapshot;
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::{ActivePolicy, PolicyHandle};
use tapegate_store::activity;
use tapegate_yaml::files::MemoryFiles;
use tokio::sync::{Notify, mpsc};

use crate::file_approvals::SETTLEMENTS_MAX;
use crate::journal::{EventSink, ShimJournal};
use crate::local_session::release_memory;
use crate::plan::{ServerDescription, ShimPlan};
use crate::policy_updater::PolicyUpdater;
use crate::shim_policy::{self, ShimPolicyLoad, ShimPolicyOptions, TelemetryStatus};
use crate::shim_session::ShimSession;
use approvals::HubApprovals;
use event_uploader::EventUploader;
use heartbeat::Heartbeat;

/// How long to try to tell the hub that the session has ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// A session that has joined a hub.
pub struct HubSession {
    client: Arc<HubClient>,
    snapshot: Snapshot,
    active_policy: ActivePolicy,
    sink: EventSink,
    /// Uploads events to the hub, if they are not written to its log directly.
    uploader: Option<EventUploader>,
}

/// How the user and the hub influence a running session.
pub struct SessionControls {
    /// Notified when the user asks for a reload.
    pub hang_up: Arc<Notify>,
    /// Asks the session to end.
    pub stop: mpsc::Sender<()>,
}

impl HubSession {
    /// Joins a hub with its policy. Switches to its state folder if it is reachable.
    pub fn new(
        plan: &mut ShimPlan,
        client: Arc<HubClient>,
        snapshot: Snapshot,
        active_policy: ActivePolicy,
    ) -> Self {
        plan.agent_session = snapshot.session.clone();
        let (sink, uploader) = use_hub_state_dir(plan, &snapshot, &active_policy, &client);
        Self { client, snapshot, active_policy, sink, uploader }
    }

    /// The policy of the hub.
    pub fn active_policy(&self) -> &ActivePolicy {
        &self.active_policy
    }

    /// Runs the session for as long as `serve` moves its messages. `has_crashed` says whether its
    /// end is reported as a crash.
    pub async fn run<T>(
        self,
        plan: &ShimPlan,
        server: ServerDescription,
        controls: SessionControls,
        serve: impl AsyncFnOnce(&mut ShimSession<'_>) -> T,
        has_crashed: impl FnOnce(&T) -> bool,
    ) -> T {
        let Self { client, snapshot, active_policy, sink, uploader } = self;
        let SessionControls { hang_up, stop } = controls;
        let journal = ShimJournal::open(plan, &active_policy, sink);
        let policy_handle = PolicyHandle::new(active_policy.clone());
        let (settle, hold_outcomes) = mpsc::channel(SETTLEMENTS_MAX);
        let holds = HoldRegister::default();
        let (approvals, approval_worker) =
            HubApprovals::new(&client, (settle, &holds), &journal, &policy_handle, plan);
        let states = approval_worker.states();
        let updater = PolicyUpdater::new(plan, &policy_handle, &journal);
        updater.note_policy(&active_policy, "loaded");
        let trimmed = release_memory(policy_handle.clone());
        let mut shim_session =
            ShimSession::new(plan, &active_policy, server, policy_handle, journal.clone())
                .with_approvals(Box::new(approvals), states, (holds, hold_outcomes))
                .with_counts();
        let heartbeat = Heartbeat {
            client: &client,
            plan,
            updater: &updater,
            hang_up: &hang_up,
            journal: &journal,
            stop,
        };
        let mut requests = std::pin::pin!(approval_worker.run());
        let background = async {
            tokio::join!(requests.as_mut(), heartbeat.run(&snapshot), trimmed);
            std::future::pending::<Infallible>().await
        };
        let served = tokio::select! {
            served = serve(&mut shim_session) => served,
            never = background => match never {},
        };
        // Requests of calls that are over are withdrawn, or approvers would decide about nothing.
        drop(shim_session);
        tokio::time::timeout(FAREWELL, requests).await.ok();
        // Events first: a hub that shuts down waits only for shims that have not reported their
        // end.
        if let Some(uploader) = uploader {
            uploader.last().await;
        }
        // A hub that does not hear this notices the end when the lease is over.
        let end = heartbeat.report_end(has_crashed(&served));
        tokio::time::timeout(FAREWELL, end).await.ok();
        served
    }
}

/// Waits for the hub and fetches its policy.
pub async fn join(client: &HubClient) -> Result<Snapshot, ClientError> {
    client.wait_until_ready().await?;
    client.snapshot().await
}

/// Loads the policy of a hub.
pub fn load(snapshot: &Snapshot, plan: &ShimPlan) -> ShimPolicyLoad {
    let theirs = snapshot.profile.map(Profile::from);
    let profile = stricter_of(theirs, plan.wanted);
    let Some(config) = &snapshot.config else {
        let active_policy = Some(ActivePolicy::observe_only(profile));
        return ShimPolicyLoad {
            active_policy,
            faults: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
        };
    };
    let main = snapshot.config_path.as_deref().unwrap_or("tapegate.yaml");
    let mut held = MemoryFiles::default().with_file(main, config.as_bytes());
    for (path, text) in &snapshot.files {
        held = held.with_file(path, text.as_bytes());
    }
    // The hub's variables, not ours: the policy must mean the same to all shims.
    held.variables.extend(snapshot.env.clone());
    let theirs = snapshot.own_files.iter().map(PathBuf::from);
    // Calls must not name the token files of either side.
    let own: Vec<PathBuf> = plan.own_files.iter().cloned().chain(theirs).collect();
    let telemetry = TelemetryStatus::LeftToHub;
    let options = ShimPolicyOptions {
        wanted: profile,
        key: &plan.key,
        own_files: &own,
        command_folder: plan.command_folder.as_deref(),
        telemetry,
        program: plan.program,
    };
    shim_policy::build_policy(main, shim_policy::read(main, &held, telemetry), options)
}

/// The stricter of two profiles: an agent's config must not loosen what the hub enforces.
fn stricter_of(hub: Option<Profile>, own: Option<Profile>) -> Option<Profile> {
    match (hub, own) {
        (Some(Profile::Production), _) | (_, Some(Profile::Production)) => {
            Some(Profile::Production)
        }
        (hub, own) => hub.or(own),
    }
}

/// Switches to the hub's state folder if it is reachable; otherwise events are written to our own
/// folder and uploaded to the hub over HTTP.
fn use_hub_state_dir(
    plan: &mut ShimPlan,
    snapshot: &Snapshot,
    active_policy: &ActivePolicy,
    client: &Arc<HubClient>,
) -> (EventSink, Option<EventUploader>) {
    // The policy is the hub's, so tapes and requests name its file.
    plan.config = snapshot.config_path.as_ref().map(PathBuf::from);
    let own = plan.state.clone();
    let theirs = snapshot.state_folder.as_ref().map(PathBuf::from);
    // On another machine, a folder may have the same path without being the hub's.
    let is_theirs = |folder: &PathBuf| {
        let there = || activity::log_id(folder);
        folder.is_dir() && snapshot.log_id.as_ref().is_none_or(|id| there().as_ref() == Some(id))
    };
    if let Some(folder) = theirs.filter(is_theirs) {
        plan.state = folder;
        match EventSink::open(plan, active_policy) {
            Ok(sink) => return (sink, None),
            Err(message) => {
                let message = format!("{message}; events are sent to the hub");
                plan.log.message(EventLevel::Warn, &message);
            }
        }
    }
    match event_uploader::start_upload(client, plan, &own, snapshot.log_id.as_deref()) {
        Ok((sink, uploader)) => (sink, Some(uploader)),
        Err(message) => (EventSink::Nowhere(message), None),
    }
}
