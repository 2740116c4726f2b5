//! Formats the changes of a live server: a headline, and the differences below it.

use tapegate_core::json::diff::{self, DiffOptions, JsonDifference, JsonDifferences};
use tapegate_core::json::{self, Cursor, JsonKind, JsonLocation};
use tapegate_core::verifier::{
    Discrepancy, ItemChange, ListKind, MessageRef, RecordedChanges, SkipReason, VerifyFinding,
};

use super::divergence::subject;
use super::palette::Palette;
use super::{diff as diff_view, visible_text};

/// How many characters of an added or removed value are shown.
const VALUE_CHARS_MAX: usize = 200;
/// How many members of an item are shown.
const MEMBERS_MAX: usize = 50;
const NAME_CHARS_MAX: usize = 80;
const WHY_CHARS_MAX: usize = 300;

/// The subject of a finding: `#9 tools/call read_file`, or the session.
pub(crate) fn subject_text(about: &MessageRef) -> String {
    let number = about.number.map(|number| format!("#{number} ")).unwrap_or_default();
    match about.method.as_str() {
        "" => format!("session {}", about.session),
        method => format!("{number}{}", subject(method, about.name.as_deref())),
    }
}

/// A finding on one line.
pub(crate) fn headline(finding: &VerifyFinding) -> String {
    let times = match finding.times {
        0 | 1 => String::new(),
        times => format!(" ({times} times)"),
    };
    let after = if finding.after_skipped { ", after calls that were not sent" } else { "" };
    format!("{}{after}{times}", headline_text(finding))
}

fn headline_text(finding: &VerifyFinding) -> String {
    match &finding.discrepancy {
        Discrepancy::Answer(_) => "the answer has changed".to_owned(),
        Discrepancy::Error { .. } => "an error instead of a result".to_owned(),
        Discrepancy::Result { .. } => "a result instead of an error".to_owned(),
        Discrepancy::NoAnswer { waited_ms } => format!("no answer within {}", seconds(*waited_ms)),
        Discrepancy::TooLarge { bytes_total, bytes_max } => format!(
            "a message of {bytes_total} bytes, over the limit of {bytes_max} (--max-message-bytes)"
        ),
        Discrepancy::Stray { .. } => "an answer that matches no request".to_owned(),
        Discrepancy::Server(_) => "the server introduces itself differently".to_owned(),
        Discrepancy::Version { recorded, live } => {
            let display_text = |text: &[u8]| visible_text::value(text, NAME_CHARS_MAX);
            format!(
                "the server's version was {} and is {}",
                display_text(recorded),
                display_text(live)
            )
        }
        Discrepancy::Item { list, name, item_change } => {
            let item = format!("{} {}", noun(*list), visible_text::inline(name, NAME_CHARS_MAX));
            format!("{item} {}", change_verb(item_change))
        }
        Discrepancy::Notice(ItemChange::Added(_)) => {
            "a notification that was not recorded".to_owned()
        }
        Discrepancy::Notice(ItemChange::Removed(_)) => "the notification was not sent".to_owned(),
        Discrepancy::Notice(ItemChange::Changed(_)) => "the notification has changed".to_owned(),
        Discrepancy::Moved { .. } => "the notification comes in another order".to_owned(),
        Discrepancy::Question(ItemChange::Added(_)) => {
            "the server makes a request that was not recorded".to_owned()
        }
        Discrepancy::Question(ItemChange::Removed(_)) => {
            "the server did not make this request".to_owned()
        }
        Discrepancy::Question(ItemChange::Changed(_)) => {
            "the request of the server has changed".to_owned()
        }
        Discrepancy::Ended { reason: why } => {
            format!("the server stopped answering: {}", visible_text::inline(why, WHY_CHARS_MAX))
        }
    }
}

