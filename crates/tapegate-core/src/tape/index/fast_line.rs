//! A fast reader for lines that are written exactly as we write them.
//!
//! For any other line it returns `None`, and the general reader takes over. Its result is always
//! what the general reader would have returned.

use super::raw_entry::{ChunkSpan, RawEntry, latency};
use crate::frame::Envelope;
use crate::json::Cursor;
use crate::side::Side;
use crate::signature::Signer;
use crate::time::read_rfc3339;

/// Reads lines of one chunk of a tape, which must be UTF-8.
pub(super) struct FastLineReader<'a> {
    chunk: &'a [u8],
    signer: &'a Signer,
    /// Whether the chunk contains a `\r`.
    returns: bool,
    minute: MinuteCache,
}

/// The minute of the previous line; most lines have the same.
#[derive(Default)]
struct MinuteCache {
    text: [u8; MINUTE],
    wall_us: i64,
}

/// The length of `2026-01-01T00:00:`.
const MINUTE: usize = 17;

/// A position in a line.
struct LineCursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> FastLineReader<'a> {
    pub(super) fn new(chunk: &'a [u8], signer: &'a Signer) -> Self {
        // Searched once: without any return, no message can be spread by one.
        let returns = memchr::memchr(b'\r', chunk).is_some();
        Self { chunk, signer, returns, minute: MinuteCache::default() }
    }

    /// Reads the line with this number, line ending not included.
    pub(super) fn read(&mut self, number: u32, line: &'a [u8]) -> Option<RawEntry> {
        let mut line_cursor = LineCursor { line, at: 0 };
        let mut seq = None;
        let numbered = line_cursor.skip_if(b"{\"type\":\"message\",\"seq\":");
        if numbered {
            seq = Some(line_cursor.number()?);
            line_cursor.expect(b",\"ts\":\"")?;
        } else {
            line_cursor.expect(b"{\"ts\":\"")?;
        }
        let wall_us = self.minute.read_timestamp(&mut line_cursor)?;
        let from = line_cursor.side(numbered)?;
        let start = line_cursor.at;
        // A batch in the overwatch dialect is left to the general reader.
        if line_cursor.line.get(start) != Some(&b'{') {
            return None;
        }
        let mut cursor = Cursor::from_utf8_at(line, start);
        let mut envelope = Envelope::default();
        // Only a client's request needs a signature, and it is computed in the same pass.
        let mut digest = self.signer.digest().filter(|_| from == Side::Client);
        match &mut digest {
            Some(digest) => envelope.scan(&mut cursor, digest).ok()?,
            None => envelope.scan(&mut cursor, &mut ()).ok()?,
        }
        line_cursor.at = cursor.position();
        let message = &line[start..line_cursor.at];
        let text = ChunkSpan::of(message, self.chunk)?;
        let mut raw = RawEntry { seq, wall_us, ..RawEntry::new(number, text, from) };
        if !line_cursor.is_at_end() {
            self.read_rest(&mut line_cursor, numbered, &mut raw)?;
        }
        // Line feeds cannot occur inside a line, so only returns are left.
        raw.spread = self.returns && memchr::memchr(b'\r', message).is_some();
        let sign = || match &digest {
            Some(digest) => self.signer.signature_from_digest(&envelope, digest),
            None => self.signer.sign(message, &envelope),
        };
        raw.read_envelope(&envelope, self.signer, sign);
        Some(raw)
    }

    /// Reads the keys after the message, in the order in which we write them.
    fn read_rest(
        &self,
        line_cursor: &mut LineCursor<'a>,
        numbered: bool,
        raw: &mut RawEntry,
    ) -> Option<()> {
        if !numbered && line_cursor.skip_if(b",\"raw\":") {
            line_cursor.value()?;
        }
        if line_cursor.skip_if(b",\"latency_ms\":") {
            raw.latency_ms = Some(latency(line_cursor.number()?));
        }
        let session = match numbered {
            true => line_cursor.skip_if(b",\"session\":"),
            false => line_cursor.skip_if(b",\"session_id\":"),
        };
        if session {
            raw.session = Some(self.signer.key(line_cursor.value()?));
        }
        if line_cursor.skip_if(b",\"req\":") {
            raw.req = Some(line_cursor.number()?);
        }
        if line_cursor.skip_if(b",\"batch\":") {
            line_cursor.number()?;
        }
        raw.ours = line_cursor.skip_if(b",\"by\":\"tapegate\"");
        line_cursor.skip_if(b",\"unterminated\":true");
        raw.resumed = line_cursor.skip_if(b",\"resumed\":true");
        if line_cursor.skip_if(b",\"redacted\":") {
            line_cursor.value()?;
        }
        if line_cursor.skip_if(b",\"refused\":") {
            line_cursor.value()?;
            raw.gated = true;
        } else if line_cursor.skip_if(b",\"held\":true")
            || line_cursor.skip_if(b",\"held\":\"list\"")
        {
            raw.gated = true;
        } else {
            line_cursor.skip_if(b",\"rewritten\":true");
        }
        // Any other key is unknown here, and the general reader keeps it.
        line_cursor.is_at_end().then_some(())
    }
}

