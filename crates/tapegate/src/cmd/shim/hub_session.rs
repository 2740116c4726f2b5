//! A shim that has joined a hub: the hub supplies the policy and handles approvals.
//!
//! Decisions are still made here, with the same loader and the same gate. A policy is valid for one
//! lease: if the hub is gone, the session ends in an orderly way; if it hangs, the session ends
//! with the lease. No call passes under a policy that the hub no longer confirms.

mod approvals;
mod event_uploader;
mod heartbeat;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tapegate_hub::api::Snapshot;
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::PolicyHandle;
use tapegate_store::activity;
use tapegate_wire::signals::Signals;
use tapegate_yaml::files::MemoryFiles;
use tokio::sync::{Notify, mpsc};

use super::file_approvals::SETTLEMENTS_MAX;
use super::journal::EventSink;
use super::plan::{HubAddress, ShimPlan};
use super::reload::PolicyReloader;
use super::session::{self, serve};
use super::shim_policy::{self, ShimPolicy, ShimPolicyLoad, ShimPolicyOptions, TelemetryStatus};
use super::shim_session::ShimSession;
use super::start_failure::{self, FailureKind, StartFailure};
use super::start_refusal::{log_failure, refuse_to_start, serve_failure};
use super::traffic_monitor::TrafficMonitor;
use crate::exit::{Exit, Failure};
use crate::logs::VerbosityLevel;
use crate::program_name;
use approvals::HubApprovals;
use event_uploader::EventUploader;
use heartbeat::Heartbeat;

/// How long requests the client has already sent are answered if there is no hub.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long to try to tell the hub that the session has ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// The hint for a hub that does not answer.
fn no_hub_hint() -> String {
    let line = program_name::command("hub");
    format!("start one with `{line}`, and check --governance-endpoint and --token-file")
}

/// Runs a session under the policy of a hub.
pub(super) async fn run(plan: ShimPlan, hub_address: HubAddress) -> anyhow::Result<Exit> {
    let client = match HubClient::new(&hub_address.endpoint, &hub_address.token_file) {
        Ok(client) => Arc::new(client),
        Err(error) => {
            let failure = Failure::new(Exit::Usage, error).hint(no_hub_hint());
            return refuse_to_start(&plan, FailureKind::Settings, failure).await;
        }
    };
    let hang_up = Arc::new(Notify::new());
    let (stop, stopped) = mpsc::channel(1);
    // Before the wait for the hub, which may take half a minute.
    let mut signals = Signals::listen()?.with_reload(Arc::clone(&hang_up)).with_stop(stopped);
    let joined = tokio::select! {
        joined = join(&client) => joined,
        number = signals.next() => return Ok(Exit::from_signal(number)),
    };
    let snapshot = match joined {
        Ok(snapshot) => snapshot,
        Err(error) => return handle_missing_hub(&plan, &error, (&stop, signals)).await,
    };
    let found = load(&snapshot, &plan);
    found.warnings.iter().for_each(|message_text| plan.log.log(VerbosityLevel::Warn, message_text));
    let Some(rule) = found.rule else {
        let message_text =
            format!("{}\nthe policy of the hub does not load", found.faults.join("\n"));
        let failure = Failure::new(Exit::Invalid, message_text);
        return refuse_to_start(&plan, FailureKind::Policy, failure).await;
    };
    if plan.policy_required && rule.active_policy.policy.is_none() {
        let message_text =
            format!("the hub at {} has no policy, and one is required", hub_address.endpoint);
        let line = program_name::command("init");
        let hint = format!("write a tapegate.yaml where the hub runs; `{line}` does");
        let failure = Failure::new(Exit::Invalid, message_text).hint(hint);
        return refuse_to_start(&plan, FailureKind::Policy, failure).await;
    }
    let (plan, sink, uploader) = use_hub_state_dir(plan, &snapshot, &rule, &client);
    // Only now is it known whether the hub's state folder is used.
    if let Err(failure) = session::check_folders(&plan, &rule) {
        return refuse_to_start(&plan, FailureKind::State, failure).await;
    }
    let joined = HubSession { client, snapshot, rule, sink, uploader, hang_up, stop };
    joined.run_session(&plan, signals).await
}

/// What is known once the hub has answered.
struct HubSession {
    client: Arc<HubClient>,
    snapshot: Snapshot,
    rule: ShimPolicy,
    sink: EventSink,
    /// Uploads events to the hub, if they are not written to its log directly.
    uploader: Option<EventUploader>,
    hang_up: Arc<Notify>,
    /// Asks the session to end.
    stop: mpsc::Sender<()>,
}

