//! How a bridge comes by the servers for its clients, and how one of them ends.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::lines::Lines;

use super::board::Kind;
use crate::child::{Child, Launch, Pipes, SpawnError};
use crate::stage::{Sitting, Stage};
use crate::stdio::{Cause, EXIT_NEWS, Outcome, Patience, server_ended};

/// How many processes there may be at once.
const PROCESSES_MAX: usize = 64;
/// How many seats of a stage there may be at once. Each costs some memory, and that is all.
const SEATS_MAX: usize = 1024;
/// How many bytes of past events are kept for the client of a process.
const PROCESS_HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same for a seat, of which there may be more.
const SEAT_HISTORY_BYTES_MAX: usize = 512 * 1024;

/// Where the servers of a bridge come from.
pub enum Servers {
    /// Each is a process that is started so. Who wants to know is told of one that ends by itself.
    Processes(Launch, Option<OnServerEnd>),
    /// Each is a seat of this stage.
    Stage(Rc<Stage>),
}

/// Is told how a server has ended that nobody has asked to end.
pub type OnServerEnd = Rc<dyn Fn(&Outcome)>;

/// A server that runs.
pub(super) enum Server {
    Process(Box<Child>, Option<OnServerEnd>),
    Seat(Sitting),
}

impl Servers {
    /// Starts a server for one client, or for all that have no session.
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

    /// How many sessions there may be at once.
    pub(super) fn sessions_max(&self) -> usize {
        match self {
            Self::Processes(..) => PROCESSES_MAX,
            Self::Stage(_) => SEATS_MAX,
        }
    }

    /// What clients are told, if the servers end of their own accord.
    pub(super) fn farewell(&self) -> Option<&str> {
        match self {
            Self::Stage(stage) if stage.is_stopping() => Some(stage.farewell()),
            Self::Stage(_) | Self::Processes(..) => None,
        }
    }

    /// Waits until the servers end of their own accord.
    pub(super) async fn stopped(&self) {
        match self {
            Self::Stage(stage) => stage.stopped().await,
            Self::Processes(..) => std::future::pending().await,
        }
    }
}

impl Server {
    /// Whether it is a seat: what it says may name the request it belongs to.
    pub(super) fn is_seat(&self) -> bool {
        matches!(self, Self::Seat(_))
    }

    /// How many bytes of past events are kept for its client.
    pub(super) fn history_bytes_max(&self) -> usize {
        match self {
            Self::Process(..) => PROCESS_HISTORY_BYTES_MAX,
            Self::Seat(_) => SEAT_HISTORY_BYTES_MAX,
        }
    }

    /// What cuts its output into lines.
    pub(super) fn lines(&self, line_bytes_max: usize) -> Lines {
        match self {
            Self::Process(..) => Lines::new(line_bytes_max),
            // What it says is in memory already, and it has been measured by whoever wrote it.
            Self::Seat(_) => Lines::sparing(usize::MAX),
        }
    }

    /// Makes sure that the server ends however we end, before anything that it says is passed on.
    pub(super) fn guarded(&mut self) {
        if let Self::Process(child, _) = self {
            child.guarded();
        }
    }

    /// Waits until the server has ended, if that may be before its output does.
    pub(super) async fn exited(&mut self) {
        match self {
            // Nothing more can be learnt about a process that cannot be waited for.
            Self::Process(child, _) => drop(child.exited().await),
            Self::Seat(_) => std::future::pending().await,
        }
    }

    /// What clients are told whose requests are not answered because the output has ended.
    pub(super) async fn farewell(&mut self) -> String {
        match self {
            Self::Process(child, _) => {
                // An exit that came with the end of the output makes a better reason than the end alone.
                drop(tokio::time::timeout(EXIT_NEWS, child.exited()).await);
                server_ended(child.status())
            }
            Self::Seat(sitting) => sitting.farewell(),
        }
    }

    /// Tells of the end of a server that nobody has asked to end and that is gone, with how many
    /// requests it has left unanswered.
    pub(super) async fn tell_end(&self, unanswered: usize) {
        let Self::Process(child, Some(on_end)) = self else { return };
        let (cause, status) = (Cause::Server, child.status());
        let stderr_tail = child.stderr_tail().await;
        on_end(&Outcome { cause, status, unanswered, stderr_tail });
    }

    /// Ends the server, which has `grace` to do so by itself. Its input must be closed.
    pub(super) async fn end(&mut self, grace: Duration, patience: Patience) {
        match self {
            // Nothing more can be done about a process that cannot be waited for.
            Self::Process(child, _) => drop(child.end(grace, patience.after_term).await),
            Self::Seat(sitting) => sitting.end(grace).await,
        }
    }
}
