//! What has changed, as a case: in words, as lines, and as data.

use tapegate_core::json::diff::{Change, Difference, Differences, Terms, diff};
use tapegate_core::json::{self, Place};
use tapegate_core::verifier::{Became, Changes, Finding, List, What};

use super::{about, list_word, rules};
use crate::views::divergence::subject;
use crate::views::palette::Palette;
use crate::views::report::{Case, Outcome, Rule};
use crate::views::{diff as diff_view, json as json_view, visible};

/// How many members of something new, or gone, are listed.
const MEMBERS_MAX: usize = 50;
const WHY_CHARS_MAX: usize = 300;

/// A finding as a case.
pub(super) fn found(finding: &Finding, palette: Palette) -> Case {
    let mut case = Case { outcome: Outcome::Failed, ..about(&finding.about) };
    let (rule, mut message) = told(&finding.what);
    if finding.times > 1 {
        message = format!("{message} ({} times)", finding.times);
    }
    if let What::Item { list, name, .. } = &finding.what {
        case.name = subject(list_word(*list), Some(name));
        case.facts.push(("item", json_view::quoted(name)));
    }
    let changes = changes(&finding.what);
    if !changes.is_empty() {
        case.facts.extend(json_view::differences(&changes));
    }
    let details = diff_view::render(&changes, palette, "    ");
    Case { rule: Some(rule), message, details, ..case }
}

/// What has changed, in words.
fn told(what: &What) -> (&'static Rule, String) {
    let (rule, words) = match what {
        What::Answer(_) => (&rules::ANSWER, "another answer"),
        What::Error { .. } => (&rules::OUTCOME, "an error where there was a result"),
        What::Result { .. } => (&rules::OUTCOME, "a result where there was an error"),
        What::NoAnswer { waited_ms } => {
            return (&rules::MISSING, format!("no answer within {waited_ms} ms"));
        }
        What::TooLarge { bytes_total, bytes_max } => {
            let words = format!("an answer of {bytes_total} bytes, over the limit of {bytes_max}");
            return (&rules::MISSING, words);
        }
        What::Stray { .. } => (&rules::STRAY, "an answer to nothing that was asked"),
        What::Server(_) => (&rules::SERVER, "the server says something else about itself"),
        What::Version { .. } => (&rules::SERVER, "the server has another version"),
        What::Item { list: List::Tools, became, .. } => match became {
            Became::Removed(_) => (&rules::TOOL, fate(became)),
            _ => return (&rules::TOOL, format!("{}; it may be a rug pull", fate(became))),
        },
        What::Item { became, .. } => (&rules::LISTED, fate(became)),
        What::Notice(became) => (&rules::NOTICE, fate(became)),
        What::Moved { .. } => (&rules::NOTICE, "comes in another order"),
        What::Question(became) => (&rules::QUESTION, fate(became)),
        What::Ended { why } => {
            let why = visible::inline(why, WHY_CHARS_MAX);
            return (
                &rules::ENDED,
                format!("the server was gone before everything was said: {why}"),
            );
        }
    };
    (rule, words.to_owned())
}

fn fate(became: &Became) -> &'static str {
    match became {
        Became::Added(_) => "is new",
        Became::Removed(_) => "is gone",
        Became::Changed(_) => "has changed",
    }
}

/// What has changed, as differences from what was recorded.
fn changes(what: &What) -> Differences<'_> {
    match what {
        What::Answer(changes) | What::Server(changes) => borrowed(changes),
        What::Item { became, .. } | What::Notice(became) | What::Question(became) => match became {
            Became::Changed(changes) => borrowed(changes),
            Became::Added(text) => whole(b"{}", text),
            Became::Removed(text) => whole(text, b"{}"),
        },
        What::Error { recorded, live } => outcome(recorded, live, ["result", "error"]),
        What::Result { recorded, live } => outcome(recorded, live, ["error", "result"]),
        What::Version { recorded, live } => {
            let place = Place::member("version");
            let change = Change::Value { old: recorded, new: live };
            Differences { listed: vec![Difference { place, change }], more: 0 }
        }
        What::Stray { live } => whole(b"{}", live),
        What::NoAnswer { .. } | What::TooLarge { .. } | What::Moved { .. } | What::Ended { .. } => {
            Differences::default()
        }
    }
}

/// All members of something that is new or gone, one by one, so that each can be read.
fn whole<'a>(old: &'a [u8], new: &'a [u8]) -> Differences<'a> {
    let terms = Terms { root: Place::default(), ignored: &[], listed_max: MEMBERS_MAX };
    diff(old, new, &terms).unwrap_or_default()
}

/// Another member of the answer than there was.
fn outcome<'a>(recorded: &'a [u8], live: &'a [u8], [was, is]: [&str; 2]) -> Differences<'a> {
    let old = Change::Removed(json::member(recorded, was).unwrap_or(recorded));
    let new = Change::Added(json::member(live, is).unwrap_or(live));
    let listed = [(was, old), (is, new)];
    let listed = listed.map(|(name, change)| Difference { place: Place::member(name), change });
    Differences { listed: listed.into(), more: 0 }
}

fn borrowed(changes: &Changes) -> Differences<'_> {
    Differences {
        listed: changes.listed.iter().filter_map(difference).collect(),
        more: changes.more,
    }
}

fn difference(change: &tapegate_core::verifier::Change) -> Option<Difference<'_>> {
    let changed = match (change.recorded.as_deref(), change.live.as_deref()) {
        (Some(old), Some(new)) if sort(old) == sort(new) => Change::Value { old, new },
        (Some(old), Some(new)) => Change::Kind { old, new },
        (Some(old), None) => Change::Removed(old),
        (None, Some(new)) => Change::Added(new),
        (None, None) => return None,
    };
    Some(Difference { place: change.place.clone(), change: changed })
}

/// What sort of value a text is, by its first byte.
fn sort(text: &[u8]) -> u8 {
    match text.first() {
        Some(b'-' | b'0'..=b'9') => b'0',
        Some(b't' | b'f') => b't',
        Some(byte) => *byte,
        None => 0,
    }
}
