//! Reads a log line by line, with any keys.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use tapegate_core::json::{JsonFault, JsonStr, place_of, string, whole_object};

/// Longer than any valid line; the rest of a longer one is skipped, not buffered.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// Its line in the file, from 1.
    pub line: u64,
    text: Vec<u8>,
    members: Vec<EventMember>,
}

/// The position of a member in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EventMember {
    key: String,
    start: usize,
    end: usize,
}

/// Why a line is not an event.
#[derive(Debug, thiserror::Error)]
pub enum NotAnEvent {
    /// The line is not a JSON object.
    #[error("line {line} is not an event: {source}")]
    Json { line: u64, source: JsonFault },
    /// The line is longer than any event.
    #[error("line {line} is too long to be an event")]
    TooLong { line: u64 },
    /// The last line is incomplete: it is being written, or its writer was killed.
    #[error("line {line} is incomplete")]
    Torn { line: u64 },
    /// Reading the file failed.
    #[error("cannot read beyond line {line}: {source}")]
    Io {
        /// The last line that was read.
        line: u64,
        source: io::Error,
    },
}

/// The events of one file, in order. Continues after a line that is not an event.
#[derive(Debug)]
pub struct LoggedEvents<R> {
    lines: LogLines<R>,
}

impl<R: BufRead> LoggedEvents<R> {
    /// Reads a file from its start.
    pub fn new(text: R) -> Self {
        Self { lines: LogLines::new(text) }
    }
}

impl<R: BufRead> Iterator for LoggedEvents<R> {
    type Item = Result<LoggedEvent, NotAnEvent>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.number + 1;
        Some(match self.lines.next() {
            Ok(None) => return None,
            Ok(Some(RawLogLine::Whole(text))) => {
                LoggedEvent::read(line, text).map_err(|source| NotAnEvent::Json { line, source })
            }
            Ok(Some(RawLogLine::TooLong)) => Err(NotAnEvent::TooLong { line }),
            Ok(Some(RawLogLine::Torn(_))) => Err(NotAnEvent::Torn { line }),
            Err(source) => Err(NotAnEvent::Io { line: line - 1, source }),
        })
    }
}

impl LoggedEvent {
    /// Parses a line, given without its line end.
    pub fn read(line: u64, text: &[u8]) -> Result<Self, JsonFault> {
        let place = |(key, value): (JsonStr<'_>, &[u8])| {
            let place = place_of(value, text)?;
            Some(EventMember { key: key.decode().into_owned(), start: place.start, end: place.end })
        };
        let members = whole_object(text)?.into_iter().filter_map(place).collect();
        Ok(Self { line, text: text.to_vec(), members })
    }

    /// The line as it was written.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// A unique id for the line: the BLAKE3 of its text.
    pub fn uid(&self) -> [u8; 32] {
        blake3::hash(&self.text).into()
    }

    /// The members in order: keys, and values as JSON.
    pub fn members(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.members
            .iter()
            .map(|member| (member.key.as_str(), &self.text[member.start..member.end]))
    }

    /// The value of a key as JSON; the last one if there are several.
    pub fn raw(&self, key: &str) -> Option<&[u8]> {
        let member = self.members.iter().rev().find(|member| member.key == key)?;
        Some(&self.text[member.start..member.end])
    }

    /// The value of a key, if it is a string.
    pub fn str(&self, key: &str) -> Option<Cow<'_, str>> {
        string(self.raw(key)?)
    }

    /// The value of a key, if it is a non-negative integer.
    pub fn number(&self, key: &str) -> Option<u64> {
        std::str::from_utf8(self.raw(key)?).ok()?.parse().ok()
    }

    /// The value of a key, if it is a boolean.
    pub fn bool_value(&self, key: &str) -> Option<bool> {
        match self.raw(key)? {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }
}

/// The lines of a text, each in the same buffer.
#[derive(Debug)]
pub(super) struct LogLines<R> {
    text: R,
    /// How many lines were read.
    pub(super) number: u64,
    line: Vec<u8>,
}

/// A line without its line end.
#[derive(Debug)]
pub(super) enum RawLogLine<'a> {
    /// A complete line.
    Whole(&'a [u8]),
    /// An incomplete line at the end of the text.
    Torn(&'a [u8]),
    /// A line longer than any event.
    TooLong,
}

impl<R: BufRead> LogLines<R> {
    pub(super) fn new(text: R) -> Self {
        Self { text, number: 0, line: Vec::new() }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<RawLogLine<'_>>> {
        self.line.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        self.text.by_ref().take(limit).read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            return Ok(Some(RawLogLine::Whole(&self.line)));
        }
        if self.line.len() as u64 == limit {
            self.text.skip_until(b'\n')?;
            return Ok(Some(RawLogLine::TooLong));
        }
        Ok(Some(RawLogLine::Torn(&self.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_kept_and_the_last_of_several_counts() {
        let text =
            b"{\"a\":\"x\\n\", \"new\" : {\"deep\":[1, 2]},\"n\":7,\"f\":true,\"a\":\"y\"}\n";
        let mut events = LoggedEvents::new(&text[..]);
        let logged = events.next().unwrap().unwrap();
        assert_eq!((logged.str("a").as_deref(), logged.number("n")), (Some("y"), Some(7)));
        assert_eq!((logged.bool_value("f"), logged.number("a")), (Some(true), None));
        assert_eq!(logged.raw("new"), Some(&b"{\"deep\":[1, 2]}"[..]));
        assert_eq!(logged.members().count(), 5);
        assert_eq!(logged.text(), &text[..text.len() - 1]);
        assert!(events.next().is_none());
    }

    #[test]
    fn after_a_line_that_is_none_the_next_ones_follow() {
        let long = vec![b'x'; LINE_BYTES_MAX + 5];
        let text = [b"{\"n\":1}\nnonsense\n[]\n", &long[..], b"\n\n{\"n\":2}\n{\"n\":"].concat();
        let found: Vec<String> = LoggedEvents::new(&text[..])
            .map(|next| match next {
                Ok(logged) => format!("{}: {}", logged.line, logged.number("n").unwrap()),
                Err(error) => error.to_string(),
            })
            .collect();
        assert_eq!(
            found,
            [
                "1: 1",
                "line 2 is not an event: no object at byte 0",
                "line 3 is not an event: no object at byte 0",
                "line 4 is too long to be an event",
                "line 5 is not an event: the text ends too early at byte 0",
                "6: 2",
                "line 7 is incomplete",
            ]
        );
    }
}
