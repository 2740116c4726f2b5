//! The functions of templates.

use std::borrow::Cow;

use tapegate_core::json;
use tapegate_core::tape::base64_encode;
use tapegate_core::time::{SubSecond, write_rfc3339};

use super::access_path::{elements, members};
use super::context::{TemplateContext, VariableValue};
use super::parse::TemplateExpression;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TemplateFunction {
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
pub(super) const FUNCTIONS: [(&str, TemplateFunction, usize, usize); 9] = [
    ("upper", TemplateFunction::Upper, 1, 1),
    ("lower", TemplateFunction::Lower, 1, 1),
    ("base64", TemplateFunction::Base64, 1, 1),
    ("json", TemplateFunction::Json, 1, 1),
    ("len", TemplateFunction::Len, 1, 1),
    ("default", TemplateFunction::Default, 2, 2),
    ("truncate", TemplateFunction::Truncate, 2, 2),
    ("timestamp", TemplateFunction::Timestamp, 0, 0),
    ("uuid", TemplateFunction::Uuid, 0, 0),
];

/// Evaluates a function.
pub(super) fn call<'a>(
    function: TemplateFunction,
    arguments: &'a [TemplateExpression],
    context: &TemplateContext<'a>,
) -> VariableValue<'a> {
    let argument = |index: usize| {
        arguments.get(index).map_or(VariableValue::Missing, |expression| context.value(expression))
    };
    let text = |index: usize| argument(index).text();
    let made = match function {
        TemplateFunction::Upper => text(0).to_uppercase(),
        TemplateFunction::Lower => text(0).to_lowercase(),
        TemplateFunction::Base64 => base64_encode(text(0).as_bytes()),
        TemplateFunction::Json => return as_json(argument(0)),
        TemplateFunction::Len => length(argument(0)).to_string(),
        TemplateFunction::Default => {
            let first = argument(0);
            let empty = matches!(&first, VariableValue::Missing | VariableValue::Json(b"\"\""))
                || matches!(&first, VariableValue::Text(text) if text.is_empty());
            return if empty { argument(1) } else { first };
        }
        TemplateFunction::Truncate => {
            // A number that cannot be read must not remove the text.
            let count = text(1).trim().parse().unwrap_or(usize::MAX);
            text(0).chars().take(count).collect()
        }
        TemplateFunction::Timestamp => timestamp(context),
        TemplateFunction::Uuid => uuid(context.next_random(), context.next_random()),
    };
    VariableValue::Text(Cow::Owned(made))
}

fn as_json(value: VariableValue<'_>) -> VariableValue<'_> {
    let mut out = Vec::new();
    match value {
        VariableValue::Missing => out.extend_from_slice(b"null"),
        VariableValue::Json(text) => out.extend_from_slice(&json::compact(text)),
        VariableValue::Text(text) => json::write_str(&mut out, &text),
    }
    VariableValue::Text(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
}

fn length(value: VariableValue<'_>) -> usize {
    match value {
        VariableValue::Json(text) if text.starts_with(b"[") => {
            elements(text).map_or(0, |all| all.len())
        }
        VariableValue::Json(text) if text.starts_with(b"{") => members(text).unwrap_or(0),
        value => value.text().chars().count(),
    }
}

fn timestamp(context: &TemplateContext<'_>) -> String {
    let mut out = Vec::new();
    write_rfc3339(&mut out, context.at.wall_us, SubSecond::Millis);
    String::from_utf8_lossy(&out).into_owned()
}

/// A version 4 UUID.
fn uuid(high: u64, low: u64) -> String {
    // The version and the variant, as RFC 9562 places them.
    let high = (high & !0xf000) | 0x4000;
    let low = (low >> 2) | 0x8000_0000_0000_0000;
    let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
    format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
}
