//! Cuts a server-sent event stream into events, in bounded memory.
//!
//! Every byte of the stream belongs to exactly one piece, comments and blank lines included, so
//! forwarding the pieces forwards the stream. A line ends at `\n`, `\r\n` or `\r`, an event at a
//! blank line; several `data` lines make one text. Decoding goes by whole events, never by chunks.

use std::ops::Range;

/// A stream of events.
#[derive(Debug)]
pub struct Events {
    buffer: Vec<u8>,
    /// Bytes before this have been given out.
    start: usize,
    /// The first line that has not been looked at starts here.
    line: usize,
    event_bytes_max: usize,
    fields: Fields,
    over: bool,
}

/// A piece of the stream: an event, or bytes that are no event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Piece {
    /// The exact bytes.
    pub raw: Vec<u8>,
    /// The joined `data` lines; `None` if there were none.
    pub data: Option<Vec<u8>>,
    /// `event`.
    pub event: Option<Vec<u8>>,
    /// `id`, which resumption starts from.
    pub id: Option<Vec<u8>>,
    /// `retry`, in milliseconds.
    pub retry_ms: Option<u64>,
}

/// An event over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than {bytes_max} bytes")]
pub struct EventTooLarge {
    /// The limit.
    pub bytes_max: usize,
}

#[derive(Debug, Default)]
struct Fields {
    data: Option<Vec<u8>>,
    event: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    retry_ms: Option<u64>,
}

impl Events {
    /// An empty stream whose events may have at most `event_bytes_max` bytes.
    pub fn new(event_bytes_max: usize) -> Self {
        let fields = Fields::default();
        Self { buffer: Vec::new(), start: 0, line: 0, event_bytes_max, fields, over: false }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.line -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next piece that is complete. An event over the limit ends the stream's use.
    pub fn next(&mut self) -> Option<Result<Piece, EventTooLarge>> {
        let too_large = EventTooLarge { bytes_max: self.event_bytes_max };
        while let Some((line, after)) = self.next_line() {
            self.line = after;
            if line.is_empty() {
                return Some(Ok(self.piece(after)));
            }
            self.field(line);
        }
        self.over |= self.buffer.len() - self.start > self.event_bytes_max;
        self.over.then_some(Err(too_large))
    }

    /// The bytes that are left when the stream has ended; no event, but forwarded all the same.
    pub fn finish(&mut self) -> Option<Piece> {
        let end = self.buffer.len();
        (end > self.start).then(|| {
            let raw = self.buffer[self.start..end].to_vec();
            self.start = end;
            Piece { raw, ..Piece::default() }
        })
    }

    /// The next complete line and where the one after it starts.
    fn next_line(&self) -> Option<(Range<usize>, usize)> {
        let rest = &self.buffer[self.line..];
        let length = memchr::memchr2(b'\n', b'\r', rest)?;
        let end = self.line + length;
        let after = match (rest[length], rest.get(length + 1)) {
            (b'\r', Some(b'\n')) => end + 2,
            _ => end + 1,
        };
        // A carriage return at the end of what is here ends a blank line at once, so that no
        // event waits; of any other line, the line feed that may follow is waited for.
        if rest[length] == b'\r' && rest.len() == length + 1 && length > 0 {
            return None;
        }
        Some((self.line..end, after))
    }

    fn piece(&mut self, end: usize) -> Piece {
        let raw = self.buffer[self.start..end].to_vec();
        self.start = end;
        let Fields { data, event, id, retry_ms } = std::mem::take(&mut self.fields);
        Piece { raw, data, event, id, retry_ms }
    }

    fn field(&mut self, line: Range<usize>) {
        let line = &self.buffer[line];
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        match name {
            b"data" => match &mut self.fields.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.fields.data = Some(value.to_vec()),
            },
            b"event" => self.fields.event = Some(value.to_vec()),
            b"id" if !value.contains(&0) => self.fields.id = Some(value.to_vec()),
            b"retry" => {
                let digits = std::str::from_utf8(value).ok();
                self.fields.retry_ms = digits.and_then(|text| text.parse().ok());
            }
            _ => {}
        }
    }
}

/// Appends an event with one message for data.
pub fn write_event(out: &mut Vec<u8>, id: Option<&str>, event: Option<&str>, data: &[u8]) {
    if let Some(event) = event {
        out.extend_from_slice(format!("event: {event}\n").as_bytes());
    }
    if let Some(id) = id {
        out.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    for line in data.split(|&byte| byte == b'\n') {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(stream: &[u8], step: usize) -> (Vec<u8>, Vec<String>) {
        let mut events = Events::new(1000);
        let (mut raw, mut seen) = (Vec::new(), Vec::new());
        let mut take = |piece: Piece| {
            raw.extend_from_slice(&piece.raw);
            if let Some(data) = piece.data {
                let name = piece.event.unwrap_or_default();
                let id = piece.id.unwrap_or_default();
                seen.push(format!(
                    "{}|{}|{}",
                    name.escape_ascii(),
                    id.escape_ascii(),
                    data.escape_ascii()
                ));
            }
        };
        for chunk in stream.chunks(step) {
            events.feed(chunk);
            while let Some(piece) = events.next() {
                take(piece.unwrap());
            }
        }
        if let Some(piece) = events.finish() {
            take(piece);
        }
        (raw, seen)
    }

    #[test]
    fn fields_comments_and_line_ends_are_read_in_any_chunking() {
        let stream = b": hi\n\nevent: message\nid: 1\ndata: {\"a\":\r\ndata:  1}\r\n\r\ndata:x\r\rretry: 5\n\ndata\n\nid: torn";
        for step in 1..stream.len() {
            let (raw, seen) = events(stream, step);
            assert_eq!(raw, stream);
            assert_eq!(seen, ["message|1|{\\\"a\\\":\\n 1}", "||x", "||"], "step {step}");
        }
    }

    #[test]
    fn an_event_over_the_limit_is_refused() {
        let mut events = Events::new(10);
        events.feed(b"data: 0123456789");
        assert_eq!(events.next(), Some(Err(EventTooLarge { bytes_max: 10 })));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_and_chunks_do_not_matter(
            stream in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..200),
            step in 1usize..50,
        ) {
            let (raw, seen) = events(&stream, step);
            prop_assert_eq!(&raw, &stream);
            prop_assert_eq!(seen, events(&stream, stream.len().max(1)).1);
        }
    }
}
