//! Formats the result of a backtest as text and JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use tapegate_core::json::compact;
use tapegate_policy::backtest::{
    BacktestFinding, BacktestItem, BacktestTally, FindingDetail, FindingGroup, FindingKind,
    FindingLocation, PolicyChange, PolicyOutcome,
};
use tapegate_policy::model::Profile;

use super::json::JsonWriter;
use super::palette::Palette;
use super::visible_text;

/// How many characters of a name are shown.
const NAME_CHARS_MAX: usize = 100;
/// How many characters of a detail are shown.
const DETAIL_CHARS_MAX: usize = 300;
/// How many groups of each kind are shown.
const GROUPS_SHOWN_MAX: usize = 20;

/// Facts about a backtest besides the counts.
#[derive(Debug, Default)]
pub(crate) struct BacktestOutline {
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

impl BacktestOutline {
    /// Records that a tape belongs to this server.
    pub(crate) fn server(&mut self, name: &str) {
        *self.servers.entry(name.to_owned()).or_default() += 1;
    }
}

/// The result as text.
pub(crate) fn text(
    tally: &BacktestTally,
    outline: &BacktestOutline,
    tapes: &[&Path],
    palette: Palette,
) -> String {
    let mut out = String::new();
    let groups = tally.groups();
    for (sort, title) in [
        (FindingKind::Deny, "denied"),
        (FindingKind::Hold, "waits for a person"),
        (FindingKind::Reject, "malformed"),
        (FindingKind::Drift, "not what was accepted"),
        (FindingKind::Filter, "hidden from lists"),
        (FindingKind::Redact, "masked"),
        (FindingKind::Forward, "sent on"),
        (FindingKind::Pass, "not gated"),
    ] {
        let of_sort: Vec<&&FindingGroup> =
            groups.iter().filter(|group| group.finding_detail.kind == sort).collect();
        if of_sort.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        writeln!(out, "{} ({})", palette.bold(title), tally.count_kind(sort)).ok();
        for group in of_sort.iter().take(GROUPS_SHOWN_MAX) {
            let brief = matches!(sort, FindingKind::Forward | FindingKind::Pass);
            let places =
                if brief { String::new() } else { places(&group.places, group.count, tapes) };
            writeln!(out, "{:>9}  {}{places}", group.count, finding_phrase(&group.finding_detail))
                .ok();
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

fn changes(tally: &BacktestTally, tapes: &[&Path], palette: Palette) -> String {
    let all = tally.changes();
    let total: u64 = all.iter().map(|change| change.count).sum();
    let mut out = format!("{} ({total})\n", palette.bold("changed"));
    for change in all.iter().take(GROUPS_SHOWN_MAX) {
        let places = places(&change.places, change.count, tapes);
        writeln!(out, "{:>9}  {}{places}", change.count, change_phrase(change)).ok();
    }
    let more = all.len().saturating_sub(GROUPS_SHOWN_MAX);
    if more > 0 {
        writeln!(out, "{:>9}  {}", "", palette.faint(&format!("… and {more} more"))).ok();
    }
    out
}

fn summary(tally: &BacktestTally, outline: &BacktestOutline) -> String {
    let counted = |count: u64, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let names: Vec<String> =
        outline.servers.keys().take(5).map(|name| format!("`{name}`")).collect();
    let servers = visible_text::inline(&names.join(", "), NAME_CHARS_MAX);
    let mut out = format!(
        "{} on {} of {servers}, by the profile {}: {} would not have been sent on",
        counted(tally.frames, "message"),
        counted(outline.tapes, "tape"),
        outline.profile.as_str(),
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
pub(crate) fn line(tape: &Path, finding: &BacktestFinding) -> String {
    let FindingLocation { line, seq, .. } = finding.location;
    let seq = seq.map(|seq| format!(" #{seq}")).unwrap_or_default();
    let what = match &finding.item {
        BacktestItem::Told(detail) => format!("{}: {}", detail.word, finding_phrase(detail)),
        BacktestItem::Changed(change) => format!("changed: {}", change_phrase(change)),
    };
    format!("{}:{line}:{seq} {what}", visible_text::path(tape))
}

/// The same as JSON.
pub(crate) fn line_json(tape: &Path, finding: &BacktestFinding) -> Vec<u8> {
    let place = finding.location;
    single_line_json(|json| {
        json.text("type", "finding");
        json.text("tape", &tape.to_string_lossy());
        json.number("line", place.line);
        place.seq.into_iter().for_each(|seq| json.number("seq", seq));
        match &finding.item {
            BacktestItem::Told(detail) => write_finding(json, detail),
            BacktestItem::Changed(change) => write_change(json, change),
        }
    })
}

/// The result as JSON: groups, changes and finally a summary, one object per line.
pub(crate) fn json(tally: &BacktestTally, outline: &BacktestOutline, tapes: &[&Path]) -> Vec<u8> {
    let mut out = Vec::new();
    let write_places = |json: &mut JsonWriter, places: &[FindingLocation]| {
        json.list("places", places, |json, place| {
            let tape = tapes.get(place.tape).map(|tape| tape.to_string_lossy());
            json.text("tape", &tape.unwrap_or_default());
            json.number("line", place.line);
            place.seq.into_iter().for_each(|seq| json.number("seq", seq));
        });
    };
    for group in tally.groups() {
        out.extend(single_line_json(|json| {
            json.text("type", "group");
            write_finding(json, &group.finding_detail);
            json.number("count", group.count);
            write_places(json, &group.places);
        }));
    }
    for change in tally.changes() {
        out.extend(single_line_json(|json| {
            json.text("type", "change");
            write_change(json, change);
            json.number("count", change.count);
            write_places(json, &change.places);
        }));
    }
    out.extend(single_line_json(|json| {
        json.text("type", "summary");
        json.text("profile", outline.profile.as_str());
        json.number("tapes", outline.tapes);
        json.texts("servers", &outline.servers.keys().cloned().collect::<Vec<_>>());
        json.number("messages", tally.frames);
        json.number("stopped", tally.stopped);
        for sort in [
            FindingKind::Deny,
            FindingKind::Hold,
            FindingKind::Reject,
            FindingKind::Drift,
            FindingKind::Filter,
            FindingKind::Redact,
            FindingKind::Forward,
            FindingKind::Pass,
        ] {
            json.number(kind_word(sort), tally.count_kind(sort));
        }
        if outline.compared {
            json.number("changed", tally.changes().iter().map(|change| change.count).sum());
        }
        json.number("oversize", outline.oversize);
        json.number("broken_lines", outline.broken_lines);
    }));
    out
}

fn single_line_json(then: impl FnOnce(&mut JsonWriter)) -> Vec<u8> {
    let mut out = compact(&JsonWriter::object(then)).into_owned();
    out.push(b'\n');
    out
}

fn write_finding(json: &mut JsonWriter, detail: &FindingDetail) {
    json.text("sort", kind_word(detail.kind));
    json.text("decision", detail.word);
    json.text("method", &detail.method);
    json.text("name", &detail.name);
    detail.gate.into_iter().for_each(|gate| json.text("gate", gate.as_str()));
    detail.rule.iter().for_each(|rule| json.text("rule", rule));
    if !detail.detail.is_empty() {
        json.text("detail", &detail.detail);
    }
}

fn write_change(json: &mut JsonWriter, change: &PolicyChange) {
    json.text("sort", "changed");
    json.text("method", &change.method);
    json.text("name", &change.name);
    for (key, stand) in [("before", &change.before), ("after", &change.after)] {
        json.object_member(key, |json| {
            json.text("decision", stand.word);
            stand.gate.into_iter().for_each(|gate| json.text("gate", gate.as_str()));
            stand.rule.iter().for_each(|rule| json.text("rule", rule));
        });
    }
}

/// A finding in a few words.
fn finding_phrase(detail: &FindingDetail) -> String {
    let name = format!("{} {}", detail.method, detail.name);
    let name = if name.trim().is_empty() { "a message" } else { name.trim() };
    let mut by = Vec::new();
    by.extend(detail.gate.map(|gate| gate.title().to_owned()));
    by.extend(detail.rule.iter().map(|rule| format!("rule `{rule}`")));
    let repeats = detail.kind == FindingKind::Deny && detail.rule.is_some();
    match detail.kind {
        FindingKind::Hold if !detail.detail.is_empty() => {
            by.push(format!("workflow `{}`", detail.detail))
        }
        _ if !detail.detail.is_empty() && !repeats => by.push(detail.detail.clone()),
        _ => {}
    }
    let by = visible_text::inline(&by.join(", "), DETAIL_CHARS_MAX);
    let by = if by.is_empty() { by } else { format!(" ({by})") };
    format!("{}{by}", visible_text::inline(name, NAME_CHARS_MAX))
}

/// A change in a few words.
fn change_phrase(change: &PolicyChange) -> String {
    let name = format!("{} {}", change.method, change.name);
    let name = if name.trim().is_empty() { "a list" } else { name.trim() };
    let stand = |stand: &PolicyOutcome| {
        let rule = stand.rule.iter().map(|rule| format!("rule `{rule}`"));
        let by: Vec<String> =
            stand.gate.map(|gate| gate.title().to_owned()).into_iter().chain(rule).collect();
        let by = visible_text::inline(&by.join(", "), NAME_CHARS_MAX);
        if by.is_empty() { stand.word.to_owned() } else { format!("{} ({by})", stand.word) }
    };
    let (before, after) = (stand(&change.before), stand(&change.after));
    format!("{}: {before} → {after}", visible_text::inline(name, NAME_CHARS_MAX))
}

/// The first positions, with the names of tapes if there are several.
fn places(places: &[FindingLocation], count: u64, tapes: &[&Path]) -> String {
    let one = |place: &FindingLocation| match tapes {
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

fn kind_word(sort: FindingKind) -> &'static str {
    match sort {
        FindingKind::Deny => "deny",
        FindingKind::Hold => "hold",
        FindingKind::Reject => "reject",
        FindingKind::Drift => "drift",
        FindingKind::Filter => "filter",
        FindingKind::Redact => "redact",
        FindingKind::Forward => "forward",
        FindingKind::Pass => "pass",
    }
}
