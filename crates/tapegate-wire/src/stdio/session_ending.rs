//! The shutdown of a session: what caused it, and how long each step may take.

use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tapegate_core::tape::RecordError;
use tokio::time::Instant;
use tracing::debug;

use super::{ANSWER_NOTICE_DELAY, EndCause, ShutdownTimeouts};
use crate::child::ServerProcess;
use crate::signals::ASKED;

/// The state of a shutdown.
pub(super) struct SessionEnding {
    patience: ShutdownTimeouts,
    cause: Option<EndCause>,
    step: EndingStep,
    deadline: Option<Instant>,
    /// When to report that the client's answers are still awaited, after the end of its input.
    wait_notice: Option<Instant>,
    child_exited: bool,
    signalled: bool,
}

/// The last step taken to end the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EndingStep {
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

impl SessionEnding {
    pub(super) fn new(patience: ShutdownTimeouts) -> Self {
        let (child_exited, signalled) = (false, false);
        Self {
            patience,
            cause: None,
            step: EndingStep::Running,
            deadline: None,
            wait_notice: None,
            child_exited,
            signalled,
        }
    }

    /// The client has closed its end and waits for `wanted` more answers.
    pub(super) fn client_left(&mut self, wanted: usize) {
        // The first cause is kept: what follows is its consequence.
        self.cause.get_or_insert(EndCause::Client);
        match (wanted, self.step) {
            (0, EndingStep::Running | EndingStep::Answering) => {
                self.enter_step(EndingStep::Grace, self.patience.grace)
            }
            // No deadline: answers that are still wanted may take as long as the server needs.
            (_, EndingStep::Running) => {
                debug!(wanted, "shutdown waits for answers");
                self.step = EndingStep::Answering;
                self.wait_notice = Some(Instant::now() + ANSWER_NOTICE_DELAY);
            }
            _ => {}
        }
    }

    /// The server accepts no more input.
    pub(super) fn server_left(&mut self) {
        self.cause.get_or_insert(EndCause::Server);
        if self.step < EndingStep::Grace {
            self.enter_step(EndingStep::Grace, self.patience.grace);
        }
    }

    /// Handles a signal: the first begins the shutdown, a further one hastens it. Returns true when
    /// nothing is waited for any longer.
    ///
    /// A client may kill us some 40 ms after it has asked us to end. So the server is given time
    /// only if `wanted` more answers may arrive, or if the shutdown is to be orderly; otherwise it
    /// is sent SIGTERM at once, as if the client had started it directly.
    pub(super) fn signal_received(
        &mut self,
        number: i32,
        wanted: usize,
        child: &ServerProcess,
    ) -> bool {
        let grace = self.patience.grace_after(&EndCause::Signal(number));
        match (&self.cause, self.step) {
            // The client left, but the session went on for its answers until now.
            (None, _) | (Some(EndCause::Client), EndingStep::Answering) => {
                self.cause = Some(EndCause::Signal(number));
            }
            _ => {}
        }
        // A request from within the process is not urgent.
        self.signalled |= number != ASKED;
        let patient = wanted > 0 || self.patience.orderly || number == ASKED;
        match self.step {
            EndingStep::Running | EndingStep::Answering if patient => {
                self.enter_step(EndingStep::Grace, grace);
                false
            }
            // A repeated request from within is not a user who has lost patience.
            _ if number == ASKED => false,
            _ => self.deadline_passed(child),
        }
    }

    /// The tape failed: nothing more may pass.
    pub(super) fn tape_failed(&mut self, error: RecordError) {
        // Replaces an earlier cause: the user and the client must learn that the tape failed.
        self.cause = Some(EndCause::Tape(error));
        self.step = EndingStep::Over;
    }

    /// The server process has exited; its output is read to the end, but for at most `linger`.
    pub(super) fn server_exited(&mut self, linger: Duration) {
        debug!(deadline_ms = linger.as_millis() as u64, "reading the rest of the server's output");
        self.child_exited = true;
        self.cause.get_or_insert(EndCause::Server);
        // SIGTERM would reach no server any longer. The next step kills processes that keep its
        // output open.
        self.step = self.step.max(EndingStep::Asked);
        self.deadline = Some(Instant::now() + linger);
    }

