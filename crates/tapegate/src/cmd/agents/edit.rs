//! One config that is installed or uninstalled: its lock, its record, and what became of it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use tapegate_agents::client_table::McpClient;
use tapegate_agents::config_guard::{self, ConfigLock, ConfigLockError, RestoreOutcome};
use tapegate_agents::discovery::{self, PlaceStep};
use tapegate_agents::installation::{
    ConfigNotation, InstalledEntries, UnparsableConfig, place_texts, read_place,
};
use tapegate_agents::rewrite::{EntryRewrite, RestoredConfig, rewrite};
use tapegate_store::installed_configs::{InstalledConfig, InstalledConfigs};

use crate::cmd::wrap::config_locks::resolved;
use crate::cmd::wrap::stored_entries::{EntryFolder, StoredEntry};
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::terminal_output;
use crate::views::short_path::shorten_path;
use crate::views::{patch, visible_text};

/// A config as it is now, and what was installed in it before.
pub(super) struct EditedConfig<'a> {
    pub(super) client: &'static McpClient,
    /// The config itself, not a link to it.
    pub(super) path: PathBuf,
    pub(super) notation: ConfigNotation,
    pub(super) text: String,
    pub(super) record: Option<InstalledConfig>,
    records: &'a InstalledConfigs,
    entries: &'a EntryFolder,
    /// Held until the config is dropped; none in a dry run.
    lock: Option<ConfigLock>,
}

impl<'a> EditedConfig<'a> {
    /// Locks and reads a config. A dry run does not even write a lock.
    pub(super) fn open(
        (records, entries): (&'a InstalledConfigs, &'a EntryFolder),
        client: &'static McpClient,
        path: &Path,
        is_dry_run: bool,
    ) -> Result<Self, Failure> {
        // The lock and the record belong to the file itself, however many links lead to it.
        let path = resolved(path);
        let format = discovery::format_of(&path, client);
        let lock = if is_dry_run { None } else { Some(lock_config(&path)?) };
        if let Some(lock) = &lock {
            restore_killed_session(lock, format)?;
        }
        // After the lock and the restore, which may both change it.
        let text = std::fs::read_to_string(&path)
            .map_err(|error| io_failure(format!("cannot read `{}`: {error}", path.display())))?;
        let record = records.get(&path).map_err(io_failure)?;
        let notation = ConfigNotation { format, style: client.style };
        Ok(Self { client, path, notation, text, record, records, entries, lock })
    }

    /// The entries that are installed.
    pub(super) fn installed(&self) -> Option<InstalledEntries> {
        let record = self.record.as_ref()?;
        let places = record.entries.iter().filter_map(|place| read_place(place)).collect();
        Some(InstalledEntries { original: record.original.clone(), places })
    }

    /// The rewrites that are in the config now and are ours.
    pub(super) fn own_rewrites(&self) -> Vec<EntryRewrite> {
        let installed = self.installed();
        let rewrites = installed.and_then(|it| it.rewrites(&self.text, self.notation));
        rewrites.unwrap_or_default()
    }

    /// The config without us.
    pub(super) fn without_us(&self) -> Result<RestoredConfig, Failure> {
        let Some(installed) = self.installed() else {
            let text = self.text.clone();
            return Ok(RestoredConfig { text, is_merged: false, conflicts: Vec::new() });
        };
        installed.undo(&self.path, &self.text, self.notation).map_err(|error: UnparsableConfig| {
            let record = self.records.path_of(&self.path);
            Failure::new(Exit::Invalid, error).hint(format!(
                "correct it and run this again; its original text is `original` in {}",
                record.display()
            ))
        })
    }

    /// The text of the config `base` with these entries behind shims.
    pub(super) fn with_entries(
        &self,
        base: &str,
        rewrites: &[EntryRewrite],
    ) -> Result<String, Failure> {
        rewrite(base, self.notation.format, rewrites).map_err(|error| {
            Failure::new(Exit::Invalid, format!("`{}`: {error}", self.path.display()))
        })
    }

    /// The diff between the config and a new text of it.
    pub(super) fn patch(&self, text: &str) -> String {
        let name = self.path.display().to_string();
        let palette = terminal_output::palette_of_output();
        patch::patch(&name, &self.text, text, palette, std::io::stdout().is_terminal())
    }

