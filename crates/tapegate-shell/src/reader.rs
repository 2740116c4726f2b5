//! Reads a command line into a tree, by the grammar of bash.
//!
//! The reader fails closed: whatever it does not know for certain is an [`UnreadableCommand`], never
//! a guess. Among these are forms that bash itself reads differently by its options, such as
//! extended globs. It looks at each character a bounded number of times, and nesting has a limit.

mod arithmetic;
mod backquotes;
mod compound;
mod dollar;
mod heredocs;
mod lists;
mod quotes;
mod redirections;
mod simple;
mod test_words;
mod words;

use crate::command_tree::{CommandList, ShellWord};
use heredocs::PendingHeredoc;

/// The maximum length of a command line in characters.
pub const LINE_CHARS_MAX: usize = 256 << 10;
/// The maximum nesting of commands and expansions.
const DEPTH_MAX: usize = 32;

/// Why a command line cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at character {at}")]
pub struct UnreadableCommand {
    /// What was found.
    pub reason: String,
    /// Where, counted in characters from 1.
    pub at: usize,
}

type ReadResult<T> = Result<T, UnreadableCommand>;

/// Reads a command line.
pub fn read_commands(text: &str) -> Result<CommandList, UnreadableCommand> {
    read_nested(text, 0)
}

fn read_nested(text: &str, depth: usize) -> ReadResult<CommandList> {
    let mut reader = CommandReader {
        chars: text.chars().collect(),
        at: 0,
        depth,
        heredocs: Vec::new(),
        bodies: Vec::new(),
    };
    if reader.chars.len() > LINE_CHARS_MAX {
        return Err(reader.unreadable("the command line is too long"));
    }
    // Bash drops it, so what is read here would differ from what runs.
    if reader.chars.contains(&'\0') {
        return Err(reader.unreadable("there is a NUL in the command line"));
    }
    let mut list = reader.nest(CommandReader::list)?;
    if reader.at < reader.chars.len() {
        return Err(reader.unexpected());
    }
    // Bash takes the end of the text as the end of the body, and warns.
    if !reader.heredocs.is_empty() {
        return Err(reader.unreadable("a here-document has no body"));
    }
    list.heredocs = reader.bodies;
    Ok(list)
}

/// A position in a command line, and the here-documents whose bodies follow.
struct CommandReader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    /// Here-documents whose bodies begin after the next line break.
    heredocs: Vec<PendingHeredoc>,
    /// The bodies of here-documents that were read.
    bodies: Vec<ShellWord>,
}

impl CommandReader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn peek_at(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).copied()
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, one)| self.peek_at(offset) == Some(one))
    }

    /// Takes a text if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn expect(&mut self, text: &str) -> ReadResult<()> {
        if self.take(text) { Ok(()) } else { Err(self.unreadable(&format!("expected `{text}`"))) }
    }

    fn unreadable(&self, reason: &str) -> UnreadableCommand {
        UnreadableCommand { reason: reason.to_owned(), at: self.at + 1 }
    }

    fn unexpected(&self) -> UnreadableCommand {
        match self.peek() {
            Some('\n') => self.unreadable("unexpected line break"),
            Some(found) => self.unreadable(&format!("unexpected `{found}`")),
            None => self.unreadable("the command line ends too early"),
        }
    }

    /// Reads something one level deeper.
    fn nest<T>(&mut self, read: impl FnOnce(&mut Self) -> ReadResult<T>) -> ReadResult<T> {
        if self.depth == DEPTH_MAX {
            return Err(self.unreadable("the command line is nested too deeply"));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, comments, and line continuations after a blank.
    fn skip_blanks(&mut self) -> ReadResult<()> {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.peek_at(1) == Some('\n') => self.continue_line()?,
                Some('#') if self.is_word_start() => {
                    while self.peek().is_some_and(|next| next != '\n') {
                        self.at += 1;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips an escaped line break. Bash removes it even inside of operators and names; that is
    /// read only where it separates nothing.
    fn continue_line(&mut self) -> ReadResult<()> {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        if before.is_some_and(|before| !matches!(before, ' ' | '\t' | '\n')) {
            return Err(self.unreadable("an escaped line break without a blank before it"));
        }
        self.at += 2;
        Ok(())
    }

    /// Whether a new word would begin here, so that `#` begins a comment.
    fn is_word_start(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        before.is_none_or(|before| is_metacharacter(*before))
    }

    /// Skips blanks and line breaks, and reads the bodies of here-documents on the way.
    fn skip_lines(&mut self) -> ReadResult<()> {
        loop {
            self.skip_blanks()?;
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.line_break()?;
        }
    }

    fn line_break(&mut self) -> ReadResult<()> {
        self.at += 1;
        self.read_heredoc_bodies()
    }
}

/// Whether a character ends an unquoted word.
fn is_metacharacter(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

/// Whether a text is the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests;
