//! A cursor over JSON text that validates as it moves.

use super::byte_runs::{BracketStack, is_ascii, plain_run};
use super::{JsonFault, JsonStr};

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
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

impl JsonKind {
    /// The type of the value that `text` starts with.
    pub fn of(text: &[u8]) -> Result<Self, JsonFault> {
        Cursor::new(text)?.kind()
    }
}

/// A position in JSON text. Moving over a value validates it.
///
/// Objects are walked by [`Cursor::open`] and [`Cursor::next_key`], arrays by `open` and
/// [`Cursor::next_item`]; after each key or item the caller must move over the value. Where the
/// children are only wanted as texts, [`super::members`] and [`super::elements`] are shorter.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    /// The end of the last key.
    key_end: usize,
    /// Whether an object or array was just entered, so that no comma may come. One flag is enough
    /// for all levels: where an inner value ends, the outer one is past its first child.
    entered: bool,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`, which must be UTF-8.
    pub fn new(text: &'a [u8]) -> Result<Self, JsonFault> {
        if text.starts_with(b"\xef\xbb\xbf") {
            return Err(JsonFault { at: 0, what: "a byte order mark" });
        }
        // Most texts are ASCII, which is faster to check.
        if is_ascii(text) {
            return Ok(Self::from_utf8(text));
        }
        match std::str::from_utf8(text) {
            Ok(_) => Ok(Self::from_utf8(text)),
            Err(error) => Err(JsonFault { at: error.valid_up_to(), what: "not UTF-8" }),
        }
    }

    /// A cursor at the start of text that is known to be UTF-8.
    pub(super) fn from_utf8(text: &'a [u8]) -> Self {
        Self::from_utf8_at(text, 0)
    }

    /// A cursor at a position in text that is known to be UTF-8.
    pub(crate) fn from_utf8_at(text: &'a [u8], at: usize) -> Self {
        Self { text, at, key_end: 0, entered: false }
    }

    /// The position of the cursor.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The text between two positions the cursor has been at.
    pub fn slice(&self, start: usize, end: usize) -> &'a [u8] {
        &self.text[start..end]
    }

    /// The type of the next value, by its first byte.
    #[inline]
    pub fn kind(&mut self) -> Result<JsonKind, JsonFault> {
        self.skip_space();
        match self.byte() {
            b'{' => Ok(JsonKind::Object),
            b'[' => Ok(JsonKind::Array),
            b'"' => Ok(JsonKind::String),
            b'-' | b'0'..=b'9' => Ok(JsonKind::Number),
            b't' | b'f' => Ok(JsonKind::Bool),
            b'n' => Ok(JsonKind::Null),
            _ => Err(self.fault("no JSON value")),
        }
    }

    /// Moves over one whole value and returns its text.
    #[inline(always)]
    pub fn value(&mut self) -> Result<&'a [u8], JsonFault> {
        self.skip_space();
        let start = self.at;
        match self.byte() {
            b'"' => drop(self.quoted()?),
            b'{' | b'[' => self.skip_nested()?,
            _ => self.skip_scalar()?,
        }
        Ok(&self.text[start..self.at])
    }

    /// Enters the next object or array.
    pub fn open(&mut self) -> Result<JsonKind, JsonFault> {
        let kind = self.kind()?;
        match kind {
            JsonKind::Object | JsonKind::Array => self.at += 1,
            _ => return Err(self.fault("no object or array")),
        }
        self.entered = true;
        Ok(kind)
    }

    /// The next key of the object the cursor is in, or `None` at its end.
    #[inline(always)]
    pub fn next_key(&mut self) -> Result<Option<JsonStr<'a>>, JsonFault> {
        if !self.next_child(b'}')? {
            return Ok(None);
        }
        let start = self.at + 1;
        let escaped = self.member_key()?;
        // The closing quote is the last one before the colon.
        let raw = &self.text[start..self.key_end];
        Ok(Some(JsonStr { raw, escaped }))
    }

    /// Whether the array the cursor is in has another item; if not, the cursor leaves it.
    #[inline]
    pub fn next_item(&mut self) -> Result<bool, JsonFault> {
        let more = self.next_child(b']')?;
        if more && self.byte() == b']' { Err(self.fault("no JSON value")) } else { Ok(more) }
    }

    /// Moves to the next child, or over the bracket that closes the parent.
    #[inline(always)]
    fn next_child(&mut self, close: u8) -> Result<bool, JsonFault> {
        self.skip_space();
        let first = std::mem::take(&mut self.entered);
        match self.byte() {
            byte if byte == close => {
                self.at += 1;
                return Ok(false);
            }
            b',' if !first => self.at += 1,
            _ if !first => return Err(self.fault("no comma or bracket")),
            _ => {}
        }
        self.skip_space();
        Ok(true)
    }

    /// Moves over a string and returns it.
    #[inline(always)]
    pub fn string(&mut self) -> Result<JsonStr<'a>, JsonFault> {
        self.skip_space();
        if self.byte() != b'"' {
            return Err(self.fault("no string"));
        }
        let start = self.at + 1;
        let escaped = self.quoted()?;
        Ok(JsonStr { raw: &self.text[start..self.at - 1], escaped })
    }

    /// Checks that only white space is left.
    pub fn expect_end(&mut self) -> Result<(), JsonFault> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.fault(super::TRAILING)) }
    }

    /// Moves over a number or a literal.
    #[inline(never)]
    fn skip_scalar(&mut self) -> Result<(), JsonFault> {
        self.scalar()
    }

    /// Moves over an object or array, however deep.
    #[inline(never)]
    fn skip_nested(&mut self) -> Result<(), JsonFault> {
        let mut depth = BracketStack::default();
        loop {
            match self.byte() {
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    self.skip_space();
                    if self.byte() == open + 2 {
                        self.at += 1;
                    } else {
                        depth.push(open == b'{');
                        if open == b'{' {
                            self.member_key()?;
                        }
                        self.skip_space();
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            if self.close(&mut depth)? {
                return Ok(());
            }
        }
    }

    /// Moves from the end of a value to the next one; returns true when the outermost value is
    /// complete.
    #[inline]
    fn close(&mut self, depth: &mut BracketStack) -> Result<bool, JsonFault> {
        while let Some(object) = depth.top() {
            self.skip_space();
            match (self.byte(), object) {
                (b',', object) => {
                    self.at += 1;
                    self.skip_space();
                    if object {
                        self.member_key()?;
                        self.skip_space();
                    }
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

    #[inline(always)]
    fn scalar(&mut self) -> Result<(), JsonFault> {
        match self.byte() {
            b'"' => self.quoted().map(drop),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.skip_word(b"true"),
            b'f' => self.skip_word(b"false"),
            b'n' => self.skip_word(b"null"),
            _ => Err(self.fault("no JSON value")),
        }
    }

    /// Moves over a key and its colon; returns whether the key is escaped, and sets `key_end` to the
    /// position of its closing quote.
    #[inline(always)]
    fn member_key(&mut self) -> Result<bool, JsonFault> {
        if self.byte() != b'"' {
            return Err(self.fault("no key"));
        }
        let escaped = self.quoted()?;
        self.key_end = self.at - 1;
        self.skip_space();
        if self.byte() != b':' {
            return Err(self.fault("no colon"));
        }
        self.at += 1;
        Ok(escaped)
    }

    /// Moves over the string at the cursor; returns whether it is escaped.
    #[inline(always)]
    fn quoted(&mut self) -> Result<bool, JsonFault> {
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain_run(&self.text[self.at..]);
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    return Ok(escaped);
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(self.fault("a raw control character in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), JsonFault> {
        self.at += 1;
        match self.byte() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.byte().is_ascii_hexdigit() {
                        return Err(self.fault("an unknown escape"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.fault("an unknown escape")),
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self) -> Result<(), JsonFault> {
        if self.byte() == b'-' {
            self.at += 1;
        }
        match self.byte() {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if let b'e' | b'E' = self.byte() {
            self.at += 1;
            if let b'+' | b'-' = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    #[inline]
    fn digits(&mut self) -> Result<(), JsonFault> {
        if !self.byte().is_ascii_digit() {
            return Err(self.fault("no digit"));
        }
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn skip_word(&mut self, word: &[u8]) -> Result<(), JsonFault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(JsonFault { at: self.at, what: "no JSON value" });
        }
        self.at += word.len();
        Ok(())
    }

    #[inline(always)]
    fn skip_space(&mut self) {
        // There is nearly always none, and one comparison shows it.
        while self.text.get(self.at).is_some_and(|byte| *byte <= b' ') {
            if !matches!(self.text[self.at], b' ' | b'\t' | b'\r' | b'\n') {
                return;
            }
            self.at += 1;
        }
    }

    /// The byte at the cursor; at the end of the text 0, which is never valid.
    #[inline(always)]
    fn byte(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or_default()
    }

    #[cold]
    fn fault(&self, what: &'static str) -> JsonFault {
        let early = self.at >= self.text.len();
        JsonFault { at: self.at, what: if early { "the text ends too early" } else { what } }
    }
}
