//! Which entries of a config are behind a shim that its backup does not have.

use crate::client_table::EntryStyle;
use crate::discovery::PlaceStep;
use crate::entry::{ServerEntry, ServerTarget};
use crate::rewrite::{EntryRewrite, ShimCommand, find, replace_copy, unwrap};
use crate::server_id::server_id;
use crate::shim_entry::URL_FLAG;
use crate::stored_entry::{ENTRY_FLAG, flag_value, hub_of, server_and_hub};
use crate::tree::{ConfigFormat, ConfigNode};

/// The rewrites that lead from `original` to `current`, whatever else others have changed; `None`
/// if one of them cannot be parsed.
pub(crate) fn rewritten_entries(
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
        // Below an entry there are no others.
        return;
    }
    let members = original.members();
    for (at, member) in members.iter().enumerate() {
        // Of a key that occurs twice, the last one counts, as in `find`.
        if members[at + 1..].iter().any(|later| later.key == member.key) {
            continue;
        }
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
    // An entry that was governed before the session is the user's.
    if was.is_governed || !now.is_governed {
        return None;
    }
    let ServerTarget::Command(argv) = now.target else { return None };
    match argv.iter().position(|word| word == "--") {
        // The first `--` ends our words; later ones belong to the server.
        Some(end) => Some(ShimCommand::Before(argv[..=end].to_vec())),
        None => Some(ShimCommand::Instead(argv)),
    }
}

/// The mark of the hub of these shims.
pub(crate) fn hub(rewrites: &[EntryRewrite]) -> Option<String> {
    rewrites.iter().find_map(|rewrite| hub_of(words_of(&rewrite.shim)))
}

fn words_of(shim: &ShimCommand) -> &[String] {
    let (ShimCommand::Before(words) | ShimCommand::Instead(words)) = shim;
    words
}

/// Takes the shims of this hub off entries that the original does not have: copies of ours, such as
/// after a server was renamed. The hub ends with the session. Returns the text, and the names of
/// copies that had other changes, which are lost.
pub(crate) fn without_copies(
    original: &str,
    mut text: String,
    format: ConfigFormat,
    hub: &str,
) -> (String, Vec<String>) {
    let mut conflicts = Vec::new();
    let Ok(tree) = ConfigNode::read(original, format) else { return (text, conflicts) };
    let Ok(current) = ConfigNode::read(&text, format) else { return (text, conflicts) };
    let mut copies = Vec::new();
    collect_copies(&tree, &current, &mut Vec::new(), &mut copies);
    copies.retain(|copy| hub_of(words_of(&copy.shim)).as_deref() == Some(hub));
    for copy in copies {
        // One that cannot be edited stays, and its server says why it does not start.
        let Some(source) = source_of(&tree, &copy.shim) else {
            text = unwrap(&text, format, &copy).unwrap_or(text);
            continue;
        };
        if let Some(back) = replace_copy(original, &text, format, (&copy, &source)) {
            text = back.text;
            conflicts.extend(back.conflicts);
        }
    }
    (text, conflicts)
}

/// The entry from which the shim was made; `None` for one that has the whole command line in it.
fn source_of(original: &ConfigNode, shim: &ShimCommand) -> Option<EntryRewrite> {
    let ShimCommand::Instead(words) = shim else { return None };
    let url = flag_value(words, URL_FLAG);
    let id = match url {
        Some(_) => flag_value(words, "--server-id")?,
        None => server_and_hub(flag_value(words, ENTRY_FLAG)?)?.0,
    };
    let mut found = Vec::new();
    collect_targets(original, url, &mut Vec::new(), &mut found);
    // Several servers may have one URL, with different headers.
    let is_named = |place: &Vec<PlaceStep>| place_name(place).map(server_id).as_deref() == Some(id);
    let at = found.iter().position(is_named);
    // A command line is not known without its name.
    let place = found.into_iter().nth(at.or(url.map(|_| 0))?)?;
    let style = style_of(find(original, &place)?);
    Some(EntryRewrite { place, style, shim: shim.clone() })
}

fn place_name(place: &[PlaceStep]) -> Option<&str> {
    place.last().map(|step| match step {
        PlaceStep::Key(name) | PlaceStep::Named(name) => name.as_str(),
    })
}

/// Collects the entries with this URL, or those with a command.
fn collect_targets(
    node: &ConfigNode,
    url: Option<&str>,
    place: &mut Vec<PlaceStep>,
    found: &mut Vec<Vec<PlaceStep>>,
) {
    if let Ok(ServerEntry { target, .. }) = ServerEntry::read(node) {
        let is_meant = match &target {
            ServerTarget::Url(own, _) => url == Some(own.as_str()),
            ServerTarget::Command(_) => url.is_none(),
        };
        if is_meant {
            found.push(place.clone());
        }
        return;
    }
    for (step, inner) in steps(node) {
        place.push(step);
        collect_targets(inner, url, place, found);
        place.pop();
    }
}

/// What is directly below a node.
fn steps(node: &ConfigNode) -> impl Iterator<Item = (PlaceStep, &ConfigNode)> {
    let named = node.elements().iter().filter_map(|element| {
        let name = element.get("name").and_then(ConfigNode::as_text)?;
        Some((PlaceStep::Named(name.to_owned()), element))
    });
    let keys = node.members().iter().map(|one| (PlaceStep::Key(one.key.clone()), &one.node));
    named.chain(keys)
}

fn collect_copies(
    original: &ConfigNode,
    node: &ConfigNode,
    place: &mut Vec<PlaceStep>,
    found: &mut Vec<EntryRewrite>,
) {
    if let Some(shim) = session_shim(node) {
        let was = find(original, place);
        if was.is_none_or(|was| session_shim(was).is_none()) {
            found.push(EntryRewrite { place: place.clone(), style: EntryStyle::Json, shim });
        }
        return;
    }
    for (step, inner) in steps(node) {
        place.push(step);
        collect_copies(original, inner, place, found);
        place.pop();
    }
}

/// The shim of a session that an entry starts.
fn session_shim(node: &ConfigNode) -> Option<ShimCommand> {
    let entry = ServerEntry::read(node).ok().filter(|entry| entry.is_governed)?;
    let ServerTarget::Command(argv) = entry.target else { return None };
    let shim = match argv.iter().position(|word| word == "--") {
        Some(end) => ShimCommand::Before(argv[..=end].to_vec()),
        None if argv.iter().any(|word| word == URL_FLAG || word == ENTRY_FLAG) => {
            ShimCommand::Instead(argv)
        }
        None => return None,
    };
    // Shims that are installed for good have no hub on their command lines.
    hub_of(words_of(&shim)).is_some().then_some(shim)
}

/// How the entry was written, as far as it matters for one with a URL.
fn style_of(original: &ConfigNode) -> EntryStyle {
    let kind = original.get("type").and_then(ConfigNode::as_text);
    let goose = original.get("uri").is_some();
    match kind {
        // First, because its entries have a `type` as well.
        _ if goose => EntryStyle::GooseYaml,
        Some("remote") => EntryStyle::OpencodeJson,
        Some(_) => EntryStyle::TypedJson,
        None => EntryStyle::Json,
    }
}
