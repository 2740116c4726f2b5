//! Keeps the servers of a config behind shims for good, and takes them out again.
//!
//! To undo it takes the text that the config would have without us, and the names of our
//! entries. The caller keeps both outside of the client's folders; nothing is beside the config.
//! From what the config is now follows which of these entries are still behind a shim.

use std::io;
use std::path::{Path, PathBuf};

use crate::client_table::EntryStyle;
use crate::config_guard::{ConfigLock, replace, shimmed, with_suffix};
use crate::discovery::PlaceStep;
use crate::entry::ServerEntry;
use crate::rewrite::{EntryRewrite, RestoredConfig, RewriteError, find, put_back, rewrite};
use crate::tree::{ConfigFormat, ConfigNode};

/// How a config is written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigNotation {
    pub format: ConfigFormat,
    /// How the client writes entries.
    pub style: EntryStyle,
}

/// What was installed in a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledEntries {
    /// The config as it would be without us.
    pub original: String,
    /// Where the entries are that were put behind shims.
    pub places: Vec<Vec<PlaceStep>>,
}

/// Why an installed config cannot be put back.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be parsed, so its entries cannot be put back: {reason}", path.display())]
pub struct UnparsableConfig {
    /// The config.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl InstalledEntries {
    /// The config without us: its original bytes if it has no other changes, and otherwise
    /// with the changes of others. Entries that are no longer behind a shim stay as they are.
    pub fn undo(
        &self,
        path: &Path,
        current: &str,
        notation: ConfigNotation,
    ) -> Result<RestoredConfig, UnparsableConfig> {
        let unparsable = |reason: String| UnparsableConfig { path: path.to_owned(), reason };
        // Unlike a session, which puts the original back: an installation may be years old, and so
        // would be the settings.
        ConfigNode::read(current, notation.format).map_err(unparsable)?;
        let rewrites = self.rewrites(current, notation);
        let rewrites = rewrites.ok_or_else(|| unparsable("its original is damaged".to_owned()))?;
        if let Some(back) = put_back(&self.original, current, notation.format, &rewrites) {
            return Ok(back);
        }
        // An entry that cannot be merged must not keep the others behind shims.
        let text = current.to_owned();
        let mut merged = RestoredConfig { text, is_merged: true, conflicts: Vec::new() };
        for one in rewrites {
            let name = entry_name(&one.place);
            match put_back(&self.original, &merged.text, notation.format, &[one]) {
                Some(back) => {
                    merged.text = back.text;
                    merged.conflicts.extend(back.conflicts);
                }
                None => merged.conflicts.push(name),
            }
        }
        Ok(merged)
    }

    /// The entries that are behind a shim now and were put there by us.
    pub fn rewrites(&self, current: &str, notation: ConfigNotation) -> Option<Vec<EntryRewrite>> {
        let found = shimmed::rewritten_entries(&self.original, current, notation.format)?;
        // Others may have put entries behind shims by hand.
        let ours = found.into_iter().filter(|one| self.places.contains(&one.place));
        Some(ours.map(|one| EntryRewrite { style: notation.style, ..one }).collect())
    }
}

/// A place as texts, for a file.
pub fn place_texts(place: &[PlaceStep]) -> Vec<String> {
    let text = |step: &PlaceStep| match step {
        PlaceStep::Key(key) => format!(".{key}"),
        PlaceStep::Named(name) => format!("@{name}"),
    };
    place.iter().map(text).collect()
}

/// The place that was written as these texts.
pub fn read_place(texts: &[String]) -> Option<Vec<PlaceStep>> {
    let step = |text: &String| {
        let key = text.strip_prefix('.').map(|key| PlaceStep::Key(key.to_owned()));
        key.or_else(|| text.strip_prefix('@').map(|name| PlaceStep::Named(name.to_owned())))
    };
    texts.iter().map(step).collect()
}

/// The name of the entry at a place.
pub fn entry_name(place: &[PlaceStep]) -> String {
    place.last().map(step_name).unwrap_or_default()
}

fn step_name(step: &PlaceStep) -> String {
    match step {
        PlaceStep::Key(name) | PlaceStep::Named(name) => name.clone(),
    }
}

/// The entries that can be put behind shims together, and those that cannot, with the reason.
pub fn editable(
    base: &str,
    format: ConfigFormat,
    rewrites: Vec<EntryRewrite>,
) -> (Vec<EntryRewrite>, Vec<(EntryRewrite, RewriteError)>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    if rewrite(base, format, &rewrites).is_ok() {
        return (rewrites, bad);
    }
    // One that cannot be edited must not keep the others from being governed.
    for one in rewrites {
        match rewrite(base, format, &[&good[..], std::slice::from_ref(&one)].concat()) {
            Ok(_) => good.push(one),
            Err(error) => bad.push((one, error)),
        }
    }
    (good, bad)
}

/// Replaces a locked config, so that a crash leaves the old text or the new one. `expected` is the
/// text that the new one was made from: a config that was changed meanwhile is not written.
pub fn write(lock: &ConfigLock, expected: &str, text: &str) -> io::Result<()> {
    let path = lock.config();
    // Left by a process that was killed; no other process writes it while we have the lock.
    std::fs::remove_file(with_suffix(path, replace::NEW)).ok();
    if std::fs::read(path)? != expected.as_bytes() {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another program has changed it meanwhile",
        ));
    }
    if replace::is_read_only(path) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    replace::write(path, text.as_bytes())
}

/// Whether an entry of a config that is rewritten for a session was behind a shim before it.
pub fn is_governed_before_session(
    config: &Path,
    format: ConfigFormat,
    place: &[PlaceStep],
) -> bool {
    let backup = crate::config_guard::backup_text(config);
    let tree = backup.and_then(|text| ConfigNode::read(&text, format).ok());
    let entry = tree.as_ref().and_then(|tree| find(tree, place));
    entry.and_then(|entry| ServerEntry::read(entry).ok()).is_some_and(|entry| entry.is_governed)
}

#[cfg(test)]
mod tests;
