//! Simple commands: assignments, a program, its arguments.

use super::{CommandReader, ReadResult, is_name};
use crate::command_tree::{
    CommandNode, CompoundCommand, ShellWord, SimpleCommand, VariableAssignment, WordPart,
};

/// Builtins whose arguments may be assignments of arrays.
const DECLARATIONS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

impl CommandReader {
    /// A simple command, or the definition of a function.
    pub(super) fn simple_or_function(&mut self) -> ReadResult<CommandNode> {
        let mut command = SimpleCommand::default();
        // As bash: `x=1 y=(2)` and `>f y=(2)` are read, `x=1 >f y=(2)` is a syntax error.
        let mut may_be_array = true;
        loop {
            self.skip_blanks()?;
            if let Some(redirection) = self.redirection()? {
                command.redirections.push(redirection);
                may_be_array = command.assignments.is_empty() && command.words.is_empty();
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') => return self.function_after(command),
                Some(_) => {}
            }
            if command.words.is_empty()
                && let Some(assignment) = self.assignment(may_be_array)?
            {
                command.assignments.push(assignment);
                may_be_array = true;
                continue;
            }
            let word = self.argument(&command, may_be_array)?;
            command.words.push(word);
        }
        let is_empty = command.words.is_empty()
            && command.assignments.is_empty()
            && command.redirections.is_empty();
        if is_empty { Err(self.unexpected()) } else { Ok(CommandNode::Simple(command)) }
    }

    /// A word of a command; after a declaration builtin, it may assign an array.
    fn argument(&mut self, command: &SimpleCommand, may_be_array: bool) -> ReadResult<ShellWord> {
        let program = command.words.first().and_then(ShellWord::plain);
        let declares =
            may_be_array && program.is_some_and(|program| DECLARATIONS.contains(&program));
        let mut word = self.word()?;
        let is_assignment = || {
            let name = word.plain().and_then(|text| text.strip_suffix('='));
            name.is_some_and(|name| is_name(name.strip_suffix('+').unwrap_or(name)))
        };
        if declares && self.peek() == Some('(') && is_assignment() {
            word.parts.push(WordPart::Array(self.array_elements()?));
        }
        Ok(word)
    }

    /// The function that a single plain word followed by `(` defines.
    fn function_after(&mut self, command: SimpleCommand) -> ReadResult<CommandNode> {
        let name = match command.words.as_slice() {
            [word] if command.assignments.is_empty() && command.redirections.is_empty() => {
                word.plain().map(str::to_owned)
            }
            _ => None,
        };
        let Some(name) = name else { return Err(self.unexpected()) };
        self.at += 1;
        self.skip_blanks()?;
        self.expect(")")?;
        let kind = self.function(name)?;
        let compound = CompoundCommand { kind, redirections: Vec::new() };
        Ok(CommandNode::Compound(Box::new(compound)))
    }

    /// Takes `name=`, `name+=` or `name[…]=` with its value, if one comes next.
    fn assignment(&mut self, may_be_array: bool) -> ReadResult<Option<VariableAssignment>> {
        let start = self.at;
        let name = self.parameter_name();
        if !is_name(&name) {
            self.at = start;
            return Ok(None);
        }
        let mut subscript = None;
        if self.peek() == Some('[') {
            self.at += 1;
            subscript = Some(self.nest(Self::subscript)?);
        }
        self.take("+");
        if !self.take("=") {
            // Reading it again as a word would double the work at each level of nesting.
            if subscript.is_some() {
                return Err(self.unreadable("a subscript in the name of a program"));
            }
            self.at = start;
            return Ok(None);
        }
        let is_array = self.peek() == Some('(');
        let values = match self.peek() {
            Some('(') if !may_be_array => return Err(self.unexpected()),
            Some('(') => self.array_elements()?,
            Some(letter) if !super::is_metacharacter(letter) => vec![self.word()?],
            Some('<' | '>') if self.peek_at(1) == Some('(') => return Err(self.unexpected()),
            _ => vec![ShellWord::default()],
        };
        Ok(Some(VariableAssignment { name, subscript, values, is_array }))
    }

    /// The elements of `name=( … )`.
    fn array_elements(&mut self) -> ReadResult<Vec<ShellWord>> {
        self.expect("(")?;
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take(")") {
                return match self.peek() {
                    Some(next) if !super::is_metacharacter(next) => Err(self.unexpected()),
                    _ => Ok(words),
                };
            }
            let word = self.word()?;
            // `[index]=value` evaluates the index.
            if matches!(word.parts.first(), Some(WordPart::Wildcard(text)) if text.starts_with('['))
            {
                return Err(self.unreadable("an array element with an index"));
            }
            if let Some(WordPart::Literal { text, quoted: false }) = word.parts.first()
                && text.starts_with('[')
            {
                return Err(self.unreadable("an array element with an index"));
            }
            words.push(word);
        }
    }
}
