//! Formats the changes of a live server: a headline, and the differences below it.

use tapegate_core::json::diff::{self, Difference, Differences, Terms};
use tapegate_core::json::{self, Cursor, Kind, Place};
use tapegate_core::verifier::{About, Became, Changes, Finding, List, What, Why};

use super::divergence::subject;
use super::palette::Palette;
use super::{diff as diff_view, visible};

/// How many characters of an added or removed value are shown.
const VALUE_CHARS_MAX: usize = 200;
/// How many members of an item are shown.
const MEMBERS_MAX: usize = 50;
const NAME_CHARS_MAX: usize = 80;
const WHY_CHARS_MAX: usize = 300;

/// The subject of a finding: `#9 tools/call read_file`, or the session.
pub(crate) fn about(about: &About) -> String {
    let number = about.number.map(|number| format!("#{number} ")).unwrap_or_default();
    match about.method.as_str() {
        "" => format!("session {}", about.session),
        method => format!("{number}{}", subject(method, about.name.as_deref())),
    }
}

/// A finding on one line.
pub(crate) fn headline(finding: &Finding) -> String {
    let times = match finding.times {
        0 | 1 => String::new(),
        times => format!(" ({times} times)"),
    };
    let after = if finding.after_skipped { ", after calls that were not sent" } else { "" };
    format!("{}{after}{times}", words(finding))
}

fn words(finding: &Finding) -> String {
    match &finding.what {
        What::Answer(_) => "the answer has changed".to_owned(),
        What::Error { .. } => "an error instead of a result".to_owned(),
        What::Result { .. } => "a result instead of an error".to_owned(),
        What::NoAnswer { waited_ms } => format!("no answer within {}", seconds(*waited_ms)),
        What::TooLarge { bytes_total, bytes_max } => format!(
            "a message of {bytes_total} bytes, over the limit of {bytes_max} (--max-message-bytes)"
        ),
        What::Stray { .. } => "an answer that matches no request".to_owned(),
        What::Server(_) => "the server introduces itself differently".to_owned(),
        What::Version { recorded, live } => {
            let shown = |text: &[u8]| visible::value(text, NAME_CHARS_MAX);
            format!("the server's version was {} and is {}", shown(recorded), shown(live))
        }
        What::Item { list, name, became } => {
            let item = format!("{} {}", noun(*list), visible::inline(name, NAME_CHARS_MAX));
            format!("{item} {}", fate(became))
        }
        What::Notice(Became::Added(_)) => "a notification that was not recorded".to_owned(),
        What::Notice(Became::Removed(_)) => "the notification was not sent".to_owned(),
        What::Notice(Became::Changed(_)) => "the notification has changed".to_owned(),
        What::Moved { .. } => "the notification comes in another order".to_owned(),
        What::Question(Became::Added(_)) => {
            "the server makes a request that was not recorded".to_owned()
        }
        What::Question(Became::Removed(_)) => "the server did not make this request".to_owned(),
        What::Question(Became::Changed(_)) => "the request of the server has changed".to_owned(),
        What::Ended { why } => {
            format!("the server stopped answering: {}", visible::inline(why, WHY_CHARS_MAX))
        }
    }
}

/// The details of a finding on several lines, each starting with `indent` and terminated.
pub(crate) fn details(finding: &Finding, palette: Palette, indent: &str) -> String {
    let gone = |text: &[u8]| format!("{indent}{}\n", palette.red(&format!("- {}", shown(text))));
    let come = |text: &[u8]| format!("{indent}{}\n", palette.green(&format!("+ {}", shown(text))));
    match &finding.what {
        What::Answer(changes) | What::Server(changes) => {
            diff_view::render(&differences(changes), palette, indent)
        }
        What::Error { recorded, live } | What::Result { recorded, live } => {
            format!("{}{}", gone(outcome(recorded)), come(outcome(live)))
        }
        What::Stray { live } | What::Moved { live } => come(live),
        // Each member of a tool is shown separately, so that no part of a long description is
        // hidden.
        What::Item { became: Became::Added(text), .. } => whole(b"{}", text, palette, indent),
        What::Item { became: Became::Removed(text), .. } => whole(text, b"{}", palette, indent),
        What::Item { became, .. } | What::Notice(became) | What::Question(became) => match became {
            Became::Added(text) => come(text),
            Became::Removed(text) => gone(text),
            Became::Changed(changes) => diff_view::render(&differences(changes), palette, indent),
        },
        What::NoAnswer { .. }
        | What::TooLarge { .. }
        | What::Version { .. }
        | What::Ended { .. } => String::new(),
    }
}

/// The changes as differences, which other views can format.
pub(crate) fn differences(changes: &Changes) -> Differences<'_> {
    let listed = changes.listed.iter().map(|change| Difference {
        place: change.place.clone(),
        change: match (change.recorded.as_deref(), change.live.as_deref()) {
            (Some(old), Some(new)) if kind(old) != kind(new) => diff::Change::Kind { old, new },
            (Some(old), Some(new)) => diff::Change::Value { old, new },
            (Some(old), None) => diff::Change::Removed(old),
            (None, new) => diff::Change::Added(new.unwrap_or(b"null")),
        },
    });
    Differences { listed: listed.collect(), more: changes.more }
}

/// The members of an added or removed item.
fn whole(old: &[u8], new: &[u8], palette: Palette, indent: &str) -> String {
    let terms = Terms { root: Place::default(), ignored: &[], listed_max: MEMBERS_MAX };
    let found = diff::diff(old, new, &terms).unwrap_or_default();
    diff_view::render(&found, palette, indent)
}

/// Why a request was not sent.
pub(crate) fn reason(why: Why) -> &'static str {
    match why {
        Why::NotAskedFor => "it may change something; --calls selects what is sent",
        Why::OnlyListed => "it is more than a list; --calls read-only sends it",
        Why::Doubtful => "servers may read it differently: a key occurs twice, ignoring case",
        Why::Refused => "a gate did not forward it when it was recorded",
        Why::NotReadOnlyLive => "the server does not mark the tool as read-only",
        Why::NotReadOnlyOnTape => "the tape does not mark the tool as read-only",
        Why::Masked => "it holds secrets that are masked on the tape",
        Why::NotMinted(_) => "it refers to something that the server has not sent",
        Why::ServerGone => "the server had stopped answering",
    }
}

/// The noun for an item of a list.
pub(crate) fn noun(list: List) -> &'static str {
    match list {
        List::Tools => "tool",
        List::Resources => "resource",
        List::Templates => "resource template",
        List::Prompts => "prompt",
    }
}

fn fate(became: &Became) -> &'static str {
    match became {
        Became::Added(_) => "is new",
        Became::Removed(_) => "is gone",
        Became::Changed(_) => "has changed",
    }
}

/// The content of an answer: its result or its error.
fn outcome(answer: &[u8]) -> &[u8] {
    let member = |name| json::member(answer, name);
    member("error").or_else(|| member("result")).unwrap_or(answer)
}

fn kind(text: &[u8]) -> Option<Kind> {
    Cursor::new(text).and_then(|mut cursor| cursor.kind()).ok()
}

fn shown(text: &[u8]) -> String {
    visible::value(text, VALUE_CHARS_MAX)
}

fn seconds(ms: u64) -> String {
    match ms {
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{}.{:03} s", ms / 1000, ms % 1000),
    }
}
