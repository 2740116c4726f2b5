//! The functions of templates.

use std::borrow::Cow;

use tapegate_core::json;
use tapegate_core::tape::base64_encode;
use tapegate_core::time::{SubSecond, write_rfc3339};

use super::context::{Context, Found};
use super::parse::Expression;
use super::steps::{elements, members};

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    /// Converts to upper case.
    Upper,
    /// Converts to lower case.
    Lower,
    /// Encodes as base64.
    Base64,
    /// Encodes as JSON.
    Json,
    /// The number of characters, elements or members.
    Len,
    /// The first argument, or the second if the first is missing.
    Default,
    /// The first characters, up to a given number.
    Truncate,
    /// The current time.
    Timestamp,
    /// A random UUID.
    Uuid,
}

/// The functions by name, with the minimum and maximum number of arguments.
pub(super) const FUNCTIONS: [(&str, Function, usize, usize); 9] = [
    ("upper", Function::Upper, 1, 1),
    ("lower", Function::Lower, 1, 1),
    ("base64", Function::Base64, 1, 1),
    ("json", Function::Json, 1, 1),
    ("len", Function::Len, 1, 1),
    ("default", Function::Default, 2, 2),
    ("truncate", Function::Truncate, 2, 2),
    ("timestamp", Function::Timestamp, 0, 0),
    ("uuid", Function::Uuid, 0, 0),
];

/// Evaluates a function.
pub(super) fn call<'a>(
    function: Function,
    arguments: &'a [Expression],
    context: &Context<'a>,
) -> Found<'a> {
    let argument = |index: usize| {
        arguments.get(index).map_or(Found::Missing, |expression| context.value(expression))
    };
    let text = |index: usize| argument(index).text();
    let made = match function {
        Function::Upper => text(0).to_uppercase(),
        Function::Lower => text(0).to_lowercase(),
        Function::Base64 => base64_encode(text(0).as_bytes()),
        Function::Json => return as_json(argument(0)),
        Function::Len => length(argument(0)).to_string(),
        Function::Default => {
            let first = argument(0);
            let empty = matches!(&first, Found::Missing | Found::Json(b"\"\""))
                || matches!(&first, Found::Text(text) if text.is_empty());
            return if empty { argument(1) } else { first };
        }
        Function::Truncate => {
            let count = text(1).trim().parse().unwrap_or(usize::MAX);
            text(0).chars().take(count).collect()
        }
        Function::Timestamp => timestamp(context),
        Function::Uuid => uuid(context.roll(), context.roll()),
    };
    Found::Text(Cow::Owned(made))
}

fn as_json(value: Found<'_>) -> Found<'_> {
    let mut out = Vec::new();
    match value {
        Found::Missing => out.extend_from_slice(b"null"),
        Found::Json(text) => out.extend_from_slice(&json::compact(text)),
        Found::Text(text) => json::write_str(&mut out, &text),
    }
    Found::Text(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
}

fn length(value: Found<'_>) -> usize {
    match value {
        Found::Json(text) if text.starts_with(b"[") => elements(text).map_or(0, |all| all.len()),
        Found::Json(text) if text.starts_with(b"{") => members(text).unwrap_or(0),
        value => value.text().chars().count(),
    }
}

fn timestamp(context: &Context<'_>) -> String {
    let mut out = Vec::new();
    write_rfc3339(&mut out, context.at.wall_us, SubSecond::Millis);
    String::from_utf8_lossy(&out).into_owned()
}

/// A version 4 UUID.
fn uuid(high: u64, low: u64) -> String {
    let high = (high & !0xf000) | 0x4000;
    let low = (low >> 2) | 0x8000_0000_0000_0000;
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
}
