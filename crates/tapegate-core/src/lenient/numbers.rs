//! Exact comparison of numbers, and the numbers that a text may be read as.

use std::cmp::Ordering;

use crate::json::Number;

use super::spelling::{nfkc, trimmed};

/// Compares `one` with `two`; `None` if a power of ten is out of range.
pub fn order(one: &Number<'_>, two: &Number<'_>) -> Option<Ordering> {
    let (a, b) = (sign(one), sign(two));
    if a != b || a == 0 {
        return Some(a.cmp(&b));
    }
    let size = size(one)?.cmp(&size(two)?).then_with(|| one.digits().cmp(two.digits()));
    Some(if a < 0 { size.reverse() } else { size })
}

fn sign(number: &Number<'_>) -> i8 {
    match (number.digits().next(), number.is_negative()) {
        (None, _) => 0,
        (Some(_), true) => -1,
        (Some(_), false) => 1,
    }
}

/// The position of the first digit, relative to the point.
fn size(number: &Number<'_>) -> Option<i128> {
    let power = number.power().ok()?;
    Some(i128::from(power) + number.digits().count() as i128)
}

/// The numbers that servers may read.
#[derive(Debug, Default)]
pub struct NumberReadings {
    /// Each as the text of a number, possibly with leading zeros.
    pub numbers: Vec<String>,
    /// Whether it may be another number, or not a number.
    pub unclear: bool,
    /// Whether it contains digits of a script that is not supported here.
    pub odd_digits: bool,
}

impl NumberReadings {
    /// Whether one of them is this number.
    pub fn contains(&self, number: &[u8]) -> bool {
        let mut wanted = vec![Number::read(number)];
        let close = nearest(number);
        wanted.extend(close.iter().map(|close| Number::read(close.as_bytes())));
        self.numbers.iter().any(|one| wanted.contains(&Number::read(one.as_bytes())))
    }

    /// Whether one of them is zero.
    pub fn any_zero(&self) -> bool {
        self.numbers.iter().any(|one| Number::read(one.as_bytes()).digits().next().is_none())
    }

    /// Whether it is certainly zero.
    pub fn all_zero(&self) -> bool {
        let zero = |one: &String| Number::read(one.as_bytes()).digits().next().is_none();
        !self.unclear && self.numbers.iter().all(zero)
    }

    fn push(&mut self, number: String) {
        if !self.numbers.contains(&number) {
            self.numbers.push(number);
        }
    }

    /// Adds a number, and what it becomes in floating point, as an integer and in 32 bits.
    fn add(&mut self, number: &str) {
        const WHOLE_MAX: f64 = 9_223_372_036_854_775_807.0;
        self.push(number.to_owned());
        let Some(float) = number.parse::<f64>().ok().filter(|float| float.abs() < WHOLE_MAX) else {
            self.unclear = true;
            return;
        };
        if Number::read(number.as_bytes()).as_u64().is_some_and(|whole| whole < 1 << 31) {
            return;
        }
        self.push(float.to_string());
        self.push(f64::from(float as f32).to_string());
        for whole in [float.trunc(), float.floor(), float.ceil()] {
            self.push(whole.to_string());
        }
        let low = number.parse::<i64>().unwrap_or(float as i64) as u32;
        if float.abs() >= f64::from(i32::MAX) {
            self.push(low.to_string());
            self.push(low.cast_signed().to_string());
        }
    }
}

/// The number after rounding to floating point.
fn nearest(number: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(number).ok()?;
    text.parse::<f64>().ok().filter(|float| float.is_finite()).map(|float| float.to_string())
}

/// The numbers that a JSON number may be read as.
pub fn of_number(number: &[u8]) -> NumberReadings {
    let mut readings = NumberReadings::default();
    readings.add(&String::from_utf8_lossy(number));
    readings
}

/// The numbers that a text may be read as.
pub fn of_text(text: &str) -> NumberReadings {
    let mut readings = NumberReadings::default();
    let normal = nfkc(trimmed(text));
    let text = normal.trim();
    if text.is_empty() {
        readings.add("0");
        return readings;
    }
    readings.odd_digits = text.chars().any(|letter| !letter.is_ascii() && letter.is_numeric());
    let (sign, digits) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..]),
        [b'+', ..] => ("", &text[1..]),
        _ => ("", text),
    };
    let length = prefix(digits);
    let whole = digits[..length].find(['.', 'e', 'E']).unwrap_or(length);
    if length > 0 {
        readings.add(&format!("{sign}{}", &digits[..length]));
        // Some readers stop at the point.
        readings.add(&format!("{sign}0{}", &digits[..whole]));
    }
    let mut clear = length > 0 && length == digits.len();
    if let Some(number) = radix(digits) {
        readings.add(&format!("{sign}{number}"));
        clear = true;
    }
    // Thousands separators; a point may be one too.
    let bare = digits.replace(['_', ',', '\'', ' ', '\u{a0}'], "");
    if bare != digits && !bare.is_empty() && prefix(&bare) == bare.len() {
        readings.add(&format!("{sign}{bare}"));
        clear = true;
    }
    let mut groups = digits.split('.');
    let three = |group: &str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    let leads = groups.next().is_some_and(|first| prefix(first) == first.len() && first.len() <= 3);
    if leads && digits.contains('.') && groups.all(three) {
        readings.add(&format!("{sign}{}", digits.replace('.', "")));
    }
    readings.unclear |= !clear || readings.odd_digits;
    readings
}

