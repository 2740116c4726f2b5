//! Commands that hold other commands.

use super::lists::LIST_ENDS;
use super::{CommandReader, ReadResult, is_name};
use crate::command_tree::{
    ArithmeticText, CommandList, CommandNode, CompoundCommand, CompoundKind, ShellWord,
};

/// Reserved words that cannot begin a command.
const MISPLACED: [&str; 4] = ["in", "coproc", "]]", "!"];

impl CommandReader {
    pub(super) fn command(&mut self) -> ReadResult<CommandNode> {
        let mut misplaced = MISPLACED.iter().chain(&LIST_ENDS);
        if let Some(word) = misplaced.find(|word| self.is_reserved(word)) {
            return Err(self.unreadable(&format!("`{word}`")));
        }
        let kind = match self.peek() {
            // Bash tries arithmetic first, too.
            Some('(') if self.starts_with("((") => CompoundKind::Arithmetic(self.double_parens()?),
            Some('(') => {
                self.at += 1;
                let list = self.full_list()?;
                self.close_list(")")?;
                CompoundKind::Subshell(list)
            }
            Some('{') if self.take_reserved("{") => {
                let list = self.full_list()?;
                self.expect_reserved("}")?;
                CompoundKind::Group(list)
            }
            Some('[') if self.take_reserved("[[") => CompoundKind::Test(self.test_words()?),
            _ => match self.keyword_command()? {
                Some(kind) => kind,
                None => return self.simple_or_function(),
            },
        };
        let redirections = self.redirections()?;
        Ok(CommandNode::Compound(Box::new(CompoundCommand { kind, redirections })))
    }

    /// Takes what closes a list. A here-document that was opened inside must have had its body.
    pub(super) fn close_list(&mut self, text: &str) -> ReadResult<()> {
        if !self.heredocs.is_empty() {
            return Err(self.unreadable("a here-document has no body before the list ends"));
        }
        self.expect(text)
    }

    fn keyword_command(&mut self) -> ReadResult<Option<CompoundKind>> {
        if self.take_reserved("if") {
            return self.if_command().map(Some);
        }
        if self.take_reserved("while") || self.take_reserved("until") {
            let condition = self.full_list()?;
            return Ok(Some(CompoundKind::While(condition, self.do_group()?)));
        }
        if self.take_reserved("for") {
            return self.for_command().map(Some);
        }
        if self.take_reserved("select") {
            self.skip_blanks()?;
            return self.for_words().map(Some);
        }
        if self.take_reserved("case") {
            return self.case_command().map(Some);
        }
        if self.take_reserved("function") {
            self.skip_blanks()?;
            let name = self.function_name()?;
            self.skip_blanks()?;
            if self.take("(") {
                self.skip_blanks()?;
                self.expect(")")?;
            }
            return self.function(name).map(Some);
        }
        Ok(None)
    }

    fn function_name(&mut self) -> ReadResult<String> {
        let word = self.word()?;
        match word.plain() {
            Some(name) => Ok(name.to_owned()),
            None => Err(self.unreadable("the name of a function is not plain text")),
        }
    }

    /// The body of a function; its redirections belong to the body.
    pub(super) fn function(&mut self, name: String) -> ReadResult<CompoundKind> {
        self.skip_lines()?;
        match self.nest(Self::command)? {
            CommandNode::Compound(body) if !matches!(body.kind, CompoundKind::Function(..)) => {
                Ok(CompoundKind::Function(name, CommandNode::Compound(body)))
            }
            _ => Err(self.unreadable("the body of a function is not a group or a loop")),
        }
    }

    fn if_command(&mut self) -> ReadResult<CompoundKind> {
        let mut lists = Vec::new();
        loop {
            lists.push(self.full_list()?);
            self.expect_reserved("then")?;
            lists.push(self.full_list()?);
            if !self.take_reserved("elif") {
                break;
            }
        }
        if self.take_reserved("else") {
            lists.push(self.full_list()?);
        }
        self.expect_reserved("fi")?;
        Ok(CompoundKind::If(lists))
    }

    fn do_group(&mut self) -> ReadResult<CommandList> {
        self.expect_reserved("do")?;
        let body = self.full_list()?;
        self.expect_reserved("done")?;
        Ok(body)
    }

    /// The body of a `for`, which may be in braces.
    fn for_body(&mut self) -> ReadResult<CommandList> {
        if self.take_reserved("{") {
            let body = self.full_list()?;
            self.expect_reserved("}")?;
            return Ok(body);
        }
        self.do_group()
    }

    fn for_command(&mut self) -> ReadResult<CompoundKind> {
        self.skip_blanks()?;
        if !self.starts_with("((") {
            return self.for_words();
        }
        let arithmetic: ArithmeticText = self.double_parens()?;
        if arithmetic.text.matches(';').count() != 2 {
            return Err(self.unreadable("`for ((` without three expressions"));
        }
        self.skip_blanks()?;
        self.take(";");
        self.skip_lines()?;
        Ok(CompoundKind::ArithmeticFor(arithmetic, self.for_body()?))
    }

    fn for_words(&mut self) -> ReadResult<CompoundKind> {
        let name = self.word()?;
        let Some(variable) = name.plain().filter(|name| is_name(name)).map(str::to_owned) else {
            return Err(self.unreadable("the variable of a loop is not a name"));
        };
        self.skip_lines()?;
        let mut words = None;
        if self.take_reserved("in") {
            words = Some(self.words_of_line()?);
        }
        self.skip_blanks()?;
        self.take(";");
        self.skip_lines()?;
        Ok(CompoundKind::For { variable, words, body: self.for_body()? })
    }

    /// Words up to the end of the line or a `;`.
    fn words_of_line(&mut self) -> ReadResult<Vec<ShellWord>> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.peek() {
                Some(';' | '\n') => return Ok(words),
                Some(_) => words.push(self.word()?),
                None => return Err(self.unexpected()),
            }
        }
    }

    fn case_command(&mut self) -> ReadResult<CompoundKind> {
        self.skip_blanks()?;
        let subject = self.word()?;
        self.skip_lines()?;
        self.expect_reserved("in")?;
        let mut branches = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                return Ok(CompoundKind::Case(subject, branches));
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks()?;
                patterns.push(self.word()?);
                self.skip_blanks()?;
                if !self.take("|") {
                    break;
                }
            }
            self.expect(")")?;
            let list = self.nest(Self::list)?;
            branches.push((patterns, list));
            let more = self.take(";;&") || self.take(";;") || self.take(";&");
            if !more && !self.is_reserved("esac") {
                return Err(self.unexpected());
            }
        }
    }
}
