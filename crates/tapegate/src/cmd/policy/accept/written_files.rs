//! Accepts policies and lock files that a command wrote for a person at a terminal.
//!
//! The first text is accepted as on first use. A text that replaces an accepted one is shown and
//! needs confirmation: someone else may have written the rest of the file.

use std::collections::BTreeMap;
use std::path::Path;

use tapegate_policy::pins::PinLock;
use tapegate_store::accepted_policies::Acceptance;
use tapegate_store::input;

use crate::cmd::policy::policy_loader::LOCK_BYTES_MAX;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::trust::{self, PolicyTrust};
use crate::views::{pins, unified_diff, visible_text};
use crate::{approver_check, terminal_output};

/// A change with more lines than this is summarized first.
const WHOLE_LINES_MAX: usize = 40;

/// What kind of file a command has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WrittenFile {
    Policy,
    Lock,
}

/// Accepts a policy that this process wrote for a person at a terminal. Without one, nothing is
/// accepted, first use of the file decides, and a warning is printed if another text is in force.
pub(crate) fn accept_written(path: &Path) -> Result<(), Failure> {
    let Ok(search) = SearchContext::current() else { return Ok(()) };
    let path = search.folder.join(path);
    // An agent can run `init --force`: it may write the file, but not put it in force.
    if approver_check::require_person("accepting a policy", "").is_err() {
        trust::warn_if_not_in_force(&path);
        return Ok(());
    }
    let (found, texts) = trust::read_file(&path, None);
    match found.active_policy.is_some() {
        true => accept(&path, texts, WrittenFile::Policy).map(|_| ()),
        false => Ok(()),
    }
}

/// Accepts only the lock file that this process wrote for a person at a terminal: the other texts
/// stay as they were accepted. Without a person, warns that the lock is not in force. Returns
/// whether it is in force.
pub(crate) fn accept_lock(policy: &Path, lock_file: &str) -> Result<bool, Failure> {
    let Ok(search) = SearchContext::current() else { return Ok(true) };
    let path = search.folder.join(policy);
    let accepted =
        PolicyTrust::new().accepted(&path).map_err(|reason| lookup_failure(&path, &reason))?;
    let Some(accepted) = accepted else { return Ok(true) };
    let lock = path.parent().map(|folder| folder.join(lock_file));
    let Some(Ok(text)) = lock.map(|lock| input::read_to_string(&lock, LOCK_BYTES_MAX)) else {
        return Ok(true);
    };
    let mut texts = accepted.texts.clone();
    // Only the lock comes from the disk. The policy beside it may have been edited, and accepting
    // both would put that edit in force unseen.
    texts.insert(lock_file.to_owned(), text);
    if approver_check::require_person("accepting a lock file", "").is_ok() {
        return accept(&path, texts, WrittenFile::Lock);
    }
    let is_in_force =
        accepted.texts == texts || trust::is_accepted_automatically(&path, &accepted.texts, &texts);
    if !is_in_force {
        terminal_output::warn(&format!(
            "the lock file is written but not in force: shims use the accepted one until a person \
             runs `{}` in a terminal",
            program_name::command("policy accept")
        ));
    }
    Ok(is_in_force)
}

/// Accepts texts, with confirmation if they replace others; returns whether they are in force.
fn accept(
    path: &Path,
    texts: BTreeMap<String, String>,
    written: WrittenFile,
) -> Result<bool, Failure> {
    let (trust, name) = (PolicyTrust::new(), visible_text::path(path));
    let mut by_person = true;
    // If the accepted text cannot be read, its difference cannot be shown, so it is not replaced.
    if let Some(accepted) = trust.accepted(path).map_err(|reason| lookup_failure(path, &reason))? {
        if accepted.texts == texts {
            return Ok(true);
        }
        // A shim accepts this change at its next start without asking, so do not ask here either.
        if trust::is_accepted_automatically(path, &accepted.texts, &texts) {
            return Ok(true);
        }
        // A person who confirms a change of the lock does not see the rest of the policy.
        by_person = accepted.by_person || written == WrittenFile::Policy;
        if !confirm_change(path, &accepted.texts, &texts)? {
            let line = program_name::command("policy accept");
            terminal_output::info(&format!("it is written but not in force; `{line}` accepts it"));
            return Ok(false);
        }
    }
    if let Err(reason) = trust.store(path, &texts, Acceptance::Written, by_person) {
        terminal_output::warn(&format!("`{name}` is written, but could not be accepted: {reason}"));
        return Ok(false);
    }
    Ok(true)
}

/// Asks whether to put a change in force. Lock files describe every tool in full, so a long change
/// of a lock is summarized, and shown in full on request.
fn confirm_change(
    path: &Path,
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
) -> Result<bool, Failure> {
    let (name, folder) = (visible_text::path(path), path.parent().unwrap_or(path));
    let whole = unified_diff::diffs(folder, old, new, terminal_output::palette());
    let question = format!("Put this change of `{name}` in force?");
    match short_summary(old, new).filter(|_| whole.lines().count() > WHOLE_LINES_MAX) {
        Some(short) => approver_check::confirm_long(&format!("{short}\n{question}"), &whole),
        None => approver_check::confirm(&format!("{whole}\n{question}")),
    }
}

/// Summarizes a change of only a lock file; `None` if something would no longer be pinned.
fn short_summary(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Option<String> {
    let mut changed = new.iter().filter(|(name, text)| old.get(*name) != Some(*text));
    let (name, text) = changed.next().filter(|_| old.keys().all(|name| new.contains_key(name)))?;
    // Only a lock in exactly the form that we write: a summary must not leave anything out.
    let lock = PinLock::parse(text).ok().filter(|lock| lock.write() == *text)?;
    let before = match old.get(name) {
        Some(text) => PinLock::parse(text).ok()?,
        None => PinLock::default(),
    };
    let changes = lock.changes_since(&before).filter(|_| changed.next().is_none())?;
    Some(pins::changes(&changes, terminal_output::palette()))
}

/// The accepted text could not be looked up, so no difference can be shown for confirmation.
fn lookup_failure(path: &Path, reason: &str) -> Failure {
    let name = visible_text::path(path);
    let message = format!("`{name}` is written, but not accepted: {reason}");
    Failure::new(Exit::Io, message).hint(format!(
        "`{}` shows and accepts it",
        program_name::command(format!("policy accept {name}"))
    ))
}
