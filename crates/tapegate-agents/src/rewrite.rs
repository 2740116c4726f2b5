//! Puts the entries of a config behind a shim, and back.
//!
//! Every edit is checked before it is used: the new text is parsed, each entry must start what it
//! should, and everything else must have the value it had.

mod entry_edit;
mod put_back;
mod url_environment;

use crate::client_table::EntryStyle;
use crate::discovery::PlaceStep;
use crate::edit::ConfigEdits;
use crate::entry::{ServerEntry, ServerTarget};
use crate::tree::{ConfigFormat, ConfigNode, ConfigValue};
pub(crate) use entry_edit::is_target_key;
pub use put_back::{RestoredConfig, put_back};
pub(crate) use put_back::{replace_copy, unwrap};

/// An entry to put behind a shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRewrite {
    /// Where the entry is.
    pub place: Vec<PlaceStep>,
    /// How the client writes entries.
    pub style: EntryStyle,
    /// What starts the shim.
    pub shim: ShimCommand,
}

/// The command line of a shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShimCommand {
    /// These words, followed by the command line of the entry.
    Before(Vec<String>),
    /// These words alone, in place of the command line or URL of the entry.
    Instead(Vec<String>),
}

/// Why a config cannot be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The config cannot be parsed.
    #[error("{0}")]
    Invalid(String),
    /// There is no such entry.
    #[error("{0}: there is no such entry")]
    Missing(String),
    /// The entry is written in a way that cannot be edited.
    #[error("{0}: the entry is written in a way that cannot be edited")]
    Unusual(String),
    /// The edit would change something else.
    #[error("the edit would change more than the entries it is for")]
    Collateral,
}

/// The config with its entries behind shims.
pub fn rewrite(
    text: &str,
    format: ConfigFormat,
    rewrites: &[EntryRewrite],
) -> Result<String, RewriteError> {
    let tree = ConfigNode::read(text, format).map_err(RewriteError::Invalid)?;
    let mut edits = ConfigEdits::new(text, format);
    for rewrite in rewrites {
        let name = || entry_name(&rewrite.place);
        let entry = find(&tree, &rewrite.place).ok_or_else(|| RewriteError::Missing(name()))?;
        entry_edit::edit(&mut edits, entry, rewrite)
            .ok_or_else(|| RewriteError::Unusual(name()))?;
    }
    let edited = edits.finish().ok_or(RewriteError::Collateral)?;
    // Parsed again, since no edit of a text is trusted on its own.
    let after = ConfigNode::read(&edited, format).map_err(|_| RewriteError::Collateral)?;
    let places: Vec<&[PlaceStep]> = rewrites.iter().map(|one| &one.place[..]).collect();
    if !is_same_elsewhere(&tree, &after, &places) {
        return Err(RewriteError::Collateral);
    }
    for rewrite in rewrites {
        let entries = find(&tree, &rewrite.place).zip(find(&after, &rewrite.place));
        if !entries.is_some_and(|(before, after)| starts_shim(before, after, &rewrite.shim)) {
            return Err(RewriteError::Unusual(entry_name(&rewrite.place)));
        }
    }
    Ok(edited)
}

/// The entry at a place.
pub(crate) fn find<'t>(tree: &'t ConfigNode, place: &[PlaceStep]) -> Option<&'t ConfigNode> {
    place.iter().try_fold(tree, |node, step| match step {
        PlaceStep::Key(key) => node.get(key),
        PlaceStep::Named(name) => node.elements().iter().find(|one| is_named(one, name)),
    })
}

fn is_named(node: &ConfigNode, name: &str) -> bool {
    node.get("name").and_then(ConfigNode::as_text) == Some(name)
}

/// The name of the entry at a place, for messages.
fn entry_name(place: &[PlaceStep]) -> String {
    match place.last() {
        Some(PlaceStep::Key(name) | PlaceStep::Named(name)) => name.clone(),
        None => String::new(),
    }
}

/// The words that an entry starts once it is behind a shim.
fn shim_words(entry: &ConfigNode, shim: &ShimCommand) -> Option<Vec<String>> {
    match (shim, ServerEntry::read(entry).ok()?.target) {
        (ShimCommand::Instead(words), _) => Some(words.clone()),
        (ShimCommand::Before(words), ServerTarget::Command(argv)) => {
            Some([&words[..], &argv].concat())
        }
        (ShimCommand::Before(_), ServerTarget::Url(..)) => None,
    }
}

/// Whether `after` starts the shim for `before`, and has all other settings of it.
fn starts_shim(before: &ConfigNode, after: &ConfigNode, shim: &ShimCommand) -> bool {
    let (Some(expected), Ok(entry)) = (shim_words(before, shim), ServerEntry::read(after)) else {
        return false;
    };
    // Otherwise its environment is not that of the headers.
    let Some(after) = url_environment::without_headers(before, after, shim) else { return false };
    entry.target == ServerTarget::Command(expected)
        && without_target(before).is_same(&without_target(&after))
}

/// An entry without the settings that say what to start.
fn without_target(entry: &ConfigNode) -> ConfigNode {
    let mut rest = entry.clone();
    if let ConfigValue::Map(members) = &mut rest.value {
        members.retain(|member| !entry_edit::is_target_key(&member.key));
        let transport = members.iter_mut().filter(|member| member.key == "transport");
        transport.for_each(|member| member.node = without_target(&member.node));
    }
    rest
}

/// Whether two configs differ at these places only.
fn is_same_elsewhere(own: &ConfigNode, other: &ConfigNode, places: &[&[PlaceStep]]) -> bool {
    let (mut own, mut other) = (own.clone(), other.clone());
    for place in places {
        blank(&mut own, place);
        blank(&mut other, place);
    }
    own.is_same(&other)
}

/// Replaces the value at a place with null.
fn blank(node: &mut ConfigNode, place: &[PlaceStep]) {
    let Some((step, rest)) = place.split_first() else {
        node.value = ConfigValue::Null;
        return;
    };
    let inner = match (&mut node.value, step) {
        (ConfigValue::Map(members), PlaceStep::Key(key)) => {
            // Of a key that occurs twice, the last one counts, as in `find`.
            members.iter_mut().rev().find(|one| one.key == *key).map(|one| &mut one.node)
        }
        (ConfigValue::List(elements), PlaceStep::Named(name)) => {
            elements.iter_mut().find(|one| is_named(one, name))
        }
        _ => None,
    };
    if let Some(inner) = inner {
        blank(inner, rest);
    }
}

#[cfg(test)]
mod tests;
