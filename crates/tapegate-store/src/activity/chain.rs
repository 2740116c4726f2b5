//! The hashes that chain the lines of a log.
//!
//! This format is frozen. Lines are numbered: each ends in `,"seq":N}`. Each write is sealed by its
//! last line, which ends in `,"seq":N,"prev":"…","hash":"…"}`. The hash is the BLAKE3 of all text
//! after the previous seal up to `,"hash"`, so every byte is covered, and any BLAKE3 tool can
//! verify it. A single line is its own seal.

use tapegate_core::hex;

/// The length of a hash in hexadecimal digits.
pub(super) const HASH_CHARS: usize = 64;
/// The most text under one seal, so that a change can be located to within a few lines.
const SEALED_BYTES_MAX: usize = 32 * 1024;

const SEQ: &[u8] = b",\"seq\":";
const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b",\"hash\":\"";

/// The end of a chain: what the next line links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLink {
    /// The number of the last line; 0 before the first.
    pub seq: u64,
    /// Its hash; zeros before the first.
    pub hash: [u8; HASH_CHARS],
}

/// A line in the form of a chained one, whether or not its hash is right.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainedLine<'a> {
    /// The text before the number: an object without its closing brace.
    pub(super) body: &'a [u8],
    /// Its number.
    pub(super) seq: u64,
    /// Its seal, if it has one.
    pub(super) seal: Option<LineSeal<'a>>,
}

/// The members of a line that seals.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineSeal<'a> {
    /// The hash of the previous seal, according to the line.
    pub(super) prev: [u8; HASH_CHARS],
    /// Its own hash, according to the line.
    pub(super) hash: [u8; HASH_CHARS],
    /// The part of the line that is hashed.
    hashed: &'a [u8],
}

/// Hashes lines until their seal.
#[derive(Debug, Default)]
pub(super) struct SealHasher {
    hasher: blake3::Hasher,
}

impl ChainLink {
    /// What the very first line links to.
    pub const START: Self = Self { seq: 0, hash: [b'0'; HASH_CHARS] };

    /// The hash as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.hash).unwrap_or_default()
    }

    /// Appends a line for each of `bodies`, which are objects without their closing braces. Seals
    /// the last line, and others in between if there is much text.
    pub(super) fn seal<'b>(
        &mut self,
        bodies: impl IntoIterator<Item = &'b [u8]>,
        out: &mut Vec<u8>,
    ) {
        let mut bodies = bodies.into_iter().peekable();
        let mut start = out.len();
        while let Some(body) = bodies.next() {
            self.seq += 1;
            out.extend_from_slice(body);
            out.extend_from_slice(SEQ);
            put_number(out, self.seq);
            // The last line of a write must seal. Without a seal, a reader could not tell a
            // complete write from one whose writer was killed.
            if bodies.peek().is_none() || out.len() - start >= SEALED_BYTES_MAX {
                out.extend_from_slice(PREV);
                out.extend_from_slice(&self.hash);
                out.push(b'"');
                self.hash = digits(&blake3::hash(&out[start..]));
                out.extend_from_slice(HASH);
                out.extend_from_slice(&self.hash);
                out.extend_from_slice(b"\"}\n");
                start = out.len();
            } else {
                out.extend_from_slice(b"}\n");
            }
        }
    }
}

impl<'a> ChainedLine<'a> {
    /// Parses a line, given without its line end.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_suffix(b"}")?;
        let seal = LineSeal::read(line);
        let rest = seal.as_ref().map_or(line, |(_, rest)| rest);
        // Read from the end: the body is free text and may itself contain `,"seq":`.
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, number) = rest.split_at(rest.len() - digits);
        let body = rest.strip_suffix(SEQ).filter(|body| body.starts_with(b"{"))?;
        let seq = std::str::from_utf8(number).ok()?.parse().ok()?;
        Some(Self { body, seq, seal: seal.map(|(seal, _)| seal) })
    }

    /// The link for the next line, if this one seals.
    pub(super) fn link(&self) -> Option<ChainLink> {
        self.seal.map(|seal| ChainLink { seq: self.seq, hash: seal.hash })
    }
}

