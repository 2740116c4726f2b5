//! Predicates held against readers that convert what they are given, as real servers do: whatever one
//! of them reads as matching, a rule that stops must match.

use proptest::prelude::*;
use tapegate_core::json::path::Path;
use tapegate_policy::predicate::{Predicate, Test};

/// What a server has after it has converted an argument.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Other,
}

/// A JSON value as this test makes it: its text, and what it is.
#[derive(Debug, Clone)]
struct Sample {
    json: String,
    value: Value,
}

fn sample(value: Value) -> Sample {
    Sample { json: written(&value), value }
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::Text(text) => quoted(text),
        Value::List(items) => {
            format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(","))
        }
        Value::Other => "{}".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    tapegate_core::json::write_str(&mut out, text);
    String::from_utf8(out).unwrap()
}

/// JSON in a text, read as most servers would that parse it: what this test writes and no more.
fn parsed(text: &str) -> Option<Value> {
    let text = text.trim();
    Some(match text {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "[]" => Value::List(Vec::new()),
        _ if text.starts_with('[') && text.ends_with(']') => {
            let inner = &text[1..text.len() - 1];
            Value::List(inner.split(',').map(parsed).collect::<Option<_>>()?)
        }
        _ if text.starts_with('"') && text.ends_with('"') && text.len() > 1 => {
            Value::Text(text[1..text.len() - 1].to_owned())
        }
        _ => Value::Number(
            text.parse()
                .ok()
                .filter(|_| text.starts_with(|c: char| c == '-' || c.is_ascii_digit()))?,
        ),
    })
}

/// A way of converting to true or false.
type BoolReader = fn(&Value) -> Option<bool>;

const BOOL_READERS: [(&str, BoolReader); 6] = [
    ("pydantic", |value| match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) if *number == 0.0 => Some(false),
        Value::Number(number) if *number == 1.0 => Some(true),
        Value::Text(text) => match text.to_lowercase().as_str() {
            "0" | "off" | "f" | "false" | "n" | "no" => Some(false),
            "1" | "on" | "t" | "true" | "y" | "yes" => Some(true),
            _ => None,
        },
        _ => None,
    }),
    ("javascript", |value| {
        Some(match value {
            Value::Null => false,
            Value::Bool(value) => *value,
            Value::Number(number) => *number != 0.0 && !number.is_nan(),
            Value::Text(text) => !text.is_empty(),
            Value::List(_) | Value::Other => true,
        })
    }),
    ("python", |value| {
        Some(match value {
            Value::Null => false,
            Value::Bool(value) => *value,
            Value::Number(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Other => false,
        })
    }),
    ("go", |value| match value {
        Value::Bool(value) => Some(*value),
        Value::Null => Some(false),
        Value::Text(text) => match text.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
            _ => None,
        },
        _ => None,
    }),
    ("yaml", |value| match value {
        Value::Bool(value) => Some(*value),
        Value::Text(text) => match text.trim().to_lowercase().as_str() {
            "y" | "yes" | "true" | "on" => Some(true),
            "n" | "no" | "false" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }),
    ("java", |value| match value {
        Value::Bool(value) => Some(*value),
        Value::Text(text) => Some(text.eq_ignore_ascii_case("true")),
        _ => None,
    }),
];

/// A way of converting to a number.
type NumberReader = fn(&Value) -> Option<f64>;

const NUMBER_READERS: [(&str, NumberReader); 5] = [
    ("pydantic", |value| match value {
        Value::Number(number) => Some(*number),
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Text(text) => text.trim().replace('_', "").parse().ok(),
        _ => None,
    }),
    ("javascript", |value| {
        Some(match value {
            Value::Null => 0.0,
            Value::Bool(value) => f64::from(u8::from(*value)),
            Value::Number(number) => *number,
            Value::Text(text) => match text.trim() {
                "" => 0.0,
                text => match text.get(..2).map(str::to_lowercase).as_deref() {
                    Some("0x") => i64::from_str_radix(&text[2..], 16).ok()? as f64,
                    Some("0o") => i64::from_str_radix(&text[2..], 8).ok()? as f64,
                    Some("0b") => i64::from_str_radix(&text[2..], 2).ok()? as f64,
                    _ => text.parse().ok()?,
                },
            },
            Value::List(items) if items.is_empty() => 0.0,
            Value::List(_) | Value::Other => return None,
        })
    }),
    ("parseInt", |value| match value {
        Value::Number(number) => Some(number.trunc()),
        Value::Text(text) => {
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
    ("octal", |value| match value {
        Value::Text(text) if text.starts_with('0') => {
            i64::from_str_radix(text, 8).ok().map(|n| n as f64)
        }
        _ => None,
    }),
    ("int32", |value| match value {
        Value::Number(number) => Some(f64::from(*number as i64 as i32)),
        _ => None,
    }),
];

/// The values that servers unpack or parse from one: itself, JSON in it, the elements of a list.
fn unpacked(value: &Value, depth: usize) -> Vec<Value> {
    let mut all = vec![value.clone()];
    if depth == 0 {
        return all;
    }
    match value {
        Value::Text(text) => {
            all.extend(parsed(text).iter().flat_map(|inner| unpacked(inner, depth - 1)))
        }
        Value::List(items) => all.extend(items.iter().flat_map(|item| unpacked(item, depth - 1))),
        _ => {}
    }
    all
}

fn value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("true"),
        Just("True"),
        Just("yes"),
        Just("on"),
        Just("1"),
        Just("t"),
        Just("y"),
        Just("false"),
        Just("no"),
        Just("off"),
        Just("0"),
        Just("f"),
        Just(""),
        Just(" true "),
        Just("NULL"),
        Just("null"),
        Just("5000"),
        Just(" +5000 "),
        Just("0x1388"),
        Just("0b1"),
        Just("5_000"),
        Just("5e3"),
        Just("0010"),
        Just("-1"),
        Just("1.0"),
        Just("0.0"),
        Just("1e400"),
        Just("5000abc"),
        Just("99"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3i32..5).prop_map(|number| Value::Number(f64::from(number))),
        (-1_000_000i64..1_000_000).prop_map(|number| Value::Number(number as f64 / 8.0)),
        any::<i64>().prop_map(|number| Value::Number(number as f64)),
        word.prop_map(|word| Value::Text(word.to_owned())),
        "[ +-]{0,2}[0-9_]{1,6}(\\.[0-9]{1,3})?([eE][0-9])?[ a-z]{0,2}".prop_map(Value::Text),
        "[a-zA-Z0-9 ]{0,6}".prop_map(Value::Text),
        Just(Value::Other),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::List),
            inner.prop_map(|inner| Value::Text(written(&inner))),
        ]
    })
}

