//! Daylight saving rules in the notation of `TZ`: `CET-1CEST,M3.5.0,M10.5.0/3`.

/// A rule for the offset of local time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZoneRule {
    standard_s: i32,
    /// The offset in summer, when it begins and when it ends.
    summer: Option<(i32, TransitionTime, TransitionTime)>,
}

/// A day of the year, and the second of the day in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TransitionTime {
    day: TransitionDay,
    second: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransitionDay {
    /// Month, week (5 is the last) and day of the week.
    Week(i64, i64, i64),
    /// From 1, without leap days.
    Julian(i64),
    /// From 0, with leap days.
    Number(i64),
}

const DAY_S: i64 = 86_400;

impl ZoneRule {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = name(text)?;
        let (offset, rest) = time(rest)?;
        let standard_s = i32::try_from(-offset).ok()?;
        if rest.is_empty() {
            return Some(Self { standard_s, summer: None });
        }
        let rest = name(rest)?;
        let (summer_s, rest) = match rest.starts_with(',') || rest.is_empty() {
            true => (standard_s + 3600, rest),
            false => {
                let (offset, rest) = time(rest)?;
                (i32::try_from(-offset).ok()?, rest)
            }
        };
        // Without days, those of the United States apply.
        let days = if rest.is_empty() { ",M3.2.0,M11.1.0" } else { rest };
        let (start, end) = days.strip_prefix(',')?.split_once(',')?;
        Some(Self {
            standard_s,
            summer: Some((summer_s, parse_transition(start)?, parse_transition(end)?)),
        })
    }

    pub(super) fn offset_s(&self, at_s: i64) -> i32 {
        let Some((summer_s, start, end)) = self.summer else { return self.standard_s };
        let year = year_of(at_s + i64::from(self.standard_s));
        let start_s = start.second_in_year(year) - i64::from(self.standard_s);
        let end_s = end.second_in_year(year) - i64::from(summer_s);
        // In the southern hemisphere, summer includes the end of the year.
        let is_summer = match start_s < end_s {
            true => (start_s..end_s).contains(&at_s),
            false => !(end_s..start_s).contains(&at_s),
        };
        if is_summer { summer_s } else { self.standard_s }
    }
}

/// Skips the name of a zone.
fn name(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>').map(|(_, rest)| rest);
    }
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    (end >= 1).then(|| &text[end..])
}

/// Parses a time such as `-5:30` in seconds, and returns the rest.
fn time(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-:".contains(c)).unwrap_or(text.len());
    let (time, rest) = text.split_at(end);
    let (sign, digits) = match time.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, time.strip_prefix('+').unwrap_or(time)),
    };
    let mut parts = digits.split(':');
    let mut part = |must: bool| -> Option<i64> {
        match parts.next() {
            Some(part) => part.parse().ok().filter(|number| (0..=167).contains(number)),
            None => (!must).then_some(0),
        }
    };
    let (hours, minutes, seconds) = (part(true)?, part(false)?, part(false)?);
    Some((sign * (hours * 3600 + minutes * 60 + seconds), rest))
}

fn parse_transition(text: &str) -> Option<TransitionTime> {
    let (day, second) = match text.split_once('/') {
        Some((day, at)) => (day, time(at).filter(|(_, rest)| rest.is_empty())?.0),
        None => (text, 2 * 3600),
    };
    let number = |text: &str, range: std::ops::RangeInclusive<i64>| {
        text.parse().ok().filter(|number| range.contains(number))
    };
    let day = match (day.strip_prefix('M'), day.strip_prefix('J')) {
        (Some(day), _) => {
            let mut parts = day.splitn(3, '.');
            let (month, week) = (number(parts.next()?, 1..=12)?, number(parts.next()?, 1..=5)?);
            TransitionDay::Week(month, week, number(parts.next()?, 0..=6)?)
        }
        (None, Some(day)) => TransitionDay::Julian(number(day, 1..=365)?),
        (None, None) => TransitionDay::Number(number(day, 0..=365)?),
    };
    Some(TransitionTime { day, second })
}

impl TransitionTime {
    /// The second since 1970 in the year's local time.
    fn second_in_year(&self, year: i64) -> i64 {
        let day = match self.day {
            TransitionDay::Number(day) => days_to(year, 1) + day,
            TransitionDay::Julian(day) => {
                days_to(year, 1) + day - 1 + i64::from(is_leap(year) && day > 59)
            }
            TransitionDay::Week(month, week, weekday) => {
                let first = days_to(year, month);
                // The first of January 1970 was a Thursday.
                let ahead = (weekday - (first + 4)).rem_euclid(7);
                let day = first + ahead + (week - 1) * 7;
                let next =
                    if month == 12 { days_to(year + 1, 1) } else { days_to(year, month + 1) };
                if day < next { day } else { day - 7 }
            }
        };
        day * DAY_S + self.second
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && year % 100 != 0 || year % 400 == 0
}

/// The days from 1970 to the first of a month.
fn days_to(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let past = year - 1;
    let leaps = past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - 477;
    let leap_day = i64::from(month > 2 && is_leap(year));
    (year - 1970) * 365 + leaps + BEFORE[(month - 1).clamp(0, 11) as usize] + leap_day
}

fn year_of(local_s: i64) -> i64 {
    let day = local_s.div_euclid(DAY_S);
    let mut year = 1970 + day.div_euclid(366);
    while days_to(year + 1, 1) <= day {
        year += 1;
    }
    year
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summer_begins_and_ends_at_the_second() {
        let berlin = ZoneRule::parse("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        // 2026-03-29T01:00:00Z and 2026-10-25T01:00:00Z
        for (at, offset) in [
            (1_774_745_999, 3600),
            (1_774_746_000, 7200),
            (1_792_889_999, 7200),
            (1_792_890_000, 3600),
            (0, 3600),
        ] {
            assert_eq!(berlin.offset_s(at), offset, "{at}");
        }
        let sydney = ZoneRule::parse("AEST-10AEDT,M10.1.0,M4.1.0/3").unwrap();
        assert_eq!(
            (sydney.offset_s(1_767_225_600), sydney.offset_s(1_782_864_000)),
            (39_600, 36_000)
        );
        assert_eq!(ZoneRule::parse("EST5EDT").unwrap().offset_s(1_782_864_000), -14_400);
        assert_eq!(ZoneRule::parse("X0Y,J60,J300").unwrap().offset_s(951_782_400), 0);
    }

    #[test]
    fn what_is_not_a_rule_is_refused() {
        for text in
            ["", "Mars/Olympus", "5", "CET", "CET-1CEST,M13.1.0,M1.1.0", "A-1B,M1.1.0", "A1:x"]
        {
            assert_eq!(ZoneRule::parse(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_counted_as_the_calendar_has_them() {
        assert_eq!((days_to(1970, 1), days_to(2000, 3), days_to(2026, 1)), (0, 11_017, 20_454));
        assert_eq!((year_of(-1), year_of(0), year_of(20_454 * DAY_S)), (1969, 1970, 2026));
    }
}
