//! Makes text visible: control characters and characters that are easy to miss are written as JSON
//! escapes.
//!
//! A string is shown as JSON, so that it can be copied without changing its meaning, lone
//! surrogates included. Long text is truncated, marked by a `…` outside the quotes.

use std::fmt::Write;
use std::path::Path;

use crate::json::{Cursor, JsonKind, JsonStr};

/// A range of a string, counted in code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextWindow {
    /// Where it starts.
    pub from: usize,
    /// Its maximum length.
    pub length: usize,
}

/// Text that is not JSON, such as a method or a name, on one line. Leading and trailing spaces are
/// escaped: `write_file ` is not the same tool as `write_file`.
pub fn inline(text: &str, chars_max: usize) -> String {
    let inner = text.trim_matches(' ');
    let ends = text.len() - text.trim_start_matches(' ').len();
    let (start, end) = (ends, ends + inner.len());
    let mut out = String::new();
    let mut letters = text.char_indices();
    for (at, letter) in letters.by_ref().take(chars_max) {
        match (start..end).contains(&at) {
            true => push(&mut out, u32::from(letter)),
            false => out.push_str("\\u0020"),
        }
    }
    if letters.next().is_some() {
        out.push('…');
    }
    out
}

/// One line of a text. Leading spaces are kept as indentation; trailing ones are escaped, since
/// they would be invisible.
pub fn line(text: &str) -> String {
    let indented = text.trim_start_matches(' ');
    match indented.is_empty() {
        true => inline(text, usize::MAX),
        false => " ".repeat(text.len() - indented.len()) + &inline(indented, usize::MAX),
    }
}

/// Text of several lines, such as an error; line breaks and tabs are kept.
pub fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => out.push(letter),
            letter => push(&mut out, u32::from(letter)),
        }
    }
    out
}

/// A file name, on one line.
pub fn path(path: &Path) -> String {
    inline(&path.to_string_lossy(), usize::MAX)
}

/// JSON on one line without whitespace, up to some length.
pub fn value(raw: &[u8], chars_max: usize) -> String {
    let mut out = String::new();
    let mut rest = raw;
    // A character has at most four bytes, so anything longer than this will be truncated.
    while let (Some(&byte), true) = (rest.first(), out.len() <= chars_max * 4) {
        rest = match byte {
            b'"' => {
                let (string, behind) = first_string(rest);
                quoted(&mut out, string, TextWindow { from: 0, length: chars_max });
                behind
            }
            _ => {
                if !byte.is_ascii_whitespace() {
                    push(&mut out, u32::from(byte));
                }
                &rest[1..]
            }
        };
    }
    match out.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &out[..end]),
        None => out,
    }
}

/// A range of a JSON string in quotes, with the total length if it is truncated.
pub fn string(string: JsonStr<'_>, window: TextWindow) -> String {
    let mut out = String::new();
    let total = string.scalars().count();
    let end = window.from.saturating_add(window.length);
    if window.from > 0 {
        out.push('…');
    }
    quoted(&mut out, string, window);
    if end < total {
        out.push('…');
    }
    if window.from > 0 || end < total {
        // Writing to a string cannot fail.
        write!(out, " ({total} characters)").ok();
    }
    out
}

/// The string in a JSON text, if it is one.
pub fn as_string(raw: &[u8]) -> Option<JsonStr<'_>> {
    let mut cursor = Cursor::new(raw).ok()?;
    match cursor.kind() {
        Ok(JsonKind::String) => cursor.string().ok(),
        _ => None,
    }
}

/// Appends a code point in visible form.
pub fn push(out: &mut String, code: u32) {
    match char::from_u32(code) {
        Some('\n') => out.push_str("\\n"),
        Some('\r') => out.push_str("\\r"),
        Some('\t') => out.push_str("\\t"),
        Some(letter) if !is_hidden(letter) => out.push(letter),
        Some(letter) => {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").ok();
            }
        }
        // A lone surrogate is not a character, but must be told apart from others.
        None => write!(out, "\\u{code:04x}").unwrap_or_default(),
    }
}

