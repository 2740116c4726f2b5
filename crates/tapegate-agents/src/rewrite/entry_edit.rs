//! The edits that put one entry behind a shim.

use std::ops::Range;

use super::url_environment;
use super::{EntryRewrite, ShimCommand};
use crate::client_table::EntryStyle;
use crate::edit::{ConfigEdits, quote, write_list};
use crate::entry::{COMMAND_KEYS, HEADER_KEYS, URL_KEYS, URL_ONLY};
use crate::tree::{ConfigMember, ConfigNode, ConfigValue};

/// Whether a setting says what to start or connect to.
pub(crate) fn is_target_key(key: &str) -> bool {
    COMMAND_KEYS.contains(&key)
        || URL_KEYS.contains(&key)
        || HEADER_KEYS.contains(&key)
        || URL_ONLY.contains(&key)
        || matches!(key, "args" | "type")
}

/// Adds the edits for an entry; `None` if it cannot be edited.
pub(super) fn edit(
    edits: &mut ConfigEdits<'_>,
    entry: &ConfigNode,
    rewrite: &EntryRewrite,
) -> Option<()> {
    // Cline nests what other clients have at the top level.
    let nested = entry.get("transport").filter(|inner| !inner.members().is_empty());
    let has = |map: &ConfigNode, keys: &[&str]| keys.iter().any(|key| map.get(key).is_some());
    let is_target = |map: &&ConfigNode| has(map, &COMMAND_KEYS) || has(map, &URL_KEYS);
    let map = nested.filter(is_target).unwrap_or(entry);
    match COMMAND_KEYS.iter().find_map(|key| map.member(key)) {
        Some(command) => edit_command(edits, map, command, &rewrite.shim),
        None => replace_url(edits, map, &entry.span, rewrite),
    }
}

fn edit_command(
    edits: &mut ConfigEdits<'_>,
    map: &ConfigNode,
    command: &ConfigMember,
    shim: &ShimCommand,
) -> Option<()> {
    match (&command.node.value, shim) {
        // opencode puts all words into one list; older versions of Zed use a map.
        (ConfigValue::List(_), _) if !command.is_own => None,
        (ConfigValue::List(_), ShimCommand::Before(words)) => {
            edits.prepend(&command.node, words);
            Some(())
        }
        (ConfigValue::List(_), ShimCommand::Instead(words)) => {
            edits.set(&command.node, &write_list(words));
            Some(())
        }
        (ConfigValue::Map(_), _) => {
            let path = command.node.member("path")?;
            edit_words(edits, &command.node, path, shim)
        }
        _ => edit_words(edits, map, command, shim),
    }
}

/// Edits a program and its arguments, which are members of one map.
fn edit_words(
    edits: &mut ConfigEdits<'_>,
    map: &ConfigNode,
    program: &ConfigMember,
    shim: &ShimCommand,
) -> Option<()> {
    let (first, added) = match shim {
        ShimCommand::Before(words) => {
            let (first, rest) = words.split_first()?;
            (first, [rest, &[program.node.as_text()?.to_owned()]].concat())
        }
        ShimCommand::Instead(words) => {
            let (first, rest) = words.split_first()?;
            (first, rest.to_vec())
        }
    };
    // A member that a merge key brings is written elsewhere; an own one goes before it.
    let own = map.members().iter().find(|member| member.is_own)?;
    let set = |edits: &mut ConfigEdits<'_>, member: &ConfigMember, value: &str| match member.is_own
    {
        true => edits.set(&member.node, value),
        false => edits.add_before(own, map, &member.key, value),
    };
    set(edits, program, &quote(first));
    match (map.member("args"), shim) {
        (None, _) => {
            let beside = if program.is_own { program } else { own };
            edits.add_before(beside, map, "args", &write_list(&added));
        }
        (Some(args), ShimCommand::Before(_)) if args.is_own && !args.node.elements().is_empty() => {
            edits.prepend(&args.node, &added);
        }
        (Some(args), ShimCommand::Before(_)) => {
            let kept = args.node.texts().unwrap_or_default();
            set(edits, args, &write_list(&[added, kept].concat()));
        }
        (Some(args), ShimCommand::Instead(_)) => set(edits, args, &write_list(&added)),
    }
    Some(())
}

/// Makes a command of an entry with a URL.
fn replace_url(
    edits: &mut ConfigEdits<'_>,
    map: &ConfigNode,
    entry_span: &Range<usize>,
    rewrite: &EntryRewrite,
) -> Option<()> {
    let ShimCommand::Instead(words) = &rewrite.shim else { return None };
    let (first, rest) = words.split_first()?;
    let url = URL_KEYS.iter().find_map(|key| map.member(key)).filter(|member| member.is_own)?;
    match rewrite.style {
        EntryStyle::OpencodeJson => {
            edits.rename(url, "command");
            edits.set(&url.node, &write_list(words));
        }
        style => {
            let key = if style == EntryStyle::GooseYaml { "cmd" } else { "command" };
            edits.add_before(url, map, "args", &write_list(rest));
            edits.rename(url, key);
            edits.set(&url.node, &quote(first));
        }
    }
    let moved = url_environment::move_headers(edits, map, rewrite.style, words)?;
    let is_nested = map.span != *entry_span;
    let mut removed = Vec::new();
    for member in map.members().iter().filter(|member| member.is_own && member.key != url.key) {
        let key = member.key.as_str();
        if moved.contains(&key) {
            continue;
        }
        match type_word(rewrite.style).or(is_nested.then_some("stdio")) {
            Some(word) if key == "type" => edits.set(&member.node, &quote(word)),
            None if key == "type" => removed.push(key),
            _ if URL_ONLY.contains(&key)
                || HEADER_KEYS.contains(&key)
                || URL_KEYS.contains(&key) =>
            {
                removed.push(key);
            }
            _ => {}
        }
    }
    edits.remove_all(map, &removed);
    Some(())
}

/// The `type` of an entry with a command; `None` where clients expect none.
fn type_word(style: EntryStyle) -> Option<&'static str> {
    match style {
        EntryStyle::OpencodeJson | EntryStyle::CopilotJson => Some("local"),
        EntryStyle::ClaudeCode
        | EntryStyle::TypedJson
        | EntryStyle::ListYaml
        | EntryStyle::GooseYaml => Some("stdio"),
        EntryStyle::Json | EntryStyle::Toml => None,
    }
}
