//! Errors of these commands. Their texts and exit codes are those of the document, not the usual
//! ones: people and scripts know them.

use std::io;
use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::terminal_output;
use crate::verbosity;

/// The exit code for a session that does not exist, and for files that cannot be used.
const FAILED: Exit = Exit::Findings;
/// The exit code for a wrong option.
const WRONG: Exit = Exit::Invalid;

/// An error with the text of the document.
#[derive(Debug)]
pub(super) struct SessionsFailure {
    exit: Exit,
    message: String,
    /// What follows after a blank line.
    remedy: String,
}

/// An error of these commands, or any other.
#[derive(Debug)]
pub(super) enum SessionsError {
    Known(SessionsFailure),
    Other(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for SessionsError {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl SessionsFailure {
    fn known(exit: Exit, message: String, remedy: String) -> SessionsError {
        SessionsError::Known(Self { exit, message, remedy })
    }

    /// No session has this id.
    pub(super) fn not_found(id: &str) -> SessionsError {
        let list = program_name::command("sessions list");
        let remedy = format!("Hint: Use '{list}' to see available sessions");
        Self::known(FAILED, format!("Session '{id}' not found"), remedy)
    }

    /// Several sessions have ids with this text.
    pub(super) fn ambiguous(id: &str, ids: &[String]) -> SessionsError {
        // A short text may be part of thousands of ids.
        let shown: Vec<&str> = ids.iter().take(10).map(String::as_str).collect();
        let more = ids.len().saturating_sub(shown.len());
        let more = if more > 0 { format!("\n  ... and {more} others") } else { String::new() };
        let remedy = format!("Hint: Use more of the id:\n  {}{more}", shown.join("\n  "));
        Self::known(FAILED, format!("'{id}' matches {} sessions", ids.len()), remedy)
    }

    /// A text is neither a date nor a span.
    pub(super) fn date(text: &str) -> SessionsError {
        let remedy = "Expected: YYYY-MM-DD or relative format (e.g., '7d', '2w', '1m')".to_owned();
        Self::known(WRONG, format!("Invalid date format '{text}'"), remedy)
    }

    /// An option cannot be used like this.
    pub(super) fn option(message: &str, remedy: &str) -> SessionsError {
        Self::known(WRONG, message.to_owned(), remedy.to_owned())
    }

    /// Recordings cannot be deleted.
    pub(super) fn delete(folder: &Path, error: &io::Error) -> SessionsError {
        let message = format!("Cannot delete recordings in {}", folder.display());
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "Permission denied. Try running with appropriate permissions.".to_owned()
            }
            _ => format!("{error}"),
        };
        Self::known(FAILED, message, remedy)
    }

    /// A file or folder cannot be used.
    pub(super) fn file(action: &str, path: &Path, error: &io::Error) -> SessionsError {
        Self::known(FAILED, format!("Cannot {action} {}", path.display()), error.to_string())
    }
}

/// Prints the error, if there is one.
pub(super) fn explain(done: Result<Exit, SessionsError>) -> anyhow::Result<Exit> {
    match done {
        Ok(exit) => Ok(exit),
        Err(SessionsError::Other(error)) => Err(error),
        Err(SessionsError::Known(failure)) if verbosity::is_json() => {
            Err(Failure::new(failure.exit, failure.message).hint(failure.remedy).into())
        }
        Err(SessionsError::Known(SessionsFailure { exit, message, remedy })) => {
            // Ids and paths are given by callers of the bash tool.
            let text = terminal_output::sanitize(&format!("Error: {message}\n\n{remedy}"));
            terminal_output::line(&text);
            Ok(exit)
        }
    }
}
