//! Redirections.

use super::{CommandReader, ReadResult, is_name};
use crate::command_tree::{
    NamedDescriptor, RedirectionKind, ShellRedirection, ShellWord, WordPart,
};

/// The operators, longer ones first.
const OPERATORS: [&str; 12] =
    ["&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">"];

impl CommandReader {
    pub(super) fn redirections(&mut self) -> ReadResult<Vec<ShellRedirection>> {
        let mut all = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.redirection()? {
                Some(redirection) => all.push(redirection),
                None => return Ok(all),
            }
        }
    }

    /// Takes a redirection if one comes next.
    pub(super) fn redirection(&mut self) -> ReadResult<Option<ShellRedirection>> {
        let start = self.at;
        let descriptor = self.descriptor();
        let has_descriptor = descriptor.is_some();
        if matches!(self.peek(), Some('<' | '>')) && self.peek_at(1) == Some('(') {
            if has_descriptor {
                return Err(self.unreadable("a process substitution after a number"));
            }
            return Ok(None);
        }
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.starts_with(operator))
        else {
            self.at = start;
            return Ok(None);
        };
        if has_descriptor && operator.starts_with('&') {
            // The digits are a word of their own.
            self.at = start;
            return Ok(None);
        }
        self.at += operator.len();
        let default = if operator.starts_with('<') { "0" } else { "1" };
        let descriptor = descriptor.unwrap_or(NamedDescriptor::Number(default.to_owned()));
        if self.starts_with("\\\n") {
            return Err(self.unreadable("an escaped line break after an operator"));
        }
        if matches!(operator, "<<" | "<<-") {
            self.heredoc_delimiter(operator == "<<-")?;
            // The body comes later, so here it is unknown text.
            let target = ShellWord { parts: vec![WordPart::Wildcard(operator.to_owned())] };
            let kind = RedirectionKind::Text;
            return Ok(Some(ShellRedirection { descriptor, kind, target }));
        }
        self.skip_blanks()?;
        if self.descriptor().is_some() {
            return Err(self.unreadable("two redirections without a file between them"));
        }
        let target = self.word()?;
        let kind = match operator {
            "<" => RedirectionKind::Read,
            "<<<" => RedirectionKind::Text,
            "<&" => RedirectionKind::Duplicate,
            ">&" if is_descriptor(&target) => RedirectionKind::Duplicate,
            _ => RedirectionKind::Write,
        };
        Ok(Some(ShellRedirection { descriptor, kind, target }))
    }

    /// Takes a number or `{name}` in front of an operator.
    fn descriptor(&mut self) -> Option<NamedDescriptor> {
        let start = self.at;
        let mut variable = None;
        if self.take("{") {
            let name = self.parameter_name();
            if is_name(&name) && self.take("}") {
                variable = Some(NamedDescriptor::Variable(name));
            } else {
                self.at = start;
            }
        } else {
            while self.peek().is_some_and(|letter| letter.is_ascii_digit()) {
                self.at += 1;
            }
        }
        if self.at == start || !matches!(self.peek(), Some('<' | '>')) {
            self.at = start;
            return None;
        }
        let digits = self.chars.get(start..self.at).unwrap_or_default();
        Some(variable.unwrap_or_else(|| NamedDescriptor::Number(digits.iter().collect())))
    }
}

/// Whether the target of `>&` is a descriptor: `1`, `1-` or `-`.
fn is_descriptor(target: &ShellWord) -> bool {
    target.literal().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(&text);
        !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