/// The length of the number at the start of a text.
fn prefix(text: &str) -> usize {
    let bytes = text.as_bytes();
    let count = |from: usize| {
        bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = count(0);
    let mut end = whole;
    let mut fraction = 0;
    if bytes.get(whole) == Some(&b'.') {
        fraction = count(whole + 1);
        end = whole + 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let power = count(end + 1 + signed);
        if power > 0 {
            end += 1 + signed + power;
        }
    }
    end
}

/// A number that is not decimal: `0x10`, `0o17`, `0b11`, `017`.
fn radix(digits: &str) -> Option<String> {
    let bare = digits.replace('_', "").to_ascii_lowercase();
    let (digits, radix) = match bare.get(..2) {
        Some("0x") => (&bare[2..], 16),
        Some("0o") => (&bare[2..], 8),
        Some("0b") => (&bare[2..], 2),
        Some(start) if start.starts_with('0') => (&bare[1..], 8),
        _ => return None,
    };
    u128::from_str_radix(digits, radix).ok().map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(text: &str) -> (Vec<String>, bool) {
        let readings = of_text(text);
        (readings.numbers, readings.unclear)
    }

    #[test]
    fn a_text_is_read_as_every_number_that_somebody_takes_it_for() {
        for (text, number) in [
            ("5000", "5000"),
            (" +5000\n", "5000"),
            ("-5", "-5"),
            ("005000", "5000"),
            ("5_000", "5000"),
            ("5,000", "5000"),
            ("5 000", "5000"),
            ("5.000", "5000"),
            ("5.000", "5"),
            ("5e3", "5000"),
            ("5e3", "5"),
            ("5E+3", "5000"),
            (".5", "0.5"),
            ("5.", "5"),
            ("0x1388", "5000"),
            ("0X1388", "5000"),
            ("0o11610", "5000"),
            ("011610", "5000"),
            ("0b1001110001000", "5000"),
            ("５０００", "5000"),
            ("5000 EUR", "5000"),
            ("5000n", "5000"),
            ("", "0"),
            ("  ", "0"),
        ] {
            assert!(of_text(text).contains(number.as_bytes()), "{text}: {:?}", readings(text));
        }
        for text in [
            "five",
            "NaN",
            "Infinity",
            "-inf",
            "1e400",
            "$5000",
            "5k",
            "٥٠٠٠",
            "1e9999999999999999999",
            "--5",
        ] {
            assert!(of_text(text).unclear, "{text}");
        }
        for text in ["5", "-17", "99.5", "0x10", "1,000", "1e3"] {
            assert!(!of_text(text).unclear, "{text}");
        }
    }

    #[test]
    fn a_number_is_read_as_what_becomes_of_it() {
        for (number, reading) in [
            ("9007199254740993", "9007199254740992"),
            ("999.99999999999999999", "1000"),
            ("999.5", "1000"),
            ("999.5", "999"),
            ("4294967296", "0"),
            ("4294967297", "1"),
            ("4294967295", "-1"),
            ("1e-400", "0"),
        ] {
            assert!(
                of_number(number.as_bytes()).contains(reading.as_bytes()),
                "{number} {reading}"
            );
        }
        assert!(of_number(b"1e30").unclear && of_number(b"18446744073709551621").unclear);
        assert!(!of_number(b"5").unclear && of_number(b"5").numbers.len() == 1);
    }

    #[test]
    fn numbers_are_ordered_to_the_last_digit() {
        let sorted = [
            "-1e400",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1",
            "-1e-400",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000001",
            "1",
            "9",
            "10",
            "10.5",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "1e400",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                let (one, two) = (Number::read(a.as_bytes()), Number::read(b.as_bytes()));
                assert_eq!(order(&one, &two), Some(i.cmp(&j)), "{a} {b}");
            }
        }
        let same =
            |a: &str, b: &str| order(&Number::read(a.as_bytes()), &Number::read(b.as_bytes()));
        assert_eq!(same("1e2", "100.0"), Some(Ordering::Equal));
        assert_eq!(same("-0", "0e9"), Some(Ordering::Equal));
        assert_eq!(same("1e99999999999999999999", "1"), None);
    }
}
