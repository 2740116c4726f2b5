//! Whether a person is here to decide, rather than an agent.
//!
//! An agent that governs itself is not governed: decisions that loosen anything are taken at a
//! terminal, and not from the shell of a coding agent. This is a fence, not a wall. A process of
//! the same user that goes out of its way (by making a terminal of its own and leaving the agent's
//! process tree) can still pretend to be a person; SECURITY.md says so.

mod agent;
mod attempt;
mod key;
mod key_file;

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::Path;

use tapegate_store::user_state::PrivateDir;

use rustix::termios::{QueueSelector, tcflush};

use crate::called;
use crate::exit::{Exit, Failure};
use crate::loading::is_same_file;
use crate::screen::ScreenArgs;
use crate::settings::user_state::user_state_dir;
pub(crate) use attempt::Attempt;
pub(crate) use key::KeyArgs;

/// Makes sure that a person can be asked whether to do `what`, such as "approving a call".
/// `way_out` is the hint for scripts that have another way to show that they may.
pub(crate) fn require(what: &str, way_out: &str) -> Result<(), Failure> {
    let refuse = |why: String| {
        let words = format!("{what} takes a person at a terminal, and {why}");
        Err(Failure::new(Exit::Findings, words).hint(way_out))
    };
    if let Some(sign) = agent::sign(std::env::vars_os()) {
        let words = format!(
            "{what} takes a person at a terminal, and this is the environment of a coding agent ({sign})"
        );
        let hint =
            "run it in a terminal that you opened and no agent did; a key is refused here, too";
        return Err(Failure::new(Exit::Findings, words).hint(hint));
    }
    let outputs = std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
    if !std::io::stdin().is_terminal() || !outputs {
        return refuse("there is no terminal here".to_owned());
    }
    Ok(())
}

/// Makes sure that a key may stand in for a person to do `what`: not inside an agent's environment, and
/// not the key that Tapegate itself keeps, which whoever runs as this user can name. An exported copy
/// lies where a person has put it.
pub(crate) fn require_exported_key(
    what: &str,
    key_file: &Path,
    state_folder: &Path,
) -> Result<(), Failure> {
    if let Some(sign) = agent::sign(std::env::vars_os()) {
        let words = format!("{what} is refused in the environment of a coding agent ({sign})");
        let hint = "a key does not change that; run it in a terminal of your own";
        return Err(Failure::new(Exit::Findings, words).hint(hint));
    }
    let own = PrivateDir::path_of(&user_state_dir()?, state_folder).join("key");
    if is_same_file(key_file, &own) {
        let words = format!("`{}` is the key that Tapegate keeps for itself", key_file.display());
        let line = called::command("approvals export-key FILE");
        let hint = format!("`{line}` makes a copy for scripts");
        return Err(Failure::new(Exit::Findings, words).hint(hint));
    }
    Ok(())
}

/// Asks a question at the terminal; anything but a clear yes is a no. The question says what is
/// decided: a terminal alone is not a person.
pub(crate) fn confirm(question: &str) -> Result<bool, Failure> {
    Ok(is_yes(&ask(question)?))
}

/// The same for something that is long: `whole` is shown to whoever answers `d`, and then the question
/// comes again.
pub(crate) fn confirm_long(question: &str, whole: &str) -> Result<bool, Failure> {
    let mut asked = question.to_owned();
    loop {
        let answer = ask(&format!("{asked} (d shows the whole difference)"))?;
        if answer != "d" {
            return Ok(is_yes(&answer));
        }
        match std::io::stdout().is_terminal() {
            true => {
                let mut out = std::io::stdout();
                // Who leaves the pager early has seen enough.
                ScreenArgs::default().pager(&mut out).write_all(whole.as_bytes()).ok();
            }
            false => show(whole)?,
        }
        asked = question.lines().last().unwrap_or_default().to_owned();
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "yes")
}

/// The answer to a question, in small letters.
fn ask(question: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Findings, format!("cannot ask at the terminal: {error}"))
    };
    // The terminal itself, so that the answer cannot come from a pipe.
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").map_err(failed)?;
    write!(terminal, "{question}").map_err(failed)?;
    // What was typed before the question was there is not an answer to it.
    tcflush(&terminal, QueueSelector::IFlush).map_err(|errno| failed(errno.into()))?;
    write!(terminal, " [y/N] ").map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer).map_err(failed)?;
    Ok(answer.trim().to_lowercase())
}

/// Writes a text to the terminal itself, wherever standard output leads.
pub(crate) fn show(text: &str) -> Result<(), Failure> {
    let shown = File::options().write(true).open("/dev/tty");
    let shown = shown.and_then(|mut terminal| terminal.write_all(text.as_bytes()));
    shown.map_err(|error| Failure::new(Exit::Io, format!("cannot write to the terminal: {error}")))
}

/// A variable of the environment.
type Variable = (OsString, OsString);
