//! The command lines of shims that are started by `shim --entry ID`, in the user's state folder.
//!
//! Each is a private file (0600), because arguments may be secret. It is removed with its session,
//! or by the next one if the session was killed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tapegate_agents::config_guard::{self, ConfigLock};
use tapegate_agents::stored_entry::needs_quotes;
use tapegate_store::{atomic_file, state_dir};

use crate::exit::{Exit, Failure};

/// The folder of the files.
const FOLDER: &str = "entries";

/// A command line to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredEntry {
    /// The config that refers to it.
    pub(super) config: PathBuf,
    path: PathBuf,
    words: Vec<String>,
}

/// Where the command lines of a session go.
#[derive(Debug, Clone)]
pub(super) struct EntryFolder {
    path: PathBuf,
    /// Whether shims find it by themselves, without a variable that a client may not pass on.
    is_usual: bool,
}

impl EntryFolder {
    /// The folder in the user's state folder; `usual` is where that is if no variable says otherwise.
    pub(super) fn new(user_state: &Path, usual: Option<&Path>) -> Self {
        Self { path: user_state.join(FOLDER), is_usual: usual == Some(user_state) }
    }

    /// What names an entry on a command line, and the entry; `None` if its path would have to be
    /// quoted.
    pub(super) fn entry(
        &self,
        id: &str,
        words: Vec<String>,
        config: &Path,
    ) -> Option<(String, StoredEntry)> {
        let path = self.path.join(id);
        let reference = if self.is_usual { id.to_owned() } else { path.to_str()?.to_owned() };
        let entry = StoredEntry { config: config.to_owned(), path, words };
        (!needs_quotes(&reference)).then_some((reference, entry))
    }
}

impl StoredEntry {
    /// Writes the file.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let user_state = folder.parent().unwrap_or(folder);
        for folder in [user_state, folder] {
            state_dir::secure(folder).map_err(|error| Failure::new(Exit::Io, &error))?;
        }
        let text = json!({ "config": self.config, "words": self.words }).to_string();
        atomic_file::write_private(&self.path, text.as_bytes()).map_err(|error| {
            Failure::new(Exit::Io, format!("cannot write `{}`: {error}", self.path.display()))
        })
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        fs::remove_file(&self.path).ok();
    }

    /// Its id.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The command line for display.
    pub(super) fn words(&self) -> &[String] {
        &self.words
    }
}

/// The words that a shim is started with by this reference: an id, or the path of a file.
pub(crate) fn read(user_state: &Path, reference: &str) -> Result<Vec<String>, Failure> {
    let path = user_state.join(FOLDER).join(reference);
    let missing = |reason: String| {
        let message = format!("there is no entry `{}`: {reason}", path.display());
        Failure::new(Exit::Invalid, message)
            .hint("the `wrap` session that stored it has ended; start the agent again")
    };
    let text = fs::read_to_string(&path).map_err(|error| missing(error.to_string()))?;
    let object: Value = serde_json::from_str(&text).unwrap_or_default();
    let words = object["words"].as_array().ok_or_else(|| missing("it is damaged".to_owned()))?;
    Ok(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Removes the files of sessions that were killed: those whose config is not rewritten any more. The
/// caller may have locked some configs itself.
pub(crate) fn remove_left(user_state: &Path, locked: &[&Path]) {
    for entry in fs::read_dir(user_state.join(FOLDER)).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let object: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(config) = object["config"].as_str().map(Path::new) else { continue };
        // A session writes them under the lock, before it rewrites the config.
        let is_left = config.parent().is_none_or(|folder| !folder.is_dir())
            || !config_guard::has_backup(config)
                && (locked.contains(&config)
                    || ConfigLock::acquire(config)
                        .is_ok_and(|_| !config_guard::has_backup(config)));
        if is_left {
            fs::remove_file(entry.path()).ok();
        }
    }
}
