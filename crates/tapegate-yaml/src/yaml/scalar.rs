//! Parses YAML scalars: text, numbers, booleans and null.
//!
//! Numbers are converted to JSON. If their spelling is valid JSON, it is kept with every digit;
//! otherwise an equivalent one is used.

use std::borrow::Cow;

use saphyr_parser::{ScalarStyle, Tag};

use crate::node::NodeValue;

/// The value of a scalar; on failure, the error message.
pub(super) fn read(
    text: Cow<'_, str>,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<NodeValue, String> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain {
            parse_plain(text)
        } else {
            Ok(NodeValue::Text(text.into()))
        };
    };
    let is_text = tag.handle.is_empty() && tag.suffix == "!";
    if is_text || tag.is_yaml_core_schema() && tag.suffix == "str" {
        return Ok(NodeValue::Text(text.into()));
    }
    let shown = text.clone();
    let value = parse_plain(text)?;
    let fits = match &value {
        NodeValue::Null => tag.suffix == "null",
        NodeValue::Bool(_) => tag.suffix == "bool",
        NodeValue::Number(number) => {
            tag.suffix == "float" || tag.suffix == "int" && !number.contains(['.', 'e', 'E'])
        }
        _ => false,
    };
    match tag.is_yaml_core_schema() && fits {
        true => Ok(value),
        false => Err(format!("the tag `{tag}` is unknown or does not fit `{shown}`")),
    }
}

/// The value of an unquoted scalar.
pub(super) fn parse_plain(text: Cow<'_, str>) -> Result<NodeValue, String> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(NodeValue::Null),
        "true" | "True" | "TRUE" => return Ok(NodeValue::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(NodeValue::Bool(false)),
        _ => {}
    }
    let starts_like_one =
        text.as_bytes().first().is_some_and(|b| b.is_ascii_digit() || b"+-.".contains(b));
    if !starts_like_one {
        return Ok(NodeValue::Text(text.into()));
    }
    let bare = text.strip_prefix(['-', '+']).unwrap_or(&text);
    // An error rather than text: JSON cannot express what YAML says here.
    if matches!(bare, ".inf" | ".Inf" | ".INF") || matches!(&*text, ".nan" | ".NaN" | ".NAN") {
        return Err(format!("`{text}` is not a JSON number; put it in quotes if it is text"));
    }
    Ok(match number(&text)? {
        Some(number) => NodeValue::Number(number),
        None => NodeValue::Text(text.into()),
    })
}

/// A number in its JSON spelling, or `None` if it is not a number.
fn number(text: &str) -> Result<Option<String>, String> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
                return Ok(None);
            }
            let number = u128::from_str_radix(digits, radix);
            return number
                .map(|number| Some(number.to_string()))
                .map_err(|_| format!("`{text}` is too large; put it in quotes if it is text"));
        }
    }
    let (sign, rest) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..]),
        [b'+', ..] => ("", &text[1..]),
        _ => ("", text),
    };
    let end = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = rest.split_at(end(rest));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(end(rest)),
        None => ("", rest),
    };
    let power = match rest.strip_prefix(['e', 'E']) {
        Some(power) => {
            let digits = power.strip_prefix(['-', '+']).unwrap_or(power);
            if digits.is_empty() || end(digits) < digits.len() {
                return Ok(None);
            }
            rest
        }
        None if rest.is_empty() => "",
        None => return Ok(None),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Ok(None);
    }
    // JSON allows neither leading zeros nor a missing whole part.
    let zeros = whole.len() - whole.trim_start_matches('0').len();
    let whole = if zeros == whole.len() { "0" } else { &whole[zeros..] };
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(Some(format!("{sign}{whole}{point}{fraction}{power}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_what_json_writes() {
        for (text, json) in [
            ("0", "0"),
            ("-12", "-12"),
            ("+1", "1"),
            ("007", "7"),
            ("00", "0"),
            ("-0", "-0"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1.", "1"),
            ("1.50", "1.50"),
            ("1e3", "1e3"),
            ("1.E+3", "1E+3"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("12345678901234567890123", "12345678901234567890123"),
        ] {
            assert_eq!(parse_plain(text.into()), Ok(NodeValue::Number(json.to_owned())), "{text}");
            assert!(tapegate_core::json::check(json.as_bytes()).is_ok(), "{json}");
        }
    }

    #[test]
    fn what_only_looks_like_a_number_is_text() {
        for text in [
            ".",
            "-",
            "+",
            "e3",
            "1e",
            "1e+",
            "1_000",
            "0x",
            "0xg",
            "-0x1",
            "1.2.3",
            "12:30",
            "0b1",
            "1 2",
            "--1",
            "2026-11-15",
            "+.",
            ".e3",
            "yes",
            "no",
            "on",
            "off",
            "Y",
            "nULL",
            "inf",
            "nan",
            "-.nan",
            "<<",
        ] {
            assert_eq!(parse_plain(text.into()), Ok(NodeValue::Text(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_json_has_no_number_for_is_refused() {
        for text in [".inf", "-.INF", "+.Inf", ".nan", "0xfffffffffffffffffffffffffffffffff"] {
            assert!(parse_plain(text.into()).is_err(), "{text}");
        }
    }
}
