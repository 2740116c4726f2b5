//! Formats events of the activity log for people, one per line.

use std::fmt::Write;

use tapegate_core::time::read_rfc3339;
use tapegate_store::activity::{LoggedEvent, is_event_key};

use super::columns::{pad, truncate_to, width};
use super::palette::Palette;
use super::{outcome_labels, visible_text};
use crate::zone::TimeZone;

/// Longer texts are truncated.
const TEXT_CHARS_MAX: usize = 200;
/// Longer names are truncated.
const NAME_CHARS_MAX: usize = 80;

/// The width of the time column.
const MOMENT_COLUMNS: usize = 14;
/// The width of the column that says what happened.
const WORD_COLUMNS: usize = 20;
/// The width of the longest words of ours: events with a longer name than most use more columns.
const WORD_COLUMNS_MAX: usize = 24;

/// Arguments get at least this fraction of the available width.
const ARGUMENTS_SHARE: usize = 3;

/// Keys besides those of an event that have their own place in the line, or that are only for
/// machines.
const KNOWN: &[&str] = &["seq", "prev", "hash", "event"];

/// Formats an event as a line of the given width, without a line ending. The arguments of its call
/// follow the name; if there is little room, they do not take all of it.
pub(crate) fn line(
    logged: &LoggedEvent,
    arguments: &str,
    zone: &TimeZone,
    palette: Palette,
    columns: Option<usize>,
) -> String {
    let level = logged.str("level").unwrap_or_default();
    let word = event_word(logged);
    let moment = local_time(logged, zone);
    let word_columns = width(&word).clamp(WORD_COLUMNS, WORD_COLUMNS_MAX);
    let head_columns = MOMENT_COLUMNS + 1 + word_columns + 1;
    let room = columns.map(|columns| columns.saturating_sub(head_columns));
    let (call, because) = (call(logged), reason_text(logged));
    let mut arguments = visible_text::inline(arguments, TEXT_CHARS_MAX);
    if let Some(room) = room {
        let left = room.saturating_sub(width(&call) + 1 + width(&because));
        arguments = truncate_to(&arguments, left.max(room / ARGUMENTS_SHARE));
    }
    let gap = if arguments.is_empty() { "" } else { " " };
    let rest = format!("{call}{gap}{arguments}{because}");
    let rest =
        room.map_or(rest.trim_start().to_owned(), |room| truncate_to(rest.trim_start(), room));
    let padded = pad(&word, word_columns);
    let padded = match (&*level, word.as_str()) {
        ("error", _) | (_, "denied" | "person denied" | "dropped" | "forged" | "refused") => {
            palette.red(&padded)
        }
        ("warn", _) => palette.bold(&padded),
        (_, "allowed") => palette.faint(&padded),
        _ => padded,
    };
    let line = format!("{} {padded} {rest}", palette.faint(&pad(&moment, MOMENT_COLUMNS)));
    line.trim_end().to_owned()
}

/// The local time of an event. An invalid time is shown as is.
fn local_time(logged: &LoggedEvent, zone: &TimeZone) -> String {
    let text = logged.str("timestamp").unwrap_or_default();
    match read_rfc3339(&text) {
        Some(at_us) => zone.local(at_us).get(5..19).unwrap_or_default().replace('T', " "),
        None => visible_text::inline(&text, NAME_CHARS_MAX),
    }
}

