//! Reads text that is nearly JSON, and writes JSON.
//!
//! It accepts whatever some parser accepts: comments, any quotes, unquoted words, `=` for `:`, surplus or
//! missing commas, missing closing brackets, and several values in a row.

use crate::json::write_str;

use super::escapes;

/// The maximum nesting depth of lists and objects.
const DEPTH_MAX: usize = 64;

/// Converts a text to JSON; `None` if it is too deep, or neither a list nor an object.
pub(super) fn to_json(text: &str) -> Option<Vec<u8>> {
    let mut reader =
        TolerantReader { rest: text.strip_prefix("---").unwrap_or(text), out: Vec::new() };
    reader.skip_blank();
    if !reader.rest.starts_with(['{', '[']) {
        // Members without braces around them.
        reader.members(&[], DEPTH_MAX)?;
        return Some(reader.out);
    }
    let mut values = 0;
    while !reader.rest.is_empty() {
        if values > 0 {
            reader.out.push(b',');
        }
        let before = reader.rest.len();
        reader.value(DEPTH_MAX)?;
        values += 1;
        reader.skip_separators(&['}', ']', ')', ':', '=']);
        if reader.rest.len() == before {
            return None;
        }
    }
    if values == 1 {
        return Some(reader.out);
    }
    reader.out.insert(0, b'[');
    reader.out.push(b']');
    Some(reader.out)
}

/// A text without leading white space and comments.
pub(super) fn skip_blank(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| {
            letter.is_whitespace() || letter.is_control() || letter == '\u{feff}'
        });
        let line = |text: &'_ str| text.find('\n').unwrap_or(text.len());
        rest = match rest.get(..2) {
            Some("//") => &rest[line(rest)..],
            Some("/*") => rest.split_once("*/").map_or("", |(_, rest)| rest),
            _ if rest.starts_with('#') => &rest[line(rest)..],
            _ => return rest,
        };
    }
}

struct TolerantReader<'t> {
    rest: &'t str,
    out: Vec<u8>,
}

impl<'t> TolerantReader<'t> {
    fn skip_blank(&mut self) {
        self.rest = skip_blank(self.rest);
    }

    /// Skips separators, and any of the characters in `stray`.
    fn skip_separators(&mut self, stray: &[char]) {
        loop {
            self.skip_blank();
            let skipped = |letter: char| matches!(letter, ',' | ';') || stray.contains(&letter);
            match self.rest.strip_prefix(skipped) {
                Some(rest) => self.rest = rest,
                None => return,
            }
        }
    }

    /// Reads a value. The inner option is an alternative reading of it.
    fn value(&mut self, depth: usize) -> Option<Option<String>> {
        self.skip_blank();
        let depth = depth.checked_sub(1)?;
        match self.rest.chars().next() {
            Some('{') => {
                self.rest = &self.rest[1..];
                self.members(&['}'], depth)?;
            }
            Some(open @ ('[' | '(')) => {
                self.rest = &self.rest[1..];
                self.elements(if open == '[' { ']' } else { ')' }, depth)?;
            }
            _ => {
                let (text, raw) = self.text(&[',', ';', '}', ']', ')', '\n']);
                self.scalar(&text);
                return Some(raw);
            }
        }
        Some(None)
    }

