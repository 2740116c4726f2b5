//! Writes scalars so that no YAML loader misreads them.

use crate::node::{Node, NodeValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextStyle {
    /// Without quotes.
    Plain,
    /// In double quotes.
    Quoted,
    /// As a literal block.
    Block,
}

/// The longest text written without quotes.
const PLAIN_BYTES_MAX: usize = 120;

/// Words that some version of YAML reads as another type.
const TAKEN: [&str; 11] =
    ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];

impl TextStyle {
    /// The most readable style that is safe.
    pub(super) fn of(text: &str) -> Self {
        if is_plain(text) {
            Self::Plain
        } else if is_block(text) {
            Self::Block
        } else {
            Self::Quoted
        }
    }
}

/// Whether every YAML version reads the text as itself without quotes: letters, digits and marks
/// without a meaning in YAML, and a start that no number or date has.
fn is_plain(text: &str) -> bool {
    let begins = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'/');
    let goes_on = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'/' | b'-' | b'.' | b' ' | b'(' | b')' | b',')
    };
    text.len() <= PLAIN_BYTES_MAX
        && text.bytes().next().is_some_and(begins)
        && text.bytes().all(goes_on)
        && !text.ends_with(' ')
        && !TAKEN.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether the text consists of plain lines in which every character is visible.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let line_ok = |line: &str| {
        // Editors strip blanks at line ends, which would change the text.
        !line.ends_with([' ', '\t'])
            && !line.starts_with('\t')
            && line.chars().all(|c| c == '\t' || is_visible(c))
    };
    body.contains('\n')
        // Several final line ends need a chomping indicator that readers overlook.
        && !body.ends_with('\n')
        // A leading blank would need an explicit indentation indicator.
        && !body.starts_with(['\n', ' ', '\t'])
        && body.split('\n').all(line_ok)
}

/// A scalar other than text.
pub(super) fn scalar_text(node: &Node) -> String {
    match &node.value {
        NodeValue::Bool(true) => "true".to_owned(),
        NodeValue::Bool(false) => "false".to_owned(),
        NodeValue::Number(text) => text.clone(),
        _ => "null".to_owned(),
    }
}

/// A key; our directives need no quotes.
pub(super) fn key(text: &str) -> String {
    let directive = text
        .strip_prefix('$')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_lowercase()));
    if directive || is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// Text in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{1b}' => out.push_str("\\e"),
            c if is_visible(c) => out.push(c),
            c => escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// Text for a comment: on one line, with hidden characters escaped.
pub(super) fn visible_comment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_visible(c) { out.push(c) } else { escape(&mut out, c) }
    }
    out
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    out.push_str(&match code {
        0..=0xff => format!("\\x{code:02X}"),
        0x100..=0xffff => format!("\\u{code:04X}"),
        _ => format!("\\U{code:08X}"),
    });
}

/// Whether a character is visible as itself and allowed in YAML.
fn is_visible(c: char) -> bool {
    match u32::from(c) {
        0x20..=0x7e => true,
        0..=0xa0 | 0xad => false,
        // Characters that only affect others: direction, width, joining, variation, tags.
        0x034f | 0x061c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f => false,
        0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f => false,
        0x3000 | 0x3164 | 0xfe00..=0xfe0e | 0xfeff | 0xffa0 | 0xfff0..=0xfffb | 0xfffe | 0xffff => {
            false
        }
        0xe000..=0xf8ff => false,
        0x1d173..=0x1d17a | 0xe0000..=0x10ffff => false,
        code => code & 0xfffe != 0xfffe,
    }
}
