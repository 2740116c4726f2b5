//! Models of servers that convert arguments: how pydantic, JavaScript, Python, Go, Java, YAML and
//! others find an argument and convert it.
//!
//! A property test and a fuzz target compare predicates with these readers. Nothing here depends on
//! how a predicate is evaluated.

use tapegate_core::json::{Cursor, JsonKind};

/// The value of an argument after a server has read it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConvertedValue {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<ConvertedValue>),
    Map(Vec<(String, ConvertedValue)>),
}

/// A conversion to a boolean.
pub(crate) type BoolReader = fn(&ConvertedValue) -> Option<bool>;
/// A conversion to a number.
pub(crate) type NumberReader = fn(&ConvertedValue) -> Option<f64>;

/// How deep readers follow lists and objects.
const DEPTH_MAX: usize = 32;
/// How often readers parse or unpack a value.
const UNPACKED_MAX: usize = 3;

impl ConvertedValue {
    /// Parses JSON; `None` if the text is not JSON or too deep.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut cursor = Cursor::new(text.as_bytes()).ok()?;
        let value = Self::read(&mut cursor, DEPTH_MAX)?;
        cursor.expect_end().ok()?;
        Some(value)
    }

    /// Parses JSON as Python does, which accepts `NaN` too.
    pub(crate) fn parse_as_python(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| {
            let outside = |text: String, before| {
                text.replace(&format!("{before}NaN"), &format!("{before}null"))
            };
            Self::parse(&[":", ",", "[", " "].into_iter().fold(text.to_owned(), outside))
        })
    }

    fn read(cursor: &mut Cursor<'_>, depth: usize) -> Option<Self> {
        let below = depth.checked_sub(1)?;
        match cursor.kind().ok()? {
            JsonKind::Object => {
                cursor.open().ok()?;
                let mut members = Vec::new();
                while let Some(key) = cursor.next_key().ok()? {
                    members.push((key.decode().into_owned(), Self::read(cursor, below)?));
                }
                Some(Self::Map(members))
            }
            JsonKind::Array => {
                cursor.open().ok()?;
                let mut items = Vec::new();
                while cursor.next_item().ok()? {
                    items.push(Self::read(cursor, below)?);
                }
                Some(Self::List(items))
            }
            JsonKind::String => Some(Self::Text(cursor.string().ok()?.decode().into_owned())),
            _ => match cursor.value().ok()? {
                b"null" => Some(Self::Null),
                b"true" => Some(Self::Bool(true)),
                b"false" => Some(Self::Bool(false)),
                number => std::str::from_utf8(number).ok()?.parse().ok().map(Self::Number),
            },
        }
    }

    /// The values that servers parse or unpack from one: itself, JSON in it, the elements of a
    /// list.
    pub(crate) fn unpacked(&self) -> Vec<Self> {
        let mut all = Vec::new();
        self.unpack(UNPACKED_MAX, &mut all);
        all
    }

    fn unpack(&self, depth: usize, all: &mut Vec<Self>) {
        all.push(self.clone());
        if depth == 0 {
            return;
        }
        match self {
            Self::Text(text) => {
                if let Some(inner) = Self::parse_as_python(text.trim()) {
                    inner.unpack(depth - 1, all);
                }
            }
            Self::List(items) => items.iter().for_each(|item| item.unpack(depth - 1, all)),
            _ => {}
        }
    }
}

