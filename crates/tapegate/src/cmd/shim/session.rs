//! Runs a governed session, from its start to its exit code.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_policy::policy_gate::PolicyHandle;
use tapegate_store::activity::{ActivityLog, ActivityLogOptions};
use tapegate_wire::memory;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::ShutdownTimeouts;
use tokio::sync::{Notify, mpsc};

use super::file_approvals::{self, FileApprovals, SETTLEMENTS_MAX};
use super::hub_session;
use super::journal::{self, EventSink, ShimJournal};
use super::plan::{ShimPlan, StartPolicy};
use super::reload::PolicyReloader;
use super::shim_policy::ShimPolicy;
use super::shim_session::ShimSession;
use super::start_failure::{self, FailureKind, StartFailure};
use super::start_refusal::{note_failure, refuse_to_start, serve_failure};
use super::tapes;
use super::traffic_monitor::TrafficMonitor;
use crate::exit::{Exit, Failure};
use crate::file_watch::FileWatch;
use crate::logs::VerbosityLevel;
use crate::program_name;
use crate::runtime;
use crate::session::{self, SessionEnd, SessionRoute};
use crate::settings::SearchContext;
use crate::settings::state_folder::StateChoice;
use crate::terminal_output;
use crate::upstream::UpstreamTarget;
use crate::verbosity;

/// How often unused memory is released.
const TRIM_EVERY: Duration = Duration::from_secs(1);
/// How much of the program may stay resident after that.
const RESIDENT_CODE_KB_MAX: u64 = 6 << 10;

/// Hints for a server that does not run.
const NO_SERVER_HINT: &str = "check the server's command in the client's configuration";
const SERVER_ENDED_HINT: &str = "run the server's command in a terminal to see why";

/// Runs the session until it ends.
pub(super) fn run(mut plan: ShimPlan) -> anyhow::Result<Exit> {
    let runtime = runtime::start()?;
    // Wrong settings come first: everything below may rest on their fallbacks.
    if let Some(failure) = plan.settings_failure.take() {
        return runtime.block_on(refuse_to_start(&plan, FailureKind::Settings, failure));
    }
    if let Some(failure) = plan.state_failure.take() {
        return runtime.block_on(refuse_to_start(&plan, FailureKind::State, failure));
    }
    if let Some(hub_address) = plan.hub.take() {
        return runtime.block_on(hub_session::run(plan, hub_address));
    }
    let policy = match plan.policy() {
        Ok(policy) => policy,
        Err(failure) => {
            return runtime.block_on(refuse_to_start(&plan, FailureKind::Policy, failure));
        }
    };
    // Not earlier, because the policy may name the tapes folder.
    if let Err(failure) = check_folders(&plan, &policy.rule) {
        return runtime.block_on(refuse_to_start(&plan, FailureKind::State, failure));
    }
    // Watch from here on: a change while the session starts must not be missed.
    let watch = FileWatch::new(policy.files.clone());
    let upstream = match plan.upstream(&policy.rule) {
        Ok(upstream) => upstream,
        Err(failure) => {
            return runtime.block_on(refuse_to_start(&plan, FailureKind::Settings, failure));
        }
    };
    runtime.block_on(run_without_hub(&plan, &policy, watch, &upstream))
}

/// Rejects folders that other users could write to, or that are not where they appear to be.
pub(super) fn check_folders(plan: &ShimPlan, rule: &ShimPolicy) -> Result<(), Failure> {
    let changed = tapes::secure_folders(plan, rule).map_err(|error| {
        Failure::new(Exit::Io, error)
            .hint("tapes and logs are stored only in folders that you own; remove or rename it")
    })?;
    changed.iter().for_each(|text| plan.log.log(VerbosityLevel::Warn, text));
    Ok(())
}

