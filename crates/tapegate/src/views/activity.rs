//! Events of the activity log, a line each, for people.

use std::fmt::Write;

use tapegate_store::activity::Logged;

use super::palette::Palette;
use super::visible;

/// Longer texts are cut.
const TEXT_CHARS_MAX: usize = 200;
/// Longer names are cut.
const NAME_CHARS_MAX: usize = 80;

/// Keys that stand in a line in a place of their own, or that are for machines.
const KNOWN: &[&str] = &[
    "timestamp",
    "level",
    "kind",
    "component",
    "server_id",
    "direction",
    "method",
    "tool",
    "message_id",
    "governance_decision",
    "gate",
    "rule",
    "policies",
    "policy_reason",
    "policy_version",
    "profile",
    "forwarded",
    "auto_approved",
    "latency_us",
    "principal",
    "approval_id",
    "decided_by",
    "connection_id",
    "request_id",
    "tape_session_id",
    "tape_seq",
    "traceparent",
    "seq",
    "prev",
    "hash",
    "event",
];

/// An event in a line, without its end.
pub(crate) fn line(logged: &Logged, palette: Palette) -> String {
    let text = |key: &str, chars_max| {
        logged.str(key).map(|text| visible::inline(&text, chars_max)).unwrap_or_default()
    };
    let name = |key: &str| text(key, NAME_CHARS_MAX);
    let (moment, level) = (name("timestamp"), name("level"));
    let word = word(logged);
    let padded = format!("{word:<16}");
    let padded = match (level.as_str(), word.as_str()) {
        ("error", _) | (_, "deny" | "denied" | "reject" | "rejected" | "drop") => {
            palette.red(&padded)
        }
        ("warn", _) => palette.bold(&padded),
        (_, "forward") => palette.faint(&padded),
        _ => padded,
    };
    let mut out = format!("{} {padded}", palette.faint(&moment));
    let what = [name("server_id"), name("method"), name("tool")];
    what.iter().filter(|part| !part.is_empty()).for_each(|part| {
        // Writing to a string cannot fail.
        write!(out, " {part}").ok();
    });
    let why = [name("gate"), name("rule"), text("policy_reason", TEXT_CHARS_MAX)];
    let why: Vec<String> = why.into_iter().filter(|part| !part.is_empty()).collect();
    if !why.is_empty() {
        write!(out, "  ({})", why.join(": ")).ok();
    }
    for (key, label) in [("approval_id", ""), ("decided_by", "by "), ("principal", "for ")] {
        let value = name(key);
        if !value.is_empty() {
            write!(out, " {label}{value}").ok();
        }
    }
    for (key, raw) in logged.members().filter(|(key, _)| !KNOWN.contains(key)) {
        let key = visible::inline(key, NAME_CHARS_MAX);
        write!(out, " {key}={}", visible::value(raw, TEXT_CHARS_MAX)).ok();
    }
    out
}

/// What happened, in a word.
fn word(logged: &Logged) -> String {
    let text = |key: &str| logged.str(key).map(|text| visible::inline(&text, NAME_CHARS_MAX));
    match (text("governance_decision"), text("kind"), text("event")) {
        (Some(decision), ..) => decision,
        (None, Some(kind), Some(event)) => format!("{kind}:{event}"),
        (None, kind, _) => kind.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shows(event: &str, expected: &str) {
        let logged = Logged::read(1, event.as_bytes()).unwrap();
        assert_eq!(line(&logged, Palette::Plain), expected);
    }

    #[test]
    fn an_event_is_a_line() {
        shows(
            r#"{"timestamp":"2026-03-20T14:22:11.804012Z","level":"warn","kind":"decision","server_id":"files","method":"tools/call","tool":"rm","governance_decision":"deny","gate":"rules","policy_reason":"no","seq":1,"prev":"0","hash":"1"}"#,
            "2026-03-20T14:22:11.804012Z deny             files tools/call rm  (rules: no)",
        );
        shows(
            r#"{"timestamp":"t","kind":"log","event":"torn_tail","torn_bytes":3}"#,
            "t log:torn_tail    torn_bytes=3",
        );
        shows(
            r#"{"timestamp":"t","kind":"approval","governance_decision":"approved","tool":"rm","approval_id":"ap_1","decided_by":"alice"}"#,
            "t approved         rm ap_1 by alice",
        );
        shows("{}", "                 ");
    }

    #[test]
    fn nothing_in_an_event_reaches_the_terminal_unseen() {
        let event = r#"{"timestamp":"\u001b[2J","kind":"a\nb","tool":"\u202ex","\u001b":"\u0007"}"#;
        let logged = Logged::read(1, event.as_bytes()).unwrap();
        let shown = line(&logged, Palette::Plain);
        assert!(!shown.chars().any(|c| c.is_control() || c == '\u{202e}'), "{shown:?}");
    }
}
