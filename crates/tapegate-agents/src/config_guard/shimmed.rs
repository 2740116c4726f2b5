//! Which entries of a config are behind a shim that its backup does not have.

use crate::client_table::EntryStyle;
use crate::discovery::PlaceStep;
use crate::entry::{ServerEntry, ServerTarget};
use crate::rewrite::{EntryRewrite, ShimCommand};
use crate::tree::{ConfigFormat, ConfigNode};

/// The rewrites that lead from `original` to `current`, whatever else others have changed; `None`
/// if one of them cannot be parsed.
pub(super) fn rewritten_entries(
    original: &str,
    current: &str,
    format: ConfigFormat,
) -> Option<Vec<EntryRewrite>> {
    let original = ConfigNode::read(original, format).ok()?;
    let current = ConfigNode::read(current, format).ok()?;
    let mut found = Vec::new();
    compare(&original, &current, &mut Vec::new(), &mut found);
    Some(found)
}

fn compare(
    original: &ConfigNode,
    current: &ConfigNode,
    place: &mut Vec<PlaceStep>,
    found: &mut Vec<EntryRewrite>,
) {
    if let Some(shim) = shim_of(original, current) {
        let style = style_of(original);
        found.push(EntryRewrite { place: place.clone(), style, shim });
        return;
    }
    for member in original.members() {
        if let Some(now) = current.get(&member.key) {
            place.push(PlaceStep::Key(member.key.clone()));
            compare(&member.node, now, place, found);
            place.pop();
        }
    }
    let name =
        |node: &ConfigNode| node.get("name").and_then(ConfigNode::as_text).map(str::to_owned);
    for element in original.elements() {
        let Some(own) = name(element) else { continue };
        if let Some(now) = current.elements().iter().find(|now| name(now).as_ref() == Some(&own)) {
            place.push(PlaceStep::Named(own));
            compare(element, now, place, found);
            place.pop();
        }
    }
}

/// The shim that an entry is behind now and was not before.
fn shim_of(original: &ConfigNode, current: &ConfigNode) -> Option<ShimCommand> {
    let (was, now) = (ServerEntry::read(original).ok()?, ServerEntry::read(current).ok()?);
    if was.is_governed || !now.is_governed {
        return None;
    }
    let ServerTarget::Command(argv) = now.target else { return None };
    match argv.iter().position(|word| word == "--") {
        Some(end) => Some(ShimCommand::Before(argv[..=end].to_vec())),
        None => Some(ShimCommand::Instead(argv)),
    }
}

/// How the entry was written, as far as it matters for one with a URL.
fn style_of(original: &ConfigNode) -> EntryStyle {
    let kind = original.get("type").and_then(ConfigNode::as_text);
    let goose = original.get("uri").is_some();
    match kind {
        _ if goose => EntryStyle::GooseYaml,
        Some("remote") => EntryStyle::OpencodeJson,
        Some(_) => EntryStyle::TypedJson,
        None => EntryStyle::Json,
    }
}
