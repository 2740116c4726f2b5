//! Durations in policies: `10m`, `1h 30m`, or `PT10M` as in ISO 8601.

use std::time::Duration;

/// The maximum duration in seconds: a hundred years.
const SECONDS_MAX: u64 = 100 * YEAR;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;
const MONTH: u64 = 2_630_016;
const YEAR: u64 = 31_557_600;
const SECOND_NS: u64 = 1_000_000_000;

/// Parses a duration; the error describes what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    if !trimmed.is_empty() && trimmed.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("a time needs a unit: `{trimmed}s`, `{trimmed}m` or `{trimmed}h`"));
    }
    if has_capital_unit(trimmed) {
        let message =
            "`M` could mean minutes or months; write `m` or `min` for minutes, `months` for months";
        return Err(format!("`{text}`: {message}"));
    }
    let read = match trimmed.strip_prefix(['P', 'p']) {
        Some(rest) => iso(rest),
        None => parse_human(trimmed),
    };
    let ns =
        read.ok_or_else(|| format!("`{text}` is not a time such as `30s`, `1h 30m` or `PT10M`"))?;
    if ns > u128::from(SECONDS_MAX) * u128::from(SECOND_NS) {
        return Err(format!("`{text}` is too long a time"));
    }
    let second = u128::from(SECOND_NS);
    Ok(Duration::new((ns / second) as u64, (ns % second) as u32))
}

/// Whether `M` occurs as a unit, outside of ISO 8601.
fn has_capital_unit(text: &str) -> bool {
    let mut units = text.split(|c: char| !c.is_alphabetic());
    !text.starts_with(['P', 'p']) && units.any(|unit| unit == "M")
}

/// Parses a sequence of numbers and units, in nanoseconds.
fn parse_human(text: &str) -> Option<u128> {
    let mut rest = text;
    let mut sum = 0u128;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        sum = sum.checked_add(u128::from(number) * unit_ns(&rest[..letters])?)?;
        rest = rest[letters..].trim_start();
        if rest.is_empty() {
            return Some(sum);
        }
    }
}

fn unit_ns(unit: &str) -> Option<u128> {
    let seconds = match unit {
        "nanos" | "nsec" | "ns" => return Some(1),
        "usec" | "us" | "µs" => return Some(1_000),
        "millis" | "msec" | "ms" => return Some(1_000_000),
        "seconds" | "second" | "secs" | "sec" | "s" => 1,
        "minutes" | "minute" | "mins" | "min" | "m" => MINUTE,
        "hours" | "hour" | "hrs" | "hr" | "h" => HOUR,
        "days" | "day" | "d" => DAY,
        "weeks" | "week" | "wks" | "wk" | "w" => WEEK,
        "months" | "month" => MONTH,
        "years" | "year" | "yrs" | "yr" | "y" => YEAR,
        _ => return None,
    };
    Some(u128::from(seconds) * u128::from(SECOND_NS))
}

/// Parses what follows the `P` of ISO 8601, in nanoseconds. Only the last part may have a fraction.
fn iso(text: &str) -> Option<u128> {
    let (date, time) = match text.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (text, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    // Before the `T`, `M` is months; after it, minutes.
    let date = iso_parts(date, &[('Y', YEAR), ('M', MONTH), ('W', WEEK), ('D', DAY)])?;
    let time = iso_parts(time, &[('H', HOUR), ('M', MINUTE), ('S', 1)])?;
    date.checked_add(time)
}

fn iso_parts(text: &str, units: &[(char, u64)]) -> Option<u128> {
    let (mut rest, mut units) = (text, units);
    let mut sum = 0u128;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
        let letter = rest[end..].chars().next()?.to_ascii_uppercase();
        let at = units.iter().position(|(unit, _)| *unit == letter)?;
        let unit_ns = u128::from(units[at].1) * u128::from(SECOND_NS);
        let (whole, fraction) = rest[..end].split_once(['.', ',']).unwrap_or((&rest[..end], "0"));
        let whole: u64 = whole.parse().ok()?;
        let is_last = end + 1 == rest.len();
        if fraction.is_empty() || fraction.len() > 9 || (fraction != "0" && !is_last) {
            return None;
        }
        let part: u64 = fraction.parse().ok()?;
        let scale = 10u128.pow(fraction.len() as u32);
        sum = sum.checked_add(u128::from(whole) * unit_ns + u128::from(part) * unit_ns / scale)?;
        // Units may be left out, but not reordered or repeated.
        (rest, units) = (&rest[end + 1..], &units[at + 1..]);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, ms) in [
            ("10m", 600_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("250 ms", 250),
            (" 5 s ", 5_000),
            ("2 days", 172_800_000),
            ("1 month", 2_630_016_000),
            ("1w", 604_800_000),
            ("PT10M", 600_000),
            ("PT0.5S", 500),
            ("P1DT2H", 93_600_000),
            ("P2W", 1_209_600_000),
            ("pt1h", 3_600_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "m",
            "10",
            "10x",
            "-5s",
            "1.5h",
            "P",
            "PT",
            "P1",
            "PT5",
            "P1H",
            "PT1S1M",
            "PT.5S",
            "PT1.5M2S",
            "10m10",
            "99999999999999999999s",
            "999999y",
            "10 m 5",
            "é",
            "5é",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["10M", "1h 30M", "10 M"] {
            assert!(parse(text).unwrap_err().contains("minutes or months"), "{text}");
        }
        assert_eq!(parse("600").unwrap_err(), "a time needs a unit: `600s`, `600m` or `600h`");
    }
}
