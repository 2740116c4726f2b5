//! The shutdown of a session: what caused it, and how long each step may take.

use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tapegate_core::tape::RecordError;
use tokio::time::Instant;

use super::{Cause, Patience};
use crate::child::Child;
use crate::signals::ASKED;

/// The state of a shutdown.
pub(super) struct Ending {
    patience: Patience,
    cause: Option<Cause>,
    step: Step,
    deadline: Option<Instant>,
    child_exited: bool,
    signalled: bool,
}

/// The last step taken to end the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// None.
    Running,
    /// Its input is closed, and the client still waits for answers.
    Answering,
    /// Its input is closed.
    Grace,
    /// It was sent SIGTERM.
    Asked,
    /// It was killed, or is no longer waited for.
    Over,
}

impl Ending {
    pub(super) fn new(patience: Patience) -> Self {
        let (child_exited, signalled) = (false, false);
        Self { patience, cause: None, step: Step::Running, deadline: None, child_exited, signalled }
    }

    /// The client has closed its end and waits for `wanted` more answers.
    pub(super) fn client_left(&mut self, wanted: usize) {
        self.cause.get_or_insert(Cause::Client);
        match (wanted, self.step) {
            (0, Step::Running | Step::Answering) => self.go(Step::Grace, self.patience.grace),
            (_, Step::Running) => self.step = Step::Answering,
            _ => {}
        }
    }

    /// The server accepts no more input.
    pub(super) fn server_left(&mut self) {
        self.cause.get_or_insert(Cause::Server);
        if self.step < Step::Grace {
            self.go(Step::Grace, self.patience.grace);
        }
    }

    /// Handles a signal: the first begins the shutdown, a further one hastens it. Returns true when
    /// nothing is waited for any longer.
    ///
    /// A client may kill us some 40 ms after it has asked us to end. So the server is given time
    /// only if `wanted` more answers may arrive, or if the shutdown is to be orderly; otherwise it
    /// is sent SIGTERM at once, as if the client had started it directly.
    pub(super) fn signalled(&mut self, number: i32, wanted: usize, child: &Child) -> bool {
        let grace = self.patience.grace_after(&Cause::Signal(number));
        self.cause.get_or_insert(Cause::Signal(number));
        // A request from within the process is not urgent.
        self.signalled |= number != ASKED;
        let patient = wanted > 0 || self.patience.orderly || number == ASKED;
        match self.step {
            Step::Running | Step::Answering if patient => {
                self.go(Step::Grace, grace);
                false
            }
            _ if number == ASKED => false,
            _ => self.deadline_passed(child),
        }
    }

    /// The tape failed: nothing more may pass.
    pub(super) fn tape_failed(&mut self, error: RecordError) {
        self.cause = Some(Cause::Tape(error));
        self.step = Step::Over;
    }

    /// The server process has exited; its output is read to the end, but for at most `linger`.
    pub(super) fn exited(&mut self, linger: Duration) {
        self.child_exited = true;
        self.cause.get_or_insert(Cause::Server);
        self.step = self.step.max(Step::Asked);
        self.deadline = Some(Instant::now() + linger);
    }

    /// Takes the next step; true when nothing is waited for any longer.
    pub(super) fn deadline_passed(&mut self, child: &Child) -> bool {
        match self.step {
            Step::Running | Step::Answering | Step::Grace => {
                child.signal(Signal::TERM);
                self.go(Step::Asked, self.patience.after_term);
                false
            }
            Step::Asked => {
                child.signal(Signal::KILL);
                self.step = Step::Over;
                self.deadline = None;
                true
            }
            Step::Over => {
                self.deadline = None;
                true
            }
        }
    }

    /// Waits a little longer for a client that has not read all of the server's output; false after
    /// a signal.
    pub(super) fn wait_on(&mut self, time: Duration) -> bool {
        if !self.signalled {
            self.deadline = Some(Instant::now() + time);
        }
        !self.signalled
    }

    fn go(&mut self, step: Step, time: Duration) {
        self.step = step;
        self.deadline = Some(Instant::now() + time);
    }

    /// Waits until the current step has taken too long.
    pub(super) async fn deadline(&self) {
        match self.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    pub(super) fn child_exited(&self) -> bool {
        self.child_exited
    }

    /// The cause, if the session is ending.
    pub(super) fn begun(&self) -> Option<&Cause> {
        self.cause.as_ref()
    }

    /// Whether we ended the session because the tape failed.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.cause, Some(Cause::Tape(_)))
    }

    /// Whether a signal has asked for the end.
    pub(super) fn is_signalled(&self) -> bool {
        self.signalled
    }

    /// Whether the client's leaving still makes a difference.
    pub(super) fn may_change(&self) -> bool {
        self.step <= Step::Answering
    }

    /// Whether the session is cut off rather than drained.
    pub(super) fn is_abrupt(&self) -> bool {
        matches!(self.cause, Some(Cause::Tape(_))) || (self.signalled && self.step == Step::Over)
    }

    /// The remaining grace, and the time allowed after SIGTERM.
    pub(super) fn rest(&self) -> (Duration, Duration) {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let grace = match self.step {
            Step::Running | Step::Answering => self.patience.grace,
            Step::Grace | Step::Asked => left.unwrap_or_default(),
            Step::Over => Duration::ZERO,
        };
        (grace, self.patience.after_term)
    }

    pub(super) fn cause(self) -> Cause {
        self.cause.unwrap_or(Cause::Server)
    }

    /// The reason given to a client for unanswered requests.
    pub(super) fn words(&self, status: Option<ExitStatus>) -> String {
        match (&self.cause, status) {
            (Some(cause @ (Cause::Tape(_) | Cause::Signal(_))), _) => cause.words(),
            (_, status) => server_ended(status),
        }
    }

    /// The `error_type` of these answers; `None` where the server is not what failed.
    pub(super) fn error_type(&self) -> Option<&'static str> {
        let is_server = !matches!(self.cause, Some(Cause::Tape(_) | Cause::Signal(_)));
        is_server.then_some(SERVER_ENDED)
    }
}

/// The `error_type` of answers in place of a server that has ended.
pub(crate) const SERVER_ENDED: &str = "upstream_connection_failed";

/// The reason given for requests left unanswered because the server has ended.
pub(crate) fn server_ended(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!(
            "the MCP server ended ({status}) before it answered; run its command in a terminal to see why"
        ),
        None => "the MCP server closed its output before it answered".to_owned(),
    }
}
