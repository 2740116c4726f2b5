//! Notes of which configs sessions have rewritten, in the user's state folder.
//!
//! A config that is left rewritten has its backup beside it, but may be in any project. The notes
//! help to find it. Beside a note are copies of the configs, since an agent can change or remove the
//! backups.

use std::fs;
use std::path::{Path, PathBuf};

use tapegate_agents::config_guard;
use tapegate_agents::tree::ConfigFormat;
use tapegate_store::{atomic_file, state_dir};

use super::config_locks::{ConfigRewrite, has_backup, resolved};
use crate::cmd::hub::session_pipe::SessionMessage;

/// The folder of the notes.
const FOLDER: &str = "wrapped";

/// The note of a running session.
pub(super) struct SessionNote(PathBuf);

impl SessionNote {
    /// Notes which configs are about to be rewritten. A note that cannot be written is left out.
    pub(super) fn write(user_state: &Path, configs: &[ConfigRewrite]) -> Self {
        let folder = user_state.join(FOLDER);
        // A number that is used again replaces the note of a session that is long gone.
        let path = folder.join(std::process::id().to_string());
        let message =
            |config: &ConfigRewrite| SessionMessage::Config(config.path.clone(), config.format);
        let text: String = configs.iter().map(|config| message(config).line()).collect();
        if state_dir::secure(user_state).is_ok() && state_dir::secure(&folder).is_ok() {
            for (at, config) in configs.iter().enumerate() {
                let Ok(original) = fs::read(&config.path) else { continue };
                atomic_file::write_private(&copy_of(&path, at), &original).ok();
            }
            atomic_file::write_private(&path, text.as_bytes()).ok();
        }
        Self(path)
    }

    /// Removes the note of a session that has put its configs back.
    pub(super) fn remove(self) {
        remove_note(&self.0);
    }
}

/// What a config was before the session that has left it rewritten, as far as it was noted.
pub(crate) fn noted_original(
    user_state: &Path,
    config: &Path,
    format: ConfigFormat,
) -> Option<String> {
    let config = resolved(config);
    notes(user_state).into_iter().find_map(|(note, configs)| {
        let at = configs.iter().position(|(path, _)| *path == config)?;
        let original = fs::read_to_string(copy_of(&note, at)).ok()?;
        config_guard::is_rewritten(&config, format, &original).then_some(original)
    })
}

/// The copy of the config that is this line of a note.
fn copy_of(note: &Path, line: usize) -> PathBuf {
    note.with_extension(format!("{line}.copy"))
}

fn remove_note(note: &Path) {
    // The note last: it leads to the copies.
    let lines = fs::read_to_string(note).unwrap_or_default().lines().count();
    (0..lines).for_each(|line| drop(fs::remove_file(copy_of(note, line))));
    fs::remove_file(note).ok();
}

/// All notes, with the configs that each names.
fn notes(user_state: &Path) -> Vec<(PathBuf, Vec<(PathBuf, ConfigFormat)>)> {
    let files = fs::read_dir(user_state.join(FOLDER)).into_iter().flatten().flatten();
    let notes = files.map(|file| file.path()).filter(|path| path.extension().is_none());
    let configs = |note: &PathBuf| {
        let text = fs::read_to_string(note).unwrap_or_default();
        let messages = text.lines().filter_map(SessionMessage::read);
        let configs = messages.filter_map(|message| match message {
            SessionMessage::Config(path, format) => Some((path, format)),
            SessionMessage::Folder(_) | SessionMessage::End => None,
        });
        configs.collect()
    };
    notes.map(|note| (note.clone(), configs(&note))).collect()
}

/// The configs that sessions have noted and that are still rewritten. Other notes are removed.
pub(crate) fn left_configs(user_state: &Path) -> Vec<(PathBuf, ConfigFormat)> {
    let mut left = Vec::new();
    for (note, configs) in notes(user_state) {
        let is_left = |(path, format): &(PathBuf, ConfigFormat)| {
            has_backup(path) || noted_original(user_state, path, *format).is_some()
        };
        let before = left.len();
        left.extend(configs.into_iter().filter(is_left));
        // Its configs were put back by a later session.
        if left.len() == before {
            remove_note(&note);
        }
    }
    left
}
