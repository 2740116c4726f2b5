//! Checks a tree against the tables.

use tapegate_core::json::Number;

use super::{Shape, Table, TableEntry, UnknownKeys, nearest_name};
use crate::amount;
use crate::finding::Findings;
use crate::node::{Node, NodeKey, NodeValue};

/// Keys that are valid elsewhere, and the message where they are not.
pub type StrayKeys = &'static [(&'static str, &'static str)];

/// Reports everything in `node` that does not match `shape`.
pub fn check(node: &Node, shape: &Shape, strays: StrayKeys, findings: &mut Findings) {
    match shape {
        Shape::Any | Shape::Elsewhere(_) => {}
        // Only the kind of node selects the alternative, so that errors inside of it are reported
        // for it.
        Shape::Either(shapes) => match shapes.iter().find(|shape| accepts(shape, node)) {
            Some(shape) => check(node, shape, strays, findings),
            None => report_wrong_kind(node, shape, findings),
        },
        _ if !accepts(shape, node) => report_wrong_kind(node, shape, findings),
        Shape::List(inner) => {
            for (index, element) in node.as_list().unwrap_or_default().iter().enumerate() {
                let step = format!("[{index}]");
                findings.with_step(&step, |findings| check(element, inner, strays, findings));
            }
        }
        Shape::MapOf(inner) => {
            for (key, node) in node.as_map().unwrap_or_default() {
                findings.with_step(&key.name, |findings| check(node, inner, strays, findings));
            }
        }
        Shape::Table(table) => check_table(node, table, strays, findings),
        _ => check_word(node, shape, findings),
    }
}

/// Whether a node is of a kind that a shape accepts; its contents are not checked.
pub fn accepts(shape: &Shape, node: &Node) -> bool {
    let raw = match &node.value {
        NodeValue::Raw(text) => text.trim_start().as_bytes().first().copied(),
        _ => None,
    };
    match shape {
        Shape::Any => true,
        Shape::Elsewhere(inner) => accepts(inner, node),
        Shape::Either(shapes) => shapes.iter().any(|shape| accepts(shape, node)),
        Shape::Object => node.as_map().is_some() || raw == Some(b'{'),
        Shape::MapOf(_) | Shape::Table(Table { rest: UnknownKeys::Refuse, .. }) => {
            node.as_map().is_some()
        }
        Shape::Table(_) => node.as_map().is_some() || raw == Some(b'{'),
        Shape::List(_) => node.as_list().is_some(),
        Shape::Text | Shape::Name => node.as_text().is_some() || raw == Some(b'"'),
        Shape::Choice(_) => node.as_text().is_some(),
        Shape::Word(word) => {
            node.as_text().is_some() || word.numbers && matches!(node.value, NodeValue::Number(_))
        }
        Shape::Bool => matches!(node.value, NodeValue::Bool(_)),
        Shape::Whole(..) | Shape::Number => matches!(node.value, NodeValue::Number(_)),
        Shape::Duration | Shape::Bytes => {
            matches!(node.value, NodeValue::Number(_) | NodeValue::Text(_))
        }
    }
}

fn report_wrong_kind(node: &Node, shape: &Shape, findings: &mut Findings) {
    // A node that could not be included is null, and that was reported.
    if node.value == NodeValue::Null && findings.has_error_at(node.spot) {
        return;
    }
    let quotes = match (&node.value, accepts(shape, &Node::text(""))) {
        // The usual cause: a version such as `1.0`, or `on` in other YAML.
        (NodeValue::Number(_) | NodeValue::Bool(_), true) => "; put it in quotes",
        _ => "",
    };
    let message = format!("this must be {}, but it is {}{quotes}", name(shape), node.kind());
    findings.error(node.spot, message);
}

/// The name of a shape, for messages.
pub(super) fn name(shape: &Shape) -> String {
    match shape {
        Shape::Any => "anything".to_owned(),
        Shape::Elsewhere(inner) => name(inner),
        Shape::Either(shapes) => {
            let mut names: Vec<String> = shapes.iter().map(name).collect();
            names.dedup();
            names.join(" or ")
        }
        Shape::Object | Shape::MapOf(_) | Shape::Table(_) => "a map".to_owned(),
        Shape::List(_) => "a list".to_owned(),
        Shape::Text | Shape::Name => "text".to_owned(),
        Shape::Choice(choices) => choice_text(choices),
        Shape::Word(word) => word.name.to_owned(),
        Shape::Bool => "true or false".to_owned(),
        Shape::Whole(..) => "a whole number".to_owned(),
        Shape::Number => "a number".to_owned(),
        Shape::Duration => "a time, such as `5s`".to_owned(),
        Shape::Bytes => "an amount of bytes, such as `64kb`".to_owned(),
    }
}