fn quoted(out: &mut String, string: JsonStr<'_>, window: TextWindow) {
    out.push('"');
    for code in string.scalars().skip(window.from).take(window.length) {
        if code == u32::from('"') || code == u32::from('\\') {
            out.push('\\');
        }
        push(out, code);
    }
    out.push('"');
}

/// Whether a character affects a terminal, is invisible, or looks like a space.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || (letter.is_whitespace() && letter != ' ')
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The string that `text` starts with, and the rest.
pub fn first_string(text: &[u8]) -> (JsonStr<'_>, &[u8]) {
    let mut escaped = false;
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return (JsonStr { raw: &text[1..at], escaped }, &text[at + 1..]),
            b'\\' => {
                escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    (JsonStr { raw: &text[1..], escaped }, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: TextWindow = TextWindow { from: 0, length: usize::MAX };

    fn shown(raw: &str) -> String {
        string(as_string(raw.as_bytes()).unwrap(), ALL)
    }

    #[test]
    fn blanks_at_the_ends_of_a_name_are_seen() {
        assert_eq!(inline("write_file ", 40), "write_file\\u0020");
        assert_eq!(inline("  a b", 40), "\\u0020\\u0020a b");
        assert_eq!(inline("a b", 40), "a b");
        assert_eq!(inline(" ", 40), "\\u0020");
        assert_eq!(inline("abc ", 3), "abc…");
    }

    #[test]
    fn the_blanks_that_a_line_begins_with_are_its_indentation() {
        assert_eq!(line("  - id: reads"), "  - id: reads");
        assert_eq!(line("  a  "), "  a\\u0020\\u0020");
        assert_eq!(line("  "), "\\u0020\\u0020");
        assert_eq!(line(" \u{a0} \t\u{202e}a\x1b"), " \\u00a0 \\t\\u202ea\\u001b");
    }

    #[test]
    fn nothing_reaches_the_terminal_that_it_would_obey() {
        assert_eq!(shown("\"\u{9b}31m\u{7f}\\u001b[2J\""), r#""\u009b31m\u007f\u001b[2J""#);
        assert_eq!(inline("a\x1b]0;title\x07\r\nb", 99), r"a\u001b]0;title\u0007\r\nb");
        assert_eq!(value("{\"\u{202e}k\":\"\\u001b\"}".as_bytes(), 99), r#"{"\u202ek":"\u001b"}"#);
        for code in 0..0x11_0000 {
            let mut out = String::new();
            push(&mut out, code);
            assert!(!out.chars().any(|letter| letter.is_control()), "{code:x}");
        }
    }

    #[test]
    fn what_an_eye_would_miss_is_seen() {
        assert_eq!(
            shown("\"a\u{a0}b\u{200b}c\u{e0041}d\u{feff}\""),
            r#""a\u00a0b\u200bc\udb40\udc41d\ufeff""#
        );
        assert_eq!(shown("\"é 日本 😀\""), "\"é 日本 😀\"");
    }

    #[test]
    fn what_is_shown_means_what_it_meant() {
        for raw in [
            r#""a\"\\\/\b\f\n\r\t\u0000""#,
            r#""\ud800x\udc00""#,
            r#""\\ud800""#,
            "\"\u{2028}é😀\"",
        ] {
            let shown = shown(raw);
            let (one, two) =
                (as_string(raw.as_bytes()).unwrap(), as_string(shown.as_bytes()).unwrap());
            assert!(one.has_same_value(&two), "{raw} {shown}");
        }
    }

    #[test]
    fn what_is_long_is_cut() {
        assert_eq!(inline("abcdef", 3), "abc…");
        assert_eq!(inline("abc", 3), "abc");
        assert_eq!(value(b"[1, 2, 3, \"x y\"]", 99), "[1,2,3,\"x y\"]");
        assert_eq!(value(b"[1, 2, 3]", 4), "[1,2…");
        assert_eq!(value(b"{\"a\":\"bcdef\"}", 7), "{\"a\":\"b…");
        let text = as_string(b"\"abcdefgh\"").unwrap();
        assert_eq!(string(text, TextWindow { from: 2, length: 3 }), "…\"cde\"… (8 characters)");
        assert_eq!(string(text, TextWindow { from: 0, length: 8 }), "\"abcdefgh\"");
    }
}