/// What an event is about.
fn call(logged: &LoggedEvent) -> String {
    let name = |key: &str| {
        logged.str(key).map(|text| visible_text::inline(&text, NAME_CHARS_MAX)).unwrap_or_default()
    };
    let (method, tool) = (name("method"), name("tool"));
    // Nearly every event is a tool call, so the name is enough.
    let method = if method == "tools/call" && !tool.is_empty() { String::new() } else { method };
    let mut parts = vec![name("server_id"), method, tool];
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

/// The reason for a decision, and any other members.
fn reason_text(logged: &LoggedEvent) -> String {
    let text = |key: &str, chars_max| {
        logged.str(key).map(|text| visible_text::inline(&text, chars_max)).unwrap_or_default()
    };
    let name = |key: &str| text(key, NAME_CHARS_MAX);
    let mut out = String::new();
    let (rule, reason) = (name("rule"), text("policy_reason", TEXT_CHARS_MAX));
    let because = match (rule.is_empty(), reason.is_empty()) {
        (true, true) => String::new(),
        (true, false) => reason,
        (false, true) => format!("rule {rule}"),
        // A reason that names its rule is enough.
        (false, false) if reason.contains(&rule) => reason,
        (false, false) => format!("rule {rule}: {reason}"),
    };
    for (key, label) in [("decided_by", "by "), ("approval_id", ""), ("principal", "for ")] {
        let value = name(key);
        if !value.is_empty() {
            // Writing to a string cannot fail.
            write!(out, " {label}{value}").ok();
        }
    }
    if !because.is_empty() {
        write!(out, " ({because})").ok();
    }
    let has_place = |key: &str| is_event_key(key) || KNOWN.contains(&key);
    for (key, raw) in logged.members().filter(|(key, _)| !has_place(key)) {
        let key = visible_text::inline(key, NAME_CHARS_MAX);
        write!(out, " {key}={}", visible_text::value(raw, TEXT_CHARS_MAX)).ok();
    }
    out
}

/// What happened, in a word.
fn event_word(logged: &LoggedEvent) -> String {
    let text = |key: &str| logged.str(key).map(|text| visible_text::inline(&text, NAME_CHARS_MAX));
    match (text("governance_decision"), text("kind"), text("event")) {
        (Some(decision), ..) => outcome_labels::decision(&decision).to_owned(),
        (None, Some(kind), Some(event)) if kind == "policy" && event == "no_policy" => {
            "no policy".to_owned()
        }
        (None, Some(kind), Some(event)) => format!("{kind} {}", event.replace('_', " ")),
        (None, kind, _) => kind.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use tapegate_core::decision::LoggedDecision;

    use super::*;

    #[track_caller]
    fn shows(event: &str, columns: Option<usize>, expected: &str) {
        let logged = LoggedEvent::read(1, event.as_bytes()).unwrap();
        assert_eq!(line(&logged, "", &TimeZone::default(), Palette::Plain, columns), expected);
    }

    #[test]
    fn an_event_is_a_line_that_fits() {
        let denied = r#"{"timestamp":"2026-03-20T14:22:11.804012Z","level":"warn","kind":"decision","server_id":"files","method":"tools/call","tool":"rm","governance_decision":"deny","gate":"rules","rule":"no-rm","policy_reason":"rule `no-rm` denies it","seq":1,"prev":"0","hash":"1"}"#;
        shows(
            denied,
            None,
            "03-20 14:22:11 denied               files rm (rule `no-rm` denies it)",
        );
        shows(denied, Some(50), "03-20 14:22:11 denied               files rm (rul…");
        shows(
            r#"{"timestamp":"t","kind":"log","event":"torn_tail","torn_bytes":3}"#,
            None,
            "t              log torn tail        torn_bytes=3",
        );
        shows(
            r#"{"timestamp":"2026-03-20T14:22:11Z","kind":"approval","governance_decision":"pending_approval","tool":"rm","approval_id":"ap_1"}"#,
            None,
            "03-20 14:22:11 waits for a person   rm ap_1",
        );
        shows("{}", None, "");
    }

    #[test]
    fn no_word_of_ours_is_cut_at_80_columns() {
        let documented = include_str!("../../../../docs/activity-log.md");
        let events = documented.split("| `kind` | `event` | meaning |").nth(1).unwrap();
        let rows = events.lines().skip(2).take_while(|line| line.starts_with('|'));
        let mut lines: Vec<String> = Vec::new();
        for row in rows {
            let names = |column: usize| {
                let text = row.split('|').nth(column).unwrap_or_default();
                text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
            };
            for kind in names(1) {
                let event = |name| format!(r#"{{"kind":"{kind}","event":"{name}"}}"#);
                lines.extend(names(2).iter().map(event));
            }
        }
        assert!(lines.len() > 20, "{lines:?}");
        let decision =
            |one: &LoggedDecision| format!(r#"{{"governance_decision":"{}"}}"#, one.as_str());
        lines.extend(LoggedDecision::ALL.iter().map(decision));
        for text in lines {
            let logged = LoggedEvent::read(1, text.as_bytes()).unwrap();
            let shown = line(&logged, "", &TimeZone::default(), Palette::Plain, Some(80));
            assert!(shown.trim_start().starts_with(&event_word(&logged)), "{text}: {shown}");
            assert!(!shown.contains('…'), "{text}: {shown}");
        }
    }

    #[test]
    fn nothing_in_an_event_reaches_the_terminal_unseen() {
        let event = r#"{"timestamp":"\u001b[2J","kind":"a\nb","tool":"\u202ex","\u001b":"\u0007"}"#;
        let logged = LoggedEvent::read(1, event.as_bytes()).unwrap();
        let shown = line(&logged, "\u{1b}[2J", &TimeZone::default(), Palette::Plain, None);
        assert!(!shown.chars().any(|c| c.is_control() || c == '\u{202e}'), "{shown:?}");
    }
}