pub(crate) const BOOL_READERS: [(&str, BoolReader); 6] = [
    ("pydantic", |value| match value {
        ConvertedValue::Bool(value) => Some(*value),
        ConvertedValue::Number(number) if *number == 0.0 => Some(false),
        ConvertedValue::Number(number) if *number == 1.0 => Some(true),
        ConvertedValue::Text(text) => match text.to_lowercase().as_str() {
            "0" | "off" | "f" | "false" | "n" | "no" => Some(false),
            "1" | "on" | "t" | "true" | "y" | "yes" => Some(true),
            _ => None,
        },
        _ => None,
    }),
    ("javascript", |value| {
        Some(match value {
            ConvertedValue::Null => false,
            ConvertedValue::Bool(value) => *value,
            ConvertedValue::Number(number) => *number != 0.0 && !number.is_nan(),
            ConvertedValue::Text(text) => !text.is_empty(),
            ConvertedValue::List(_) | ConvertedValue::Map(_) => true,
        })
    }),
    ("python", |value| {
        Some(match value {
            ConvertedValue::Null => false,
            ConvertedValue::Bool(value) => *value,
            ConvertedValue::Number(number) => *number != 0.0,
            ConvertedValue::Text(text) => !text.is_empty(),
            ConvertedValue::List(items) => !items.is_empty(),
            ConvertedValue::Map(members) => !members.is_empty(),
        })
    }),
    ("go", |value| match value {
        ConvertedValue::Bool(value) => Some(*value),
        ConvertedValue::Null => Some(false),
        ConvertedValue::Text(text) => match text.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
            _ => None,
        },
        _ => None,
    }),
    ("yaml", |value| match value {
        ConvertedValue::Bool(value) => Some(*value),
        ConvertedValue::Text(text) => match text.trim().to_lowercase().as_str() {
            "y" | "yes" | "true" | "on" => Some(true),
            "n" | "no" | "false" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }),
    ("java", |value| match value {
        ConvertedValue::Bool(value) => Some(*value),
        ConvertedValue::Text(text) => Some(text.eq_ignore_ascii_case("true")),
        _ => None,
    }),
];

pub(crate) const NUMBER_READERS: [(&str, NumberReader); 6] = [
    ("pydantic", |value| match value {
        ConvertedValue::Number(number) => Some(*number),
        ConvertedValue::Bool(value) => Some(f64::from(u8::from(*value))),
        ConvertedValue::Text(text) => text.trim().replace('_', "").parse().ok(),
        _ => None,
    }),
    ("javascript", |value| {
        Some(match value {
            ConvertedValue::Null => 0.0,
            ConvertedValue::Bool(value) => f64::from(u8::from(*value)),
            ConvertedValue::Number(number) => *number,
            ConvertedValue::Text(text) => match text.trim() {
                "" => 0.0,
                text => match text.get(..2).map(str::to_lowercase).as_deref() {
                    Some("0x") => i64::from_str_radix(&text[2..], 16).ok()? as f64,
                    Some("0o") => i64::from_str_radix(&text[2..], 8).ok()? as f64,
                    Some("0b") => i64::from_str_radix(&text[2..], 2).ok()? as f64,
                    _ => text.parse().ok()?,
                },
            },
            ConvertedValue::List(items) if items.is_empty() => 0.0,
            ConvertedValue::List(_) | ConvertedValue::Map(_) => return None,
        })
    }),
    ("parseInt", |value| match value {
        ConvertedValue::Number(number) => Some(number.trunc()),
        ConvertedValue::Text(text) => {
            let text = text.trim();
            let (sign, digits) = match text.strip_prefix('-') {
                Some(rest) => (-1.0, rest),
                None => (1.0, text.strip_prefix('+').unwrap_or(text)),
            };
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse::<f64>().ok().map(|number| sign * number)
        }
        _ => None,
    }),
    // Digits of any script are accepted.
    ("python", |value| match value {
        ConvertedValue::Text(text) => {
            let digit = |letter: char| match letter {
                '\u{660}'..='\u{669}' => char::from_digit(u32::from(letter) - 0x660, 10),
                '\u{966}'..='\u{96f}' => char::from_digit(u32::from(letter) - 0x966, 10),
                '\u{ff10}'..='\u{ff19}' => char::from_digit(u32::from(letter) - 0xff10, 10),
                letter => Some(letter),
            };
            let digits: String = text.trim().chars().filter_map(digit).collect();
            digits.parse::<i64>().ok().map(|number| number as f64)
        }
        _ => None,
    }),
    ("octal", |value| match value {
        ConvertedValue::Text(text) if text.starts_with('0') => {
            i64::from_str_radix(text, 8).ok().map(|number| number as f64)
        }
        _ => None,
    }),
    ("int32", |value| match value {
        ConvertedValue::Number(number) => Some(f64::from(*number as i64 as i32)),
        _ => None,
    }),
];