    /// Writes the stored command lines, the record and then the config, so that the config can be put
    /// back whatever happens.
    pub(super) fn save(
        &self,
        base: &str,
        text: &str,
        places: &[Vec<PlaceStep>],
        left_out: Vec<Vec<String>>,
        stored: &[StoredEntry],
    ) -> Result<(), Failure> {
        let earlier: Vec<Option<StoredEntry>> = stored.iter().map(StoredEntry::current).collect();
        let written = stored.iter().try_for_each(StoredEntry::write);
        let saved = written.and_then(|()| self.save_record(base, text, places, left_out));
        match &saved {
            Ok(()) => self.entries.remove_unused(&self.path, text),
            // The config still refers to what was stored before.
            Err(_) => stored.iter().zip(&earlier).for_each(|(entry, earlier)| match earlier {
                Some(earlier) => drop(earlier.write()),
                None => entry.remove(),
            }),
        }
        saved
    }

    fn save_record(
        &self,
        base: &str,
        text: &str,
        places: &[Vec<PlaceStep>],
        left_out: Vec<Vec<String>>,
    ) -> Result<(), Failure> {
        let entries: Vec<Vec<String>> = places.iter().map(|place| place_texts(place)).collect();
        let before = self.record.as_ref();
        // A second run writes nothing, so that the time of the installation stays.
        let is_same = before.is_some_and(|record| {
            record.original == base && record.entries == entries && record.left_out == left_out
        });
        if !is_same {
            let record = InstalledConfig {
                config: self.path.clone(),
                client: self.client.id.to_owned(),
                original: base.to_owned(),
                entries,
                left_out,
                installed_us: crate::state_folder::now_us(),
            };
            self.records.put(&record).map_err(io_failure)?;
        }
        self.write(text).inspect_err(|_| {
            // The config is as it was, so the record must be too. If that fails, the new record
            // still fits: it describes the text that is there, without our entries.
            match before {
                Some(before) => self.records.put(before).ok(),
                None => self.records.remove(&self.path).ok().map(drop),
            };
        })
    }

    /// Writes the config and forgets that anything was installed in it.
    pub(super) fn forget(&self, text: &str) -> Result<(), Failure> {
        // In this order: if the record went first, a crash would leave shims that no command knows.
        self.write(text)?;
        self.entries.remove_unused(&self.path, text);
        self.records.remove(&self.path).map(drop).map_err(io_failure)
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let Some(lock) = &self.lock else { return Ok(()) };
        // Watchers of the config would restart their servers for nothing.
        if text == self.text {
            return Ok(());
        }
        tapegate_agents::installation::write(lock, &self.text, text).map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::ResourceBusy => "run this again",
                _ => "it is as it was; make it and its folder writable, and run this again",
            };
            io_failure(format!("cannot write `{}`: {error}", self.path.display())).hint(hint)
        })
    }
}

/// The path of a config for people.
pub(super) fn display_path(search: &SearchContext<'_>, path: &Path) -> String {
    let home = search.first(&["HOME"]).map(|home| resolved(Path::new(&home)));
    let folder = resolved(&search.folder);
    visible_text::path(Path::new(&shorten_path(path, &folder, home.as_deref())))
}

pub(super) fn io_failure(message: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Io, message)
}

fn lock_config(path: &Path) -> Result<ConfigLock, Failure> {
    ConfigLock::acquire(path).map_err(|error| match &error {
        ConfigLockError::Io { .. } => {
            io_failure(&error).hint("the lock is beside the config, so its folder must be writable")
        }
        _ => io_failure(&error).hint("end that session, and run this again"),
    })
}

/// Puts a config back that a killed session has left rewritten; an installation must not contain
/// the entries of a session.
fn restore_killed_session(
    lock: &ConfigLock,
    format: tapegate_agents::tree::ConfigFormat,
) -> Result<(), Failure> {
    let path = lock.config().display();
    let outcome = config_guard::restore(lock, format)
        .map_err(|error| io_failure(format!("cannot put `{path}` back: {error}")))?;
    if let Some(outcome) = outcome {
        terminal_output::warn(&format!("a session that was killed had left `{path}`; put back"));
        if let RestoreOutcome::Replaced(aside) = outcome {
            let aside = aside.display();
            terminal_output::warn(&format!("its content could not be parsed: see `{aside}`"));
        }
    }
    Ok(())
}

/// The command line of this command for an agent, for hints.
pub(super) fn command_for(verb: &str, client: &McpClient) -> String {
    program_name::command(format!("agents {verb} {}", client.id))
}
