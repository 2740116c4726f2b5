//! Policies and lock files that a command has written for a person at a terminal.
//!
//! The first one is accepted as its first use would be. One that takes the place of an accepted text
//! is shown and asked about: whoever runs the command may not be who put the rest into the file.

use std::collections::BTreeMap;
use std::path::Path;

use tapegate_policy::pins::Lock;
use tapegate_store::accepted::Acceptance;
use tapegate_store::input;

use crate::called;
use crate::cmd::policy::loading::LOCK_BYTES_MAX;
use crate::exit::{Exit, Failure};
use crate::settings::Surroundings;
use crate::trust::{self, Trust};
use crate::views::{pinned, unified, visible};
use crate::{person, talk};

/// A change of more lines than this is told in short first.
const WHOLE_LINES_MAX: usize = 40;

/// What a command has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Policy,
    Lock,
}

/// Accepts a policy that this process has written for a person at a terminal. Elsewhere nothing is
/// accepted, the first use of the file decides, and a warning comes if another text is in force.
pub(crate) fn accept_written(path: &Path) -> Result<(), Failure> {
    let Ok(around) = Surroundings::ours() else { return Ok(()) };
    let path = around.folder.join(path);
    if person::require("accepting a policy", "").is_err() {
        trust::warn_if_not_in_force(&path);
        return Ok(());
    }
    let (found, texts) = trust::read_file(&path, None);
    match found.rule.is_some() {
        true => accept(&path, texts, Written::Policy).map(|_| ()),
        false => Ok(()),
    }
}

/// Accepts a lock file that this process has written for a person at a terminal, and nothing else:
/// the other texts stay as they were accepted. Elsewhere it says that the lock is not in force.
/// Whether it is.
pub(crate) fn accept_lock(policy: &Path, lock_file: &str) -> Result<bool, Failure> {
    let Ok(around) = Surroundings::ours() else { return Ok(true) };
    let path = around.folder.join(policy);
    let accepted = Trust::new().accepted(&path).map_err(|why| not_looked_up(&path, &why))?;
    let Some(accepted) = accepted else { return Ok(true) };
    let lock = path.parent().map(|folder| folder.join(lock_file));
    let Some(Ok(text)) = lock.map(|lock| input::read_to_string(&lock, LOCK_BYTES_MAX)) else {
        return Ok(true);
    };
    let mut texts = accepted.texts.clone();
    texts.insert(lock_file.to_owned(), text);
    if person::require("accepting a lock file", "").is_ok() {
        return accept(&path, texts, Written::Lock);
    }
    let is_in_force =
        accepted.texts == texts || trust::is_taken_unasked(&path, &accepted.texts, &texts);
    if !is_in_force {
        talk::warn(&format!(
            "the lock file is written but not in force: shims go by the one that was accepted, until a \
             person runs `{}` in a terminal",
            called::command("policy accept")
        ));
    }
    Ok(is_in_force)
}

/// Accepts texts, after a question if they take the place of others; whether they are in force.
fn accept(path: &Path, texts: BTreeMap<String, String>, written: Written) -> Result<bool, Failure> {
    let (trust, name) = (Trust::new(), visible::path(path));
    let mut by_person = true;
    // What cannot be shown is not replaced.
    if let Some(accepted) = trust.accepted(path).map_err(|why| not_looked_up(path, &why))? {
        if accepted.texts == texts {
            return Ok(true);
        }
        // A shim takes it at its next start, whatever the answer were.
        if trust::is_taken_unasked(path, &accepted.texts, &texts) {
            return Ok(true);
        }
        // Who is asked about a lock does not see the rest.
        by_person = accepted.by_person || written == Written::Policy;
        if !is_wanted(&name, &accepted.texts, &texts)? {
            let line = called::command("policy accept");
            talk::say(&format!("it is written, and not in force; `{line}` accepts it"));
            return Ok(false);
        }
    }
    if let Err(why) = trust.keep(path, &texts, Acceptance::Written, by_person) {
        talk::warn(&format!("`{name}` is written, but could not be accepted: {why}"));
        return Ok(false);
    }
    Ok(true)
}

/// Asks whether a change is to be in force. A lock says everything about every tool, so a long change of
/// locks is told in short, and shown whole to whoever wants that.
fn is_wanted(
    name: &str,
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
) -> Result<bool, Failure> {
    let whole = unified::diffs(old, new, talk::palette());
    let question = format!("Put this change of `{name}` in force?");
    match in_short(old, new).filter(|_| whole.lines().count() > WHOLE_LINES_MAX) {
        Some(short) => person::confirm_long(&format!("{short}\n{question}"), &whole),
        None => person::confirm(&format!("{whole}\n{question}")),
    }
}

/// What a change of nothing but a lock comes to, unless something in it is held to nothing any more.
fn in_short(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Option<String> {
    let mut changed = new.iter().filter(|(name, text)| old.get(*name) != Some(*text));
    let (name, text) = changed.next().filter(|_| old.keys().all(|name| new.contains_key(name)))?;
    let lock = Lock::parse(text).ok().filter(|lock| lock.write() == *text)?;
    let before = match old.get(name) {
        Some(text) => Lock::parse(text).ok()?,
        None => Lock::default(),
    };
    let changes = lock.changes_since(&before).filter(|_| changed.next().is_none())?;
    Some(pinned::changes(&changes, talk::palette()))
}

/// What was accepted before is not known, so nobody can be asked about the difference.
fn not_looked_up(path: &Path, why: &str) -> Failure {
    let name = visible::path(path);
    let words = format!("`{name}` is written, but not accepted: {why}");
    Failure::new(Exit::Io, words).hint(format!(
        "`{}` shows and accepts it",
        called::command(format!("policy accept {name}"))
    ))
}
