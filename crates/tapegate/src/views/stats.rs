//! Formats the statistics of tapes as a table and as JSON.

use std::fmt::Write;

use tapegate_core::side::Side;
use tapegate_core::tape::stats::{CallKey, CallStats, Latencies, TapeStats};
use tapegate_core::time::{SubSecond, write_rfc3339};

use super::columns::{pad, truncate_to, width};
use super::json::JsonWriter;
use super::palette::Palette;
use super::{outcome_labels, plural, visible_text};
use crate::zone::TimeZone;

/// The upper bounds of the histogram's bars, in milliseconds.
const BOUNDS_MS: [u64; 7] = [1, 4, 16, 64, 256, 1024, 4096];
/// The characters for the bars of a small histogram, from none to full.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The width of the longest bar.
const BAR_COLUMNS: u64 = 30;
const NAME_CHARS_MAX: usize = 200;
/// The width of the columns with numbers.
const NUMBER_COLUMNS: usize = 58;

/// The statistics as text.
pub(crate) fn text(
    stats: &TapeStats,
    tapes: usize,
    zone: &TimeZone,
    palette: Palette,
    columns: Option<usize>,
) -> String {
    let total = stats.total();
    let mut out = summary(stats, &total, tapes, zone, columns);
    let mut calls: Vec<(&CallKey, &CallStats)> = stats.calls().collect();
    calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.count));
    let (tools, methods): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(key, _)| is_tool(key));
    let longest = tools.iter().chain(&methods).map(|(key, _)| width(&name(key))).max();
    let longest = longest.unwrap_or(0).max(7);
    let room = columns.map_or(longest, |columns| columns.saturating_sub(NUMBER_COLUMNS).max(12));
    let room = room.min(longest);
    out.push_str(&table("TOOL", &tools, room, palette));
    out.push_str(&table("METHOD", &methods, room, palette));
    if total.latencies.count() > 0 {
        out.push_str(&histogram(&total.latencies, palette));
    }
    out
}

/// The requests of one sort, a line each below their heading; nothing if there are none.
fn table(title: &str, calls: &[(&CallKey, &CallStats)], room: usize, palette: Palette) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let head = format!(
        "{} {:>6} {:>6} {:>7} {:>7} {:>7} {:>9}  {}",
        pad(title, room),
        "COUNT",
        "ERRORS",
        "P50",
        "P90",
        "P99",
        "BYTES",
        "LATENCY"
    );
    let mut out = format!("\n{}\n", palette.bold(&head));
    for (key, call) in calls {
        let at = |percent| match call.latencies.count() {
            0 => "-".to_owned(),
            _ => {
                outcome_labels::duration(call.latencies.percentile_ms(percent).saturating_mul(1000))
            }
        };
        let errors = format!("{:>6}", call.errors);
        let errors = if call.errors > 0 { palette.red(&errors) } else { errors };
        let line = format!(
            "{} {:>6} {errors} {:>7} {:>7} {:>7} {:>9}  {}",
            pad(&name(key), room),
            call.count,
            at(50),
            at(90),
            at(99),
            outcome_labels::bytes(call.bytes),
            sparkline(&call.latencies),
        );
        // Writing to a string cannot fail.
        writeln!(out, "{}", line.trim_end()).ok();
    }
    out
}

