//! Where a bridge gets the servers for its clients, and how a server ends.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::lines::Lines;

use super::board::Kind;
use crate::child::{Child, Launch, Pipes, SpawnError};
use crate::stage::{Sitting, Stage};
use crate::stdio::{Cause, EXIT_NEWS, Outcome, Patience, server_ended};

/// How many server processes may run at once.
const PROCESSES_MAX: usize = 64;
/// How many actor sessions may exist at once. Each costs only a little memory.
const SEATS_MAX: usize = 1024;
/// How many bytes of sent events are kept for the client of a process.
const PROCESS_HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same for an actor session, of which there may be more.
const SEAT_HISTORY_BYTES_MAX: usize = 512 * 1024;

/// Where the servers of a bridge come from.
pub enum Servers {
    /// Each is a process started like this. The callback is told of servers that end on their own.
    Processes(Launch, Option<OnServerEnd>),
    /// Each is a session of this actor host.
    Stage(Rc<Stage>),
}

/// Called when a server has ended without being asked to.
pub type OnServerEnd = Rc<dyn Fn(&Outcome)>;

/// A running server.
pub(super) enum Server {
    Process(Box<Child>, Option<OnServerEnd>),
    Seat(Sitting),
}

impl Servers {
    /// Starts a server for one client, or for all clients without a session.
    pub(super) fn start(&self, kind: Kind) -> Result<(Server, Pipes), SpawnError> {
        Ok(match self {
            Self::Processes(launch, on_end) => {
                let (child, pipes) = Child::launch(launch)?;
                (Server::Process(Box::new(child), on_end.clone()), pipes)
            }
            Self::Stage(stage) => {
                let (sitting, pipes) = stage.seat(kind == Kind::Shared, kind != Kind::Old);
                (Server::Seat(sitting), pipes)
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
    pub(super) fn farewell(&self) -> Option<&str> {
        match self {
            Self::Stage(stage) if stage.is_stopping() => Some(stage.farewell()),
            Self::Stage(_) | Self::Processes(..) => None,
        }
    }

    /// Waits until the servers end on their own.
    pub(super) async fn stopped(&self) {
        match self {
            Self::Stage(stage) => stage.stopped().await,
            Self::Processes(..) => std::future::pending().await,
        }
    }
}

impl Server {
    /// Whether it is an actor session, whose lines may name the request they belong to.
    pub(super) fn is_seat(&self) -> bool {
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
    pub(super) fn lines(&self, line_bytes_max: usize) -> Lines {
        match self {
            Self::Process(..) => Lines::new(line_bytes_max),
            // Its output is in memory already, and its size was checked when it was written.
            Self::Seat(_) => Lines::sparing(usize::MAX),
        }
    }

    /// Ensures that the server dies with us, before any of its output is passed on.
    pub(super) fn guarded(&mut self) {
        if let Self::Process(child, _) = self {
            child.guarded();
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
    pub(super) async fn farewell(&mut self) -> String {
        match self {
            Self::Process(child, _) => {
                // If the server exits right after closing its output, its status tells more.
                drop(tokio::time::timeout(EXIT_NEWS, child.exited()).await);
                server_ended(child.status())
            }
            Self::Seat(sitting) => sitting.farewell(),
        }
    }

    /// Reports a server that ended without being asked to, with its unanswered requests.
    pub(super) async fn tell_end(&self, unanswered: usize) {
        let Self::Process(child, Some(on_end)) = self else { return };
        let (cause, status) = (Cause::Server, child.status());
        let stderr_tail = child.stderr_tail().await;
        on_end(&Outcome { cause, status, unanswered, stderr_tail });
    }

    /// Ends the server, which has `grace` to exit by itself. Its input must be closed.
    pub(super) async fn end(&mut self, grace: Duration, patience: Patience) {
        match self {
            // An error means that the process cannot be waited for, and no more can be done.
            Self::Process(child, _) => drop(child.end(grace, patience.after_term).await),
            Self::Seat(sitting) => sitting.end(grace).await,
        }
    }
}
