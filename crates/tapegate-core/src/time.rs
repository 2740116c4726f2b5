//! Timestamps, and how tapes write them.
//!
//! Callers that have a clock pass timestamps in. Wall time is for people and may jump; latencies
//! and durations come from the monotonic clock.

/// A point in time by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamp {
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub wall_us: i64,
    /// Nanoseconds since some fixed point; never decreases.
    pub mono_ns: u64,
}

impl Timestamp {
    /// Whole milliseconds of monotonic time since `earlier`.
    pub fn ms_since(self, earlier: Timestamp) -> u64 {
        self.mono_ns.saturating_sub(earlier.mono_ns) / 1_000_000
    }
}

/// Appends `wall_us` as RFC 3339 in UTC: `2026-03-20T14:22:11.804012Z`, or with milliseconds only.
pub fn write_rfc3339(out: &mut Vec<u8>, wall_us: i64, digits: SubSecond) {
    let (secs, micros) = (wall_us.div_euclid(1_000_000), wall_us.rem_euclid(1_000_000));
    let (days, second) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    put_digits(&mut text[0..4], year);
    put_digits(&mut text[5..7], month);
    put_digits(&mut text[8..10], day);
    put_digits(&mut text[11..13], hour);
    put_digits(&mut text[14..16], minute);
    put_digits(&mut text[17..19], second);
    match digits {
        SubSecond::Millis => {
            put_digits(&mut text[20..23], micros / 1000);
            text[23] = b'Z';
            out.extend_from_slice(&text[..24]);
        }
        SubSecond::Micros => {
            put_digits(&mut text[20..26], micros);
            out.extend_from_slice(&text);
        }
    }
}

fn put_digits(place: &mut [u8], mut number: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10).unsigned_abs() as u8;
        number /= 10;
    }
}

/// The precision of a written timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubSecond {
    /// Three digits.
    Millis,
    /// Six digits.
    Micros,
}

/// Reads an RFC 3339 timestamp with any number of fraction digits and any offset. A leap second,
/// `:60`, is the first second of the next minute.
pub fn read_rfc3339(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits
            .iter()
            .try_fold(0, |sum, d| d.is_ascii_digit().then(|| sum * 10 + i64::from(d - b'0')))
    };
    let mark = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
    let shaped =
        mark(4, b"-") && mark(7, b"-") && mark(10, b"Tt ") && mark(13, b":") && mark(16, b":");
    if !shaped {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let date = days(year, month, day);
    // A day that the calendar lacks, such as 31 February, counts on into the next month.
    if civil(date) != (year, month, day) {
        return None;
    }
    let (micros, rest) = fraction(&text[19..])?;
    let offset_min = offset(rest)?;
    let secs = date * 86_400 + hour * 3600 + minute * 60 + second;
    Some((secs - offset_min * 60) * 1_000_000 + micros)
}

fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(digits) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let known = digits.as_bytes()[..end.min(6)].iter();
    let micros = known.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0'));
    let missing = 6 - end.min(6) as u32;
    (end > 0).then_some((micros * 10i64.pow(missing), &digits[end..]))
}

/// The offset from UTC in minutes.
fn offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let sign = match text.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let up_to = |max: i64, part: &str| {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<i64>().ok())?.filter(|number| *number <= max)
    };
    Some(sign * (up_to(23, hours)? * 60 + up_to(59, minutes)?))
}

/// Year, month and day of a day counted from 1970-01-01, by the proleptic Gregorian calendar.
///
/// The year is taken to start in March, so that the leap day is its last day.
fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of [`civil`].
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
}

/// A duration in milliseconds, rounded as people see it, so that all outputs agree on it.
pub fn rounded_ms(us: u64) -> u64 {
    us / 1000 + u64::from(us % 1000 >= 500)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(wall_us: i64) -> String {
        let mut out = Vec::new();
        write_rfc3339(&mut out, wall_us, SubSecond::Micros);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_moments() {
        assert_eq!(written(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(written(1_774_016_531_804_012), "2026-03-20T14:22:11.804012Z");
        assert_eq!(written(951_782_400_000_000), "2000-02-29T00:00:00.000000Z");
        assert_eq!(written(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(read_rfc3339("2026-03-20T14:22:11.804Z"), Some(1_774_016_531_804_000));
        assert_eq!(read_rfc3339("2026-03-20T15:22:11.8040129+01:00"), Some(1_774_016_531_804_012));
        assert_eq!(read_rfc3339("2026-03-20T14:22:11Z"), Some(1_774_016_531_000_000));
        assert_eq!(read_rfc3339("2000-02-29T00:00:00Z"), Some(951_782_400_000_000));
        assert_eq!(read_rfc3339("1999-12-31T23:59:60Z"), read_rfc3339("2000-01-01T00:00:00Z"));
        let farthest = read_rfc3339("2000-01-01T23:59:00+23:59");
        assert_eq!(farthest, read_rfc3339("2000-01-01T00:00:00Z"));
        assert_eq!(read_rfc3339("2000-01-01T00:00:00-23:59"), read_rfc3339("2000-01-01T23:59:00z"));
        for bad in [
            "",
            "2026-03-20",
            "2026-13-20T14:22:11Z",
            "2026-03-20T14:22:11",
            "2026-03-20T14:22:11.Z",
            "2026-03-20T14:22:11++1:00",
            "2026-03-20T14:22:11+24:00",
            "2026-03-20T14:22:11-01:60",
            "2026-03-20T14:22:11+1:00",
            "2026-03-20T24:00:00Z",
            "2026-03-20T14:60:11Z",
            "2026-03-20T14:22:61Z",
            "2026-00-20T14:22:11Z",
            "2026-03-00T14:22:11Z",
            "2026-02-31T14:22:11Z",
            "2026-02-29T14:22:11Z",
            "1900-02-29T14:22:11Z",
            "2026-04-31T14:22:11Z",
            "yesterday",
        ] {
            assert_eq!(read_rfc3339(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_reads_back(wall_us in -62_135_596_800_000_000i64..253_402_300_799_999_999) {
            proptest::prop_assert_eq!(read_rfc3339(&written(wall_us)), Some(wall_us));
        }
    }
}
