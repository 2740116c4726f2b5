//! Here-documents.

use super::{CommandReader, ReadResult, is_metacharacter};
use crate::command_tree::ShellWord;

/// A here-document whose body follows after the line.
#[derive(Debug)]
pub(super) struct PendingHeredoc {
    delimiter: String,
    /// Whether the delimiter was quoted, so that nothing in the body is expanded.
    literal: bool,
    /// Whether tabs at the start of lines are removed.
    strips_tabs: bool,
}

impl CommandReader {
    /// Reads the delimiter after `<<` or `<<-`.
    pub(super) fn heredoc_delimiter(&mut self, strips_tabs: bool) -> ReadResult<()> {
        self.skip_blanks()?;
        let word = self.word()?;
        let is_plain = word.plain().is_some();
        let Some(delimiter) = word.literal().filter(|text| !text.contains('\n')) else {
            return Err(self.unreadable("the delimiter of a here-document is not plain text"));
        };
        if delimiter.is_empty() || is_plain && delimiter.contains(is_metacharacter) {
            return Err(self.unreadable("the delimiter of a here-document is not plain text"));
        }
        self.heredocs.push(PendingHeredoc { delimiter, literal: !is_plain, strips_tabs });
        Ok(())
    }

    /// Reads the bodies that follow a line break.
    pub(super) fn read_heredoc_bodies(&mut self) -> ReadResult<()> {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let body = self.heredoc_lines(&heredoc)?;
            if heredoc.literal {
                continue;
            }
            let mut reader = CommandReader {
                chars: body.chars().collect(),
                at: 0,
                depth: self.depth,
                heredocs: Vec::new(),
                bodies: Vec::new(),
            };
            let word = reader.nest(Self::heredoc_word).map_err(|mut error| {
                error.at = self.at + 1;
                error
            })?;
            self.bodies.push(word);
            self.bodies.append(&mut reader.bodies);
        }
        Ok(())
    }

    fn heredoc_lines(&mut self, heredoc: &PendingHeredoc) -> ReadResult<String> {
        let mut body = String::new();
        loop {
            let rest = self.chars.get(self.at..).unwrap_or_default();
            let length = rest.iter().take_while(|letter| **letter != '\n').count();
            let line: String = rest.iter().take(length).collect();
            let is_last = length == rest.len();
            let line = if heredoc.strips_tabs { line.trim_start_matches('\t') } else { &line };
            self.at += length + usize::from(!is_last);
            if line == heredoc.delimiter {
                return Ok(body);
            }
            if is_last {
                return Err(self.unreadable("a here-document has no end"));
            }
            // Bash joins the lines, and then the delimiter is not where it seems to be.
            if !heredoc.literal && line.ends_with('\\') {
                return Err(self.unreadable("an escaped line break in a here-document"));
            }
            body.push_str(line);
            body.push('\n');
        }
    }

    fn heredoc_word(&mut self) -> ReadResult<ShellWord> {
        let mut word = ShellWord::default();
        while let Some(letter) = self.peek() {
            self.quoted_piece(&mut word, letter, false)?;
        }
        if !self.heredocs.is_empty() {
            return Err(self.unreadable("a here-document has no body"));
        }
        Ok(word)
    }
}
