//! A command that has been started: what other threads may ask of it, and see of it.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::stream_capture::StreamCapture;
use crate::runner::request;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// The shell has exited with this code.
    Exited(i32),
    /// A signal has ended the shell.
    Signaled(i32),
    /// The shell could not be started.
    NotStarted(String),
    /// Its runner was killed, so how the shell ended is not known.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// How it ended.
    pub end: CommandEnd,
    /// Whether its time was over.
    pub timed_out: bool,
    /// Whether the caller has cancelled it.
    pub cancelled: bool,
    /// Whether it was ended because its client or the server has ended.
    pub interrupted: bool,
    /// How long it took.
    pub duration: Duration,
    /// How long before the end it had written for the last time.
    pub silence: Duration,
    /// Whether processes that it started are still running.
    pub has_children: bool,
}

/// What is known of a command.
#[derive(Debug)]
pub struct CommandState {
    /// Its standard output.
    pub stdout: StreamCapture,
    /// Its standard error.
    pub stderr: StreamCapture,
    /// How it ended, once it has.
    pub outcome: Option<CommandOutcome>,
    /// Whether nothing that it started is left.
    pub is_gone: bool,
    pub(super) is_cancelled: bool,
    pub(super) is_interrupted: bool,
    pub(super) is_ending: bool,
}

/// A command that has been started.
#[derive(Debug)]
pub struct RunningCommand {
    started: Instant,
    control: Mutex<UnixStream>,
    state: Mutex<CommandState>,
    changed: Condvar,
}

impl RunningCommand {
    pub(super) fn new(control: UnixStream, head_bytes_max: usize) -> Self {
        let capture = || StreamCapture::new(head_bytes_max);
        let state = CommandState {
            stdout: capture(),
            stderr: capture(),
            outcome: None,
            is_gone: false,
            is_cancelled: false,
            is_interrupted: false,
            is_ending: false,
        };
        Self {
            started: Instant::now(),
            control: Mutex::new(control),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// What is known of it now.
    pub fn state(&self) -> MutexGuard<'_, CommandState> {
        // A thread that panicked has changed nothing halfway: each change is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long ago it was started.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends everything that it started: SIGTERM, and SIGKILL after `grace`.
    pub fn end(&self, grace: Duration) {
        // Set before the request, so that the watch waits for the end even if it comes at once.
        self.state().is_ending = true;
        self.send(request::END, grace.as_millis() as u32);
    }

    /// Ends it because its caller does not want the result any more.
    pub fn cancel(&self, grace: Duration) {
        self.state().is_cancelled = true;
        self.end(grace);
    }

    /// Ends it because its client or the server ends.
    pub fn interrupt(&self, grace: Duration) {
        self.state().is_interrupted = true;
        self.end(grace);
    }

    /// Sends a signal to everything that it started.
    pub fn signal(&self, signal: i32) {
        self.send(request::SIGNAL, signal as u32);
    }

    fn send(&self, word: u8, number: u32) {
        let mut bytes = vec![word];
        bytes.extend_from_slice(&number.to_le_bytes());
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        // An error means that everything has ended.
        control.write_all(&bytes).ok();
    }

    /// Waits until `is_over` holds, at most `time`; returns whether it does.
    pub fn wait_until(&self, time: Duration, is_over: impl Fn(&CommandState) -> bool) -> bool {
        // A condition variable may wake for no reason, so the time left is computed again each
        // time.
        let deadline = Instant::now() + time;
        let mut state = self.state();
        while !is_over(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut CommandState)) {
        change(&mut self.state());
        self.changed.notify_all();
    }
}
