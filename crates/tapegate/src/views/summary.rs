//! Formats the result of a replay: one line of counts, then the details.

use std::fmt::Write;

use tapegate_core::player::ReplaySummary;

use super::divergence::subject;

/// How many items of each kind are listed.
const LISTED_MAX: usize = 5;

/// The summary: the counts on the first line, all lines terminated.
pub(crate) fn text(summary: &ReplaySummary) -> String {
    let ReplaySummary { matched, unmatched, unused, .. } = summary;
    let mut out = format!("matched {matched}, unmatched {unmatched}, unused {unused}");
    let more = [
        (summary.differing, "matched with other params"),
        (summary.passed_on, "passed on to the live server"),
        (summary.server_failed, "not answered by it"),
        (summary.changed_replies, "answered differently by the client"),
        (summary.courtesies, "answered without the tape, such as ping"),
        (u64::from(summary.sessions), "sessions"),
    ];
    let more = more.iter().filter(|(count, message)| *count > u64::from(*message == "sessions"));
    let more: Vec<String> = more.map(|(count, message)| format!("{count} {message}")).collect();
    if !more.is_empty() {
        // Writing to a string cannot fail.
        write!(out, " ({})", more.join(", ")).ok();
    }
    out.push('\n');
    let divergences = summary.divergences.iter().map(|divergence| {
        let what = subject(&divergence.method, divergence.name.as_deref());
        format!("{what}: {}", divergence.reason.as_str())
    });
    list(&mut out, "unmatched", divergences, summary.unmatched);
    let unused = summary.unused_first.iter().map(|unused| {
        format!("#{} {}", unused.number, subject(&unused.method, unused.name.as_deref()))
    });
    list(&mut out, "unused", unused, summary.unused);
    out
}

fn list(out: &mut String, word: &str, items: impl Iterator<Item = String>, count: u64) {
    let mut listed = 0;
    for item in items.take(LISTED_MAX) {
        writeln!(out, "  {word:9} {item}").ok();
        listed += 1;
    }
    if listed > 0 && count > listed {
        writeln!(out, "  {word:9} … and {} more", count - listed).ok();
    }
}

#[cfg(test)]
mod tests;
