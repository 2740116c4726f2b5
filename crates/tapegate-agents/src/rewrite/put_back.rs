//! Puts entries back as they were, in a config that others may have changed meanwhile.

use std::ops::Range;

use super::{
    EntryRewrite, ShimCommand, entry_name, find, is_named, is_same_elsewhere, rewrite, shim_words,
};
use crate::discovery::PlaceStep;
use crate::edit::{ConfigEdits, quote, write_list};
use crate::entry::{COMMAND_KEYS, ServerEntry, ServerTarget};
use crate::tree::{ConfigFormat, ConfigNode, ConfigValue};

/// A config with its entries put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredConfig {
    /// The text to write.
    pub text: String,
    /// Whether others had changed the config, so that the text is a merge.
    pub is_merged: bool,
    /// The names of entries that others changed in a way that could not be merged. They are as they
    /// were before.
    pub conflicts: Vec<String>,
}

/// Puts the entries of `current` back as they were in `original`. What others have changed stays.
/// `None` if the config cannot be merged; the original is then the best there is.
pub fn put_back(
    original: &str,
    current: &str,
    format: ConfigFormat,
    rewrites: &[EntryRewrite],
) -> Option<RestoredConfig> {
    // Computed again instead of stored: the same edits of the same text give the same bytes.
    let ours = rewrite(original, format, rewrites).ok()?;
    if current == ours || current == original {
        let text = original.to_owned();
        return Some(RestoredConfig { text, is_merged: false, conflicts: Vec::new() });
    }
    let mut merge = EntryMerge {
        format,
        original: (original, ConfigNode::read(original, format).ok()?),
        ours: ConfigNode::read(&ours, format).ok()?,
        conflicts: Vec::new(),
    };
    let mut text = current.to_owned();
    // One entry at a time, because an edit moves what follows it.
    for rewrite in rewrites {
        text = merge.put_back(text, rewrite)?;
    }
    Some(RestoredConfig { text, is_merged: true, conflicts: merge.conflicts })
}

/// Takes the shim off an entry that is in no original; `None` if it cannot be edited.
pub(crate) fn unwrap(text: &str, format: ConfigFormat, entry: &EntryRewrite) -> Option<String> {
    let tree = ConfigNode::read(text, format).ok()?;
    let current = find(&tree, &entry.place)?;
    let empty = ConfigNode::read("", format).ok()?;
    let (original, ours) = (("", empty.clone()), empty);
    let merge = EntryMerge { format, original, ours, conflicts: Vec::new() };
    merge.unwrap(text, &tree, current, entry)
}

/// Puts the entry of a URL in place of a copy of its shim. `source` is the entry that the shim was
/// made from. In TOML and in lists, the entry brings its old name. `None` if it cannot be edited.
pub(crate) fn replace_copy(
    original: &str,
    text: &str,
    format: ConfigFormat,
    (copy, source): (&EntryRewrite, &EntryRewrite),
) -> Option<RestoredConfig> {
    let before = ConfigNode::read(original, format).ok()?;
    let was = find(&before, &source.place)?;
    let tree = ConfigNode::read(text, format).ok()?;
    let current = find(&tree, &copy.place)?;
    let mut edits = ConfigEdits::new(text, format);
    edits.replace(region(text, current)?, &original[region(original, was)?]);
    let back = edits.finish()?;
    let after = ConfigNode::read(&back, format).ok()?;
    let is_back = |place: &[PlaceStep]| find(&after, place).is_some_and(|one| one.is_same(was));
    let place = match is_back(&copy.place) {
        true => &copy.place,
        false => Some(&source.place).filter(|place| is_back(place))?,
    };
    if !without(&tree, &copy.place).is_same(&without(&after, place)) {
        return None;
    }
    let ours = rewrite(original, format, std::slice::from_ref(source)).ok()?;
    let ours = ConfigNode::read(&ours, format).ok()?;
    let is_unchanged = find(&ours, &source.place).is_some_and(|ours| ours.is_same(current));
    let conflicts = if is_unchanged { Vec::new() } else { vec![entry_name(&copy.place)] };
    Some(RestoredConfig { text: back, is_merged: true, conflicts })
}

/// A config without the entry at a place.
fn without(tree: &ConfigNode, place: &[PlaceStep]) -> ConfigNode {
    let mut rest = tree.clone();
    remove(&mut rest, place);
    rest
}

fn remove(node: &mut ConfigNode, place: &[PlaceStep]) {
    let Some((step, inner)) = place.split_first() else { return };
    match (&mut node.value, step) {
        (ConfigValue::Map(members), PlaceStep::Key(key)) => {
            // Of a key that occurs twice, the last one counts, as in `find`.
            let Some(at) = members.iter().rposition(|one| one.key == *key) else { return };
            match inner.is_empty() {
                true => drop(members.remove(at)),
                false => remove(&mut members[at].node, inner),
            }
        }
        (ConfigValue::List(elements), PlaceStep::Named(name)) => {
            let Some(at) = elements.iter().position(|one| is_named(one, name)) else { return };
            match inner.is_empty() {
                true => drop(elements.remove(at)),
                false => remove(&mut elements[at], inner),
            }
        }
        _ => {}
    }
}