/// Runs a session under the policy files, without a hub.
async fn run_without_hub(
    plan: &ShimPlan,
    policy: &StartPolicy,
    mut watch: FileWatch,
    upstream: &UpstreamTarget,
) -> anyhow::Result<Exit> {
    let rule = &policy.rule;
    let hang_up = Arc::new(Notify::new());
    let signals = Signals::listen()?.with_reload(Arc::clone(&hang_up));
    // A log that cannot be opened does not stop the start. In production each call is then refused
    // with the reason, which clients show; they do not show why a server exits.
    let sink = open_activity_log(plan, rule).map_or_else(EventSink::Nowhere, EventSink::file);
    let journal = open_journal(plan, rule, sink);
    let policy_handle = PolicyHandle::new(rule.active_policy.clone());
    let (settle, hold_outcomes) = mpsc::channel(SETTLEMENTS_MAX);
    let approvals = FileApprovals::open(
        &plan.state,
        file_approvals::FileApprovalsConfig {
            settle,
            journal: journal.clone(),
            policy_handle: policy_handle.clone(),
            key: plan.key.clone(),
            connection_id: plan.connection_id.clone(),
            folder: plan.folder.clone(),
            policy: plan.policy_name(),
            clock: plan.clock,
        },
    );
    let reload = PolicyReloader::new(plan, &policy_handle, &journal, hang_up);
    reload.note_policy(rule, "loaded");
    policy.notices.iter().for_each(|notice| reload.note_acceptance(notice));
    warn_of_exposure(plan, &journal);
    warn_of_unsent_telemetry(plan, rule, &journal);
    if let Ok(search) = SearchContext::current() {
        // Clients may start shims with another HOME or TAPEGATE_HOME than a terminal has. The note
        // lets `approvals` and `policy accept` warn about that.
        search.note_user_state(&plan.state);
        remember_state(plan);
    }
    let trimmed = release_memory(policy_handle.clone());
    let mut shim_session = ShimSession {
        plan,
        rule,
        upstream,
        policy_handle,
        journal,
        approval_channel: Some(Box::new(approvals.clone())),
        hold_outcomes: Some(hold_outcomes),
        tape: None,
        counts: false,
        traffic: TrafficMonitor::default(),
        unheard: None,
    };
    let besides = async {
        tokio::join!(approvals.run(), approvals.forget_stale(), reload.run(&mut watch), trimmed);
        std::future::pending::<Infallible>().await
    };
    let exit = tokio::select! {
        exit = serve(plan, upstream, signals, &mut shim_session) => exit,
        never = besides => match never {},
    };
    // An agent may rewrite the policy as its last act, before the watcher has a turn.
    reload.check_final_change(&mut watch);
    exit
}

/// Releases the memory left over from loading Cedar policies and from bursts of calls, for as long
/// as such policies are in force. Calls do not wait for it.
pub(super) async fn release_memory(policy_handle: PolicyHandle) {
    loop {
        tokio::time::sleep(TRIM_EVERY).await;
        // Ask each time: a reload may add Cedar policies, or remove them.
        if policy_handle.get().policy.is_some_and(|policy| policy.cedar.is_some()) {
            memory::release_code_above(RESIDENT_CODE_KB_MAX);
        }
    }
}

/// Remembers where the log of this session is, so that a folder created later does not replace it.
pub(super) fn remember_state(plan: &ShimPlan) {
    if let Ok(search) = SearchContext::current() {
        search.remember_state(plan.args.project.config.as_deref(), plan.config.as_deref());
    }
}

/// Warns, on standard error and in the log, if an agent may be able to write the user's own state
/// or has created a folder that could be taken for the project's, or if a variable is unknown.
fn warn_of_exposure(plan: &ShimPlan, journal: &ShimJournal) {
    let Ok(search) = SearchContext::current() else { return };
    let project = plan.config.as_deref().and_then(Path::parent).unwrap_or(&search.folder);
    let choice = search.chosen_state(plan.args.project.config.as_deref()).ok();
    let unused = choice.as_ref().and_then(|choice| choice.unused_warning(&search));
    let gone = choice.as_ref().and_then(StateChoice::gone_warning);
    let exposed = search.user_state_warning(project);
    let unknown = plan.unknown_variables.iter().map(|variable| Some(variable.warning_text()));
    let unknown = unknown.map(|text| (text, "unknown_variable"));
    let state = [(exposed, "exposed_state"), (unused, "unused_state"), (gone, "state_gone")];
    for (text, event) in state.into_iter().chain(unknown) {
        let Some(text) = text else { continue };
        journal.log_event(ActivityEvent {
            wall_us: plan.clock.now().wall_us,
            level: EventLevel::Warn,
            kind: ActivityKind::Session,
            policy_reason: Some(text.into()),
            extra: format!("\"event\":\"{event}\"").into(),
            ..ActivityEvent::default()
        });
    }
}

