//! The hashes that link the lines of a log.
//!
//! These bytes are frozen: a line ends in `,"seq":N,"prev":"…","hash":"…"}`, and its hash is that
//! of the text of `prev` followed by the line up to `,"hash"`. So every byte of a line is covered,
//! and anybody with a blake3 at hand can check it.

/// How long a hash is, in hexadecimal digits.
pub(super) const HASH_CHARS: usize = 64;

const SEQ: &[u8] = b",\"seq\":";
const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b",\"hash\":\"";
const END: &[u8] = b"\"}";

/// The end of a chain: what the next line links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The number of the last line; 0 before the first.
    pub seq: u64,
    /// Its hash; zeros before the first.
    pub hash: [u8; HASH_CHARS],
}

/// A line that has the form of a link in a chain, whether or not it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed<'a> {
    /// What stands before the links: an object without its closing bracket.
    pub(super) body: &'a [u8],
    /// Its number.
    pub(super) seq: u64,
    /// The hash of the line before, as it says.
    pub(super) prev: [u8; HASH_CHARS],
    /// Its own hash, as it says.
    pub(super) hash: [u8; HASH_CHARS],
    /// What the hash is taken of, besides `prev`.
    hashed: &'a [u8],
}

impl Link {
    /// What the first line of all links to.
    pub const START: Self = Self { seq: 0, hash: [b'0'; HASH_CHARS] };

    /// The hash as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.hash).unwrap_or_default()
    }

    /// Appends a line made of `body`, an object without its closing bracket, and links it.
    pub(super) fn seal(&mut self, body: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        self.seq += 1;
        out.extend_from_slice(body);
        out.extend_from_slice(SEQ);
        put_number(out, self.seq);
        out.extend_from_slice(PREV);
        out.extend_from_slice(&self.hash);
        out.push(b'"');
        self.hash = hash(&self.hash, &out[start..]);
        out.extend_from_slice(HASH);
        out.extend_from_slice(&self.hash);
        out.extend_from_slice(END);
        out.push(b'\n');
    }
}

impl<'a> Sealed<'a> {
    /// Takes a line apart, given without its line end.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_suffix(END)?;
        let (hashed, hash) = quoted(rest, HASH)?;
        let (rest, prev) = quoted(hashed.strip_suffix(b"\"")?, PREV)?;
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let (rest, number) = rest.split_at(rest.len() - digits);
        let body = rest.strip_suffix(SEQ).filter(|body| body.starts_with(b"{"))?;
        let seq = std::str::from_utf8(number).ok()?.parse().ok()?;
        Some(Self { body, seq, prev, hash, hashed })
    }

    /// What its hash should be.
    pub(super) fn computed(&self) -> [u8; HASH_CHARS] {
        hash(&self.prev, self.hashed)
    }

    /// What the next line links to.
    pub(super) fn link(&self) -> Link {
        Link { seq: self.seq, hash: self.hash }
    }
}

/// The hash at the end of `text`, and what stands before `key`.
fn quoted<'a>(text: &'a [u8], key: &[u8]) -> Option<(&'a [u8], [u8; HASH_CHARS])> {
    let (rest, hash) = text.split_last_chunk::<HASH_CHARS>()?;
    let is_hex = hash.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    Some((rest.strip_suffix(key).filter(|_| is_hex)?, *hash))
}

/// The hash of a line that follows the one with the hash `prev`.
fn hash(prev: &[u8; HASH_CHARS], line: &[u8]) -> [u8; HASH_CHARS] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev).update(line);
    let mut text = [0; HASH_CHARS];
    text.copy_from_slice(hasher.finalize().to_hex().as_bytes());
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
        let (mut link, mut out) = (Link::START, Vec::new());
        bodies.iter().for_each(|body| link.seal(body.as_bytes(), &mut out));
        out
    }

    #[test]
    fn a_line_is_sealed_in_the_frozen_form() {
        let line = chain(&["{\"a\":1"]);
        let zeros = "0".repeat(64);
        let hashed = format!("{{\"a\":1,\"seq\":1,\"prev\":\"{zeros}\"");
        let hash = blake3::hash(format!("{zeros}{hashed}").as_bytes()).to_hex();
        assert_eq!(String::from_utf8(line).unwrap(), format!("{hashed},\"hash\":\"{hash}\"}}\n"));
    }

    #[test]
    fn what_was_sealed_is_taken_apart_again_and_holds() {
        let lines = chain(&["{\"a\":1", "{\"b\":\"x,\\\"seq\\\":7\""]);
        let mut prev = Link::START;
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let sealed = Sealed::read(line).unwrap();
            assert_eq!((sealed.seq, sealed.prev), (prev.seq + 1, prev.hash));
            assert_eq!(sealed.computed(), sealed.hash);
            prev = sealed.link();
        }
        assert_eq!(prev.seq, 2);
    }

    #[test]
    fn any_other_byte_in_a_line_is_noticed() {
        let line = chain(&["{\"a\":1"]);
        let line = line.strip_suffix(b"\n").unwrap();
        for at in 0..line.len() {
            for other in (0..=255).filter(|other| *other != line[at]) {
                let mut changed = line.to_vec();
                changed[at] = other;
                assert!(
                    Sealed::read(&changed).is_none_or(|sealed| sealed.computed() != sealed.hash),
                    "{at}"
                );
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
