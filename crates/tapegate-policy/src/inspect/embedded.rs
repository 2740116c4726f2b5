//! Messages hidden in strings of other messages, after an escaped line end.
//!
//! A reader that decodes escapes before it splits lines would read such a message as a separate
//! one. Content such as logs or Markdown has line ends too, so only a line that starts like a
//! message counts.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use tapegate_core::json::{JsonFault, JsonStr, JsonToken, members, tokens};

/// A text that every message contains once, and escapes that may hide letters of it.
const MARKS: [&str; 3] = ["jsonrpc", "\\u006", "\\u007"];

static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(MARKS));

/// Whether a string in a message, which must be JSON, contains another message after a line end.
pub(super) fn contains_message(message: &[u8]) -> bool {
    // A message contains quotes, which must be escaped in a string.
    let escaped = memchr::memchr(b'\\', message).is_some();
    // A message that cannot be walked counts as containing one.
    escaped && may_hold_second_message(message) && strings(message).unwrap_or(true)
}

/// Whether a text may contain a second message.
fn may_hold_second_message(message: &[u8]) -> bool {
    let Some(searcher) = SEARCHER.as_ref() else { return true };
    let mut marks = searcher.find_iter(message);
    // The first mark is the message's own, unless it is an escape.
    marks.next().is_some_and(|mark| mark.pattern().as_usize() > 0) || marks.next().is_some()
}

fn strings(message: &[u8]) -> Result<bool, JsonFault> {
    for token in tokens(message)? {
        if let JsonToken::Key(text) | JsonToken::String(text) = token?
            && holds_message(text)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a line of a string, other than its first, starts with a message.
fn holds_message(text: JsonStr<'_>) -> bool {
    let text = text.decode();
    let mut lines = text.split(ends_line);
    lines.next();
    // A line that is cut off may still be a message to a reader that goes on after the line end or
    // NUL.
    lines.map(str::trim_start).any(|line| {
        is_message(line).unwrap_or_else(|_| line.starts_with('{') && line.contains("jsonrpc"))
    })
}

/// Whether any reader ends a line here.
fn ends_line(letter: char) -> bool {
    matches!(letter, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a text starts with an object that has a member `jsonrpc`.
fn is_message(text: &str) -> Result<bool, JsonFault> {
    if !text.starts_with('{') {
        return Ok(false);
    }
    let mut named = false;
    for member in members(text.as_bytes()) {
        named |= member?.0.is("jsonrpc");
    }
    Ok(named)
}
