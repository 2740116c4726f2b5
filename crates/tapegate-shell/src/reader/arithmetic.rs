//! Arithmetic expressions. Their text is kept; only the expansions in it are read.

use super::{CommandReader, ReadResult};
use crate::command_tree::{ArithmeticText, ShellWord};

impl CommandReader {
    /// `((…))`, from the first parenthesis. Two subshells that look alike are not read.
    pub(super) fn double_parens(&mut self) -> ReadResult<ArithmeticText> {
        self.expect("((")?;
        let mut arithmetic = ArithmeticText::default();
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some('(') => depth += 1,
                Some(')') if depth > 0 => depth -= 1,
                Some(')') if self.take("))") => return Ok(arithmetic),
                // `((a); (b))` are two subshells, and bash decides that only at the end.
                Some(')') => return Err(self.unreadable("`((` that is not arithmetic")),
                Some(letter) => {
                    self.arithmetic_piece(&mut arithmetic, letter)?;
                    continue;
                }
                None => return Err(self.unreadable("`((` is not closed")),
            }
            arithmetic.text.extend(self.peek());
            self.at += 1;
        }
    }

    /// The subscript of an array, after the bracket and with the closing one.
    pub(super) fn subscript(&mut self) -> ReadResult<ArithmeticText> {
        let mut arithmetic = ArithmeticText::default();
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(']') if depth == 0 => break,
                Some(']') => depth -= 1,
                Some('[') => depth += 1,
                // A blank ends the word in some contexts and not in others.
                Some(' ' | '\t' | '\n') | None => return Err(self.unexpected()),
                Some(_) => {}
            }
            let Some(letter) = self.peek() else { return Err(self.unexpected()) };
            self.arithmetic_piece(&mut arithmetic, letter)?;
        }
        self.at += 1;
        Ok(arithmetic)
    }

    /// One piece of an expression: an expansion, or a character of its text.
    pub(super) fn arithmetic_piece(
        &mut self,
        arithmetic: &mut ArithmeticText,
        letter: char,
    ) -> ReadResult<()> {
        match letter {
            '\'' | '\\' | '{' | '}' => Err(self.unreadable("quotes or braces in arithmetic")),
            // In some places, bash looks for the end of a process substitution here.
            '<' | '>' if self.peek_at(1) == Some('(') => {
                Err(self.unreadable("a process substitution in arithmetic"))
            }
            '"' | '$' | '`' => {
                let mut word = ShellWord::default();
                match letter {
                    '"' => self.double_quotes(&mut word)?,
                    letter => self.quoted_piece(&mut word, letter, true)?,
                }
                arithmetic.parts.append(&mut word.parts);
                // Keeps names on both sides of an expansion apart.
                arithmetic.text.push(' ');
                Ok(())
            }
            letter => {
                arithmetic.text.push(letter);
                self.at += 1;
                Ok(())
            }
        }
    }
}
