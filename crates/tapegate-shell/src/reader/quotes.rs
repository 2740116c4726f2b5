//! Quoted text.

use super::{CommandReader, ReadResult};
use crate::command_tree::ShellWord;

impl CommandReader {
    pub(super) fn single_quotes(&mut self, word: &mut ShellWord) -> ReadResult<()> {
        self.at += 1;
        word.open_quotes();
        loop {
            match self.peek() {
                Some('\'') => break,
                Some(letter) => word.push_quoted(letter),
                None => return Err(self.unreadable("a single quote is not closed")),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn double_quotes(&mut self, word: &mut ShellWord) -> ReadResult<()> {
        self.at += 1;
        word.open_quotes();
        loop {
            match self.peek() {
                Some('"') => break,
                Some(letter) => self.quoted_piece(word, letter, true)?,
                None => return Err(self.unreadable("a double quote is not closed")),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// One piece of text that is expanded but not split. In a here-document, a double quote is
    /// text.
    pub(super) fn quoted_piece(
        &mut self,
        word: &mut ShellWord,
        letter: char,
        ends_at_quote: bool,
    ) -> ReadResult<()> {
        match letter {
            '$' => self.dollar(word, true)?,
            '`' => {
                let part = self.backquotes(true)?;
                word.parts.push(part);
            }
            '\\' => match self.peek_at(1) {
                Some('\n') => self.continue_line()?,
                Some(escaped @ ('$' | '`' | '\\')) => {
                    self.at += 2;
                    word.push_quoted(escaped);
                }
                Some('"') if ends_at_quote => {
                    self.at += 2;
                    word.push_quoted('"');
                }
                Some(_) => {
                    self.at += 1;
                    word.push_quoted('\\');
                }
                None => return Err(self.unreadable("a backslash at the end")),
            },
            letter => {
                self.at += 1;
                word.push_quoted(letter);
            }
        }
        Ok(())
    }

    /// `$'…'`, from the `$`.
    pub(super) fn ansi_quotes(&mut self, word: &mut ShellWord) -> ReadResult<()> {
        self.at += 2;
        word.open_quotes();
        loop {
            match self.peek() {
                Some('\'') => break,
                Some('\\') => {
                    self.at += 1;
                    let letter = self.ansi_escape()?;
                    word.push_quoted(letter);
                }
                Some(letter) => {
                    self.at += 1;
                    word.push_quoted(letter);
                }
                None => return Err(self.unreadable("a `$'` quote is not closed")),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The character of an escape in `$'…'`, after the backslash.
    fn ansi_escape(&mut self) -> ReadResult<char> {
        let Some(letter) = self.peek() else { return Err(self.unexpected()) };
        self.at += 1;
        let plain = match letter {
            'a' => '\x07',
            'b' => '\x08',
            'e' | 'E' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\\' | '\'' | '"' | '?' => letter,
            'x' => return self.ansi_number(2, 16),
            'u' => return self.ansi_number(4, 16),
            'U' => return self.ansi_number(8, 16),
            '0'..='7' => {
                self.at -= 1;
                return self.ansi_number(3, 8);
            }
            _ => return Err(self.unreadable("an unknown escape in a `$'` quote")),
        };
        Ok(plain)
    }

    /// The character with a number. Bytes outside of ASCII are parts of characters and not read.
    fn ansi_number(&mut self, digits_max: usize, radix: u32) -> ReadResult<char> {
        let mut value = 0_u32;
        let mut digits = 0;
        while digits < digits_max
            && let Some(digit) = self.peek().and_then(|letter| letter.to_digit(radix))
        {
            value = value.saturating_mul(radix).saturating_add(digit);
            digits += 1;
            self.at += 1;
        }
        match char::from_u32(value) {
            // A NUL ends the text.
            Some(letter) if digits > 0 && letter.is_ascii() && letter != '\0' => Ok(letter),
            _ => Err(self.unreadable("an escape in a `$'` quote that is not an ASCII character")),
        }
    }
}
