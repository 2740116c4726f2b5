//! Starts a session that joins a hub, which supplies the policy and handles approvals.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tapegate_core::activity::EventLevel;
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_shim::hub_session::{self, HubSession, SessionControls};
use tapegate_shim::shim_session::ShimSession;
use tapegate_shim::start_failure::{self, FailureKind, StartFailure};
use tapegate_wire::signals::Signals;
use tokio::sync::{Notify, mpsc};

use super::run::{check_folders, serve};
use super::start_plan::{HubAddress, StartPlan};
use super::start_refusal::{log_failure, refuse_to_start, serve_failure};
use crate::exit::{Exit, Failure};
use crate::program_name;

/// How long requests the client has already sent are answered if there is no hub.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The hint for a hub that does not answer.
fn no_hub_hint() -> String {
    let line = program_name::command("hub");
    format!("start one with `{line}`, and check --governance-endpoint and --token-file")
}

/// Runs a session under the policy of a hub.
pub(super) async fn run(mut start: StartPlan, hub_address: HubAddress) -> anyhow::Result<Exit> {
    let client = match HubClient::new(&hub_address.endpoint, &hub_address.token_file) {
        Ok(client) => Arc::new(client),
        Err(error) => {
            let failure = Failure::new(Exit::Usage, error).hint(no_hub_hint());
            return refuse_to_start(&start, FailureKind::Settings, failure).await;
        }
    };
    let hang_up = Arc::new(Notify::new());
    let (stop, stopped) = mpsc::channel(1);
    // Before the wait for the hub, which may take half a minute.
    let mut signals = Signals::listen()?.with_reload(Arc::clone(&hang_up)).with_stop(stopped);
    let joined = tokio::select! {
        joined = hub_session::join(&client) => joined,
        number = signals.next() => return Ok(Exit::from_signal(number)),
    };
    let snapshot = match joined {
        Ok(snapshot) => snapshot,
        Err(error) => return handle_missing_hub(&start, &error, (&stop, signals)).await,
    };
    let found = hub_session::load(&snapshot, &start.shim);
    found.warnings.iter().for_each(|message| start.shim.log.message(EventLevel::Warn, message));
    let Some(active_policy) = found.active_policy else {
        let message_text =
            format!("{}\nthe policy of the hub does not load", found.faults.join("\n"));
        let failure = Failure::new(Exit::Invalid, message_text);
        return refuse_to_start(&start, FailureKind::Policy, failure).await;
    };
    if start.policy_required && active_policy.policy.is_none() {
        let message_text =
            format!("the hub at {} has no policy, and one is required", hub_address.endpoint);
        let line = program_name::command("init");
        let hint = format!("write a tapegate.yaml where the hub runs; `{line}` does");
        let failure = Failure::new(Exit::Invalid, message_text).hint(hint);
        return refuse_to_start(&start, FailureKind::Policy, failure).await;
    }
    let session = HubSession::new(&mut start.shim, client, snapshot, active_policy);
    // Only now is it known whether the hub's state folder is used.
    if let Err(failure) = check_folders(&start, session.active_policy()) {
        return refuse_to_start(&start, FailureKind::State, failure).await;
    }
    let upstream = match start.upstream(session.active_policy()) {
        Ok(upstream) => upstream,
        Err(failure) => return refuse_to_start(&start, FailureKind::Settings, failure).await,
    };
    let (server, controls) = (upstream.description(), SessionControls { hang_up, stop });
    let serve = async |shim_session: &mut ShimSession<'_>| {
        serve(&start, &upstream, signals, shim_session).await
    };
    session.run(&start.shim, server, controls, serve, has_crashed).await
}

/// Whether the hub is told that the session has crashed.
fn has_crashed(exit: &anyhow::Result<Exit>) -> bool {
    match exit {
        Ok(Exit::Ok) => false,
        // Many clients end a server with a signal, so this is not a crash.
        Ok(Exit::Code(code)) => *code <= 128,
        _ => true,
    }
}

/// Without a hub, only answers the requests that the client has already sent, with the error.
async fn handle_missing_hub(
    start: &StartPlan,
    error: &ClientError,
    (stop, signals): (&mpsc::Sender<()>, Signals),
) -> anyhow::Result<Exit> {
    let message_text = format!("the governance service is not available: {error}");
    let old = tapegate_hub::hub_lock::old_token_file(&start.shim.state);
    let hint = match old.exists() {
        false => no_hub_hint(),
        true => format!("{}; `{}` is not read: agents can read it", no_hub_hint(), old.display()),
    };
    log_failure(start, FailureKind::Hub, &message_text);
    // Over HTTP there is no listener yet, so no client has sent anything.
    if start.args.http.is_none() {
        let message = start_failure::shorten_reason(&message_text, Some(&hint));
        let failure = StartFailure { message, kind: FailureKind::Hub };
        let soon = async {
            tokio::time::sleep(LAST_WORDS).await;
            stop.send(()).await.ok();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            result = serve_failure(start, (failure, Exit::Transport), signals) => { result?; },
            never = soon => match never {},
        }
    }
    Err(Failure::new(Exit::Transport, message_text).hint(hint).into())
}
