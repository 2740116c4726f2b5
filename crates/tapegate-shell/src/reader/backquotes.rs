//! Command substitutions in backquotes.

use super::{CommandReader, ReadResult, read_nested};
use crate::command_tree::WordPart;

impl CommandReader {
    /// Reads a command in backquotes: the text without its escapes is a command line of its own.
    pub(super) fn backquotes(&mut self, quoted: bool) -> ReadResult<WordPart> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                Some('`') => break,
                Some('\\') => {
                    let Some(next) = self.peek_at(1) else { return Err(self.unexpected()) };
                    let is_escape = matches!(next, '$' | '`' | '\\') || quoted && next == '"';
                    if !is_escape {
                        text.push('\\');
                    }
                    text.push(next);
                    self.at += 2;
                }
                Some(letter) => {
                    text.push(letter);
                    self.at += 1;
                }
                None => return Err(self.unreadable("a backquote is not closed")),
            }
        }
        self.at += 1;
        // With the depth so far, or backquotes in backquotes would escape the limit.
        let list = self.nest(|reader| read_nested(&text, reader.depth));
        let list = list.map_err(|mut error| {
            // Positions in the text without escapes mean nothing in the line.
            error.at = start + 1;
            error
        })?;
        Ok(WordPart::Commands { list, quoted })
    }
}
