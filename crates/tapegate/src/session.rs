//! Runs a live session over any combination of transports, for all commands that run between
//! clients and a server.

use std::ffi::OsString;
use std::rc::Rc;

use tapegate_wire::child::{ServerLaunch, ServerProcess, SpawnError};
use tapegate_wire::http::bridge_in::{InboundBridge, OnServerEnd, ServerProvider};
use tapegate_wire::http::proxy::Proxy;
use tapegate_wire::http::{self, SharedSession, bridge_out};
use tapegate_wire::memory;
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::{ASKED, Signals};
use tapegate_wire::stdio::{self, EndCause, SessionOutcome, ShutdownTimeouts};
use tokio::task::LocalSet;

use crate::client_transport::{
    client_ports, listen, print_address, print_waiting_notice, release_stdout,
};
use crate::exit::Exit;
use crate::terminal_output;
use crate::upstream::UpstreamTarget;
use crate::verbosity;

/// How to reach the two ends of a session.
pub(crate) struct SessionRoute<'a> {
    pub(crate) upstream: &'a UpstreamTarget,
    /// Headers for a server reached over HTTP.
    pub(crate) headers: &'a [String],
    /// The address to listen on; `None` for one client on standard input and output.
    pub(crate) http: Option<&'a str>,
    /// Variables removed from the environment of a server that is started.
    pub(crate) without: Vec<OsString>,
    /// Variables set in the environment of a server that is started.
    pub(crate) with: Vec<(String, String)>,
    pub(crate) message_bytes_max: usize,
    pub(crate) patience: ShutdownTimeouts,
    /// Whether the last lines of the server's standard error are kept.
    pub(crate) keeps_stderr: bool,
    pub(crate) quiet: bool,
}

/// The parts of a session that depend on the command.
pub(crate) trait SessionHandler {
    /// Opens the recording of the session. Clients can be served from then on.
    fn open(&mut self) -> anyhow::Result<RecordedSession>;

    /// Called if the session does not take place because the server cannot be started.
    fn discard(&mut self);

    /// What to call when a server ends while others may go on, as there may be many over HTTP.
    fn on_server_end(&self) -> Option<OnServerEnd> {
        None
    }

    /// Called when the session is over; returns the exit code.
    fn finish(&mut self, recording: &mut RecordedSession, outcome: SessionOutcome) -> Exit;
}

/// How a session ended.
pub(crate) enum SessionEnd {
    /// With this exit code.
    Exit(Exit),
    /// The server could not be started. The signals are returned so that the caller can go on with
    /// them.
    NoServer(SpawnError, Signals),
}

/// Runs a session to its end. Must be called inside a single-threaded runtime.
pub(crate) async fn run(
    route: &SessionRoute<'_>,
    signals: Signals,
    handler: &mut dyn SessionHandler,
) -> anyhow::Result<SessionEnd> {
    // Before anything is opened: a misspelt command leaves no tape, and no listener that clients
    // could reach.
    if let UpstreamTarget::Command(argv) = route.upstream
        && let Err(error) = ServerProcess::check_executable(argv)
    {
        return Ok(SessionEnd::NoServer(error, signals));
    }
    match (route.http, route.upstream) {
        (None, UpstreamTarget::Command(argv)) => {
            return run_stdio(route, argv, signals, handler).await;
        }
        (Some(address), UpstreamTarget::Http(url)) => {
            proxy(route, address, url, signals, handler).await
        }
        (Some(address), UpstreamTarget::Command(argv)) => {
            bridge_in(route, address, argv, signals, handler).await
        }
        (None, UpstreamTarget::Http(url)) => bridge_out(route, url, signals, handler).await,
    }
    .map(SessionEnd::Exit)
}

/// Opens the recording of a session, as the last step before its first message.
fn open(handler: &mut dyn SessionHandler) -> anyhow::Result<RecordedSession> {
    let recording = handler.open()?;
    // Most of the code that has run until now is not needed again: the command line, settings and
    // the policy have been read. There may be a dozen such processes beside each agent.
    memory::release_code();
    Ok(recording)
}

async fn run_stdio(
    route: &SessionRoute<'_>,
    argv: &[String],
    signals: Signals,
    handler: &mut dyn SessionHandler,
) -> anyhow::Result<SessionEnd> {
    let client = client_ports()?;
    let mut recording = open(handler)?;
    print_waiting_notice(route.quiet);
    // A governed session keeps standard output: if the server does not start, or ends at once, the
    // requests that follow are answered on it.
    if !recording.is_governed() {
        release_stdout()?;
    }
    let launch = ServerLaunch { keeps_stderr: route.keeps_stderr, ..launch_options(route, argv) };
    let server = match ServerProcess::launch(&launch) {
        Ok(server) => server,
        Err(error) => {
            // A tape that is still shared is not deleted.
            drop(recording);
            handler.discard();
            return Ok(SessionEnd::NoServer(error, signals));
        }
    };
    let (bytes_max, patience) = (route.message_bytes_max, route.patience);
    let on_wait = |wanted| print_wait_notice(wanted, route.quiet);
    let outcome =
        stdio::run(&mut recording, client, server, signals, bytes_max, patience, &on_wait).await;
    Ok(SessionEnd::Exit(handler.finish(&mut recording, outcome)))
}

