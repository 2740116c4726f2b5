//! Formats the result of a backtest as text and JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use tapegate_core::json::compact;
use tapegate_policy::backtest::{Change, Finding, Group, Place, Sort, Stand, Tally, Told, What};
use tapegate_policy::model::Profile;

use super::json::Writer;
use super::palette::Palette;
use super::visible;

/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 100;
/// How many characters of a detail are shown.
const DETAIL_CHARS_MAX: usize = 300;
/// How many groups of each kind are shown.
const GROUPS_SHOWN_MAX: usize = 20;

/// Facts about a backtest besides the counts.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    /// How many tapes were evaluated.
    pub(crate) tapes: u64,
    /// How many findings were listed.
    pub(crate) shown: u64,
    /// How many messages were too long to be recorded.
    pub(crate) oversize: u64,
    /// How many lines are not entries.
    pub(crate) broken_lines: u64,
    /// The profile in force.
    pub(crate) profile: Profile,
    /// Whether the policy was compared with another one.
    pub(crate) compared: bool,
    /// The servers that the tapes belong to.
    servers: BTreeMap<String, u64>,
}

impl Outline {
    /// Records that a tape belongs to this server.
    pub(crate) fn server(&mut self, name: &str) {
        *self.servers.entry(name.to_owned()).or_default() += 1;
    }
}

/// The result as text.
pub(crate) fn text(tally: &Tally, outline: &Outline, tapes: &[&Path], palette: Palette) -> String {
    let mut out = String::new();
    let groups = tally.groups();
    for (sort, title) in [
        (Sort::Deny, "denied"),
        (Sort::Hold, "waits for a person"),
        (Sort::Reject, "malformed"),
        (Sort::Drift, "not what was accepted"),
        (Sort::Filter, "hidden from lists"),
        (Sort::Redact, "masked"),
        (Sort::Forward, "sent on"),
        (Sort::Pass, "not gated"),
    ] {
        let of_sort: Vec<&&Group> = groups.iter().filter(|group| group.told.sort == sort).collect();
        if of_sort.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        writeln!(out, "{} ({})", palette.bold(title), tally.count_of(sort)).ok();
        for group in of_sort.iter().take(GROUPS_SHOWN_MAX) {
            let brief = matches!(sort, Sort::Forward | Sort::Pass);
            let places =
                if brief { String::new() } else { places(&group.places, group.count, tapes) };
            writeln!(out, "{:>9}  {}{places}", group.count, phrase(&group.told)).ok();
        }
        let more = of_sort.len().saturating_sub(GROUPS_SHOWN_MAX);
        if more > 0 {
            writeln!(out, "{:>9}  {}", "", palette.faint(&format!("… and {more} more"))).ok();
        }
    }
    if outline.compared {
        out.push_str(&changes(tally, tapes, palette));
    }
    out.push_str(&summary(tally, outline));
    out
}

fn changes(tally: &Tally, tapes: &[&Path], palette: Palette) -> String {
    let all = tally.changes();
    let total: u64 = all.iter().map(|change| change.count).sum();
    let mut out = format!("{} ({total})\n", palette.bold("changed"));
    for change in all.iter().take(GROUPS_SHOWN_MAX) {
        let places = places(&change.places, change.count, tapes);
        writeln!(out, "{:>9}  {}{places}", change.count, turn(change)).ok();
    }
    let more = all.len().saturating_sub(GROUPS_SHOWN_MAX);
    if more > 0 {
        writeln!(out, "{:>9}  {}", "", palette.faint(&format!("… and {more} more"))).ok();
    }
    out
}

fn summary(tally: &Tally, outline: &Outline) -> String {
    let counted = |count: u64, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let names: Vec<String> =
        outline.servers.keys().take(5).map(|name| format!("`{name}`")).collect();
    let servers = visible::inline(&names.join(", "), NAME_CHARS_MAX);
    let mut out = format!(
        "{} on {} of {servers}, by the profile {}: {} would not have been sent on",
        counted(tally.frames, "message"),
        counted(outline.tapes, "tape"),
        outline.profile.name(),
        tally.stopped,
    );
    if outline.oversize > 0 {
        write!(out, "; {} over the size limit", outline.oversize).ok();
    }
    if outline.broken_lines > 0 {
        write!(out, "; skipped, not entries: {}", counted(outline.broken_lines, "line")).ok();
    }
    out.push('\n');
    out
}

/// A finding on one line.
pub(crate) fn line(tape: &Path, finding: &Finding) -> String {
    let Place { line, seq, .. } = finding.place;
    let seq = seq.map(|seq| format!(" #{seq}")).unwrap_or_default();
    let what = match &finding.what {
        What::Told(told) => format!("{}: {}", told.word, phrase(told)),
        What::Changed(change) => format!("changed: {}", turn(change)),
    };
    format!("{}:{line}:{seq} {what}", visible::path(tape))
}

/// The same as JSON.
pub(crate) fn line_json(tape: &Path, finding: &Finding) -> Vec<u8> {
    let place = finding.place;
    on_a_line(|json| {
        json.text("type", "finding");
        json.text("tape", &tape.to_string_lossy());
        json.number("line", place.line);
        place.seq.into_iter().for_each(|seq| json.number("seq", seq));
        match &finding.what {
            What::Told(told) => write_told(json, told),
            What::Changed(change) => write_change(json, change),
        }
    })
}

