//! The two things a scan spends its time on: moving over plain text, and counting brackets.

/// How many bytes are tested as one number.
const WORD: usize = 8;
/// The high bits of a word's bytes.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// How many bytes from the start need no look at all: no quote, backslash or control character.
///
/// Eight bytes are tested as one number, which suits the short strings that messages are full of.
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

/// Whether a text has no quote, backslash or control character. The last word of a text may overlap the
/// one before, so that only what is shorter than a word is looked at byte by byte.
#[inline]
pub(super) fn is_plain(text: &[u8]) -> bool {
    let special = |word: &[u8; WORD]| special_bytes(u64::from_le_bytes(*word)) != 0;
    let Some(last) = text.last_chunk() else {
        return !text.iter().any(|&byte| is_special(byte));
    };
    let (words, _) = text.as_chunks();
    !words.iter().any(special) && !special(last)
}

/// Whether a text is ASCII, also word by word.
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

/// The same behind `at` bytes that were looked at, for strings that are longer than a word or stand
/// at the end of the text. Once a string proves long, blocks are tested as a whole, so that the compiler can use vector
/// instructions.
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

/// The length of the whole blocks at the start that hold nothing special.
#[inline(never)]
fn plain_blocks(text: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let plain = |block: &&[u8]| !block.iter().fold(false, |any, &byte| any | is_special(byte));
    text.chunks_exact(BLOCK).take_while(plain).count() * BLOCK
}

/// Marks, in the high bit of each byte, the bytes that end a plain run. Bytes above the lowest mark
/// may be marked wrongly; the lowest never is.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let zero_bytes = |x: u64| x.wrapping_sub(ONES) & !x & HIGHS;
    let equal_to = |byte: u8| zero_bytes(word ^ (ONES * u64::from(byte)));
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    equal_to(b'"') | equal_to(b'\\') | control
}

/// Which brackets are open: a stack of bits, of which the first 64 need no memory.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    bits: u64,
    count: usize,
    spilled: Vec<u64>,
}

impl Depth {
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
