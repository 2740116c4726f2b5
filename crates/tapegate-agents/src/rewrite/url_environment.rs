//! The headers of an entry with a URL, as environment variables of its shim.
//!
//! The map of headers becomes the map of variables by renaming its keys, so that the values stay as
//! they are written, with the references that the client resolves in them. No secret is moved to a
//! command line, which every user of the machine can read.

use super::ShimCommand;
use crate::client_table::EntryStyle;
use crate::edit::{ConfigEdits, write_list};
use crate::entry::{HEADER_KEYS, ServerEntry, ServerTarget};
use crate::shim_entry::{HEADER_FLAG, TOKEN_FLAG};
use crate::tree::{ConfigNode, ConfigValue};

/// Where Codex names the variables that a server inherits.
const INHERITED: &str = "env_vars";
/// Keys of settings with variables.
const ENVIRONMENT_KEYS: [&str; 4] = ["env", "envs", "environment", INHERITED];

/// Makes variables of the headers that the shim takes from the environment. Returns the keys that
/// were dealt with; `None` if they cannot be moved.
pub(super) fn move_headers<'m>(
    edits: &mut ConfigEdits<'_>,
    map: &'m ConfigNode,
    style: EntryStyle,
    words: &[String],
) -> Option<Vec<&'m str>> {
    let mut moved = Vec::new();
    let has_environment = ENVIRONMENT_KEYS.iter().any(|key| map.get(key).is_some());
    let pairs = header_pairs(words);
    for member in map.members().iter().filter(|member| {
        member.is_own && ["headers", "http_headers"].contains(&member.key.as_str())
    }) {
        let headers = member.node.members();
        let variable = |name: &str| pairs.iter().find(|(header, _)| *header == name);
        if headers.is_empty() || !headers.iter().any(|one| variable(&one.key).is_some()) {
            continue;
        }
        // A second map of variables would hide the first.
        if has_environment || !moved.is_empty() || headers.iter().any(|one| !one.is_own) {
            return None;
        }
        // The keys change and the values do not, so references in them are still resolved by the
        // client.
        edits.rename(member, environment_key(style));
        for header in headers {
            edits.rename(header, variable(&header.key)?.1);
        }
        moved.push(member.key.as_str());
    }
    let inherited = inherited_variables(map, words);
    if inherited.is_empty() {
        return Some(moved);
    }
    let keys = ["bearer_token_env_var", "env_http_headers"];
    let mut own = map.members().iter().filter(|one| one.is_own && keys.contains(&one.key.as_str()));
    // Only one key can take the list; the other is removed with the settings of the URL.
    let first = own.next().filter(|_| map.get(INHERITED).is_none())?;
    edits.rename(first, INHERITED);
    edits.set(&first.node, &write_list(&inherited));
    moved.push(first.key.as_str());
    Some(moved)
}

/// The entry without the variables that its headers have become, if there are exactly those.
pub(super) fn without_headers(
    before: &ConfigNode,
    after: &ConfigNode,
    shim: &ShimCommand,
) -> Option<ConfigNode> {
    let (ShimCommand::Instead(words), Ok(entry)) = (shim, ServerEntry::read(before)) else {
        return Some(after.clone());
    };
    if !matches!(entry.target, ServerTarget::Url(..)) {
        return Some(after.clone());
    }
    let nested = |node: &ConfigNode| {
        node.get("transport").filter(|inner| !inner.members().is_empty()).cloned()
    };
    let (old, new) = match (nested(before), nested(after)) {
        (Some(old), Some(new)) => (old, new),
        _ => (before.clone(), after.clone()),
    };
    let pairs = header_pairs(words);
    let inherited = inherited_variables(&old, words);
    for key in ENVIRONMENT_KEYS.iter().filter(|key| old.get(key).is_none()) {
        let Some(variables) = new.get(key) else { continue };
        let is_expected = match *key {
            INHERITED => variables.texts().as_ref() == Some(&inherited),
            // Every variable must be a header of the entry as it was, or the edit has added
            // something.
            _ => variables.members().iter().all(|one| is_header_value(&old, &pairs, one)),
        };
        if !is_expected {
            return None;
        }
    }
    let mut rest = after.clone();
    remove_added(&mut rest, &old);
    Some(rest)
}

fn is_header_value(
    old: &ConfigNode,
    pairs: &[(&str, &str)],
    variable: &crate::tree::ConfigMember,
) -> bool {
    let header = pairs.iter().find(|(_, name)| *name == variable.key).map(|(header, _)| *header);
    let was =
        header.and_then(|header| HEADER_KEYS.iter().find_map(|key| old.get(key)?.get(header)));
    was.is_some_and(|was| was.is_same(&variable.node))
}

fn remove_added(node: &mut ConfigNode, old: &ConfigNode) {
    let ConfigValue::Map(members) = &mut node.value else { return };
    let is_added = |key: &str| ENVIRONMENT_KEYS.contains(&key) && old.get(key).is_none();
    members.retain(|member| !is_added(&member.key));
    members
        .iter_mut()
        .filter(|member| member.key == "transport")
        .for_each(|member| remove_added(&mut member.node, old));
}

/// The headers and variables that a shim is started with.
fn header_pairs(words: &[String]) -> Vec<(&str, &str)> {
    let after = words.iter().zip(words.iter().skip(1));
    let values = after.filter(|(flag, _)| *flag == HEADER_FLAG).map(|(_, value)| value);
    values.filter_map(|value| value.split_once('=')).collect()
}

/// The variables of the client's environment that the shim needs.
fn inherited_variables(map: &ConfigNode, words: &[String]) -> Vec<String> {
    let has_flag = |flag: &str, value: &str| {
        words.iter().zip(words.iter().skip(1)).any(|(one, two)| one == flag && two == value)
    };
    let mut names = Vec::new();
    let bearer = map.get("bearer_token_env_var").and_then(ConfigNode::as_text);
    names.extend(bearer.filter(|name| has_flag(TOKEN_FLAG, name)).map(str::to_owned));
    let headers = map.get("env_http_headers").map(ConfigNode::members).unwrap_or_default();
    for header in headers {
        let name = header.node.as_text().unwrap_or_default();
        if has_flag(HEADER_FLAG, &format!("{}={name}", header.key)) {
            names.push(name.to_owned());
        }
    }
    names.dedup();
    names
}

/// How a client calls the variables of a server.
fn environment_key(style: EntryStyle) -> &'static str {
    match style {
        EntryStyle::GooseYaml => "envs",
        EntryStyle::OpencodeJson => "environment",
        _ => "env",
    }
}
