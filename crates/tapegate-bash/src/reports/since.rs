//! Points in time as people write them: `2026-01-18`, `30min`, `12h`, `7d`, `2w`, `1m`.

use tapegate_core::time::read_rfc3339;

use crate::recording::retention::DAY_US;

const MINUTE_US: i64 = 60_000_000;
/// The unit that means a month here and a minute in most tools.
const MONTH: &str = "m";
/// The units, with what people call them.
const UNITS: [(&str, i64, &str); 5] = [
    ("min", MINUTE_US, "minute"),
    ("h", 60 * MINUTE_US, "hour"),
    ("d", DAY_US, "day"),
    ("w", 7 * DAY_US, "day"),
    (MONTH, 30 * DAY_US, "day"),
];

/// A date is midnight in UTC; a month has 30 days. `None` if the text is neither.
pub fn parse(text: &str, now_us: i64) -> Option<i64> {
    let text = text.trim();
    if let Some((span_us, _)) = span(text) {
        return now_us.checked_sub(span_us);
    }
    let is_date = text.len() == 10 && text.is_ascii();
    is_date.then(|| read_rfc3339(&format!("{text}T00:00:00Z"))).flatten()
}

/// What to tell people who may have meant minutes: `1m` is a month.
pub fn month_note(text: &str) -> Option<String> {
    let text = text.trim();
    let count = text.strip_suffix(MONTH)?;
    let (span_us, _) = span(text)?;
    let days = span_us / DAY_US;
    Some(format!("`{text}` means {days} days; for minutes, write `{count}min`"))
}

/// A span such as `7d` in microseconds, with the word by which it is counted.
fn span(text: &str) -> Option<(i64, &'static str)> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let (_, unit_us, word) = UNITS.iter().find(|(unit, ..)| *unit == &text[digits.len()..])?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: i64 = is_number.then(|| digits.parse().ok()).flatten()?;
    Some((count.checked_mul(*unit_us)?, word))
}

/// The words for a window that ends now: `last 30 days`, or `since 2026-01-18`.
pub fn window_name(text: Option<&str>) -> String {
    let Some(text) = text.map(str::trim) else { return "all time".to_owned() };
    let Some((span_us, word)) = span(text) else { return format!("since {text}") };
    let unit_us = UNITS.iter().find(|(.., name)| *name == word).map_or(DAY_US, |(_, us, _)| *us);
    match span_us / unit_us {
        1 => format!("last {word}"),
        count => format!("last {count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_spans_are_read() {
        let now = read_rfc3339("2026-03-31T12:00:00Z").unwrap();
        for (text, expected) in [
            ("2026-01-18", Some("2026-01-18T00:00:00Z")),
            ("7d", Some("2026-03-24T12:00:00Z")),
            ("2w", Some("2026-03-17T12:00:00Z")),
            ("1m", Some("2026-03-01T12:00:00Z")),
            ("1min", Some("2026-03-31T11:59:00Z")),
            ("12h", Some("2026-03-31T00:00:00Z")),
            ("1M", None),
            ("min", None),
            ("0d", Some("2026-03-31T12:00:00Z")),
            ("invalid", None),
            ("d", None),
            ("-1d", None),
            ("2026-02-30", None),
            ("99999999999999999999d", None),
            ("9223372036854d", None),
            ("2026-1-1", None),
            ("ü", None),
        ] {
            assert_eq!(parse(text, now), expected.and_then(read_rfc3339), "{text}");
        }
        assert_eq!(window_name(Some("30d")), "last 30 days");
        assert_eq!(window_name(Some("1m")), "last 30 days");
        assert_eq!(window_name(Some("1h")), "last hour");
        assert_eq!(window_name(Some("90min")), "last 90 minutes");
        assert_eq!(window_name(Some("2026-01-18")), "since 2026-01-18");
        assert_eq!(window_name(None), "all time");
    }

    #[test]
    fn a_month_is_told_apart_from_a_minute() {
        let note = "`2m` means 60 days; for minutes, write `2min`";
        assert_eq!(month_note(" 2m").as_deref(), Some(note));
        for text in ["2min", "7d", "m", "xm", "2026-01-18"] {
            assert_eq!(month_note(text), None, "{text}");
        }
    }
}
