//! Formats the result of a verification: the changes by group, then what was not sent, and one line
//! of counts.

use std::fmt::Write;

use tapegate_core::verifier::{
    SkipReason, SkippedMessage, VerifyFinding, VerifyNoteKind, VerifyReport,
};

use super::palette::Palette;
use super::report::verify::{ChangeGroup, GROUPS, group_of};
use super::server_change::{details, headline, noun, reason, subject_text};
use super::{plural, visible_text};

/// How many changes of a group are shown.
const SHOWN_MAX: usize = 100;
/// How many kinds of unsent requests are shown.
const SORTS_MAX: usize = 8;
const START_CHARS_MAX: usize = 80;

/// How many lines of differences are printed unless all are requested.
const DETAIL_LINES_MAX: usize = 40;

/// The changes by group; empty if there are none. If there are many, only the names are printed
/// without the differences, unless `all` is set.
pub(crate) fn changes(report: &VerifyReport, palette: Palette, all: bool) -> String {
    let lines = |finding: &VerifyFinding| details(finding, palette, "").lines().count();
    let lines: usize = report.findings.iter().map(lines).sum();
    let detailed = all || lines <= DETAIL_LINES_MAX;
    let mut out = String::new();
    for group in GROUPS {
        let of_group = |finding: &&VerifyFinding| group_of(&finding.discrepancy) == group;
        let found: Vec<&VerifyFinding> = report.findings.iter().filter(of_group).collect();
        if found.is_empty() {
            continue;
        }
        out.extend((!out.is_empty()).then_some('\n'));
        // Writing to a string cannot fail.
        writeln!(out, "{}", palette.bold(heading(group))).ok();
        for finding in found.iter().take(SHOWN_MAX) {
            let whose = match group {
                ChangeGroup::Tools | ChangeGroup::Lists => String::new(),
                _ => format!("{}: ", subject_text(&finding.about)),
            };
            writeln!(out, "  {whose}{}", headline(finding)).ok();
            if detailed {
                out.push_str(&details(finding, palette, "    "));
            }
        }
        if found.len() > SHOWN_MAX {
            let more = format!("  … and {} more", found.len() - SHOWN_MAX);
            writeln!(out, "{}", palette.faint(&more)).ok();
        }
    }
    if !detailed {
        writeln!(out, "\n{lines} lines of differences are left out; --details prints them").ok();
    }
    out
}

/// Notes, what was not sent, and the counts on the last line.
pub(crate) fn summary(report: &VerifyReport) -> String {
    let mut out = String::new();
    for note in &report.notes {
        writeln!(out, "note: {}: {}", subject_text(&note.about), note_text(&note.kind)).ok();
    }
    let mut sorts = count_skipped(&report.skipped);
    let more = sorts.split_off(sorts.len().min(SORTS_MAX));
    for (method, skip_reason, count) in &sorts {
        let method = visible_text::inline(method, START_CHARS_MAX);
        writeln!(out, "not sent: {count} × {method}: {}", reason(*skip_reason)).ok();
    }
    let more = more.iter().map(|(_, _, count)| count).sum::<u64>() + report.skipped_more;
    if more > 0 {
        writeln!(out, "not sent: {more} more").ok();
    }
    let changes = report.findings.len() as u64 + report.findings_more;
    let changes = match changes {
        0 => "nothing has changed".to_owned(),
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    };
    let skipped = match report.skipped.len() as u64 + report.skipped_more {
        0 => None,
        1 => Some("1 recorded message was not sent".to_owned()),
        count => Some(format!("{count} recorded messages were not sent")),
    };
    let not_compared = match report.not_compared {
        0 => None,
        1 => Some("1 request has no recorded answer".to_owned()),
        count => Some(format!("{count} requests have no recorded answer")),
    };
    let rest: Vec<String> = [skipped, not_compared].into_iter().flatten().collect();
    let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join("; ")) };
    if report.has_compared_nothing() {
        writeln!(out, "nothing was compared, so nothing is known about the server{rest}").ok();
        return out;
    }
    writeln!(
        out,
        "{changes}: compared {} and {} in {}{rest}",
        plural(report.answers, "answer"),
        plural(report.notifications, "notification"),
        plural(u64::from(report.sessions), "session"),
    )
    .ok();
    out
}

pub(crate) fn note_text(sort: &VerifyNoteKind) -> String {
    match sort {
        VerifyNoteKind::Reordered(list) => {
            format!("the list has every {} in another order", noun(*list))
        }
        VerifyNoteKind::Moved => "notifications came in another order".to_owned(),
        VerifyNoteKind::PlaceholderSent => {
            "secrets are masked on the tape, and their placeholders were sent".to_owned()
        }
        VerifyNoteKind::NoMessage { start } => {
            let start = visible_text::inline(start, START_CHARS_MAX);
            format!("the server wrote something that is not a message: {start}")
        }
        VerifyNoteKind::Withheld => {
            "its recorded answer belongs to a call that was not sent".to_owned()
        }
        VerifyNoteKind::Introduced => "the tape has no `initialize`, so one was added".to_owned(),
        VerifyNoteKind::NotCompared => {
            "the tape has no answer of the server, so there was nothing to compare".to_owned()
        }
        VerifyNoteKind::ToolsUnknown => {
            "the server did not list its tools, so none is known to be read-only".to_owned()
        }
        VerifyNoteKind::Unfinished { list, pages } => {
            let noun = noun(*list);
            format!("the live list goes on after {pages} pages; no further {noun} was compared")
        }
    }
}

fn heading(group: ChangeGroup) -> &'static str {
    match group {
        ChangeGroup::Tools => "Tools have changed (a possible rug pull)",
        ChangeGroup::Server => "The server",
        ChangeGroup::Lists => "Prompts and resources",
        ChangeGroup::Answers => "Answers",
        ChangeGroup::Notifications => "Notifications",
        ChangeGroup::Questions => "Requests of the server",
    }
}

/// What was not sent, counted by method and reason, in order of appearance.
fn count_skipped(skipped: &[SkippedMessage]) -> Vec<(&str, SkipReason, u64)> {
    let mut sorts: Vec<(&str, SkipReason, u64)> = Vec::new();
    for one in skipped {
        let method = one.about.method.as_str();
        match sorts.iter_mut().find(|sort| sort.0 == method && sort.1 == one.skip_reason) {
            Some(sort) => sort.2 += 1,
            None => sorts.push((method, one.skip_reason, 1)),
        }
    }
    sorts
}