    fn elements(&mut self, end: char, depth: usize) -> Option<()> {
        self.out.push(b'[');
        let mut first = true;
        loop {
            self.skip_separators(&[':', '=']);
            if self.rest.is_empty() {
                break;
            }
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                break;
            }
            // Skip a closing bracket that belongs to something else.
            if let Some(rest) = self.rest.strip_prefix(['}', ']', ')']) {
                self.rest = rest;
                continue;
            }
            self.comma(&mut first);
            let word = (!self.rest.starts_with(['"', '\'', '`'])).then_some(self.rest);
            let raw = self.value(depth)?;
            self.write_other_readings(word, raw, &mut first);
        }
        self.out.push(b']');
        Some(())
    }

    /// Writes alternative readings of an element: with its escapes not decoded, or each of its words.
    fn write_other_readings(
        &mut self,
        from: Option<&'t str>,
        raw: Option<String>,
        first: &mut bool,
    ) {
        if let Some(raw) = raw {
            self.comma(first);
            write_str(&mut self.out, &raw);
        }
        let Some(from) = from.filter(|from| !from.starts_with(['{', '[', '('])) else { return };
        let text = from[..from.len() - self.rest.len()].trim();
        for word in text.split_whitespace().filter(|word| word.len() < text.len()) {
            self.comma(first);
            self.scalar(&TolerantScalar { quoted: false, text: word.to_owned() });
        }
    }

    fn members(&mut self, end: &[char], depth: usize) -> Option<()> {
        self.out.push(b'{');
        let mut first = true;
        loop {
            self.skip_separators(&[]);
            if self.rest.is_empty() {
                break;
            }
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                break;
            }
            let (key, _) = self.text(&[',', ':', '=', '{', '}', '[', ']', '\n']);
            self.skip_blank();
            self.rest = self.rest.strip_prefix([':', '='])?.trim_start_matches(['>', '=']);
            self.comma(&mut first);
            write_str(&mut self.out, &key.text);
            self.out.push(b':');
            if let Some(raw) = self.value(depth)? {
                self.comma(&mut first);
                write_str(&mut self.out, &key.text);
                self.out.push(b':');
                write_str(&mut self.out, &raw);
            }
        }
        self.out.push(b'}');
        Some(())
    }

    fn comma(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.out.push(b',');
        }
    }

    /// A quoted string, or a word that ends at one of `ends`; and the string with its escapes not decoded,
    /// if some parser would read it so.
    fn text(&mut self, ends: &[char]) -> (TolerantScalar, Option<String>) {
        let quote = self.rest.chars().next().filter(|first| matches!(first, '"' | '\'' | '`'));
        let Some(quote) = quote else {
            let comment = |at: usize| {
                let before = self.rest[..at].ends_with(char::is_whitespace);
                before && (self.rest[at..].starts_with("//") || self.rest[at..].starts_with('#'))
            };
            let end = self
                .rest
                .char_indices()
                .find(|(at, letter)| *at > 0 && (ends.contains(letter) || comment(*at)))
                .map_or(self.rest.len(), |(at, _)| at);
            let (word, rest) = self.rest.split_at(end);
            self.rest = rest;
            return (TolerantScalar { quoted: false, text: word.trim().to_owned() }, None);
        };
        let (mut text, mut rest) = (String::new(), &self.rest[1..]);
        let start = rest;
        let mut escaped = false;
        loop {
            let Some(at) = rest.find([quote, '\\']) else {
                text.push_str(rest);
                rest = "";
                break;
            };
            text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if start.as_bytes()[start.len() - rest.len() - 1] == b'\\' {
                escaped = true;
                rest = escapes::decode_escape(rest, &mut text);
            } else if quote == '\'' && rest.starts_with('\'') {
                text.push(quote);
                rest = &rest[1..];
            } else {
                break;
            }
        }
        let raw = &start[..start.len() - rest.len()];
        let raw = raw.strip_suffix(quote).unwrap_or(raw);
        self.rest = rest;
        let raw = (escaped && quote == '\'').then(|| raw.to_owned());
        (TolerantScalar { quoted: true, text }, raw)
    }

    fn scalar(&mut self, text: &TolerantScalar) {
        let word = match text.text.as_str() {
            _ if text.quoted => None,
            "true" | "True" | "TRUE" => Some("true"),
            "false" | "False" | "FALSE" => Some("false"),
            "null" | "None" | "Null" | "NULL" | "~" | "undefined" | "nil" => Some("null"),
            number if is_number(number) => Some(number),
            _ => None,
        };
        match word {
            Some(word) => self.out.extend(word.as_bytes()),
            None => write_str(&mut self.out, &text.text),
        }
    }
}

/// A key, or a value that is neither a list nor an object.
struct TolerantScalar {
    quoted: bool,
    text: String,
}

/// Whether a word is a JSON number.
fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && crate::json::check(word.as_bytes()).is_ok()
}
