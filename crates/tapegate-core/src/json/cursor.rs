//! A cursor over JSON text that validates as it moves.

use super::{Fault, Str};

/// What sort of value stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number of any size.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// A place in JSON text. Moving over a value checks it.
///
/// Objects are walked by [`Cursor::open`] and [`Cursor::key`], arrays by `open` and
/// [`Cursor::element`]; after each key or element the caller must move over the value.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

const EARLY: &str = "the text ends too early";

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`, which must be UTF-8.
    pub fn new(text: &'a [u8]) -> Result<Self, Fault> {
        if text.starts_with(b"\xef\xbb\xbf") {
            return Err(Fault { at: 0, what: "a byte order mark" });
        }
        match std::str::from_utf8(text) {
            Ok(_) => Ok(Self { text, at: 0 }),
            Err(error) => Err(Fault { at: error.valid_up_to(), what: "not UTF-8" }),
        }
    }

    /// Where the cursor stands.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The text between two positions the cursor has been at.
    pub fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        &self.text[start..end]
    }

    /// The sort of the value that follows, by its first byte.
    pub fn kind(&mut self) -> Result<Kind, Fault> {
        self.space();
        match self.peek()? {
            b'{' => Ok(Kind::Object),
            b'[' => Ok(Kind::Array),
            b'"' => Ok(Kind::String),
            b'-' | b'0'..=b'9' => Ok(Kind::Number),
            b't' | b'f' => Ok(Kind::Bool),
            b'n' => Ok(Kind::Null),
            _ => Err(self.fault("no value")),
        }
    }

    /// Moves over one whole value and returns its text.
    pub fn value(&mut self) -> Result<&'a [u8], Fault> {
        self.space();
        let start = self.at;
        let mut depth = Depth::default();
        loop {
            match self.kind()? {
                Kind::Object => {
                    self.at += 1;
                    if self.next_is(b'}') {
                        self.at += 1;
                    } else {
                        depth.push(true);
                        self.member_key()?;
                        continue;
                    }
                }
                Kind::Array => {
                    self.at += 1;
                    if self.next_is(b']') {
                        self.at += 1;
                    } else {
                        depth.push(false);
                        continue;
                    }
                }
                Kind::String => drop(self.string()?),
                Kind::Number => self.number()?,
                Kind::Bool | Kind::Null => self.word()?,
            }
            if self.close(&mut depth)? {
                return Ok(&self.text[start..self.at]);
            }
        }
    }

    /// Moves over what follows a finished value up to the next one; true when the outermost is done.
    fn close(&mut self, depth: &mut Depth) -> Result<bool, Fault> {
        while let Some(object) = depth.top() {
            self.space();
            match (self.peek()?, object) {
                (b',', true) => {
                    self.at += 1;
                    self.member_key()?;
                    return Ok(false);
                }
                (b',', false) => {
                    self.at += 1;
                    return Ok(false);
                }
                (b'}', true) | (b']', false) => {
                    self.at += 1;
                    depth.pop();
                }
                (b'}' | b']', _) => return Err(self.fault("a bracket that does not match")),
                _ => return Err(self.fault("no comma or bracket")),
            }
        }
        Ok(true)
    }

    /// Steps into the object or array that follows.
    pub fn open(&mut self) -> Result<Kind, Fault> {
        let kind = self.kind()?;
        match kind {
            Kind::Object | Kind::Array => self.at += 1,
            _ => return Err(self.fault("no object or array")),
        }
        Ok(kind)
    }

    /// The next key of the object the cursor is in, or `None` at its end. `first` must be true
    /// before the first key and is cleared.
    pub fn key(&mut self, first: &mut bool) -> Result<Option<Str<'a>>, Fault> {
        self.space();
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(None);
        }
        if !std::mem::take(first) {
            self.expect(b',', "no comma or bracket")?;
        }
        self.member_key().map(Some)
    }

    /// Whether the array the cursor is in has another element; if not, the cursor leaves it.
    pub fn element(&mut self, first: &mut bool) -> Result<bool, Fault> {
        self.space();
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(false);
        }
        if !std::mem::take(first) {
            self.expect(b',', "no comma or bracket")?;
            if self.next_is(b']') {
                return Err(self.fault("no value"));
            }
        }
        Ok(true)
    }

    /// Moves over a string and returns it.
    pub fn string(&mut self) -> Result<Str<'a>, Fault> {
        self.space();
        self.expect(b'"', "no string")?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_run(&self.text[self.at..]);
            match self.peek()? {
                b'"' => {
                    let raw = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Str { raw, escaped });
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.fault("a raw control character in a string")),
            }
        }
    }

    /// Checks that nothing but white space is left.
    pub fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.fault(super::TRAILING)) }
    }

    fn member_key(&mut self) -> Result<Str<'a>, Fault> {
        if !self.next_is(b'"') {
            self.peek()?;
            return Err(self.fault("no key"));
        }
        let key = self.string()?;
        self.space();
        self.expect(b':', "no colon")?;
        Ok(key)
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek()?.is_ascii_hexdigit() {
                        return Err(self.fault("an unknown escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.fault("an unknown escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        if !self.peek()?.is_ascii_digit() {
            return Err(self.fault("no digit"));
        }
        while self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        let word: &[u8] = match rest[0] {
            b't' => b"true",
            b'f' => b"false",
            _ => b"null",
        };
        if !rest.starts_with(word) {
            return Err(self.fault("no value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    fn next_is(&mut self, byte: u8) -> bool {
        self.space();
        self.text.get(self.at) == Some(&byte)
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Fault> {
        if self.peek()? != byte {
            return Err(self.fault(what));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Result<u8, Fault> {
        self.text.get(self.at).copied().ok_or(Fault { at: self.at, what: EARLY })
    }

    fn fault(&self, what: &'static str) -> Fault {
        Fault { at: self.at, what }
    }
}

/// How many bytes from the start need no look at all: no quote, backslash or control character.
///
/// Eight bytes are tested as one number, which suits the short strings that messages are full of;
/// once a string proves long, blocks are tested as a whole, so that the compiler can use vector
/// instructions.
fn plain_run(text: &[u8]) -> usize {
    const WORD: usize = 8;
    const SHORT: usize = 64;
    let mut at = 0;
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
    let special = |byte: u8| (byte == b'"') | (byte == b'\\') | (byte < 0x20);
    at + text[at..].iter().position(|&byte| special(byte)).unwrap_or(text.len() - at)
}

/// The length of the whole blocks at the start that hold nothing special.
fn plain_blocks(text: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let special = |byte: u8| (byte == b'"') | (byte == b'\\') | (byte < 0x20);
    let plain = |block: &&[u8]| !block.iter().fold(false, |any, &byte| any | special(byte));
    text.chunks_exact(BLOCK).take_while(plain).count() * BLOCK
}

/// Marks, in the high bit of each byte, the bytes that end a plain run. Bytes above the lowest mark
/// may be marked wrongly; the lowest never is.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |x: u64| x.wrapping_sub(ONES) & !x & HIGHS;
    let equal_to = |byte: u8| zero_bytes(word ^ (ONES * u64::from(byte)));
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    equal_to(b'"') | equal_to(b'\\') | control
}

/// Which brackets are open: a stack of bits, of which the first 64 need no memory.
#[derive(Default)]
struct Depth {
    bits: u64,
    count: usize,
    spilled: Vec<u64>,
}

impl Depth {
    fn push(&mut self, object: bool) {
        if self.count > 0 && self.count.is_multiple_of(64) {
            self.spilled.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.count += 1;
    }

    fn pop(&mut self) {
        self.count -= 1;
        self.bits >>= 1;
        if self.count > 0 && self.count.is_multiple_of(64) {
            self.bits = self.spilled.pop().unwrap_or_default();
        }
    }

    fn top(&self) -> Option<bool> {
        (self.count > 0).then_some(self.bits & 1 == 1)
    }
}