/// Arguments with the value under a key, as careless servers find it.
fn arguments(sample: &Sample, key: &str, whole: bool) -> Vec<u8> {
    let object = format!("{{\"a\":1,{}:{}}}", quoted(key), sample.json);
    if whole { quoted(&object).into_bytes() } else { object.into_bytes() }
}

fn predicate(test: Test, not: bool) -> Predicate {
    Predicate::new(Path::read("force_it").unwrap(), "force_it".to_owned(), test, not)
}

fn one_of(json: &str) -> Test {
    Test::OneOf(vec![json.to_owned()])
}

fn range(min: f64, max: f64) -> Test {
    Test::Range { min: Some(min.to_string()), max: Some(max.to_string()) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_server_reads_as_true_or_false_is_stopped(
        value in value(), wanted in any::<bool>(),
        key in prop_oneof![Just("force_it"), Just("Force_It"), Just("forceIt"), Just("force-it"), Just("force_it\u{0}x")],
        whole in any::<bool>(),
    ) {
        let sample = sample(value);
        let arguments = arguments(&sample, key, whole);
        let test = predicate(one_of(&wanted.to_string()), false);
        let other = predicate(one_of(&(!wanted).to_string()), true);
        for reading in unpacked(&sample.value, 3) {
            for (name, read) in BOOL_READERS {
                if read(&reading) == Some(wanted) {
                    prop_assert!(test.may_hold(&arguments), "{name} reads {} as {wanted}", sample.json);
                    prop_assert!(other.may_hold(&arguments), "{name} reads {} as not {}", sample.json, !wanted);
                    // No rule forwards it for not being so.
                    let lets = predicate(one_of(&wanted.to_string()), true);
                    prop_assert!(!lets.must_hold(&arguments), "{name} {}", sample.json);
                }
            }
        }
        let exact = sample.value == Value::Bool(wanted) && key == "force_it" && !whole;
        prop_assert_eq!(test.must_hold(&arguments), exact);
    }

    #[test]
    fn what_a_server_reads_as_a_number_is_stopped(
        value in value(), (low, width) in (-10i32..6_000, 0i32..100), whole in any::<bool>(),
    ) {
        let (min, max) = (f64::from(low), f64::from(low + width));
        let sample = sample(value);
        let arguments = arguments(&sample, "force_it", whole);
        let test = predicate(range(min, max), false);
        let lets = predicate(range(min, max), true);
        for reading in unpacked(&sample.value, 3) {
            for (name, read) in NUMBER_READERS {
                let Some(number) = read(&reading) else { continue };
                if (min..=max).contains(&number) {
                    prop_assert!(test.may_hold(&arguments), "{name} reads {} as {number}", sample.json);
                    prop_assert!(!lets.must_hold(&arguments), "{name} reads {} as {number}", sample.json);
                    let equal = predicate(one_of(&number.to_string()), false);
                    prop_assert!(equal.may_hold(&arguments), "{name} reads {} as {number}", sample.json);
                } else {
                    prop_assert!(lets.may_hold(&arguments) || reading != sample.value, "{name} {}", sample.json);
                }
            }
        }
        let exact = matches!(sample.value, Value::Number(number) if (min..=max).contains(&number)) && !whole;
        prop_assert_eq!(test.must_hold(&arguments), exact, "{}", sample.json);
    }

    /// What lets a call through also stops it: the exact value is one of those that could be read so.
    #[test]
    fn what_must_hold_may_hold(value in value(), number in -5i32..50, not in any::<bool>(), text in "[a-z0-9 ]{0,4}") {
        let sample = sample(value);
        let arguments = arguments(&sample, "force_it", false);
        for test in [one_of("true"), one_of("null"), one_of(&quoted(&text)), one_of(&number.to_string()), range(f64::from(number), 9e9), Test::Exists] {
            let predicate = predicate(test, not);
            prop_assert!(!predicate.must_hold(&arguments) || predicate.may_hold(&arguments), "{predicate} {}", sample.json);
        }
    }
}
