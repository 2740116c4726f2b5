//! Lists and pipelines.

use super::{CommandReader, ReadResult};
use crate::command_tree::{CommandList, CommandNode, CommandPipeline, PipelineEnd};

/// Reserved words that end a list.
pub(super) const LIST_ENDS: [&str; 8] = ["then", "do", "done", "fi", "else", "elif", "esac", "}"];

impl CommandReader {
    /// Reads commands up to the end, a `)`, a `;;`, or a reserved word that ends a list. The list
    /// may be empty.
    pub(super) fn list(&mut self) -> ReadResult<CommandList> {
        let mut list = CommandList::default();
        self.skip_lines()?;
        while !self.is_list_end() {
            let mut pipeline = self.pipeline()?;
            self.skip_blanks()?;
            pipeline.end = self.pipeline_end()?;
            let wants_more = matches!(pipeline.end, PipelineEnd::And | PipelineEnd::Or);
            let ended_by = self.at;
            list.pipelines.push(pipeline);
            self.skip_lines()?;
            if wants_more && self.is_list_end() {
                self.at = ended_by;
                return Err(self.unreadable("a command is missing after `&&` or `||`"));
            }
        }
        Ok(list)
    }

    /// Reads a list that must not be empty.
    pub(super) fn full_list(&mut self) -> ReadResult<CommandList> {
        let list = self.nest(Self::list)?;
        if list.pipelines.is_empty() { Err(self.unexpected()) } else { Ok(list) }
    }

    fn is_list_end(&self) -> bool {
        match self.peek() {
            None | Some(')') => true,
            Some(';') => self.starts_with(";;") || self.starts_with(";&"),
            Some(_) => LIST_ENDS.iter().any(|word| self.is_reserved(word)),
        }
    }

    /// Whether a reserved word comes next.
    pub(super) fn is_reserved(&self, word: &str) -> bool {
        let after = self.peek_at(word.chars().count());
        self.starts_with(word) && after.is_none_or(super::is_metacharacter)
    }

    /// Takes a reserved word if it comes next.
    pub(super) fn take_reserved(&mut self, word: &str) -> bool {
        let found = self.is_reserved(word);
        if found {
            self.at += word.chars().count();
        }
        found
    }

    pub(super) fn expect_reserved(&mut self, word: &str) -> ReadResult<()> {
        if self.take_reserved(word) {
            return Ok(());
        }
        Err(self.unreadable(&format!("expected `{word}`")))
    }

    /// The operator after a pipeline.
    fn pipeline_end(&mut self) -> ReadResult<PipelineEnd> {
        let end = match self.peek() {
            Some('&') if self.take("&&") => PipelineEnd::And,
            Some('|') if self.take("||") => PipelineEnd::Or,
            Some('&') if !self.starts_with("&>") => {
                self.at += 1;
                PipelineEnd::Background
            }
            Some(';') if self.starts_with(";;") || self.starts_with(";&") => PipelineEnd::Sequence,
            Some(';') => {
                self.at += 1;
                PipelineEnd::Sequence
            }
            None | Some('\n' | ')') => PipelineEnd::Sequence,
            // After `}` and `done`, a reserved word that ends the list around may follow at once.
            Some(_) if LIST_ENDS.iter().any(|word| self.is_reserved(word)) => PipelineEnd::Sequence,
            Some(_) => return Err(self.unexpected()),
        };
        if self.starts_with("\\\n") {
            return Err(self.unreadable("an escaped line break after an operator"));
        }
        Ok(end)
    }

    /// Refuses `time` as the first word of `$(…)` and `<(…)`: bash 5.2 takes no word after it for a
    /// reserved one, other versions do.
    pub(super) fn refuse_time(&mut self) -> ReadResult<()> {
        self.skip_blanks()?;
        if self.is_reserved("time") {
            return Err(self.unreadable("`time` at the start of a substitution"));
        }
        Ok(())
    }

    fn pipeline(&mut self) -> ReadResult<CommandPipeline> {
        loop {
            self.skip_blanks()?;
            if self.take_reserved("!") {
                continue;
            }
            if !self.take_reserved("time") {
                break;
            }
            self.skip_blanks()?;
            self.take_reserved("-p");
            self.skip_blanks()?;
            if self.peek() == Some('-') {
                return Err(self.unreadable("an option of `time`"));
            }
        }
        let mut stages: Vec<CommandNode> = Vec::new();
        loop {
            stages.push(self.nest(Self::command)?);
            self.skip_blanks()?;
            let is_pipe = self.peek() == Some('|') && self.peek_at(1) != Some('|');
            if !is_pipe {
                return Ok(CommandPipeline { stages, end: PipelineEnd::Sequence });
            }
            self.at += 1;
            self.take("&");
            if self.starts_with("\\\n") {
                return Err(self.unreadable("an escaped line break after an operator"));
            }
            self.skip_lines()?;
        }
    }
}