fn summary(
    stats: &TapeStats,
    total: &CallStats,
    tapes: usize,
    zone: &TimeZone,
    columns: Option<usize>,
) -> String {
    let counted = |count: u64, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    let messages = stats.client_messages + stats.server_messages;
    let mut out = format!(
        "{}, {} ({} client, {} server), {}\n",
        counted(tapes as u64, "tape"),
        counted(messages, "message"),
        stats.client_messages,
        stats.server_messages,
        outcome_labels::bytes(stats.bytes)
    );
    if let (Some(first), Some(last)) = (stats.first_us, stats.last_us) {
        let clock = |at_us: i64| zone.local(at_us).replace('T', " ");
        let took = outcome_labels::duration(u64::try_from(last - first).unwrap_or(0));
        let until = match clock(first).get(..10) == clock(last).get(..10) {
            true => clock(last).get(11..).unwrap_or_default().to_owned(),
            false => clock(last),
        };
        writeln!(out, "{} to {until} ({}), {took}", clock(first), zone.offset(first)).ok();
    }
    let mut parts = vec![counted(total.count, "request"), counted(total.errors, "error")];
    let more = [
        (total.denied, "denied"),
        (total.unanswered, "without an answer"),
        (total.cancelled, "cancelled"),
    ];
    parts.extend(more.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
    parts.push(counted(stats.notifications, "notification"));
    let odd = [
        (stats.anomalies, "not a message"),
        (stats.faults, "unreadable"),
        (
            stats.stray_answers,
            if stats.stray_answers == 1 { "answer to no request" } else { "answers to no request" },
        ),
        (stats.by_tapegate, "by tapegate"),
    ];
    parts.extend(odd.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
    out.push_str(&wrapped(&parts, columns));
    out
}

/// Joins parts with commas, on as many lines as they need.
fn wrapped(parts: &[String], columns: Option<usize>) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for part in parts {
        // A comma and a space come before it, and a comma may follow it.
        let is_over = columns.is_some_and(|columns| width(&line) + width(part) + 3 > columns);
        if is_over && !line.is_empty() {
            out.push_str(&std::mem::take(&mut line));
            out.push_str(",\n");
        }
        if !line.is_empty() {
            line.push_str(", ");
        }
        line.push_str(part);
    }
    out + &line + "\n"
}

/// Whether requests are calls of a tool, which is listed by its name.
fn is_tool(key: &CallKey) -> bool {
    key.from == Side::Client && key.method == "tools/call" && key.name.is_some()
}

fn name(key: &CallKey) -> String {
    let arrow = if key.from == Side::Server { "← " } else { "" };
    let text = match &key.name {
        Some(name) if is_tool(key) => name.clone(),
        Some(name) => format!("{} {name}", key.method),
        None => key.method.clone(),
    };
    format!("{arrow}{}", visible_text::inline(&text, NAME_CHARS_MAX))
}

/// The count of each bar.
fn bars(latencies: &Latencies) -> Vec<u64> {
    let mut below: Vec<u64> = BOUNDS_MS.iter().map(|ms| latencies.count_below(*ms)).collect();
    below.push(latencies.count());
    let mut last = 0;
    below.into_iter().map(|count| count - std::mem::replace(&mut last, count)).collect()
}

/// A histogram with one character per bar.
fn sparkline(latencies: &Latencies) -> String {
    let bars = bars(latencies);
    let most = bars.iter().copied().max().unwrap_or(0).max(1);
    bars.iter().map(|count| BARS[(count * 8).div_ceil(most) as usize]).collect()
}

fn histogram(latencies: &Latencies, palette: Palette) -> String {
    let mut out = format!(
        "\n{}\n",
        palette.bold(&format!(
            "latency of {}: mean {}, longest {}",
            plural(latencies.count(), "answer"),
            outcome_labels::duration(latencies.mean_ms().saturating_mul(1000)),
            outcome_labels::duration(latencies.max_ms().saturating_mul(1000))
        ))
    );
    let bars = bars(latencies);
    let most = bars.iter().copied().max().unwrap_or(0).max(1);
    for (at, count) in bars.iter().enumerate() {
        let label = match BOUNDS_MS.get(at) {
            Some(ms) => format!("< {ms} ms"),
            None => "longer".to_owned(),
        };
        let bar = "█".repeat((count * BAR_COLUMNS).div_ceil(most) as usize);
        let line = format!("{label:>9}  {bar} {count}");
        writeln!(out, "{}", truncate_to(&line, 80)).ok();
    }
    out
}

/// The statistics as JSON.
pub(crate) fn json(stats: &TapeStats, tapes: &[String]) -> Vec<u8> {
    let total = stats.total();
    let mut out = JsonWriter::object(|json| {
        json.texts("tapes", tapes);
        let counts = [
            ("messages", stats.client_messages + stats.server_messages),
            ("client_messages", stats.client_messages),
            ("server_messages", stats.server_messages),
            ("notifications", stats.notifications),
            ("bytes", stats.bytes),
            ("anomalies", stats.anomalies),
            ("unreadable_lines", stats.faults),
            ("stray_answers", stats.stray_answers),
            ("by_tapegate", stats.by_tapegate),
            ("footers", stats.footers),
        ];
        counts.into_iter().for_each(|(key, count)| json.number(key, count));
        for (key, at_us) in [("first_at", stats.first_us), ("last_at", stats.last_us)] {
            if let Some(at_us) = at_us {
                let mut text = Vec::new();
                write_rfc3339(&mut text, at_us, SubSecond::Micros);
                json.text(key, &String::from_utf8_lossy(&text));
            }
        }
        json.object_member("total", |json| call(json, &total));
        json.list("requests", stats.calls(), |json, (key, stats)| {
            let direction = if key.from == Side::Client { "c2s" } else { "s2c" };
            json.text("direction", direction);
            json.text("method", &key.method);
            key.name.iter().for_each(|name| json.text("name", name));
            call(json, stats);
        });
    });
    out.push(b'\n');
    out
}

fn call(json: &mut JsonWriter, stats: &CallStats) {
    let counts = [
        ("count", stats.count),
        ("errors", stats.errors),
        ("denied", stats.denied),
        ("unanswered", stats.unanswered),
        ("cancelled", stats.cancelled),
        ("bytes", stats.bytes),
    ];
    counts.into_iter().for_each(|(key, count)| json.number(key, count));
    let latencies = &stats.latencies;
    json.object_member("latency_ms", |json| {
        json.number("count", latencies.count());
        json.number("mean", latencies.mean_ms());
        for (key, percent) in [("p50", 50), ("p90", 90), ("p95", 95), ("p99", 99)] {
            json.number(key, latencies.percentile_ms(percent));
        }
        json.number("max", latencies.max_ms());
        let bounds = BOUNDS_MS.iter().map(|ms| Some(*ms)).chain([None]);
        json.list("histogram", bounds.zip(bars(latencies)), |json, (below, count)| {
            below.into_iter().for_each(|ms| json.number("below_ms", ms));
            json.number("count", count);
        });
    });
}
