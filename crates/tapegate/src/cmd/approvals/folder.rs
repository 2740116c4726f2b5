//! The project whose approvals are meant, and where they are stored.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use tapegate_core::activity::{ActivityEvent, EventComponent};
use tapegate_store::activity::ActivityError;
use tapegate_store::activity::log_event;
use tapegate_store::activity::refused_file_event;
use tapegate_store::approvals::{ApprovalEntry, ApprovalGrant, ApprovalStore};

use super::decide::{self, is_of_project};
use super::failure;
use crate::exit::Failure;
use crate::program_name;
use crate::settings::user_state::user_state_dir;
use crate::state_folder::now_us;
use crate::terminal_output;
use crate::views::approvals as view;
use crate::views::{plural, visible_text};

/// A project, by its state folder.
pub(super) struct Project {
    /// The state folder, which holds the activity log.
    pub(super) state: PathBuf,
    /// The user's own state folder.
    user_state: PathBuf,
    /// Whether leftovers of killed processes were removed: `list` and `watch` look very often.
    is_cleaned: Cell<bool>,
}

impl Project {
    pub(super) fn new(state: PathBuf) -> Result<Self, Failure> {
        Ok(Self { state, user_state: user_state_dir()?, is_cleaned: Cell::new(false) })
    }

    /// Whether the state folder is the user's own, shared by all projects without one.
    pub(super) fn is_user_wide(&self) -> bool {
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        resolved(&self.state) == resolved(&self.user_state)
    }

    /// The user's own state folder.
    pub(super) fn user_state(&self) -> &Path {
        &self.user_state
    }

    /// Opens the approvals, creating their folder if it does not exist.
    pub(super) fn approvals(&self) -> Result<ApprovalStore, Failure> {
        ApprovalStore::open_project(&self.user_state, &self.state).map_err(failure)
    }

    /// All requests. Files that were set aside are reported and logged.
    pub(super) fn entries(&self) -> Result<Vec<ApprovalEntry>, Failure> {
        // A list must not create folders and keys for projects that never held a call.
        let found = ApprovalStore::open_existing_project(&self.user_state, &self.state);
        let Some(approvals) = found.map_err(failure)? else { return Ok(Vec::new()) };
        if !self.is_cleaned.replace(true) {
            approvals.remove_left_over();
        }
        approvals.log_unlogged(&self.state, |request, decided| {
            self.log(&decide::recovered_event(request, decided)).is_ok()
        });
        let entries = approvals.entries().map_err(failure)?;
        for file in approvals.take_refused() {
            let event = ActivityEvent {
                component: Some(EventComponent::Cli),
                ..refused_file_event(&file, now_us())
            };
            let message = event.policy_reason.as_deref().unwrap_or_default();
            terminal_output::warn(&format!("{message}; it was kept as `{}`", file.kept.display()));
            if let Err(error) = self.log(&event) {
                terminal_output::warn(&format!("this is not in the activity log: {error}"));
            }
        }
        Ok(entries)
    }

    /// All grants, without creating anything.
    pub(super) fn grants(&self) -> Result<Vec<ApprovalGrant>, Failure> {
        let found = ApprovalStore::open_existing_project(&self.user_state, &self.state);
        found
            .map_err(failure)?
            .map_or(Ok(Vec::new()), |approvals| approvals.grants())
            .map_err(failure)
    }

    /// The channels of the project's hub that do not work, as lines for people.
    pub(super) fn channel_faults(&self) -> Vec<String> {
        let found = ApprovalStore::open_existing_project(&self.user_state, &self.state);
        let faults = found.ok().flatten().map(|approvals| approvals.channel_faults());
        let line = |(name, fault): (String, String)| {
            format!("channel `{name}` does not work: {}", visible_text::inline(&fault, 300))
        };
        faults.into_iter().flatten().map(line).collect()
    }

    /// Warns of calls that wait in a state folder the project used before. Deciding them requires
    /// the key that belongs to that folder.
    pub(super) fn warn_of_former(&self, former: &[PathBuf], current_dir: &Path) {
        for folder in former {
            let found =
                ApprovalStore::open_existing_project(&self.user_state, folder).ok().flatten();
            let entries = found.and_then(|found| found.entries().ok()).unwrap_or_default();
            let is_waiting = |entry: &&ApprovalEntry| {
                view::is_pending(entry, now_us()) && is_of_project(&entry.request, current_dir)
            };
            let (count, name) = (entries.iter().filter(is_waiting).count(), folder.display());
            if count > 0 {
                terminal_output::warn(&format!(
                    "{} in `{name}`, where its state was before: {}",
                    waiting_text(count, "this project"),
                    program_name::command(format!("approvals --state {name}"))
                ));
            }
        }
    }

    /// Appends an event to the activity log.
    pub(super) fn log(&self, event: &ActivityEvent<'_>) -> Result<(), ActivityError> {
        log_event(&self.state, event)
    }

    /// Warns of approvals from earlier versions, which kept them where an agent could write them.
    pub(super) fn warn_of_old_folder(&self) {
        let folder = self.state.join("approvals");
        let mut names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let is_ours =
            |name: &str| name.ends_with(".request.json") || name.ends_with(".decision.json");
        if names.any(|entry| entry.file_name().to_str().is_some_and(is_ours)) {
            terminal_output::warn(&format!(
                "`{}` is no longer read: approvals are now in `{}`; remove the old folder",
                folder.display(),
                self.user_state.display()
            ));
        }
    }
}

/// How many calls wait, and whose: `1 call of this project waits`.
pub(super) fn waiting_text(count: usize, whose: &str) -> String {
    let waits = if count == 1 { "waits" } else { "wait" };
    format!("{} of {whose} {waits}", plural(count as u64, "call"))
}
