//! Formats the result of a scenario's expectations: a line for each, and what broke it.

use std::fmt::Write;

use tapegate_scenario::expect::{
    ExpectationOutcome, ExpectationReport, ExpectationResult, ExpectationRule,
};

use super::divergence::subject;
use super::palette::Palette;
use super::visible_text;

/// How many messages are shown for each broken expectation.
const SHOWN_MAX: usize = 3;
/// How many characters of a message are shown.
const EXCERPT_MAX: usize = 200;

/// The verdict: the counts on the first line, all lines terminated.
pub(crate) fn text(verdict: &ExpectationReport, palette: Palette) -> String {
    let count = |outcome| verdict.count(outcome);
    let word = match verdict.outcome() {
        ExpectationOutcome::Kept => palette.green("safe"),
        ExpectationOutcome::Broken => palette.red("not safe"),
        ExpectationOutcome::Untested => "not tested".to_owned(),
    };
    let mut out = format!(
        "verdict: {word} ({} kept, {} broken, {} untested, {} messages heard)\n",
        count(ExpectationOutcome::Kept),
        count(ExpectationOutcome::Broken),
        count(ExpectationOutcome::Untested),
        verdict.heard
    );
    if verdict.unread > 0 {
        let detail = "over --max-message-bytes and not read, so they were not checked";
        // Writing to a string cannot fail.
        writeln!(out, "  {} of the client: {detail}", messages(verdict.unread)).ok();
    }
    for ruling in &verdict.rulings {
        let expectation = &ruling.expectation;
        let word = match ruling.outcome {
            ExpectationOutcome::Kept => "kept",
            ExpectationOutcome::Broken => "BROKEN",
            ExpectationOutcome::Untested => "untested",
        };
        let title = visible_text::inline(&expectation.title, EXCERPT_MAX);
        // Writing to a string cannot fail.
        write!(out, "  {word:9}{} [{}]: {title}", expectation.id, expectation.severity.as_str())
            .ok();
        if ruling.outcome == ExpectationOutcome::Kept {
            out.push('\n');
            continue;
        }
        writeln!(out, "; {}", reason(ruling)).ok();
        if ruling.outcome == ExpectationOutcome::Broken {
            for line in details(ruling).lines() {
                writeln!(out, "           {line}").ok();
            }
        }
    }
    out
}

fn messages(count: u64) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

/// Why an expectation is broken or untested, on one line.
pub(crate) fn reason(ruling: &ExpectationResult) -> String {
    let (count, wanted) = (ruling.count, ruling.expectation.count);
    match (ruling.outcome, ruling.expectation.rule) {
        (ExpectationOutcome::Untested, _) => "not reached".to_owned(),
        (_, ExpectationRule::Never) if count == 1 => "the client did it".to_owned(),
        (_, ExpectationRule::Never) => format!("the client did it {count} times"),
        (_, ExpectationRule::Must) if wanted == 1 => "the client never did it".to_owned(),
        (_, ExpectationRule::Must) => format!("the client did it {count} times, and not {wanted}"),
    }
}

/// The messages that broke an expectation, one per line.
pub(crate) fn details(ruling: &ExpectationResult) -> String {
    let mut out = String::new();
    for seen in ruling.seen.iter().take(SHOWN_MAX) {
        let what = subject(&seen.method, seen.name.as_deref());
        let phase = match seen.phase.as_str() {
            "" | "baseline" => String::new(),
            phase => format!(" in phase {}", visible_text::inline(phase, EXCERPT_MAX)),
        };
        let excerpt = visible_text::inline(&seen.excerpt, EXCERPT_MAX);
        // Writing to a string cannot fail.
        writeln!(out, "#{} {what}{phase}: {excerpt}", seen.number).ok();
    }
    let more = ruling.count.saturating_sub(SHOWN_MAX as u64);
    if more > 0 && !out.is_empty() {
        writeln!(out, "… and {more} more").ok();
    }
    out
}