async fn proxy(
    route: &SessionRoute<'_>,
    address: &str,
    url: &str,
    signals: Signals,
    handler: &mut dyn SessionHandler,
) -> anyhow::Result<Exit> {
    let upstream = UpstreamTarget::connect(url, route.headers)?;
    // Listen before the tape is opened: an address in use must not leave an empty tape.
    let listener = listen(address).await?;
    let shared_session = SharedSession::new(open(handler)?, route.message_bytes_max);
    let proxy = Proxy::new(Rc::clone(&shared_session), upstream);
    print_address(&listener, route.quiet)?;
    let cause = http::serve(listener, proxy, &shared_session, signals).await;
    Ok(handler.finish(&mut shared_session.recorded_session(), SessionOutcome::new(cause)))
}

async fn bridge_in(
    route: &SessionRoute<'_>,
    address: &str,
    argv: &[String],
    signals: Signals,
    handler: &mut dyn SessionHandler,
) -> anyhow::Result<Exit> {
    let listener = listen(address).await?;
    let shared_session = SharedSession::new(open(handler)?, route.message_bytes_max);
    let launch = ServerLaunch { keeps_stderr: route.keeps_stderr, ..launch_options(route, argv) };
    let servers = ServerProvider::Processes(launch, handler.on_server_end());
    let bridge = InboundBridge::new(Rc::clone(&shared_session), servers, route.patience);
    print_address(&listener, route.quiet)?;
    let cause = http::serve(listener, bridge, &shared_session, signals).await;
    Ok(handler.finish(&mut shared_session.recorded_session(), SessionOutcome::new(cause)))
}

async fn bridge_out(
    route: &SessionRoute<'_>,
    url: &str,
    signals: Signals,
    handler: &mut dyn SessionHandler,
) -> anyhow::Result<Exit> {
    let upstream = UpstreamTarget::connect(url, route.headers)?;
    let client = client_ports()?;
    let shared_session = SharedSession::new(open(handler)?, route.message_bytes_max);
    print_waiting_notice(route.quiet);
    let (notice, patience) = (Box::new(terminal_output::warn), route.patience);
    let session =
        bridge_out::run(Rc::clone(&shared_session), client, upstream, signals, patience, notice);
    let outcome = LocalSet::new().run_until(session).await;
    Ok(handler.finish(&mut shared_session.recorded_session(), outcome))
}

/// Reports what a session whose client has closed its end waits for.
fn print_wait_notice(wanted: usize, quiet: bool) {
    if quiet {
        return;
    }
    let requests = match wanted {
        1 => "1 request".to_owned(),
        count => format!("{count} requests"),
    };
    terminal_output::info(&format!(
        "standard input has ended; waiting for the MCP server to answer {requests}; Ctrl-C ends"
    ));
}

/// The exit code for the outcome of a session.
pub(crate) fn exit_of(outcome: &SessionOutcome) -> Exit {
    match &outcome.cause {
        EndCause::Tape(_) => Exit::Io,
        // An orderly end on request is a success.
        EndCause::Signal(ASKED) => Exit::Ok,
        EndCause::Signal(signal) => Exit::from_signal(*signal),
        EndCause::Unreachable(reason) => {
            terminal_output::error(reason, None);
            Exit::Transport
        }
        // Without a child process there is no exit code to pass on when the client leaves.
        EndCause::Client if outcome.status.is_none() => Exit::Ok,
        // Our own SIGTERM after the client has left is not a failure of the server.
        EndCause::Client if outcome.was_terminated => {
            if let (Some(status), false) = (outcome.status, verbosity::is_quiet()) {
                terminal_output::info(&format!(
                    "the MCP server did not exit when its input ended, so it was ended ({status})"
                ));
            }
            Exit::Ok
        }
        EndCause::Server | EndCause::Actor | EndCause::Client => {
            Exit::from_child_status(outcome.status)
        }
    }
}

fn launch_options(route: &SessionRoute<'_>, argv: &[String]) -> ServerLaunch {
    ServerLaunch {
        argv: argv.to_vec(),
        without: route.without.clone(),
        env: route.with.clone(),
        keeps_stderr: false,
    }
}