/// The details of a finding on several lines, each starting with `indent` and terminated.
pub(crate) fn details(finding: &VerifyFinding, palette: Palette, indent: &str) -> String {
    let gone =
        |text: &[u8]| format!("{indent}{}\n", palette.red(&format!("- {}", value_text(text))));
    let come =
        |text: &[u8]| format!("{indent}{}\n", palette.green(&format!("+ {}", value_text(text))));
    match &finding.discrepancy {
        Discrepancy::Answer(changes) | Discrepancy::Server(changes) => {
            diff_view::render(&differences(changes), palette, indent)
        }
        Discrepancy::Error { recorded, live } | Discrepancy::Result { recorded, live } => {
            format!("{}{}", gone(outcome(recorded)), come(outcome(live)))
        }
        Discrepancy::Stray { live } | Discrepancy::Moved { live } => come(live),
        // Each member of a tool is shown separately, so that no part of a long description is
        // hidden.
        Discrepancy::Item { item_change: ItemChange::Added(text), .. } => {
            members_text(b"{}", text, palette, indent)
        }
        Discrepancy::Item { item_change: ItemChange::Removed(text), .. } => {
            members_text(text, b"{}", palette, indent)
        }
        Discrepancy::Item { item_change, .. }
        | Discrepancy::Notice(item_change)
        | Discrepancy::Question(item_change) => match item_change {
            ItemChange::Added(text) => come(text),
            ItemChange::Removed(text) => gone(text),
            ItemChange::Changed(changes) => {
                diff_view::render(&differences(changes), palette, indent)
            }
        },
        Discrepancy::NoAnswer { .. }
        | Discrepancy::TooLarge { .. }
        | Discrepancy::Version { .. }
        | Discrepancy::Ended { .. } => String::new(),
    }
}

/// The changes as differences, which other views can format.
pub(crate) fn differences(changes: &RecordedChanges) -> JsonDifferences<'_> {
    let listed = changes.listed.iter().map(|change| JsonDifference {
        location: change.location.clone(),
        change: match (change.recorded.as_deref(), change.live.as_deref()) {
            (Some(old), Some(new)) if kind(old) != kind(new) => {
                diff::ValueChange::Kind { old, new }
            }
            (Some(old), Some(new)) => diff::ValueChange::Value { old, new },
            (Some(old), None) => diff::ValueChange::Removed(old),
            (None, new) => diff::ValueChange::Added(new.unwrap_or(b"null")),
        },
    });
    JsonDifferences { listed: listed.collect(), more: changes.more }
}

/// The members of an added or removed item.
fn members_text(old: &[u8], new: &[u8], palette: Palette, indent: &str) -> String {
    let terms =
        DiffOptions { root: JsonLocation::default(), ignored: &[], listed_max: MEMBERS_MAX };
    let found = diff::diff(old, new, &terms).unwrap_or_default();
    diff_view::render(&found, palette, indent)
}

/// Why a request was not sent.
pub(crate) fn reason(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::NotAskedFor => "it may change something; --calls selects what is sent",
        SkipReason::OnlyListed => "it is more than a list; --calls read-only sends it",
        SkipReason::Doubtful => {
            "servers may read it differently: a key occurs twice, ignoring case"
        }
        SkipReason::Refused => "a gate did not forward it when it was recorded",
        SkipReason::NotReadOnlyLive => "the server does not mark the tool as read-only",
        SkipReason::NotReadOnlyOnTape => "the tape does not mark the tool as read-only",
        SkipReason::Masked => "it holds secrets that are masked on the tape",
        SkipReason::NotMinted(_) => "it refers to something that the server has not sent",
        SkipReason::ServerGone => "the server had stopped answering",
    }
}

/// The noun for an item of a list.
pub(crate) fn noun(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "tool",
        ListKind::Resources => "resource",
        ListKind::Templates => "resource template",
        ListKind::Prompts => "prompt",
    }
}

fn change_verb(item_change: &ItemChange) -> &'static str {
    match item_change {
        ItemChange::Added(_) => "is new",
        ItemChange::Removed(_) => "is gone",
        ItemChange::Changed(_) => "has changed",
    }
}

/// The content of an answer: its result or its error.
fn outcome(answer: &[u8]) -> &[u8] {
    let member = |name| json::member(answer, name);
    member("error").or_else(|| member("result")).unwrap_or(answer)
}

fn kind(text: &[u8]) -> Option<JsonKind> {
    Cursor::new(text).and_then(|mut cursor| cursor.kind()).ok()
}

fn value_text(text: &[u8]) -> String {
    visible_text::value(text, VALUE_CHARS_MAX)
}

fn seconds(ms: u64) -> String {
    match ms {
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{}.{:03} s", ms / 1000, ms % 1000),
    }
}
