//! Exit codes, and how errors are printed. No other module decides either.

use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::process::{ExitCode, ExitStatus};

use crate::terminal_output;

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok,
    /// The command found something to report.
    Findings,
    /// A config or a recording is not valid.
    Invalid,
    /// A file could not be read or written.
    Io,
    /// A server could not be reached or started.
    Transport,
    /// A scenario gave up waiting.
    Aborted,
    /// A client diverged: it sent a request that is not on the tape, or did not act safely.
    Diverged,
    /// The command line is wrong.
    Usage,
    /// The exit code of the server's process, or 128 plus a signal.
    Code(u8),
}

impl Exit {
    /// The code that passes on how a child process ended.
    pub(crate) fn from_child_status(status: Option<ExitStatus>) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match status.map(|status| (status.code(), status.signal())) {
            Some((Some(0), _)) => Self::Ok,
            Some((Some(code), _)) => Self::Code(code as u8),
            Some((None, Some(signal))) => Self::from_signal(signal),
            _ => Self::Transport,
        }
    }

    /// The code for a process ended by a signal.
    pub(crate) fn from_signal(signal: i32) -> Self {
        Self::Code(128 + signal as u8)
    }
}

impl Exit {
    /// The numeric exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Findings => 1,
            Self::Invalid => 2,
            Self::Io => 3,
            Self::Transport => 4,
            Self::Aborted => 5,
            Self::Diverged => 6,
            Self::Usage => 64,
            Self::Code(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error with its exit code and a hint for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {}

/// Prints an error and returns its exit code.
pub(crate) fn explain(error: &anyhow::Error) -> Exit {
    // Every foreseen error is one; anything else falls back to a code by its cause.
    if let Some(failure) = error.downcast_ref::<Failure>() {
        terminal_output::error(&failure.message, failure.hint.as_deref());
        return failure.exit;
    }
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    if io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        // The reader of our output has closed it, which is not an error.
        return Exit::Ok;
    }
    terminal_output::error(&format!("{error:#}"), None);
    if io.is_some() { Exit::Io } else { Exit::Findings }
}
