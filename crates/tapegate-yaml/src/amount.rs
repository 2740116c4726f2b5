//! Parses durations and sizes: a number with a unit.

use tapegate_core::json::Number;

use crate::node::{Node, NodeValue};

/// Nanoseconds in each unit of time.
const TIMES: &[(&str, u64)] =
    &[("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];
/// Bytes in each unit of size, in lower case. Documents accept only the first four.
pub const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
];
const DOCUMENT_SIZES: &[(&str, u64)] = SIZES.split_at(4).0;

/// Why a text is not an amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AmountError<'a> {
    /// It does not begin with a whole number.
    Number,
    /// The unit is not known.
    Unit(&'a str),
    /// The amount is too large.
    TooLarge,
}

/// Splits an amount into its number and its unit.
pub fn split(text: &str) -> (&str, &str) {
    let (number, unit) =
        text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    (number.trim(), unit.trim())
}

/// Reads a whole number with one of these units.
pub fn read<'a>(text: &'a str, units: &[(&str, u64)]) -> Result<u64, AmountError<'a>> {
    let (number, unit) = split(text);
    // `parse` would accept a sign.
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
    let digits = Some(number).filter(|_| is_whole).ok_or(AmountError::Number)?;
    // No unit is the unit with the empty name, where a table has one.
    let size = units.iter().find(|(name, _)| *name == unit).ok_or(AmountError::Unit(unit))?.1;
    let number = digits.parse::<u64>().map_err(|_| AmountError::Number)?;
    number.checked_mul(size).ok_or(AmountError::TooLarge)
}

/// A number of bytes in a text, such as `64kb`.
pub fn read_bytes(text: &str) -> Option<u64> {
    read(&text.trim().to_ascii_lowercase(), DOCUMENT_SIZES).ok()
}

/// A duration in nanoseconds: a whole number with `ms`, `s`, `m` or `h`.
pub fn duration_ns(node: &Node) -> Result<u64, String> {
    let text = match &node.value {
        NodeValue::Text(text) => text.trim(),
        // Seconds or milliseconds: guessing would be wrong by a factor of a thousand.
        NodeValue::Number(text) => {
            return Err(format!(
                "a time needs a unit: `{text}ms`, `{text}s`, `{text}m` or `{text}h`"
            ));
        }
        _ => return Err(format!("this must be a time, such as `5s`, but it is {}", node.kind())),
    };
    let bad = || format!("`{text}` is not a time; use a whole number and `ms`, `s`, `m` or `h`");
    if text.starts_with('-') {
        return Err(format!("a time cannot be negative: `{text}`"));
    }
    read(text, TIMES).map_err(|error| match error {
        AmountError::TooLarge => format!("`{text}` is too long a time"),
        AmountError::Number | AmountError::Unit(_) => bad(),
    })
}

/// A number of bytes: a whole number, optionally with `b`, `kb` or `mb`.
pub fn bytes(node: &Node) -> Result<u64, String> {
    let text = match &node.value {
        NodeValue::Text(text) => text.trim().to_ascii_lowercase(),
        NodeValue::Number(text) => {
            let whole = Number::read(text.as_bytes()).as_u64();
            return whole.ok_or_else(|| format!("`{text}` is not a number of bytes"));
        }
        _ => return Err(format!("this must be a number of bytes, but it is {}", node.kind())),
    };
    let bad = || {
        format!("`{text}` is not a valid size; write a whole number of bytes, or use `kb` or `mb`")
    };
    read(&text, DOCUMENT_SIZES).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ns) in [
            ("0s", Some(0)),
            ("250ms", Some(250_000_000)),
            ("5s", Some(5_000_000_000)),
            ("2 m", Some(120_000_000_000)),
            ("1h", Some(3_600_000_000_000)),
            ("5", None),
            ("s", None),
            ("", None),
            ("1.5s", None),
            ("5 days", None),
            ("99999999999999999999s", None),
            ("99999999999999h", None),
        ] {
            assert_eq!(duration_ns(&Node::text(text)).ok(), ns, "{text}");
        }
        let five = Node::new(NodeValue::Number("5".to_owned()));
        assert!(duration_ns(&five).unwrap_err().contains("`5s`"));
    }

    #[test]
    fn ec_phase_019_a_negative_time_is_an_error() {
        let error = duration_ns(&Node::text("-5s")).unwrap_err();
        assert_eq!(error, "a time cannot be negative: `-5s`");
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, size) in [
            ("100", Some(100)),
            ("10b", Some(10)),
            ("64kb", Some(65_536)),
            ("100MB", Some(104_857_600)),
            ("1tb", None),
            ("-1", None),
            ("kb", None),
        ] {
            assert_eq!(bytes(&Node::text(text)).ok(), size, "{text}");
        }
        assert_eq!(bytes(&Node::new(NodeValue::Number("12".to_owned()))), Ok(12));
        assert!(bytes(&Node::new(NodeValue::Number("-12".to_owned()))).is_err());
    }
}
