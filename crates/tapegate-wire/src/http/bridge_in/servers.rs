//! Where a bridge gets the servers for its clients, and how a server ends.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::lines::LineSplitter;

use super::server_connection::ConnectionKind;
use crate::actor_host::{ActorHost, ActorSessionHandle};
use crate::child::{ServerLaunch, ServerPipes, ServerProcess, SpawnError};
use crate::stdio::{EXIT_NEWS, EndCause, SessionOutcome, ShutdownTimeouts, server_end_message};

/// How many server processes may run at once.
const PROCESSES_MAX: usize = 64;
/// How many actor sessions may exist at once. Each costs only a little memory.
const SEATS_MAX: usize = 1024;
/// How many bytes of sent events are kept for the client of a process.
const PROCESS_HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same for an actor session, of which there may be more.
const SEAT_HISTORY_BYTES_MAX: usize = 512 * 1024;

/// Where the servers of a bridge come from.
pub enum ServerProvider {
    /// Each is a process started like this. The callback is told of servers that end on their own.
    Processes(ServerLaunch, Option<OnServerEnd>),
    /// Each is a session of this actor host.
    Stage(Rc<ActorHost>),
}

/// Called when a server has ended without being asked to.
pub type OnServerEnd = Rc<dyn Fn(&SessionOutcome)>;

/// A running server.
pub(super) enum BridgeServer {
    Process(Box<ServerProcess>, Option<OnServerEnd>),
    Seat(ActorSessionHandle),
}

impl ServerProvider {
    /// Starts a server for one client, or for all clients without a session.
    pub(super) fn start(
        &self,
        kind: ConnectionKind,
    ) -> Result<(BridgeServer, ServerPipes), SpawnError> {
        Ok(match self {
            Self::Processes(launch, on_end) => {
                let (child, pipes) = ServerProcess::launch(launch)?;
                (BridgeServer::Process(Box::new(child), on_end.clone()), pipes)
            }
            Self::Stage(host) => {
                let (session, pipes) =
                    host.open_session(kind == ConnectionKind::Shared, kind != ConnectionKind::Old);
                (BridgeServer::Seat(session), pipes)
            }
        })
    }

    /// How many sessions may exist at once.
    pub(super) fn sessions_max(&self) -> usize {
        match self {
            Self::Processes(..) => PROCESSES_MAX,
            Self::Stage(_) => SEATS_MAX,
        }
    }

    /// The reason given to clients if the servers end on their own.
    pub(super) fn end_reason(&self) -> Option<&str> {
        match self {
            Self::Stage(host) if host.is_stopping() => Some(host.end_reason()),
            Self::Stage(_) | Self::Processes(..) => None,
        }
    }

    /// Waits until the servers end on their own.
    pub(super) async fn stopped(&self) {
        match self {
            Self::Stage(host) => host.stop_requested().await,
            Self::Processes(..) => std::future::pending().await,
        }
    }
}

impl BridgeServer {
    /// Whether it is an actor session, whose lines may name the request they belong to.
    pub(super) fn is_in_process(&self) -> bool {
        matches!(self, Self::Seat(_))
    }

    /// How many bytes of sent events are kept for its client.
    pub(super) fn history_bytes_max(&self) -> usize {
        match self {
            Self::Process(..) => PROCESS_HISTORY_BYTES_MAX,
            Self::Seat(_) => SEAT_HISTORY_BYTES_MAX,
        }
    }

    /// The splitter that cuts its output into lines.
    pub(super) fn lines(&self, line_bytes_max: usize) -> LineSplitter {
        match self {
            Self::Process(..) => LineSplitter::new(line_bytes_max),
            // Its output is in memory already, and its size was checked when it was written.
            Self::Seat(_) => LineSplitter::with_small_buffer(usize::MAX),
        }
    }

    /// Ensures that the server dies with us, before any of its output is passed on.
    pub(super) fn wait_for_reaper(&mut self) {
        if let Self::Process(child, _) = self {
            child.wait_for_reaper();
        }
    }

    /// Waits until the server has exited, if that may happen before its output ends.
    pub(super) async fn exited(&mut self) {
        match self {
            // An error means that the process cannot be waited for, and no more can be learned.
            Self::Process(child, _) => drop(child.exited().await),
            Self::Seat(_) => std::future::pending().await,
        }
    }

    /// The reason given for requests left unanswered because the output has ended.
    pub(super) async fn end_reason(&mut self) -> String {
        match self {
            Self::Process(child, _) => {
                // If the server exits right after closing its output, its status tells more.
                drop(tokio::time::timeout(EXIT_NEWS, child.exited()).await);
                server_end_message(child.status())
            }
            Self::Seat(session) => session.end_reason(),
        }
    }

    /// Reports a server that ended without being asked to, with its unanswered requests.
    pub(super) async fn report_end(&self, unanswered: usize) {
        let Self::Process(child, Some(on_end)) = self else { return };
        let (cause, status) = (EndCause::Server, child.status());
        let stderr_tail = child.stderr_tail().await;
        on_end(&SessionOutcome { cause, status, unanswered, stderr_tail });
    }

    /// Ends the server, which has `grace` to exit by itself. Its input must be closed.
    pub(super) async fn shutdown(&mut self, grace: Duration, patience: ShutdownTimeouts) {
        match self {
            // An error means that the process cannot be waited for, and no more can be done.
            Self::Process(child, _) => drop(child.shutdown(grace, patience.after_term).await),
            Self::Seat(session) => session.shutdown(grace).await,
        }
    }
}