/// Merges the entries of a config.
struct EntryMerge<'a> {
    format: ConfigFormat,
    original: (&'a str, ConfigNode),
    /// The config as we have written it.
    ours: ConfigNode,
    conflicts: Vec<String>,
}

impl EntryMerge<'_> {
    fn put_back(&mut self, text: String, rewrite: &EntryRewrite) -> Option<String> {
        let tree = ConfigNode::read(&text, self.format).ok()?;
        let Some(current) = find(&tree, &rewrite.place) else {
            // Others have removed it.
            return Some(text);
        };
        let own = find(&self.ours, &rewrite.place)?;
        let was = find(&self.original.1, &rewrite.place)?;
        let words = shim_words(was, &rewrite.shim)?;
        if current.is_same(own) {
            let whole = self.replace_whole(&text, &tree, current, rewrite);
            // The whole text is best, because comments and layout in the entry come back as well.
            return whole.or_else(|| self.unwrap(&text, &tree, current, rewrite));
        }
        match ServerEntry::read(current).map(|entry| entry.target) {
            // Others have changed settings beside it, or arguments of the server.
            Ok(ServerTarget::Command(argv)) if argv.first() == words.first() => {
                if let Some(merged) = self.unwrap(&text, &tree, current, rewrite) {
                    return Some(merged);
                }
                // The original wins, since a half-merged entry might start another program.
                self.conflicts.push(entry_name(&rewrite.place));
                self.replace_whole(&text, &tree, current, rewrite)
            }
            // Others have put something else in its place.
            _ => Some(text),
        }
    }

    /// Replaces the whole entry with its original text.
    fn replace_whole(
        &self,
        text: &str,
        tree: &ConfigNode,
        current: &ConfigNode,
        rewrite: &EntryRewrite,
    ) -> Option<String> {
        let was = find(&self.original.1, &rewrite.place)?;
        let original = &self.original.0[region(self.original.0, was)?];
        let mut edits = ConfigEdits::new(text, self.format);
        edits.replace(region(text, current)?, original);
        self.checked(edits.finish()?, tree, rewrite, |entry| entry.is_same(was))
    }

    /// Takes the words of the shim off a command line.
    fn unwrap(
        &self,
        text: &str,
        tree: &ConfigNode,
        current: &ConfigNode,
        rewrite: &EntryRewrite,
    ) -> Option<String> {
        let ServerTarget::Command(argv) = ServerEntry::read(current).ok()?.target else {
            return None;
        };
        // All words must be ours: a changed command line is not taken apart.
        let argv = match &rewrite.shim {
            ShimCommand::Before(words) => argv.strip_prefix(&words[..])?.to_vec(),
            // The command line is stored elsewhere, and is that of the original.
            ShimCommand::Instead(words) if argv == *words => {
                let was = ServerEntry::read(find(&self.original.1, &rewrite.place)?).ok()?;
                let ServerTarget::Command(argv) = was.target else { return None };
                argv
            }
            ShimCommand::Instead(_) => return None,
        };
        let (program, args) = argv.split_first()?;
        let nested = current.get("transport").filter(|inner| !inner.members().is_empty());
        let map = nested.filter(|map| COMMAND_KEYS.iter().any(|key| map.get(key).is_some()));
        let map = map.unwrap_or(current);
        let command = COMMAND_KEYS.iter().find_map(|key| map.member(key))?;
        let mut edits = ConfigEdits::new(text, self.format);
        match &command.node.value {
            ConfigValue::List(_) => edits.set(&command.node, &write_list(&argv)),
            ConfigValue::Map(_) => {
                edits.set(command.node.get("path")?, &quote(program));
                edits.set(command.node.get("args")?, &write_list(args));
            }
            _ => {
                edits.set(&command.node, &quote(program));
                let was = find(&self.original.1, &rewrite.place);
                match args.is_empty() && was.is_none_or(|was| was.get("args").is_none()) {
                    // The rewrite had to add the key.
                    true => edits.remove(map, "args"),
                    false => edits.set(map.get("args")?, &write_list(args)),
                }
            }
        }
        let expected = ServerTarget::Command(argv.clone());
        self.checked(edits.finish()?, tree, rewrite, |entry| {
            ServerEntry::read(entry).is_ok_and(|entry| entry.target == expected)
        })
    }

    /// The text, if its entry is as expected and all else is as in `tree`.
    fn checked(
        &self,
        text: String,
        tree: &ConfigNode,
        rewrite: &EntryRewrite,
        is_expected: impl Fn(&ConfigNode) -> bool,
    ) -> Option<String> {
        let after = ConfigNode::read(&text, self.format).ok()?;
        let is_entry = find(&after, &rewrite.place).is_some_and(is_expected);
        (is_entry && is_same_elsewhere(tree, &after, &[&rewrite.place])).then_some(text)
    }
}

/// The part of a text that an entry is written in; `None` if it is written in several parts.
fn region(text: &str, entry: &ConfigNode) -> Option<Range<usize>> {
    let written = text.get(entry.span.clone())?;
    let is_header = written.starts_with('[') && matches!(entry.value, ConfigValue::Map(_));
    if !is_header {
        return (!written.is_empty()).then(|| entry.span.clone());
    }
    // A table of TOML: from its header to the end of its last line, with the tables in it.
    let end = entry.last_end();
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at + 1);
    Some(entry.span.start..end)
}