/// A list of choices, for messages.
pub(super) fn choice_text(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Checks what the kind of a node does not decide.
fn check_word(node: &Node, shape: &Shape, findings: &mut Findings) {
    let text = match &node.value {
        NodeValue::Text(text) | NodeValue::Number(text) => text.as_str(),
        _ => return,
    };
    let fault = match shape {
        Shape::Name if text.is_empty() => Some("this must not be empty".to_owned()),
        Shape::Choice(choices) if !choices.contains(&text) => Some({
            let meant = nearest_name(text, choices.iter().copied());
            let hint = meant.map_or(String::new(), |word| format!("; did you mean `{word}`?"));
            format!("this must be {}, not `{text}`{hint}", choice_text(choices))
        }),
        Shape::Whole(least, most) => match Number::read(text.as_bytes()).as_u64() {
            Some(number) if number >= *least && number <= *most => None,
            _ => Some(range(*least, *most, text)),
        },
        Shape::Duration => amount::duration_ns(node).err(),
        Shape::Bytes => amount::bytes(node).err(),
        Shape::Word(word) => (word.check)(text).err(),
        _ => None,
    };
    if let Some(message) = fault {
        findings.error(node.spot, message);
    }
}

fn range(least: u64, most: u64, text: &str) -> String {
    match most {
        most if most == least => format!("this must be {least}, not {text}"),
        u64::MAX => format!("this must be a whole number from {least}, not {text}"),
        _ => format!("this must be a whole number from {least} to {most}, not {text}"),
    }
}

fn check_table(node: &Node, table: &Table, strays: StrayKeys, findings: &mut Findings) {
    let Some(entries) = node.as_map() else { return };
    for (key, value) in entries {
        match table.entry(&key.name) {
            Some(entry) if table.rest == UnknownKeys::Pass && is_optional_null(value, entry) => {}
            Some(entry) => {
                findings.with_step(&key.name, |findings| {
                    check(value, &entry.shape, strays, findings);
                });
                check_spelling(key, entry, entries, findings);
                check_kind(node, table, key, entry, findings);
            }
            // Objects of the protocol may have keys that only newer revisions know.
            None if table.rest != UnknownKeys::Refuse => {}
            None => report_unknown_key(key, table, strays, findings),
        }
    }
    for entry in table.entries().filter(|entry| entry.required) {
        if !entries.iter().any(|(key, _)| entry.has_name(&key.name)) {
            findings.error(node.spot, format!("`{}` is missing", entry.name));
        }
    }
}

/// Warns of a key that has no meaning for the map's type. An invalid type is reported elsewhere.
fn check_kind(
    node: &Node,
    table: &Table,
    key: &NodeKey,
    entry: &TableEntry,
    findings: &mut Findings,
) {
    if entry.only.is_empty() {
        return;
    }
    // A delivery may be a word with its settings next to it.
    let kind = ["type", "delivery"].into_iter().find_map(|name| {
        let kind = node.get(name)?.as_text()?;
        is_choice(&table.entry(name)?.shape, kind).then_some(kind)
    });
    if let Some(kind) = kind.filter(|kind| !entry.only.contains(kind)) {
        let (name, only) = (&key.name, choice_text(entry.only));
        let message = format!("`{name}` does not apply to `{kind}`, only to {only}");
        findings.warning(key.spot, message);
    }
}

fn is_choice(shape: &Shape, word: &str) -> bool {
    match shape {
        Shape::Choice(message) => message.contains(&word),
        Shape::Either(shapes) => shapes.iter().any(|shape| is_choice(shape, word)),
        _ => false,
    }
}

/// Whether the value of an optional key is null.
fn is_optional_null(value: &Node, entry: &TableEntry) -> bool {
    value.value == NodeValue::Null && !entry.required
}

/// A key may have several spellings, but a map must use only one of them.
fn check_spelling(
    key: &NodeKey,
    entry: &TableEntry,
    entries: &[(NodeKey, Node)],
    findings: &mut Findings,
) {
    let other =
        entries.iter().find(|(other, _)| other.name != key.name && entry.has_name(&other.name));
    // Reported at the alias only, or the pair would be reported twice.
    if key.name != entry.name
        && let Some((other, _)) = other
    {
        findings.error(key.spot, format!("`{}` repeats `{}`; remove one", key.name, other.name));
    }
}

fn report_unknown_key(key: &NodeKey, table: &Table, strays: StrayKeys, findings: &mut Findings) {
    let NodeKey { spot, name } = key;
    // Suggestions cost time for each key, and these messages are not listed.
    if findings.is_full() {
        return findings.error(*spot, "");
    }
    if let Some((_, message)) = strays.iter().find(|(stray, _)| stray == name) {
        return findings.error(*spot, *message);
    }
    let names: Vec<&str> = table
        .entries()
        .flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied()))
        .collect();
    let message = match nearest_name(name, names.iter().copied()) {
        Some(meant) => format!("there is no key `{name}` here; did you mean `{meant}`?"),
        // A longer list would bury the message.
        None if names.len() <= 12 => {
            format!("there is no key `{name}` here; expected {}", choice_text(&names))
        }
        None => format!("there is no key `{name}` here"),
    };
    findings.error(*spot, message);
}
