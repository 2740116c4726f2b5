//! The command lines of shims that are started by `shim --entry ID`, in the user's state folder.
//!
//! Each is a private file (0600), because arguments may be secret. That of a session is removed with
//! it, or by the next one if the session was killed; that of an installation with its uninstallation.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tapegate_agents::config_guard::{self, ConfigLock};
use tapegate_agents::discovery::ConfiguredServer;
use tapegate_agents::entry::ServerTarget;
use tapegate_agents::rewrite::ShimCommand;
use tapegate_agents::stored_entry::{ENTRY_FLAG, entry_id, is_kept, needs_quotes, words_to_store};
use tapegate_store::{atomic_file, state_dir};

use super::config_locks::resolved;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::views::visible_text;

/// The folder of the files.
const FOLDER: &str = "entries";
/// The longest command line that is displayed whole.
const WORDS_MAX: usize = 2000;

/// A command line to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredEntry {
    /// The config that refers to it.
    config: PathBuf,
    path: PathBuf,
    words: Vec<String>,
}

/// Where command lines are stored.
#[derive(Debug, Clone)]
pub(crate) struct EntryFolder {
    path: PathBuf,
    /// Whether shims find it by themselves, without a variable that a client may not pass on.
    is_usual: bool,
}

impl EntryFolder {
    /// The folder in the user's state folder.
    pub(crate) fn new(search: &SearchContext<'_>) -> Result<Self, Failure> {
        let user_state = search.user_state_dir()?;
        let is_usual = search.usual_state_dir().as_deref() == Some(&*user_state);
        Ok(Self { path: user_state.join(FOLDER), is_usual })
    }

    /// The command for the entry of a server, and the command line to store, if the client would not
    /// pass it on as it is. `endpoint` is the hub that the shim joins; without one, it stays for good.
    pub(crate) fn stored(
        &self,
        server: &ConfiguredServer,
        shim: ShimCommand,
        endpoint: Option<&str>,
    ) -> (ShimCommand, Option<StoredEntry>) {
        let (ServerTarget::Command(argv), ShimCommand::Before(words)) =
            (&server.entry.target, &shim)
        else {
            return (shim, None);
        };
        let stored = words_to_store(&shim, argv).and_then(|words| {
            self.entry(&entry_id(server, endpoint), words, &resolved(&server.config))
        });
        match (stored, words.first()) {
            (Some((reference, entry)), Some(binary)) => {
                let words = [binary, "shim", ENTRY_FLAG, &reference].map(str::to_owned);
                (ShimCommand::Instead(words.to_vec()), Some(entry))
            }
            _ => (shim, None),
        }
    }

    /// Whether a stored command line that is named so can be used.
    pub(crate) fn has(&self, reference: &str) -> bool {
        words_of(&self.path.join(reference)).is_ok()
    }

    /// Removes what is stored for good for a config whose text no longer refers to it.
    pub(crate) fn remove_unused(&self, config: &Path, text: &str) {
        for (path, stored_config) in files(&self.path) {
            let id = path.file_name().unwrap_or_default().to_string_lossy();
            // Without the name of the server, which clients may write with escapes.
            let server_end = id.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at);
            if stored_config == config && is_kept(&id) && !text.contains(&id[server_end..]) {
                fs::remove_file(&path).ok();
            }
        }
    }

    /// What names an entry on a command line, and the entry; `None` if its path would have to be
    /// quoted.
    fn entry(&self, id: &str, words: Vec<String>, config: &Path) -> Option<(String, StoredEntry)> {
        let path = self.path.join(id);
        let reference = if self.is_usual { id.to_owned() } else { path.to_str()?.to_owned() };
        let entry = StoredEntry { config: config.to_owned(), path, words };
        (!needs_quotes(&reference)).then_some((reference, entry))
    }
}

impl StoredEntry {
    /// Writes the file.
    pub(crate) fn write(&self) -> Result<(), Failure> {
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
    pub(crate) fn remove(&self) {
        fs::remove_file(&self.path).ok();
    }

    /// What is stored under its id now, to be put back if the new one is not used.
    pub(crate) fn current(&self) -> Option<Self> {
        let words = words_of(&self.path).ok()?;
        Some(Self { words, ..self.clone() })
    }

    /// What its id stands for, for display.
    pub(crate) fn meaning(&self) -> String {
        let id = self.path.file_name().unwrap_or_default().to_string_lossy();
        let words = visible_text::inline(&self.words.join(" "), WORDS_MAX);
        format!("{id} stands for: shim {words}")
    }
}

/// The words that a shim is started with by this reference: an id, or the path of a file.
pub(crate) fn read(user_state: &Path, reference: &str) -> Result<Vec<String>, Failure> {
    let path = user_state.join(FOLDER).join(reference);
    words_of(&path).map_err(|reason| {
        let message = format!("there is no entry `{}`: {reason}", path.display());
        let install = program_name::command("agents install");
        Failure::new(Exit::Invalid, message).hint(match is_kept(reference) {
            true => format!("`{install}` with the name of the agent writes it again"),
            false => {
                "the `wrap` session that stored it has ended; start the agent again".to_owned()
            }
        })
    })
}

/// The command line in a file, or why there is none.
fn words_of(path: &Path) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let object: Value = serde_json::from_str(&text).unwrap_or_default();
    let words = object["words"].as_array().ok_or("it is damaged")?;
    let words = words.iter().map(|word| word.as_str().map(str::to_owned));
    words.collect::<Option<_>>().ok_or_else(|| "it is damaged".to_owned())
}

/// The files in the folder, with the config that each is for.
fn files(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let with_config = paths.filter_map(|path| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let object: Value = serde_json::from_str(&text).unwrap_or_default();
        let config = object["config"].as_str().map(PathBuf::from)?;
        Some((path, config))
    });
    with_config.collect()
}

/// Removes the files of sessions that were killed: those whose config is not rewritten any more. The
/// caller may have locked some configs itself.
pub(crate) fn remove_left(user_state: &Path, locked: &[&Path]) {
    for (path, config) in files(&user_state.join(FOLDER)) {
        // The lock of a config is not to be touched for what no session has stored.
        if is_kept(&path.to_string_lossy()) {
            continue;
        }
        // A session writes them under the lock, before it rewrites the config.
        let is_left = config.parent().is_none_or(|folder| !folder.is_dir())
            || !config_guard::has_backup(&config)
                && (locked.contains(&&*config)
                    || ConfigLock::acquire(&config)
                        .is_ok_and(|_| !config_guard::has_backup(&config)));
        if is_left {
            fs::remove_file(path).ok();
        }
    }
}
