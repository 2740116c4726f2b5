//! The hot loops of a scan: skipping plain text, and tracking brackets.

/// How many bytes are tested at once.
const WORD: usize = 8;
/// The high bit of each byte in a word.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The length of the plain prefix of `text`: without quote, backslash and control character.
///
/// Eight bytes are tested at once, which suits the short strings that messages mostly have.
#[inline(always)]
pub(super) fn plain_run(text: &[u8]) -> usize {
    if let Some(word) = text.first_chunk() {
        let marks = special_bytes(u64::from_le_bytes(*word));
        if marks != 0 {
            return marks.trailing_zeros() as usize / 8;
        }
        return long_run(text, WORD);
    }
    long_run(text, 0)
}

/// Whether a text has no quote, backslash or control character. The last word may overlap the one before, so
/// that only a text shorter than a word is tested byte by byte.
#[inline]
pub(super) fn is_plain(text: &[u8]) -> bool {
    let special = |word: &[u8; WORD]| special_bytes(u64::from_le_bytes(*word)) != 0;
    let Some(last) = text.last_chunk() else {
        return !text.iter().any(|&byte| is_special(byte));
    };
    let (words, _) = text.as_chunks();
    !words.iter().any(special) && !special(last)
}

/// Whether a text is ASCII, tested word by word too.
#[inline]
pub(super) fn is_ascii(text: &[u8]) -> bool {
    let Some(last) = text.last_chunk::<WORD>() else { return text.is_ascii() };
    let (words, _) = text.as_chunks::<WORD>();
    let any = |any: u64, word: &[u8; WORD]| any | u64::from_le_bytes(*word);
    any(words.iter().fold(0, any), last) & HIGHS == 0
}

fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// The length of the plain prefix, of which `at` bytes were already tested; for strings that are longer
/// than a word or at the end of the text. Once a string proves long, whole blocks are tested, so that the
/// compiler can use vector instructions.
#[inline(never)]
fn long_run(text: &[u8], mut at: usize) -> usize {
    const SHORT: usize = 64;
    while let Some(word) = text.get(at..at + WORD).and_then(|word| word.try_into().ok()) {
        let marks = special_bytes(u64::from_le_bytes(word));
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += WORD;
        if at == SHORT {
            at += plain_blocks(&text[at..]);
        }
    }
    at + text[at..].iter().position(|&byte| is_special(byte)).unwrap_or(text.len() - at)
}

/// The total length of the leading blocks that are entirely plain.
#[inline(never)]
fn plain_blocks(text: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let plain = |block: &&[u8]| !block.iter().fold(false, |any, &byte| any | is_special(byte));
    text.chunks_exact(BLOCK).take_while(plain).count() * BLOCK
}

/// Marks the bytes that end a plain run in their high bit. Marks above the lowest one may be wrong; the
/// lowest never is.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero_bytes = |x: u64| x.wrapping_sub(ONES) & !x & HIGHS;
    let equal_to = |byte: u8| zero_bytes(word ^ (ONES * u64::from(byte)));
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    equal_to(b'"') | equal_to(b'\\') | control
}

/// The open brackets: a stack of bits, of which the first 64 need no allocation.
#[derive(Debug, Default)]
pub(crate) struct BracketStack {
    bits: u64,
    count: usize,
    spilled: Vec<u64>,
}

impl BracketStack {
    pub(crate) fn push(&mut self, object: bool) {
        if self.count > 0 && self.count.is_multiple_of(64) {
            self.spilled.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.count += 1;
    }

    pub(crate) fn pop(&mut self) {
        self.count -= 1;
        self.bits >>= 1;
        if self.count > 0 && self.count.is_multiple_of(64) {
            self.bits = self.spilled.pop().unwrap_or_default();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn top(&self) -> Option<bool> {
        (self.count > 0).then_some(self.bits & 1 == 1)
    }
}
