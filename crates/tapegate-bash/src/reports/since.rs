//! Points in time as people write them: `2026-01-18`, `7d`, `2w`, `1m`.

use tapegate_core::time::read_rfc3339;

use crate::recording::retention::DAY_US;

/// A date is midnight in UTC; a month has 30 days. `None` if the text is neither.
pub fn parse(text: &str, now_us: i64) -> Option<i64> {
    let text = text.trim();
    if let Some(span_us) = span(text) {
        return now_us.checked_sub(span_us);
    }
    let is_date = text.len() == 10 && text.is_ascii();
    is_date.then(|| read_rfc3339(&format!("{text}T00:00:00Z"))).flatten()
}

/// A span such as `7d`, in microseconds.
fn span(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let days = match unit {
        'd' => 1,
        'w' => 7,
        'm' => 30,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: i64 = is_number.then(|| digits.parse().ok()).flatten()?;
    count.checked_mul(days)?.checked_mul(DAY_US)
}

/// The words for a window that ends now: `last 30 days`, or `since 2026-01-18`.
pub fn window_name(text: Option<&str>) -> String {
    match text {
        None => "all time".to_owned(),
        Some(text) => match span(text.trim()).map(|span_us| span_us / DAY_US) {
            Some(1) => "last day".to_owned(),
            Some(days) => format!("last {days} days"),
            None => format!("since {}", text.trim()),
        },
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
        assert_eq!(window_name(Some("2026-01-18")), "since 2026-01-18");
        assert_eq!(window_name(None), "all time");
    }
}