    /// Takes the next step; true when nothing is waited for any longer.
    pub(super) fn deadline_passed(&mut self, child: &ServerProcess) -> bool {
        match self.step {
            EndingStep::Running | EndingStep::Answering | EndingStep::Grace => {
                child.signal(Signal::TERM);
                self.enter_step(EndingStep::Asked, self.patience.after_term);
                false
            }
            EndingStep::Asked => {
                debug!("shutdown step took too long, killing the server");
                child.signal(Signal::KILL);
                self.step = EndingStep::Over;
                self.deadline = None;
                true
            }
            EndingStep::Over => {
                self.deadline = None;
                true
            }
        }
    }

    /// Waits a little longer for a client that has not read all of the server's output; false after
    /// a signal.
    pub(super) fn extend_deadline(&mut self, time: Duration) -> bool {
        if !self.signalled {
            self.deadline = Some(Instant::now() + time);
        }
        !self.signalled
    }

    fn enter_step(&mut self, step: EndingStep, time: Duration) {
        debug!(?step, deadline_ms = time.as_millis() as u64, cause = ?self.cause, "shutdown step");
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

    /// Waits until it is time to report that answers are still awaited.
    pub(super) async fn wait_notice_due(&self) {
        match self.wait_notice.filter(|_| self.step == EndingStep::Answering) {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Notes that it has been reported.
    pub(super) fn wait_noticed(&mut self) {
        self.wait_notice = None;
    }

    pub(super) fn child_exited(&self) -> bool {
        self.child_exited
    }

    /// The cause, if the session is ending.
    pub(super) fn cause_so_far(&self) -> Option<&EndCause> {
        self.cause.as_ref()
    }

    /// Whether we ended the session because the tape failed.
    pub(super) fn is_tape_failure(&self) -> bool {
        matches!(self.cause, Some(EndCause::Tape(_)))
    }

    /// Whether a signal has asked for the end.
    pub(super) fn is_signalled(&self) -> bool {
        self.signalled
    }

    /// Whether the client's leaving still makes a difference.
    pub(super) fn may_change(&self) -> bool {
        self.step <= EndingStep::Answering
    }

    /// Whether the session is cut off rather than drained.
    pub(super) fn is_abrupt(&self) -> bool {
        matches!(self.cause, Some(EndCause::Tape(_)))
            || (self.signalled && self.step == EndingStep::Over)
    }

    /// The remaining grace, and the time allowed after SIGTERM.
    pub(super) fn remaining_times(&self) -> (Duration, Duration) {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let grace = match self.step {
            EndingStep::Running | EndingStep::Answering => self.patience.grace,
            // SIGTERM may have been sent already. The rest of that wait counts as grace, so no time
            // is added.
            EndingStep::Grace | EndingStep::Asked => left.unwrap_or_default(),
            EndingStep::Over => Duration::ZERO,
        };
        (grace, self.patience.after_term)
    }

    pub(super) fn cause(self) -> EndCause {
        self.cause.unwrap_or(EndCause::Server)
    }

    /// The reason given to a client for unanswered requests.
    pub(super) fn client_message(&self, status: Option<ExitStatus>) -> String {
        match (&self.cause, status) {
            (Some(cause @ (EndCause::Tape(_) | EndCause::Signal(_))), _) => cause.client_message(),
            (_, status) => server_end_message(status),
        }
    }

    /// The `error_type` of these answers; `None` where the server is not what failed.
    pub(super) fn error_type(&self) -> Option<&'static str> {
        let is_server = !matches!(self.cause, Some(EndCause::Tape(_) | EndCause::Signal(_)));
        is_server.then_some(SERVER_ENDED)
    }
}

/// The `error_type` of answers in place of a server that has ended.
pub(crate) const SERVER_ENDED: &str = "upstream_connection_failed";

/// The reason given for requests left unanswered because the server has ended.
pub(crate) fn server_end_message(status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!(
            "the MCP server ended ({status}) before it answered; run its command in a terminal to see why"
        ),
        None => "the MCP server closed its output before it answered".to_owned(),
    }
}
