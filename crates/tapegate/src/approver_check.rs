//! Checks that a person, rather than an agent, makes a decision.
//!
//! An agent must not govern itself: decisions that loosen anything are made at a terminal, not in
//! the shell of a coding agent. This check can be circumvented. A process of the same user that
//! goes out of its way (by creating its own terminal and leaving the agent's process tree) can
//! still pose as a person; SECURITY.md says so.

mod agent_detection;
mod key_file;
mod project_key;
mod refused_attempt;

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::Path;

use tapegate_store::user_state::PrivateDir;

use rustix::termios::{QueueSelector, tcflush};

use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::screen::ScreenArgs;
use crate::settings::user_state::user_state_dir;
use crate::tape_loader::is_same_file;
pub(crate) use project_key::KeyArgs;
pub(crate) use refused_attempt::PersonAttempt;

/// Checks that a person can be asked whether to do `what`, such as "approving a call". `way_out` is
/// the hint for scripts that can prove their permission in another way.
pub(crate) fn require_person(what: &str, way_out: &str) -> Result<(), Failure> {
    let refuse = |reason: String| {
        let message = format!("{what} requires a person at a terminal, and {reason}");
        Err(Failure::new(Exit::Findings, message).hint(way_out))
    };
    // Before the terminal check, because its hint offers a key, which is refused here too.
    if let Some(sign) = agent_detection::find_agent_sign(std::env::vars_os()) {
        let message = format!(
            "{what} requires a person at a terminal, and this is a coding agent's shell ({sign})"
        );
        let hint = "run it in a terminal that you opened, not an agent; a key is refused here, too";
        return Err(Failure::new(Exit::Findings, message).hint(hint));
    }
    let outputs = std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
    if !std::io::stdin().is_terminal() || !outputs {
        return refuse("there is no terminal here".to_owned());
    }
    Ok(())
}

/// Checks that a key may replace a person for `what`: never in an agent's environment, and not with
/// the key file that Tapegate itself keeps, whose path any process of this user knows. An exported
/// copy is where a person put it.
pub(crate) fn require_exported_key(
    what: &str,
    key_file: &Path,
    state_folder: &Path,
) -> Result<(), Failure> {
    if let Some(sign) = agent_detection::find_agent_sign(std::env::vars_os()) {
        let message = format!("{what} is refused in a coding agent's shell ({sign})");
        let hint = "a key does not change that; run it in a terminal of your own";
        return Err(Failure::new(Exit::Findings, message).hint(hint));
    }
    let own = PrivateDir::path_of(&user_state_dir()?, state_folder).join("key");
    if is_same_file(key_file, &own) {
        let message = format!("`{}` is the key that Tapegate keeps for itself", key_file.display());
        let line = program_name::command("approvals export-key FILE");
        let hint = format!("`{line}` makes a copy for scripts");
        return Err(Failure::new(Exit::Findings, message).hint(hint));
    }
    Ok(())
}

/// Asks a question at the terminal; anything but a clear yes is a no. The question must say what is
/// decided: a terminal alone does not prove that a person answers.
pub(crate) fn confirm(question: &str) -> Result<bool, Failure> {
    Ok(is_yes(&ask(question)?))
}

/// The same for a long text: the answer `d` shows `whole`, and the question is repeated.
pub(crate) fn confirm_long(question: &str, whole: &str) -> Result<bool, Failure> {
    let mut prompt = question.to_owned();
    loop {
        let answer = ask(&format!("{prompt} (d shows the whole difference)"))?;
        if answer != "d" {
            return Ok(is_yes(&answer));
        }
        match std::io::stdout().is_terminal() {
            true => {
                let mut out = std::io::stdout();
                // A user who quits the pager early has seen enough.
                ScreenArgs::default().pager(&mut out).write_all(whole.as_bytes()).ok();
            }
            false => show(whole)?,
        }
        prompt = question.lines().last().unwrap_or_default().to_owned();
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer, "y" | "yes")
}

/// Asks a question and returns the answer in lower case.
fn ask(question: &str) -> Result<String, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Findings, format!("cannot ask at the terminal: {error}"))
    };
    // Open the terminal itself, so that the answer cannot come from a pipe.
    let mut terminal = File::options().read(true).write(true).open("/dev/tty").map_err(failed)?;
    write!(terminal, "{question}").map_err(failed)?;
    // Discard what was typed before the question was shown.
    tcflush(&terminal, QueueSelector::IFlush).map_err(|errno| failed(errno.into()))?;
    write!(terminal, " [y/N] ").map_err(failed)?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer).map_err(failed)?;
    Ok(answer.trim().to_lowercase())
}

/// Writes text to the terminal itself, wherever standard output goes.
pub(crate) fn show(text: &str) -> Result<(), Failure> {
    let shown = File::options().write(true).open("/dev/tty");
    let shown = shown.and_then(|mut terminal| terminal.write_all(text.as_bytes()));
    shown.map_err(|error| Failure::new(Exit::Io, format!("cannot write to the terminal: {error}")))
}

/// An environment variable.
type EnvVariable = (OsString, OsString);
