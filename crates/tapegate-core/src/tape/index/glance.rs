//! A fast reader for lines that are written exactly as we write them.
//!
//! For any other line it returns `None`, and the general reader takes over. Its result is always
//! what the general reader would have returned.

use super::told::{Span, Told, latency};
use crate::frame::Envelope;
use crate::json::Cursor;
use crate::side::Side;
use crate::signature::Signer;
use crate::time::read_rfc3339;

/// Reads lines of one chunk of a tape, which must be UTF-8.
pub(super) struct Glance<'a> {
    stretch: &'a [u8],
    signer: &'a Signer,
    /// Whether the chunk contains a `\r`.
    returns: bool,
    minute: Minute,
}

/// The minute of the previous line; most lines have the same.
#[derive(Default)]
struct Minute {
    text: [u8; MINUTE],
    wall_us: i64,
}

/// The length of `2026-01-01T00:00:`.
const MINUTE: usize = 17;

/// A position in a line.
struct Place<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Glance<'a> {
    pub(super) fn new(stretch: &'a [u8], signer: &'a Signer) -> Self {
        let returns = memchr::memchr(b'\r', stretch).is_some();
        Self { stretch, signer, returns, minute: Minute::default() }
    }

    /// Reads the line with this number, line ending not included.
    pub(super) fn read(&mut self, number: u32, line: &'a [u8]) -> Option<Told> {
        let mut place = Place { line, at: 0 };
        let mut seq = None;
        let numbered = place.takes(b"{\"type\":\"message\",\"seq\":");
        if numbered {
            seq = Some(place.number()?);
            place.must(b",\"ts\":\"")?;
        } else {
            place.must(b"{\"ts\":\"")?;
        }
        let wall_us = self.minute.moment(&mut place)?;
        let from = place.side(numbered)?;
        let start = place.at;
        if place.line.get(start) != Some(&b'{') {
            return None;
        }
        let mut cursor = Cursor::trusted(line, start);
        let mut said = Envelope::default();
        let mut digest = self.signer.digest().filter(|_| from == Side::Client);
        match &mut digest {
            Some(digest) => said.scan(&mut cursor, digest).ok()?,
            None => said.scan(&mut cursor, &mut ()).ok()?,
        }
        place.at = cursor.position();
        let message = &line[start..place.at];
        let text = Span::of(message, self.stretch)?;
        let mut told = Told { seq, wall_us, ..Told::new(number, text, from) };
        if !place.ends() {
            self.rest(&mut place, numbered, &mut told)?;
        }
        told.spread = self.returns && memchr::memchr(b'\r', message).is_some();
        let sign = || match &digest {
            Some(digest) => self.signer.signed(&said, digest),
            None => self.signer.sign(message, &said),
        };
        told.hear(&said, self.signer, sign);
        Some(told)
    }

    /// Reads the keys after the message, in the order in which we write them.
    fn rest(&self, place: &mut Place<'a>, numbered: bool, told: &mut Told) -> Option<()> {
        if !numbered && place.takes(b",\"raw\":") {
            place.value()?;
        }
        if place.takes(b",\"latency_ms\":") {
            told.latency_ms = Some(latency(place.number()?));
        }
        let session = match numbered {
            true => place.takes(b",\"session\":"),
            false => place.takes(b",\"session_id\":"),
        };
        if session {
            told.session = Some(self.signer.key(place.value()?));
        }
        if place.takes(b",\"req\":") {
            told.req = Some(place.number()?);
        }
        if place.takes(b",\"batch\":") {
            place.number()?;
        }
        told.ours = place.takes(b",\"by\":\"tapegate\"");
        place.takes(b",\"unterminated\":true");
        told.resumed = place.takes(b",\"resumed\":true");
        if place.takes(b",\"redacted\":") {
            place.value()?;
        }
        if place.takes(b",\"refused\":") {
            place.value()?;
            told.gated = true;
        } else if place.takes(b",\"held\":true") || place.takes(b",\"held\":\"list\"") {
            told.gated = true;
        } else {
            place.takes(b",\"rewritten\":true");
        }
        place.ends().then_some(())
    }
}

impl Minute {
    /// Moves over a `ts` and its closing quote; the inner option is `None` if it is not a valid
    /// time.
    #[inline]
    fn moment(&mut self, place: &mut Place<'_>) -> Option<Option<i64>> {
        const MICROS: usize = MINUTE + 10;
        let rest = &place.line[place.at..];
        if let Some((ts, _)) = rest.split_first_chunk::<{ MICROS + 1 }>()
            && ts[MICROS] == b'"'
            && ts[..MINUTE] == self.text
            && let Some(micros) = within_minute(&ts[MINUTE..MICROS])
        {
            place.at += ts.len();
            return Some(Some(self.wall_us + micros));
        }
        self.other(place.until_quote()?)
    }

    /// Parses a `ts` of another minute or another form.
    fn other(&mut self, ts: &[u8]) -> Option<Option<i64>> {
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

impl<'a> Place<'a> {
    #[inline]
    fn takes<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let takes = self.line[self.at..].first_chunk() == Some(text);
        self.at += if takes { N } else { 0 };
        takes
    }

    #[inline]
    fn must<const N: usize>(&mut self, text: &[u8; N]) -> Option<()> {
        self.takes(text).then_some(())
    }

    /// An integer that is certain to fit into 64 bits.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        const DIGITS_MAX: usize = 19;
        let rest = &self.line[self.at..];
        let digits = rest.iter().take(DIGITS_MAX).take_while(|byte| byte.is_ascii_digit());
        let (count, number) = digits.fold((0, 0u64), |(count, number), digit| {
            (count + 1, number * 10 + u64::from(digit - b'0'))
        });
        self.at += count;
        let plain = count > 0 && (count == 1 || rest[0] != b'0');
        plain.then_some(number)
    }

    /// Moves past the next quote and returns the bytes before it, if they contain no escape.
    #[inline]
    fn until_quote(&mut self) -> Option<&'a [u8]> {
        const STAMP_MAX: usize = 40;
        let rest = &self.line[self.at..];
        let rest = &rest[..rest.len().min(STAMP_MAX)];
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        self.at += end + 1;
        (rest[end] == b'"').then_some(&rest[..end])
    }

    /// The sender of the message; moves to where the message starts.
    #[inline]
    fn side(&mut self, numbered: bool) -> Option<Side> {
        if numbered {
            self.must(b",\"dir\":\"")?;
            let from = match self.line.get(self.at..self.at + 3)? {
                b"c2s" => Side::Client,
                b"s2c" => Side::Server,
                _ => return None,
            };
            self.at += 3;
            return self.takes(b"\",\"msg\":").then_some(from);
        }
        let from = if self.takes(b",\"direction\":\"client_to_server\"") {
            Side::Client
        } else {
            self.must(b",\"direction\":\"server_to_client\"")?;
            Side::Server
        };
        self.takes(b",\"parsed\":").then_some(from)
    }

    /// Any JSON value.
    fn value(&mut self) -> Option<&'a [u8]> {
        let mut cursor = Cursor::trusted(self.line, self.at);
        let value = cursor.value().ok()?;
        self.at = cursor.position();
        Some(value)
    }

    /// Whether only the closing brace of the line is left.
    #[inline]
    fn ends(&self) -> bool {
        self.line[self.at..] == *b"}"
    }
}