impl<'a> LineSeal<'a> {
    /// Parses the end of a line without its brace; also returns the text before it.
    fn read(line: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (hashed, hash) = quoted(line.strip_suffix(b"\"")?, HASH)?;
        let (rest, prev) = quoted(hashed.strip_suffix(b"\"")?, PREV)?;
        Some((Self { prev, hash, hashed }, rest))
    }
}

impl SealHasher {
    /// Adds a line that does not seal, given without its line end.
    pub(super) fn line(&mut self, line: &[u8]) {
        self.hasher.update(line).update(b"\n");
    }

    /// The hash that the sealing line should have. Resets the hasher for the next seal.
    pub(super) fn close(&mut self, seal: &LineSeal<'_>) -> [u8; HASH_CHARS] {
        let hash = self.hasher.update(seal.hashed).finalize();
        self.hasher.reset();
        digits(&hash)
    }
}

/// The hash at the end of `text`, and the text before `key`.
fn quoted<'a>(text: &'a [u8], key: &[u8]) -> Option<(&'a [u8], [u8; HASH_CHARS])> {
    let (rest, hash) = text.split_last_chunk::<HASH_CHARS>()?;
    // The hash does not cover itself, so a digit in upper case would be a change unnoticed.
    let is_hex = hash.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    Some((rest.strip_suffix(key).filter(|_| is_hex)?, *hash))
}

fn digits(hash: &blake3::Hash) -> [u8; HASH_CHARS] {
    let mut text = [0; HASH_CHARS];
    text.copy_from_slice(hex::encode(hash.as_bytes()).as_bytes());
    text
}

/// Appends a number in decimal digits.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break out.extend_from_slice(&digits[start..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(bodies: &[&str]) -> Vec<u8> {
        let (mut link, mut out) = (ChainLink::START, Vec::new());
        link.seal(bodies.iter().map(|body| body.as_bytes()), &mut out);
        out
    }

    fn lines(text: &[u8]) -> Vec<&[u8]> {
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect()
    }

    #[test]
    fn what_is_written_at_once_is_sealed_in_the_frozen_form() {
        let text = chain(&["{\"a\":1", "{\"b\":2"]);
        let zeros = "0".repeat(64);
        let hashed = format!("{{\"a\":1,\"seq\":1}}\n{{\"b\":2,\"seq\":2,\"prev\":\"{zeros}\"");
        let hash = blake3::hash(hashed.as_bytes()).to_hex();
        assert_eq!(String::from_utf8(text).unwrap(), format!("{hashed},\"hash\":\"{hash}\"}}\n"));
    }

    #[test]
    fn what_was_sealed_is_taken_apart_again_and_holds() {
        let long = format!("{{\"b\":\"x,\\\"seq\\\":7{}\"", "y".repeat(SEALED_BYTES_MAX / 3));
        let text = chain(&["{\"a\":1", &long, &long, &long, "{\"c\":3", "{\"d\":4"]);
        let (mut sealing, mut prev, mut seals) = (SealHasher::default(), ChainLink::START.hash, 0);
        for (number, line) in (1..).zip(lines(&text)) {
            let chained = ChainedLine::read(line).unwrap();
            assert_eq!(chained.seq, number);
            let Some(seal) = chained.seal else {
                sealing.line(line);
                continue;
            };
            assert_eq!((seal.prev, sealing.close(&seal)), (prev, seal.hash));
            (prev, seals) = (seal.hash, seals + 1);
        }
        assert_eq!(seals, 2);
    }

    #[test]
    fn any_other_byte_in_a_lone_line_is_noticed() {
        let text = chain(&["{\"a\":1"]);
        let line = text.strip_suffix(b"\n").unwrap();
        for at in 0..line.len() {
            for other in (0..=255).filter(|other| *other != line[at]) {
                let mut changed = line.to_vec();
                changed[at] = other;
                let seal = ChainedLine::read(&changed).and_then(|chained| chained.seal);
                assert!(seal.is_none_or(|seal| SealHasher::default().close(&seal) != seal.hash));
            }
        }
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 9, 10, 1234, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
