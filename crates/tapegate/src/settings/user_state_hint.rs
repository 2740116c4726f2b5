//! Warns a person whose terminal and shims use different user state folders.

use std::path::{Path, PathBuf};

use tapegate_store::user_state::hint;

use super::SearchContext;
use super::state_folder::{STATE_NAME, is_project_state};
use crate::terminal_output;
use crate::views::visible_text;

impl SearchContext<'_> {
    /// Where a note about the user state folder may be: in the state folder, and in the project's
    /// own even if `TAPEGATE_HOME` names another. The user's own folder needs no note about itself.
    fn note_folders(&self, state_folder: &Path) -> Vec<PathBuf> {
        let mut above = self.folder.ancestors().map(|folder| folder.join(STATE_NAME));
        let project = above.find(|path| is_project_state(path));
        let user_state = self.user_state_dir().ok();
        let mut folders: Vec<PathBuf> = project.into_iter().collect();
        let named = state_folder.to_owned();
        if user_state.as_ref() != Some(&named) && !folders.contains(&named) {
            folders.push(named);
        }
        folders
    }

    /// Records in the project which user state folder this process uses. If the project cannot be
    /// written, nothing is recorded: the note only serves a warning.
    pub(crate) fn note_user_state(&self, state_folder: &Path) {
        let Ok(user_state) = self.user_state_dir() else { return };
        for folder in self.note_folders(state_folder) {
            hint::record_user_state(&folder, &user_state).ok();
        }
    }

    /// Warns if shims or hubs of the project use a different user state folder than this process.
    pub(crate) fn differing_user_state(&self, state_folder: &Path) -> Option<String> {
        let ours = self.user_state_dir().ok()?;
        let folders = self.note_folders(state_folder);
        let (folder, theirs) = folders.iter().find_map(|folder| {
            let other = hint::other_user_states(folder, &ours).into_iter().next()?;
            Some((folder, other))
        })?;
        Some(format!(
            "a shim or hub of this project uses the user state folder `{}`, and this terminal `{}`: \
             decisions made here do not reach it, and its requests are not shown here. Set HOME, \
             XDG_STATE_HOME and TAPEGATE_HOME alike in both places (the `env` of the server in the \
             client's config). `{}/user-state` says so, which an agent can write: make sure of it",
            visible_text::inline(&theirs.to_string_lossy(), 300),
            ours.display(),
            folder.display()
        ))
    }
}

/// Warns if decisions made in this terminal would not reach the project's shims.
pub(crate) fn warn_of_difference(search: &SearchContext<'_>, state_folder: &Path) {
    search
        .differing_user_state(state_folder)
        .iter()
        .for_each(|message| terminal_output::warn(message));
}
