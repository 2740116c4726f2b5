//! The server end of a session, however the server is reached.
//!
//! Messages to a server go through its pipes or its channel, which belong to the session. This
//! is its life: whether it has exited, and how it is ended. Dropping it ends it at once, and leaves
//! nothing behind.

use std::process::ExitStatus;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::actor_host::ActorSessionHandle;
use crate::child::ServerProcess;
use crate::stdio::{EndCause, SessionOutcome};

/// A running server.
pub(crate) enum ServerEnd {
    /// A process on pipes.
    Process(Box<ServerProcess>),
    /// A server over HTTP, behind a bridge that provides its pipes.
    Http(BridgeTask),
    /// A session of an actor in this process.
    Actor(ActorSessionHandle),
}

/// A bridge to a server over HTTP.
pub(crate) struct BridgeTask(pub(crate) JoinHandle<SessionOutcome>);

/// How a server has ended.
#[derive(Debug, Default)]
pub(crate) struct ServerOutcome {
    /// How its process has ended.
    pub(crate) status: Option<ExitStatus>,
    /// Why a server over HTTP was never reached, if that was attempted.
    pub(crate) unreachable: Option<String>,
}

impl ServerEnd {
    /// Ensures that the server dies with us, before any of its output is passed on (invariant 8).
    pub(crate) fn wait_for_reaper(&mut self) {
        if let Self::Process(child) = self {
            child.wait_for_reaper();
        }
    }

    /// Waits until the server has exited, if that may happen before its output ends.
    pub(crate) async fn exited(&mut self) {
        match self {
            // An error means that the process cannot be waited for, and no more can be learned.
            Self::Process(child) => drop(child.exited().await),
            // A bridge answers with errors when it has lost its connection.
            Self::Http(_) | Self::Actor(_) => std::future::pending().await,
        }
    }

    /// The exit status of a process whose output has ended. If it exits right after closing its
    /// output, the status is worth waiting for, until `until`.
    pub(crate) async fn exit_status(&mut self, until: Instant) -> Option<ExitStatus> {
        let Self::Process(child) = self else { return None };
        drop(timeout_at(until, child.exited()).await);
        child.status()
    }

    /// Ends the server, which has `grace` to exit by itself. Its input must be closed.
    pub(crate) async fn shutdown(
        &mut self,
        grace: Duration,
        after_term: Duration,
    ) -> ServerOutcome {
        let mut outcome = ServerOutcome::default();
        match self {
            // An error means that the process cannot be waited for, and no more can be done.
            Self::Process(child) => outcome.status = child.shutdown(grace, after_term).await.ok(),
            Self::Http(BridgeTask(task)) => {
                // It ends by itself within these times; if it does not, dropping it aborts it.
                let ended = timeout(grace + after_term, task).await;
                if let Ok(Ok(SessionOutcome { cause: EndCause::Unreachable(reason), .. })) = ended {
                    outcome.unreachable = Some(reason);
                }
            }
            Self::Actor(session) => session.shutdown(grace).await,
        }
        outcome
    }
}

impl Drop for BridgeTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