impl HubSession {
    async fn run_session(self, plan: &ShimPlan, signals: Signals) -> anyhow::Result<Exit> {
        let Self { client, snapshot, rule, sink, uploader: mail, hang_up, stop } = self;
        let upstream = match plan.upstream(&rule) {
            Ok(upstream) => upstream,
            Err(failure) => return refuse_to_start(plan, FailureKind::Settings, failure).await,
        };
        let journal = session::open_journal(plan, &rule, sink);
        let policy_handle = PolicyHandle::new(rule.active_policy.clone());
        let (settle, hold_outcomes) = mpsc::channel(SETTLEMENTS_MAX);
        let (approvals, approval_worker) =
            HubApprovals::new(&client, settle, &journal, &policy_handle, plan);
        let reload = PolicyReloader::new(plan, &policy_handle, &journal, hang_up);
        reload.note_policy(&rule, "loaded");
        let trimmed = session::release_memory(policy_handle.clone());
        let mut shim_session = ShimSession {
            plan,
            rule: &rule,
            upstream: &upstream,
            policy_handle,
            journal: journal.clone(),
            approval_channel: Some(Box::new(approvals)),
            hold_outcomes: Some(hold_outcomes),
            tape: None,
            counts: true,
            traffic: TrafficMonitor::default(),
            unheard: None,
        };
        let heartbeat =
            Heartbeat { client: &client, plan, reload: &reload, journal: &journal, stop };
        let besides = async {
            tokio::join!(approval_worker.run(), heartbeat.run(&snapshot), trimmed);
            std::future::pending::<Infallible>().await
        };
        let exit = tokio::select! {
            exit = serve(plan, &upstream, signals, &mut shim_session) => exit,
            never = besides => match never {},
        };
        // Events first: a hub that shuts down waits only for shims that have not reported their
        // end.
        if let Some(uploader) = mail {
            uploader.last().await;
        }
        // A hub that does not hear this notices the end when the lease is over.
        tokio::time::timeout(FAREWELL, heartbeat.report_end(exit.as_ref().ok())).await.ok();
        exit
    }
}

/// Waits for the hub and fetches its policy.
async fn join(client: &HubClient) -> Result<Snapshot, ClientError> {
    client.wait_until_ready().await?;
    client.snapshot().await
}

/// Without a hub, only answers the requests that the client has already sent, with the error.
async fn handle_missing_hub(
    plan: &ShimPlan,
    error: &ClientError,
    (stop, signals): (&mpsc::Sender<()>, Signals),
) -> anyhow::Result<Exit> {
    let message_text = format!("the governance service is not available: {error}");
    let old = tapegate_hub::hub_lock::old_token_file(&plan.state);
    let hint = match old.exists() {
        false => no_hub_hint(),
        true => format!("{}; `{}` is not read: agents can read it", no_hub_hint(), old.display()),
    };
    log_failure(plan, FailureKind::Hub, &message_text);
    // Over HTTP there is no listener yet, so no client has sent anything.
    if plan.args.http.is_none() {
        let (message, exit) =
            (start_failure::shorten_reason(&message_text, Some(&hint)), Exit::Transport);
        let failure = StartFailure { message, kind: FailureKind::Hub, exit };
        let soon = async {
            tokio::time::sleep(LAST_WORDS).await;
            stop.send(()).await.ok();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            result = serve_failure(plan, failure, signals) => { result?; },
            never = soon => match never {},
        }
    }
    Err(Failure::new(Exit::Transport, message_text).hint(hint).into())
}

pub(super) fn load(snapshot: &Snapshot, plan: &ShimPlan) -> ShimPolicyLoad {
    let theirs = snapshot.profile.map(Profile::from);
    let profile = stricter_of(theirs, plan.wanted);
    let Some(config) = &snapshot.config else {
        let rule = Some(ShimPolicy::observe_only(profile));
        return ShimPolicyLoad {
            rule,
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
    // The hub's variables, not ours: the policy must mean the same for every shim.
    held.variables.extend(snapshot.env.clone());
    let theirs = snapshot.own_files.iter().map(PathBuf::from);
    // Calls must not name the token files of either side.
    let own: Vec<PathBuf> = plan.own_files.iter().cloned().chain(theirs).collect();
    let telemetry = TelemetryStatus::LeftToHub;
    let options = ShimPolicyOptions { wanted: profile, key: &plan.key, own_files: &own, telemetry };
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
    mut plan: ShimPlan,
    snapshot: &Snapshot,
    rule: &ShimPolicy,
    client: &Arc<HubClient>,
) -> (ShimPlan, EventSink, Option<EventUploader>) {
    // The policy is the hub's, so tapes and requests name its file.
    plan.config = snapshot.config_path.as_ref().map(PathBuf::from);
    let own = plan.state.clone();
    let theirs = snapshot.state_folder.as_ref().map(PathBuf::from);
    // On another machine, a folder may have the same path without being the hub's.
    let is_theirs = |folder: &PathBuf| {
        let there = || activity::log_id(folder);
        folder.is_dir() && snapshot.log_id.as_ref().is_none_or(|id| there().as_ref() == Some(id))
    };
    let opened = theirs.filter(is_theirs).map(|folder| {
        plan.state.clone_from(&folder);
        session::open_activity_log(&plan, rule)
    });
    match opened {
        Some(Ok(log)) => return (plan, EventSink::file(log), None),
        Some(Err(message_text)) => {
            plan.log
                .log(VerbosityLevel::Warn, &format!("{message_text}; events are sent to the hub"));
        }
        None => {}
    }
    match event_uploader::start_upload(client, &own, snapshot.log_id.as_deref(), &plan.log) {
        Ok((sink, uploader)) => (plan, sink, Some(uploader)),
        Err(message_text) => (plan, EventSink::Nowhere(message_text), None),
    }
}
