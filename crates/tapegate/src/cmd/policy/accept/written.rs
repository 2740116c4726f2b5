//! Accepts policies and lock files that a command wrote for a person at a terminal.
//!
//! The first text is accepted as on first use. A text that replaces an accepted one is shown and
//! needs confirmation: someone else may have written the rest of the file.

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

/// A change with more lines than this is summarized first.
const WHOLE_LINES_MAX: usize = 40;

/// What kind of file a command has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Policy,
    Lock,
}

/// Accepts a policy that this process wrote for a person at a terminal. Without one, nothing is
/// accepted, first use of the file decides, and a warning is printed if another text is in force.
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

/// Accepts only the lock file that this process wrote for a person at a terminal: the other texts
/// stay as they were accepted. Without a person, warns that the lock is not in force. Returns
/// whether it is in force.
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
            "the lock file is written but not in force: shims use the accepted one until a person \
             runs `{}` in a terminal",
            called::command("policy accept")
        ));
    }
    Ok(is_in_force)
}

/// Accepts texts, with confirmation if they replace others; returns whether they are in force.
fn accept(path: &Path, texts: BTreeMap<String, String>, written: Written) -> Result<bool, Failure> {
    let (trust, name) = (Trust::new(), visible::path(path));
    let mut by_person = true;
    // If the accepted text cannot be read, its difference cannot be shown, so it is not replaced.
    if let Some(accepted) = trust.accepted(path).map_err(|why| not_looked_up(path, &why))? {
        if accepted.texts == texts {
            return Ok(true);
        }
        // A shim accepts this change at its next start without asking, so do not ask here either.
        if trust::is_taken_unasked(path, &accepted.texts, &texts) {
            return Ok(true);
        }
        // A person who confirms a change of the lock does not see the rest of the policy.
        by_person = accepted.by_person || written == Written::Policy;
        if !is_wanted(&name, &accepted.texts, &texts)? {
            let line = called::command("policy accept");
            talk::say(&format!("it is written but not in force; `{line}` accepts it"));
            return Ok(false);
        }
    }
    if let Err(why) = trust.keep(path, &texts, Acceptance::Written, by_person) {
        talk::warn(&format!("`{name}` is written, but could not be accepted: {why}"));
        return Ok(false);
    }
    Ok(true)
}

/// Asks whether to put a change in force. Lock files describe every tool in full, so a long change
/// of a lock is summarized, and shown in full on request.
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

/// Summarizes a change of only a lock file; `None` if something would no longer be pinned.
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

/// The accepted text could not be looked up, so no difference can be shown for confirmation.
fn not_looked_up(path: &Path, why: &str) -> Failure {
    let name = visible::path(path);
    let words = format!("`{name}` is written, but not accepted: {why}");
    Failure::new(Exit::Io, words).hint(format!(
        "`{}` shows and accepts it",
        called::command(format!("policy accept {name}"))
    ))
}