/// The result as JSON: groups, changes and finally a summary, one object per line.
pub(crate) fn json(tally: &Tally, outline: &Outline, tapes: &[&Path]) -> Vec<u8> {
    let mut out = Vec::new();
    let write_places = |json: &mut Writer, places: &[Place]| {
        json.list("places", places, |json, place| {
            let tape = tapes.get(place.tape).map(|tape| tape.to_string_lossy());
            json.text("tape", &tape.unwrap_or_default());
            json.number("line", place.line);
            place.seq.into_iter().for_each(|seq| json.number("seq", seq));
        });
    };
    for group in tally.groups() {
        out.extend(on_a_line(|json| {
            json.text("type", "group");
            write_told(json, &group.told);
            json.number("count", group.count);
            write_places(json, &group.places);
        }));
    }
    for change in tally.changes() {
        out.extend(on_a_line(|json| {
            json.text("type", "change");
            write_change(json, change);
            json.number("count", change.count);
            write_places(json, &change.places);
        }));
    }
    out.extend(on_a_line(|json| {
        json.text("type", "summary");
        json.text("profile", outline.profile.name());
        json.number("tapes", outline.tapes);
        json.texts("servers", &outline.servers.keys().cloned().collect::<Vec<_>>());
        json.number("messages", tally.frames);
        json.number("stopped", tally.stopped);
        for sort in [
            Sort::Deny,
            Sort::Hold,
            Sort::Reject,
            Sort::Drift,
            Sort::Filter,
            Sort::Redact,
            Sort::Forward,
            Sort::Pass,
        ] {
            json.number(sort_word(sort), tally.count_of(sort));
        }
        if outline.compared {
            json.number("changed", tally.changes().iter().map(|change| change.count).sum());
        }
        json.number("oversize", outline.oversize);
        json.number("broken_lines", outline.broken_lines);
    }));
    out
}

fn on_a_line(then: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = compact(&Writer::object(then)).into_owned();
    out.push(b'\n');
    out
}

fn write_told(json: &mut Writer, told: &Told) {
    json.text("sort", sort_word(told.sort));
    json.text("decision", told.word);
    json.text("method", &told.method);
    json.text("name", &told.name);
    told.gate.into_iter().for_each(|gate| json.text("gate", gate.name()));
    told.rule.iter().for_each(|rule| json.text("rule", rule));
    if !told.detail.is_empty() {
        json.text("detail", &told.detail);
    }
}

fn write_change(json: &mut Writer, change: &Change) {
    json.text("sort", "changed");
    json.text("method", &change.method);
    json.text("name", &change.name);
    for (key, stand) in [("before", &change.before), ("after", &change.after)] {
        json.nested(key, |json| {
            json.text("decision", stand.word);
            stand.gate.into_iter().for_each(|gate| json.text("gate", gate.name()));
            stand.rule.iter().for_each(|rule| json.text("rule", rule));
        });
    }
}

/// A finding in a few words.
fn phrase(told: &Told) -> String {
    let name = format!("{} {}", told.method, told.name);
    let name = if name.trim().is_empty() { "a message" } else { name.trim() };
    let mut by = Vec::new();
    by.extend(told.gate.map(|gate| gate.title().to_owned()));
    by.extend(told.rule.iter().map(|rule| format!("rule `{rule}`")));
    let repeats = told.sort == Sort::Deny && told.rule.is_some();
    match told.sort {
        Sort::Hold if !told.detail.is_empty() => by.push(format!("workflow `{}`", told.detail)),
        _ if !told.detail.is_empty() && !repeats => by.push(told.detail.clone()),
        _ => {}
    }
    let by = visible::inline(&by.join(", "), DETAIL_CHARS_MAX);
    let by = if by.is_empty() { by } else { format!(" ({by})") };
    format!("{}{by}", visible::inline(name, NAME_CHARS_MAX))
}

/// A change in a few words.
fn turn(change: &Change) -> String {
    let name = format!("{} {}", change.method, change.name);
    let name = if name.trim().is_empty() { "a list" } else { name.trim() };
    let stand = |stand: &Stand| {
        let rule = stand.rule.iter().map(|rule| format!("rule `{rule}`"));
        let by: Vec<String> =
            stand.gate.map(|gate| gate.title().to_owned()).into_iter().chain(rule).collect();
        let by = visible::inline(&by.join(", "), NAME_CHARS_MAX);
        if by.is_empty() { stand.word.to_owned() } else { format!("{} ({by})", stand.word) }
    };
    let (before, after) = (stand(&change.before), stand(&change.after));
    format!("{}: {before} → {after}", visible::inline(name, NAME_CHARS_MAX))
}

/// The first positions, with the names of tapes if there are several.
fn places(places: &[Place], count: u64, tapes: &[&Path]) -> String {
    let one = |place: &Place| match tapes {
        [_] => place.line.to_string(),
        tapes => {
            let tape = tapes.get(place.tape).map(|tape| tape.display().to_string());
            format!("{}:{}", tape.unwrap_or_default(), place.line)
        }
    };
    let shown: Vec<String> = places.iter().map(one).collect();
    let more = if count > places.len() as u64 { ", …" } else { "" };
    let word = match (tapes, count) {
        ([_], 1) => "line ",
        ([_], _) => "lines ",
        _ => "",
    };
    format!("; {word}{}{more}", shown.join(", "))
}

fn sort_word(sort: Sort) -> &'static str {
    match sort {
        Sort::Deny => "deny",
        Sort::Hold => "hold",
        Sort::Reject => "reject",
        Sort::Drift => "drift",
        Sort::Filter => "filter",
        Sort::Redact => "redact",
        Sort::Forward => "forward",
        Sort::Pass => "pass",
    }
}
