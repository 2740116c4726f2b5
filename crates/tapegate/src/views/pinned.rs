//! Formats differences between what servers offer and what was accepted, as text and JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use tapegate_core::json::diff::{Differences, Terms, diff};
use tapegate_core::json::{Place, member};
use tapegate_policy::gated::Offer;
use tapegate_policy::pins::{Difference, Shadow};

use super::json::{self as json_view, Writer};
use super::palette::Palette;
use super::{diff as diff_view, visible};
use crate::called;

/// How many fields of a definition are compared.
const FIELDS_MAX: usize = 100;
/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 200;

/// The hints of MCP, in order of importance.
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/// What servers offer, compared with what was accepted.
pub(crate) struct Pinned<'p> {
    /// The lock file.
    pub(crate) lock: &'p Path,
    /// How much each server offers.
    pub(crate) offered: Vec<(String, usize)>,
    /// The differences from what was accepted, by server.
    pub(crate) differences: BTreeMap<String, Vec<Difference>>,
    /// How many of them were accepted.
    pub(crate) accepted: usize,
    /// Whether the lock file as written is in force.
    pub(crate) is_in_force: bool,
    /// Tools that could be mistaken for each other.
    pub(crate) shadows: Vec<Shadow>,
}

/// The result as text.
pub(crate) fn text(pinned: &Pinned<'_>, written: bool, palette: Palette) -> String {
    let mut out = changes(&pinned.differences, palette);
    for shadow in &pinned.shadows {
        let tools: Vec<String> =
            shadow.tools.iter().map(|(server, name)| format!("`{name}` of {server}")).collect();
        let how = if shadow.exact { "have one name" } else { "look alike" };
        let words = visible::inline(&tools.join(" and "), NAME_CHARS_MAX);
        // Writing to a string cannot fail.
        writeln!(out, "{} {words} {how}", palette.bold("shadowed:")).ok();
    }
    let total: usize = pinned.differences.values().map(Vec::len).sum();
    let offered: usize = pinned.offered.iter().map(|(_, count)| count).sum();
    let servers: Vec<&str> = pinned.offered.iter().map(|(server, _)| server.as_str()).collect();
    let servers = visible::inline(&servers.join(", "), NAME_CHARS_MAX);
    let lock = visible::path(pinned.lock);
    write!(out, "{servers}: {offered} offered, ").ok();
    match (total, pinned.accepted) {
        (0, _) => writeln!(out, "all as it was accepted in {lock}; nothing to write").ok(),
        (total, 0) => writeln!(out, "{total} not as accepted in {lock}; nothing was written").ok(),
        (total, accepted) if written && !pinned.is_in_force => writeln!(
            out,
            "{accepted} of {total} differences written to {lock}, which is not in force; \
                 `{}` puts it in force",
            called::command("policy accept")
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
pub(crate) fn changes(all: &BTreeMap<String, Vec<Difference>>, palette: Palette) -> String {
    let all = all.iter().flat_map(|(server, list)| list.iter().map(move |one| (server, one)));
    all.map(|(server, difference)| one(server, difference, palette)).collect()
}

fn one(server: &str, difference: &Difference, palette: Palette) -> String {
    // The name may come from a tape, so escape it.
    let server = visible::inline(server, NAME_CHARS_MAX);
    let name = visible::inline(&difference.name, NAME_CHARS_MAX);
    let head = format!("{server}: {} {name}", difference.offer.word());
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
fn hints(difference: &Difference) -> String {
    let Some(pin) = difference.offered.as_ref().filter(|_| difference.offer == Offer::Tool) else {
        return String::new();
    };
    let annotations = member(&pin.definition, "annotations").unwrap_or_default();
    let said = HINTS.iter().filter_map(|name| {
        let value = member(annotations, name)?;
        Some(format!("{name}: {}", visible::inline(&String::from_utf8_lossy(value), 20)))
    });
    let said: Vec<String> = said.collect();
    if said.is_empty() { " (no hints)".to_owned() } else { format!(" ({})", said.join(", ")) }
}

/// The result as one JSON object.
pub(crate) fn json(pinned: &Pinned<'_>, written: bool) -> Vec<u8> {
    let mut out = Writer::object(|json| {
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
            json.text("kind", difference.offer.word());
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

fn change(difference: &Difference) -> &'static str {
    match (&difference.accepted, &difference.offered) {
        (None, _) => "new",
        (_, None) => "gone",
        (Some(_), Some(_)) => "changed",
    }
}

/// The differences between two definitions, field by field.
fn fields(difference: &Difference) -> Differences<'_> {
    let terms = Terms { root: Place::default(), ignored: &[], listed_max: FIELDS_MAX };
    let definition = |pin: &'static str| pin.as_bytes();
    let old = difference.accepted.as_ref().map_or(definition("{}"), |pin| &pin.definition);
    let new = difference.offered.as_ref().map_or(definition("{}"), |pin| &pin.definition);
    diff(old, new, &terms).unwrap_or_default()
}
