//! JSON with comments and trailing commas.

use std::ops::Range;

use tapegate_core::json::{self, place_of, string};

use super::{ConfigMember, ConfigNode, ConfigValue, DEPTH_MAX};

pub(super) fn read(text: &str) -> Result<ConfigNode, String> {
    let plain = blank_comments(text)?;
    json::check(plain.trim().as_bytes()).map_err(|fault| format!("not valid JSON: {fault}"))?;
    Ok(JsonReader { whole: plain.as_bytes() }.node(plain.trim().as_bytes(), DEPTH_MAX))
}

/// The text with blanks in place of the comments and trailing commas that editors allow. Every
/// other byte keeps its place.
fn blank_comments(text: &str) -> Result<String, String> {
    let mut plain = text.as_bytes().to_vec();
    let bytes = text.as_bytes();
    // The last comma, as long as only blanks and comments have followed.
    let (mut comma, mut previous) = (None, b'[');
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => quoted_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"//") => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            b'/' if bytes[at..].starts_with(b"/*") => {
                find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2)
            }
            _ => at + 1,
        };
        match bytes[at] {
            b'/' if end > at + 1 => {
                check_comment(&text[at..end])?;
                let comment = plain[at..end].iter_mut();
                comment.filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            }
            // Only behind a value: `[,]` stays wrong.
            b',' => comma = (!matches!(previous, b'[' | b'{' | b',')).then_some(at),
            // A comma before it is legal in the configs of VS Code and Zed, but not in JSON.
            b']' | b'}' => comma.take().into_iter().for_each(|at| plain[at] = b' '),
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        let is_comment = bytes[at] == b'/' && end > at + 1;
        if !is_comment && !bytes[at].is_ascii_whitespace() {
            previous = bytes[at];
        }
        at = end;
    }
    // Only whole characters of comments were replaced, each byte by a blank.
    Ok(String::from_utf8(plain).unwrap_or_default())
}

/// Refuses a `//` comment whose end is not the same for all parsers: to some of them, the rest of
/// the line would be entries, which would start servers that we have not seen.
fn check_comment(comment: &str) -> Result<(), String> {
    // The carriage return before the line's end belongs to it.
    let line = comment.strip_suffix('\r').unwrap_or(comment);
    let is_line_end =
        |c: char| matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    match line.starts_with("//").then(|| line.chars().find(|c| is_line_end(*c))).flatten() {
        Some(found) => Err(format!(
            "a `//` comment contains U+{:04X}, where some programs end the line and others do not",
            u32::from(found)
        )),
        None => Ok(()),
    }
}

fn quoted_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn find(bytes: &[u8], from: usize, wanted: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

/// Reads values that lie in one text.
struct JsonReader<'a> {
    whole: &'a [u8],
}

impl JsonReader<'_> {
    fn node(&self, text: &[u8], depth: usize) -> ConfigNode {
        ConfigNode { value: self.value(text, depth), span: self.place(text) }
    }

    fn place(&self, part: &[u8]) -> Range<usize> {
        place_of(part, self.whole).unwrap_or_default()
    }

    fn value(&self, text: &[u8], depth: usize) -> ConfigValue {
        let as_written = || String::from_utf8_lossy(text).into_owned();
        let Some(depth) = depth.checked_sub(1) else { return ConfigValue::Other(as_written()) };
        match text.first() {
            Some(b'"') => match string(text) {
                Some(text) => ConfigValue::Text(text.into_owned()),
                None => ConfigValue::Other(as_written()),
            },
            Some(b't') => ConfigValue::Bool(true),
            Some(b'f') => ConfigValue::Bool(false),
            Some(b'n') => ConfigValue::Null,
            Some(b'[') => {
                let items = tapegate_core::frame::array_items(text);
                ConfigValue::List(items.into_iter().map(|item| self.node(item, depth)).collect())
            }
            Some(b'{') => ConfigValue::Map(self.members(text, depth).unwrap_or_default()),
            _ => ConfigValue::Number(as_written()),
        }
    }

    fn members(&self, text: &[u8], depth: usize) -> Option<Vec<ConfigMember>> {
        let mut found = Vec::new();
        for member in json::members(text) {
            let (key, value) = member.ok()?;
            // Without the quotes, which belong to what is replaced.
            let inner = self.place(key.raw);
            found.push(ConfigMember {
                key: key.decode().into_owned(),
                key_span: inner.start.saturating_sub(1)..inner.end + 1,
                node: self.node(value, depth),
                is_own: true,
            });
        }
        Some(found)
    }
}
