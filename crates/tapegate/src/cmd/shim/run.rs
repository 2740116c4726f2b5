//! Runs a governed session, from its start to its exit code.

use std::sync::Arc;

use tapegate_core::activity::EventLevel;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_shim::file_watch::FileWatch;
use tapegate_shim::local_session::LocalSession;
use tapegate_shim::plan::StartPolicy;
use tapegate_shim::shim_session::ShimSession;
use tapegate_shim::start_failure::{self, FailureKind, StartFailure};
use tapegate_shim::tapes;
use tapegate_store::OpenError;
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{SessionOutcome, ShutdownTimeouts};
use tokio::sync::Notify;

use super::hub_start;
use super::start_plan::StartPlan;
use super::start_refusal::{refuse_to_start, serve_failure};
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::session::{self, SessionEnd, SessionHandler, SessionRoute};
use crate::settings;
use crate::terminal_output;
use crate::upstream::UpstreamTarget;
use crate::verbosity;

/// Hints for a server that does not run.
const NO_SERVER_HINT: &str = "check the server's command in the client's configuration";
const SERVER_ENDED_HINT: &str = "run the server's command in a terminal to see why";

/// Runs the session until it ends.
pub(super) fn run(mut start: StartPlan) -> anyhow::Result<Exit> {
    let runtime = runtime::start()?;
    // Wrong settings come first: everything below may rest on their fallbacks.
    if let Some(failure) = start.settings_failure.take() {
        return runtime.block_on(refuse_to_start(&start, FailureKind::Settings, failure));
    }
    if let Some(failure) = start.state_failure.take() {
        return runtime.block_on(refuse_to_start(&start, FailureKind::State, failure));
    }
    if let Some(hub_address) = start.hub.take() {
        return runtime.block_on(hub_start::run(start, hub_address));
    }
    let policy = match start.policy() {
        Ok(policy) => policy,
        Err(failure) => {
            return runtime.block_on(refuse_to_start(&start, FailureKind::Policy, failure));
        }
    };
    // Not earlier, because the policy may name the tapes folder.
    if let Err(failure) = check_folders(&start, &policy.active_policy) {
        return runtime.block_on(refuse_to_start(&start, FailureKind::State, failure));
    }
    // Watch from here on: a change while the session starts must not be missed.
    let watch = FileWatch::new(policy.files.clone());
    let upstream = match start.upstream(&policy.active_policy) {
        Ok(upstream) => upstream,
        Err(failure) => {
            return runtime.block_on(refuse_to_start(&start, FailureKind::Settings, failure));
        }
    };
    runtime.block_on(run_without_hub(&start, &policy, watch, &upstream))
}

/// Rejects folders that other users could write to, or that are not where they appear to be.
pub(super) fn check_folders(
    start: &StartPlan,
    active_policy: &ActivePolicy,
) -> Result<(), Failure> {
    let changed = tapes::secure_folders(&start.shim, active_policy).map_err(|error| {
        Failure::new(Exit::Io, error)
            .hint("tapes and logs are stored only in folders that you own; remove or rename it")
    })?;
    changed.iter().for_each(|text| start.shim.log.message(EventLevel::Warn, text));
    Ok(())
}

/// Runs a session under the policy files, without a hub.
async fn run_without_hub(
    start: &StartPlan,
    policy: &StartPolicy,
    watch: FileWatch,
    upstream: &UpstreamTarget,
) -> anyhow::Result<Exit> {
    let hang_up = Arc::new(Notify::new());
    let signals = Signals::listen()?.with_reload(Arc::clone(&hang_up));
    let local = LocalSession {
        plan: &start.shim,
        policy,
        project: start,
        watch,
        hang_up,
        server: upstream.description(),
    };
    local.run(async |shim_session| serve(start, upstream, signals, shim_session).await).await
}

/// Runs the session; without a server, every request is answered with the reason.
pub(super) async fn serve(
    start: &StartPlan,
    upstream: &UpstreamTarget,
    signals: Signals,
    shim_session: &mut ShimSession<'_>,
) -> anyhow::Result<Exit> {
    let headers = start.args.upstream.headers();
    let route = SessionRoute {
        upstream,
        headers: &headers,
        http: start.args.http.as_deref(),
        without: start.without.clone(),
        // So that `tapegate bash` does not ask about every command once more.
        with: vec![(settings::BEHIND_SHIM.to_owned(), "1".to_owned())],
        message_bytes_max: start.args.max_message_bytes,
        patience: ShutdownTimeouts::graceful(),
        keeps_stderr: false,
        quiet: verbosity::is_quiet(),
    };
    let ended = match session::run(&route, signals, shim_session).await {
        Ok(ended) => ended,
        Err(error) => return report_start_failure(start, shim_session, error).await,
    };
    let (text, hint, exit, signals) = match ended {
        SessionEnd::Exit(exit) => match shim_session.take_startup_failure() {
            // The client may not have sent a request yet, or may try again in another way.
            Some(reason) => (reason, SERVER_ENDED_HINT, exit, Signals::listen()?),
            None => return Ok(exit),
        },
        SessionEnd::NoServer(error, signals) => {
            (error.to_string(), NO_SERVER_HINT, Exit::Transport, signals)
        }
    };
    shim_session.journal().print_message(EventLevel::Error, &text);
    start_failure::note_failure(&start.shim, shim_session.journal(), FailureKind::Server, &text);
    let message = start_failure::shorten_reason(&text, Some(hint));
    let failure = StartFailure { message, kind: FailureKind::Server };
    serve_failure(start, (failure, exit), signals).await
}

/// Tells the client why its session does not start although the policy has loaded: the tape cannot
/// be written, a header or the server's URL is wrong, or the address is in use.
async fn report_start_failure(
    start: &StartPlan,
    shim_session: &ShimSession<'_>,
    error: anyhow::Error,
) -> anyhow::Result<Exit> {
    let failure = error.downcast::<Failure>()?;
    let kind = match failure.exit {
        Exit::Io => FailureKind::Tape,
        _ => FailureKind::Settings,
    };
    start_failure::note_failure(&start.shim, shim_session.journal(), kind, &failure.message);
    if start.args.http.is_some() {
        // There may be no listener, and so no client to tell.
        return Err(failure.into());
    }
    let Failure { exit, message: words, hint } = failure;
    terminal_output::error(&words, hint.as_deref());
    let message = start_failure::shorten_reason(&words, hint.as_deref());
    serve_failure(start, (StartFailure { message, kind }, exit), Signals::listen()?).await
}

impl SessionHandler for ShimSession<'_> {
    fn open(&mut self) -> anyhow::Result<RecordedSession> {
        Ok(ShimSession::open(self).map_err(|error: OpenError| {
            Failure::new(Exit::Io, &error)
                .hint("nothing passes unrecorded; `recording: { enabled: false }` turns tapes off")
        })?)
    }

    fn discard(&mut self) {
        ShimSession::discard(self);
    }

    fn finish(&mut self, session: &mut RecordedSession, outcome: SessionOutcome) -> Exit {
        match ShimSession::finish(self, session, &outcome) {
            Ok(()) => session::exit_of(&outcome),
            Err(reason) => {
                terminal_output::error(&reason, None);
                Exit::Io
            }
        }
    }
}