impl MinuteCache {
    /// Moves over a `ts` and its closing quote; the inner option is `None` if it is not a valid
    /// time.
    #[inline]
    fn read_timestamp(&mut self, line_cursor: &mut LineCursor<'_>) -> Option<Option<i64>> {
        const MICROS: usize = MINUTE + 10;
        let rest = &line_cursor.line[line_cursor.at..];
        if let Some((ts, _)) = rest.split_first_chunk::<{ MICROS + 1 }>()
            && ts[MICROS] == b'"'
            && ts[..MINUTE] == self.text
            && let Some(micros) = within_minute(&ts[MINUTE..MICROS])
        {
            line_cursor.at += ts.len();
            return Some(Some(self.wall_us + micros));
        }
        self.parse_timestamp(line_cursor.read_until_quote()?)
    }

    /// Parses a `ts` of another minute or another form.
    fn parse_timestamp(&mut self, ts: &[u8]) -> Option<Option<i64>> {
        let wall_us = std::str::from_utf8(ts).ok().and_then(read_rfc3339);
        if let (Some(wall_us), Some((minute, rest))) = (wall_us, ts.split_first_chunk())
            && let Some(micros) = within_minute(rest)
        {
            (self.text, self.wall_us) = (*minute, wall_us - micros);
        }
        Some(wall_us)
    }
}

/// The microseconds of `00.000000Z` or `00.000Z`.
#[inline]
fn within_minute(text: &[u8]) -> Option<i64> {
    let (seconds, digits, scale) = match text {
        [a, b, b'.', digits @ .., b'Z'] if digits.len() == 6 => ([*a, *b], digits, 1),
        [a, b, b'.', digits @ .., b'Z'] if digits.len() == 3 => ([*a, *b], digits, 1000),
        _ => return None,
    };
    let seconds = decimal(&seconds)?;
    // 60 allows for a leap second.
    (seconds <= 60).then_some(seconds * 1_000_000 + decimal(digits)? * scale)
}

#[inline]
fn decimal(digits: &[u8]) -> Option<i64> {
    let (mut sum, mut valid) = (0, true);
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        valid &= value < 10;
        sum = sum * 10 + i64::from(value);
    }
    valid.then_some(sum)
}

impl<'a> LineCursor<'a> {
    #[inline]
    fn skip_if<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let takes = self.line[self.at..].first_chunk() == Some(text);
        self.at += if takes { N } else { 0 };
        takes
    }

    #[inline]
    fn expect<const N: usize>(&mut self, text: &[u8; N]) -> Option<()> {
        self.skip_if(text).then_some(())
    }

    /// An integer that is certain to fit into 64 bits.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        const DIGITS_MAX: usize = 19;
        // More digits might overflow; the general reader reports them.
        let rest = &self.line[self.at..];
        let digits = rest.iter().take(DIGITS_MAX).take_while(|byte| byte.is_ascii_digit());
        let (count, number) = digits.fold((0, 0u64), |(count, number), digit| {
            (count + 1, number * 10 + u64::from(digit - b'0'))
        });
        self.at += count;
        // JSON forbids leading zeros, and the general reader reports them.
        let plain = count > 0 && (count == 1 || rest[0] != b'0');
        plain.then_some(number)
    }

    /// Moves past the next quote and returns the bytes before it, if they contain no escape.
    #[inline]
    fn read_until_quote(&mut self) -> Option<&'a [u8]> {
        const STAMP_MAX: usize = 40;
        let rest = &self.line[self.at..];
        let rest = &rest[..rest.len().min(STAMP_MAX)];
        // An escape would change the text, and a control character is not JSON.
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        self.at += end + 1;
        (rest[end] == b'"').then_some(&rest[..end])
    }

    /// The sender of the message; moves to where the message starts.
    #[inline]
    fn side(&mut self, numbered: bool) -> Option<Side> {
        if numbered {
            self.expect(b",\"dir\":\"")?;
            let from = match self.line.get(self.at..self.at + 3)? {
                b"c2s" => Side::Client,
                b"s2c" => Side::Server,
                _ => return None,
            };
            self.at += 3;
            return self.skip_if(b"\",\"msg\":").then_some(from);
        }
        let from = if self.skip_if(b",\"direction\":\"client_to_server\"") {
            Side::Client
        } else {
            self.expect(b",\"direction\":\"server_to_client\"")?;
            Side::Server
        };
        self.skip_if(b",\"parsed\":").then_some(from)
    }

    /// Any JSON value.
    fn value(&mut self) -> Option<&'a [u8]> {
        let mut cursor = Cursor::from_utf8_at(self.line, self.at);
        let value = cursor.value().ok()?;
        self.at = cursor.position();
        Some(value)
    }

    /// Whether only the closing brace of the line is left.
    #[inline]
    fn is_at_end(&self) -> bool {
        self.line[self.at..] == *b"}"
    }
}
