//! Why a session ends, and how long that may take.

use std::process::ExitStatus;
use std::time::Duration;

use tapegate_core::relay::HoldsEndedCause;
use tapegate_core::tape::RecordError;

use crate::signals::ASKED;

/// How long each step of ending a session may take.
#[derive(Debug, Clone, Copy)]
pub struct ShutdownTimeouts {
    /// How long the server may take to exit by itself after its input was closed.
    pub grace: Duration,
    /// The same after a signal, whose sender may soon kill us. On stdio it applies only if an
    /// answer is awaited or `orderly` is set.
    pub grace_on_signal: Duration,
    /// How long it may take to exit after SIGTERM.
    pub after_term: Duration,
    /// Whether the grace after a signal applies even if no answer is awaited.
    pub orderly: bool,
}

impl ShutdownTimeouts {
    /// Gives every server time to exit by itself, whatever the reason.
    pub fn graceful() -> Self {
        let grace = Duration::from_secs(5);
        let after_term = Duration::from_secs(2);
        Self { grace, grace_on_signal: grace, after_term, orderly: true }
    }

    /// How long a server may take to exit by itself, for this cause.
    pub(crate) fn grace_after(&self, cause: &EndCause) -> Duration {
        match cause {
            EndCause::Signal(number) if *number != ASKED => self.grace_on_signal,
            _ => self.grace,
        }
    }
}

impl Default for ShutdownTimeouts {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5),
            grace_on_signal: Duration::from_millis(300),
            after_term: Duration::from_millis(1200),
            orderly: false,
        }
    }
}

/// Why a session ended.
#[derive(Debug)]
pub enum EndCause {
    /// The server closed its output or exited.
    Server,
    /// The actor in place of the server asked to end.
    Actor,
    /// The client closed its end.
    Client,
    /// A signal, or a request from within the process ([`ASKED`]).
    Signal(i32),
    /// The client left without ever having reached the server, for this reason.
    Unreachable(String),
    /// The tape could not be written.
    Tape(RecordError),
}

impl EndCause {
    /// What the end means for calls that wait for a decision.
    pub(crate) fn unheld_cause(&self) -> HoldsEndedCause {
        match self {
            // Only a hub that stops or is gone has a session end from within.
            Self::Signal(ASKED) => HoldsEndedCause::ServiceGone,
            _ => HoldsEndedCause::SessionEnded,
        }
    }

    /// The reason given for calls that wait for a decision.
    pub(crate) fn held_message(&self) -> String {
        match self.unheld_cause() {
            HoldsEndedCause::SessionEnded => self.client_message(),
            HoldsEndedCause::ServiceGone => {
                "Tapegate: no approver is reachable, since the hub has stopped; the call was not run"
                    .to_owned()
            }
        }
    }

    /// The reason given to a client for unanswered requests.
    pub fn client_message(&self) -> String {
        match self {
            Self::Tape(error) => format!("recording stopped: {error}"),
            Self::Signal(ASKED) => {
                "tapegate was told to stop before the MCP server answered".to_owned()
            }
            Self::Signal(number) => {
                format!("signal {number} stopped tapegate before the MCP server answered")
            }
            Self::Server | Self::Actor | Self::Client | Self::Unreachable(_) => {
                "the session ended before the MCP server answered".to_owned()
            }
        }
    }
}

/// How a session ended.
#[derive(Debug)]
pub struct SessionOutcome {
    /// Why.
    pub cause: EndCause,
    /// How the server's process ended.
    pub status: Option<ExitStatus>,
    /// Whether it ended because of a signal of ours.
    pub was_terminated: bool,
    /// How many client requests the server has left unanswered.
    pub unanswered: usize,
    /// The last lines the server wrote to standard error, if they were kept.
    pub stderr_tail: Vec<String>,
}

impl SessionOutcome {
    /// The end of a session without a server process.
    pub fn new(cause: EndCause) -> Self {
        let (status, was_terminated, unanswered, stderr_tail) = (None, false, 0, Vec::new());
        Self { cause, status, was_terminated, unanswered, stderr_tail }
    }
}
