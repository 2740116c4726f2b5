//! Numbers by their exact value, regardless of notation and length.

/// A number: sign, digits, and a power of ten. `1`, `1.0`, `1e0` and `10e-1` are one value.
///
/// No digit is lost or added. If the power of ten does not fit into 64 bits, only the texts can be
/// compared.
#[derive(Debug, Clone, Copy)]
pub struct Number<'a> {
    negative: bool,
    /// Digits without leading zeros.
    whole: &'a [u8],
    /// Digits without trailing zeros; they follow `whole`.
    fraction: &'a [u8],
    /// The power of ten to multiply the digits by, read as one integer.
    power: i64,
    /// The text, if its power does not fit.
    text: Option<&'a [u8]>,
}

impl<'a> Number<'a> {
    /// Reads the text of a JSON number.
    pub fn read(text: &'a [u8]) -> Self {
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mark = rest.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (mantissa, power) = match mark {
            Some(mark) => (&rest[..mark], read_power(&rest[mark + 1..])),
            None => (rest, Some(0)),
        };
        let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
        let (whole, fraction) = (&mantissa[..point], mantissa.get(point + 1..).unwrap_or_default());
        let fraction = trim_end(fraction);
        let shift = match fraction {
            [] => (whole.len() - trim_end(whole).len()) as i64,
            _ => -(fraction.len() as i64),
        };
        let whole = trim_start(if fraction.is_empty() { trim_end(whole) } else { whole });
        let fraction = if whole.is_empty() { trim_start(fraction) } else { fraction };
        if whole.is_empty() && fraction.is_empty() {
            return Self { negative: false, whole, fraction, power: 0, text: None };
        }
        match power.and_then(|power| power.checked_add(shift)) {
            Some(power) => Self { negative, whole, fraction, power, text: None },
            None => Self { negative, whole, fraction, power: 0, text: Some(text) },
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The digits, without leading and trailing zeros; none for zero.
    pub fn digits(&self) -> impl Iterator<Item = u8> + 'a {
        self.whole.iter().chain(self.fraction).copied()
    }

    /// The power of ten to multiply the digits by, or the whole text if it does not fit.
    pub fn power(&self) -> Result<i64, &'a [u8]> {
        self.text.map_or(Ok(self.power), Err)
    }

    /// The value, if it is a non-negative integer of at most 18 digits.
    pub fn as_u64(&self) -> Option<u64> {
        const DIGITS_MAX: usize = 18;
        let power = usize::try_from(self.power().ok()?).ok()?;
        let count = self.whole.len() + self.fraction.len();
        if self.negative || count.checked_add(power)? > DIGITS_MAX {
            return None;
        }
        let zeros = std::iter::repeat_n(b'0', power);
        Some(self.digits().chain(zeros).fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
    }

    /// Appends the value in canonical form: plain digits if they are few.
    pub fn write(&self, out: &mut Vec<u8>) {
        const PLAIN_DIGITS_MAX: i64 = 21;
        const PLAIN_ZEROS_MAX: i64 = 6;
        if let Some(text) = self.text {
            return out.extend_from_slice(text);
        }
        let count = (self.whole.len() + self.fraction.len()) as i64;
        if count == 0 {
            return out.push(b'0');
        }
        if self.negative {
            out.push(b'-');
        }
        // How many digits precede the point.
        let ahead = self.power.saturating_add(count);
        let zeros = |out: &mut Vec<u8>, count: i64| out.extend((0..count).map(|_| b'0'));
        if self.power >= 0 && ahead <= PLAIN_DIGITS_MAX {
            out.extend(self.digits());
            zeros(out, self.power);
        } else if self.power < 0 && ahead > 0 {
            out.extend(self.digits().take(ahead as usize));
            out.push(b'.');
            out.extend(self.digits().skip(ahead as usize));
        } else if ahead <= 0 && -ahead <= PLAIN_ZEROS_MAX {
            out.extend_from_slice(b"0.");
            zeros(out, -ahead);
            out.extend(self.digits());
        } else {
            out.extend(self.digits().take(1));
            out.extend((count > 1).then_some(b'.'));
            out.extend(self.digits().skip(1));
            out.extend_from_slice(
                format!("e{:+}", i128::from(self.power) + i128::from(count) - 1).as_bytes(),
            );
        }
    }
}

impl PartialEq for Number<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.negative == other.negative
            && self.power() == other.power()
            && self.digits().eq(other.digits())
    }
}

fn read_power(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn trim_start(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

fn trim_end(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    &digits[..digits.len() - zeros]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        Number::read(text.as_bytes()).write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_is_written_in_one_way() {
        for (value, spellings) in [
            ("0", &["0", "-0", "0.0", "-0.00e7", "0e99999999999999999999"][..]),
            ("1", &["1", "1.0", "1e0", "10e-1", "0.1E+1", "0.01e2"]),
            ("-1200", &["-1200", "-1.2e3", "-12E2", "-0.0012e6"]),
            ("0.5", &["0.5", "5e-1", "0.50", "500E-3"]),
            ("10.25", &["10.25", "1025e-2", "1.025e1"]),
            (
                "12345678901234567890123",
                &["12345678901234567890123", "1234567890123456789012300e-2"],
            ),
            ("0.0000001", &["1e-7", "0.0000001"]),
            ("1e-8", &["1e-8", "0.00000001"]),
            ("1e+21", &["1e21", "1000000000000000000000"]),
            ("1.5e+400", &["15e399", "1.5E400"]),
            ("1e99999999999999999999", &["1e99999999999999999999"]),
        ] {
            for spelling in spellings {
                let expected =
                    if value.len() == 23 { "1.2345678901234567890123e+22" } else { value };
                assert_eq!(written(spelling), expected, "{spelling}");
                let one = Number::read(spelling.as_bytes());
                assert!(one == Number::read(spellings[0].as_bytes()), "{spelling}");
                assert!(one == Number::read(written(spelling).as_bytes()), "{spelling}");
            }
        }
    }

    #[test]
    fn different_values_differ() {
        let all = [
            "0",
            "1",
            "-1",
            "10",
            "0.1",
            "1.1",
            "11",
            "101",
            "1e100",
            "1e101",
            "-1e-100",
            "2e99999999999999999999",
            "9007199254740993",
            "9007199254740992",
        ];
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                assert!(
                    Number::read(one.as_bytes()) != Number::read(other.as_bytes()),
                    "{one} {other}"
                );
                assert_ne!(written(one), written(other));
            }
        }
    }

    #[test]
    fn powers_at_the_edge_of_64_bits_do_not_wrap() {
        for text in [
            "10e9223372036854775807",
            "0.1e-9223372036854775808",
            "1e9223372036854775807",
            "1e-9223372036854775808",
        ] {
            assert!(
                Number::read(text.as_bytes()) == Number::read(written(text).as_bytes())
                    || written(text) == text,
                "{text}"
            );
        }
    }
}
