//! Splits a text into policies, and converts offsets to lines and columns.

use std::ops::Range;

/// The ranges of the policies in a text, each including its semicolon. Text after the last one is
/// ignored, so the caller must parse the whole text first.
pub(crate) fn statements(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut start) = (0, None);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at +=
                    bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
                continue;
            }
            b'"' => {
                start.get_or_insert(at);
                at = string_end(bytes, at);
                continue;
            }
            b';' => found.extend(start.take().map(|start| start..at + 1)),
            byte if byte.is_ascii_whitespace() => {}
            _ => drop(start.get_or_insert(at)),
        }
        at += 1;
    }
    found
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The line and the column, in characters, of an offset; both from 1.
pub(crate) fn spot(text: &str, offset: usize) -> (u32, u32) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
