//! Formats differences between what servers offer and what was accepted, as text and JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use tapegate_core::json::diff::{DiffOptions, JsonDifferences, diff};
use tapegate_core::json::{JsonLocation, member};
use tapegate_policy::gated_requests::OfferKind;
use tapegate_policy::pins::{PinDifference, ShadowedTools};

use super::json::{self as json_view, JsonWriter};
use super::palette::Palette;
use super::{diff as diff_view, visible_text};
use crate::program_name;

/// How many fields of a definition are compared.
const FIELDS_MAX: usize = 100;
/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 200;

/// The hints of MCP, in order of importance.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// What servers offer, compared with what was accepted.
pub(crate) struct PinReport<'p> {
    /// The lock file.
    pub(crate) lock: &'p Path,
    /// How much each server offers.
    pub(crate) offered: Vec<(String, usize)>,
    /// The differences from what was accepted, by server.
    pub(crate) differences: BTreeMap<String, Vec<PinDifference>>,
    /// How many of them were accepted.
    pub(crate) accepted: usize,
    /// Whether the lock file as written is in force.
    pub(crate) is_in_force: bool,
    /// Tools that could be mistaken for each other.
    pub(crate) shadows: Vec<ShadowedTools>,
}

/// The result as text.
pub(crate) fn text(pinned: &PinReport<'_>, written: bool, palette: Palette) -> String {
    let mut out = changes(&pinned.differences, palette);
    for shadow in &pinned.shadows {
        let tools: Vec<String> =
            shadow.tools.iter().map(|(server, name)| format!("`{name}` of {server}")).collect();
        let how = if shadow.exact { "have one name" } else { "look alike" };
        let tools_text = visible_text::inline(&tools.join(" and "), NAME_CHARS_MAX);
        // Writing to a string cannot fail.
        writeln!(out, "{} {tools_text} {how}", palette.bold("shadowed:")).ok();
    }
    let total: usize = pinned.differences.values().map(Vec::len).sum();
    let offered: usize = pinned.offered.iter().map(|(_, count)| count).sum();
    let servers: Vec<&str> = pinned.offered.iter().map(|(server, _)| server.as_str()).collect();
    let servers = visible_text::inline(&servers.join(", "), NAME_CHARS_MAX);
    let lock = visible_text::path(pinned.lock);
    write!(out, "{servers}: {offered} offered, ").ok();
    match (total, pinned.accepted) {
        (0, _) => writeln!(out, "all match {lock}; nothing to write").ok(),
        (total, 0) => writeln!(out, "{total} differ from {lock}; nothing was written").ok(),
        (total, accepted) if written && !pinned.is_in_force => writeln!(
            out,
            "{accepted} of {total} differences written to {lock}, which is not in force; \
                 `{}` puts it in force",
            program_name::command("policy accept")
        )
        .ok(),
        (total, accepted) => {
            let done = if written { "written to" } else { "as it is in" };
            writeln!(out, "{accepted} of {total} differences accepted, {done} {lock}").ok()
        }
    };
    out
}

/// The differences from what was accepted, one after the other.
pub(crate) fn changes(all: &BTreeMap<String, Vec<PinDifference>>, palette: Palette) -> String {
    let all = all.iter().flat_map(|(server, list)| list.iter().map(move |one| (server, one)));
    all.map(|(server, difference)| change_text(server, difference, palette)).collect()
}

fn change_text(server: &str, difference: &PinDifference, palette: Palette) -> String {
    // The name may come from a tape, so escape it.
    let server = visible_text::inline(server, NAME_CHARS_MAX);
    let name = visible_text::inline(&difference.name, NAME_CHARS_MAX);
    let head = format!("{server}: {} {name}", difference.offer.as_str());
    match change(difference) {
        "new" => format!("{}\n", palette.green(&format!("+ {head} is new{}", hints(difference)))),
        "gone" => format!("{}\n", palette.red(&format!("- {head} is gone"))),
        _ => {
            let fields = diff_view::render(&fields(difference), palette, "    ");
            format!("{}\n{fields}", palette.bold(&format!("~ {head} has changed")))
        }
    }
}

/// The hints of a new tool, since rules may depend on them; empty for anything else.
fn hints(difference: &PinDifference) -> String {
    let Some(pin) = difference.offered.as_ref().filter(|_| difference.offer == OfferKind::Tool)
    else {
        return String::new();
    };
    let annotations = member(&pin.definition, "annotations").unwrap_or_default();
    let hint_texts = HINTS.iter().filter_map(|name| {
        let value = member(annotations, name)?;
        Some(format!("{name}: {}", visible_text::inline(&String::from_utf8_lossy(value), 20)))
    });
    let hint_texts: Vec<String> = hint_texts.collect();
    if hint_texts.is_empty() {
        " (no hints)".to_owned()
    } else {
        format!(" ({})", hint_texts.join(", "))
    }
}

/// The result as one JSON object.
pub(crate) fn json(pinned: &PinReport<'_>, written: bool) -> Vec<u8> {
    let mut out = JsonWriter::object(|json| {
        json.text("lock", &pinned.lock.to_string_lossy());
        json.raw("written", if written { b"true" } else { b"false" });
        if written {
            json.raw("in_force", if pinned.is_in_force { b"true" } else { b"false" });
        }
        json.number("accepted", pinned.accepted as u64);
        json.list("servers", &pinned.offered, |json, (server, count)| {
            json.text("server", server);
            json.number("offered", *count as u64);
        });
        let all = pinned.differences.iter();
        let all = all.flat_map(|(server, list)| list.iter().map(move |one| (server, one)));
        json.list("differences", all, |json, (server, difference)| {
            json.text("server", server);
            json.text("kind", difference.offer.as_str());
            json.text("name", &difference.name);
            json.text("change", change(difference));
            for (key, pin) in [("accepted", &difference.accepted), ("offered", &difference.offered)]
            {
                pin.iter().for_each(|pin| json.text(key, &pin.hash));
            }
            if change(difference) == "changed" {
                for (key, fact) in json_view::differences(&fields(difference)) {
                    json.raw(key, &fact);
                }
            }
        });
        json.list("shadows", &pinned.shadows, |json, shadow| {
            json.raw("exact", if shadow.exact { b"true" } else { b"false" });
            json.list("tools", &shadow.tools, |json, (server, name)| {
                json.text("server", server);
                json.text("name", name);
            });
        });
    });
    out.push(b'\n');
    out
}

fn change(difference: &PinDifference) -> &'static str {
    match (&difference.accepted, &difference.offered) {
        (None, _) => "new",
        (_, None) => "gone",
        (Some(_), Some(_)) => "changed",
    }
}

/// The differences between two definitions, field by field.
fn fields(difference: &PinDifference) -> JsonDifferences<'_> {
    let terms = DiffOptions { root: JsonLocation::default(), ignored: &[], listed_max: FIELDS_MAX };
    let definition = |pin: &'static str| pin.as_bytes();
    let old = difference.accepted.as_ref().map_or(definition("{}"), |pin| &pin.definition);
    let new = difference.offered.as_ref().map_or(definition("{}"), |pin| &pin.definition);
    diff(old, new, &terms).unwrap_or_default()
}