/// Warns that telemetry is configured but only sent by a hub, which this session has not joined.
fn warn_of_unsent_telemetry(plan: &ShimPlan, rule: &ShimPolicy, journal: &ShimJournal) {
    if rule.active_policy.policy.as_ref().is_some_and(|policy| policy.telemetry.enabled) {
        let text = format!(
            "the policy has `telemetry`, which only a hub sends, and this session has no hub: \
             nothing is sent; start one with `{}`, or remove `telemetry` from the policy",
            program_name::command("hub")
        );
        journal.log_event(ActivityEvent {
            wall_us: plan.clock.now().wall_us,
            level: EventLevel::Warn,
            kind: ActivityKind::Session,
            policy_reason: Some(text.into()),
            extra: "\"event\":\"unsent_telemetry\"".into(),
            ..ActivityEvent::default()
        });
    }
}

/// Opens the activity log in the state folder.
pub(super) fn open_activity_log(plan: &ShimPlan, rule: &ShimPolicy) -> Result<ActivityLog, String> {
    let kept = rule.active_policy.policy.as_ref().map(|policy| policy.activity.clone());
    let options = kept.map_or_else(ActivityLogOptions::default, |kept| ActivityLogOptions {
        rotate_bytes: kept.rotate_bytes,
        retention: kept.retention,
    });
    let opened = ActivityLog::open(&plan.state, options);
    opened.map_err(|error| format!("there is no activity log: {error}"))
}

/// Creates the journal of the session. If events cannot be logged, that is reported immediately.
pub(super) fn open_journal(plan: &ShimPlan, rule: &ShimPolicy, sink: EventSink) -> ShimJournal {
    if let EventSink::Nowhere(message) = &sink {
        plan.log.log(VerbosityLevel::Error, message);
    }
    let journal = ShimJournal::new(journal::JournalConfig {
        log: plan.log.clone(),
        sink,
        server_id: plan.server_id.clone(),
        connection_id: plan.connection_id.clone(),
        session_id: plan.session_id.clone(),
    });
    journal.mask(rule.masking.clone(), rule.active_policy.profile);
    journal
}

/// Runs the session; without a server, every request is answered with the reason.
pub(super) async fn serve(
    plan: &ShimPlan,
    upstream: &UpstreamTarget,
    signals: Signals,
    shim_session: &mut ShimSession<'_>,
) -> anyhow::Result<Exit> {
    let headers = plan.args.upstream.headers();
    let route = SessionRoute {
        upstream,
        headers: &headers,
        http: plan.args.http.as_deref(),
        without: plan.without.clone(),
        message_bytes_max: plan.args.max_message_bytes,
        patience: ShutdownTimeouts::graceful(),
        keeps_stderr: false,
        quiet: verbosity::is_quiet(),
    };
    let ended = match session::run(&route, signals, shim_session).await {
        Ok(ended) => ended,
        Err(error) => return report_start_failure(plan, shim_session, error).await,
    };
    let (text, hint, exit, signals) = match ended {
        SessionEnd::Exit(exit) => match shim_session.unheard.take() {
            // The client may not have sent a request yet, or may try again in another way.
            Some(reason) => (reason, SERVER_ENDED_HINT, exit, Signals::listen()?),
            None => return Ok(exit),
        },
        SessionEnd::NoServer(error, signals) => {
            (error.to_string(), NO_SERVER_HINT, Exit::Transport, signals)
        }
    };
    shim_session.journal.print_message(VerbosityLevel::Error, &text);
    note_failure(plan, &shim_session.journal, FailureKind::Server, &text);
    let message = start_failure::shorten_reason(&text, Some(hint));
    let failure = StartFailure { message, kind: FailureKind::Server, exit };
    serve_failure(plan, failure, signals).await
}

/// Tells the client why its session does not start although the policy has loaded: the tape cannot
/// be written, a header or the server's URL is wrong, or the address is in use.
async fn report_start_failure(
    plan: &ShimPlan,
    shim_session: &ShimSession<'_>,
    error: anyhow::Error,
) -> anyhow::Result<Exit> {
    let failure = error.downcast::<Failure>()?;
    let kind = match failure.exit {
        Exit::Io => FailureKind::Tape,
        _ => FailureKind::Settings,
    };
    note_failure(plan, &shim_session.journal, kind, &failure.message);
    if plan.args.http.is_some() {
        // There may be no listener, and so no client to tell.
        return Err(failure.into());
    }
    let Failure { exit, message: words, hint } = failure;
    terminal_output::error(&words, hint.as_deref());
    let message = start_failure::shorten_reason(&words, hint.as_deref());
    serve_failure(plan, StartFailure { message, kind, exit }, Signals::listen()?).await
}
