//! The commands that a call asks for.

use std::collections::BTreeSet;
use std::rc::Rc;

use tapegate_shell::command_use::{CommandUse, read_line};

use super::CommandTest;

/// The maximum number of commands that are decided about; a line with more is not read.
const COMMANDS_MAX: usize = 300;

/// One command of a call.
#[derive(Debug, Clone)]
pub(crate) struct CommandSubject {
    /// The line, without blanks around it.
    line: Rc<str>,
    uses: Rc<[CommandUse]>,
    index: usize,
    /// The path of the argument that its line is in.
    argument: String,
    /// Whether every server finds this line there.
    exact: bool,
}

impl CommandSubject {
    pub(crate) fn command(&self) -> &CommandUse {
        &self.uses[self.index]
    }

    pub(super) fn argument(&self) -> &str {
        &self.argument
    }

    pub(super) fn line(&self) -> &str {
        &self.line
    }

    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }

    /// The commands in front of it in its pipeline.
    pub(super) fn piped_from(&self) -> impl Iterator<Item = &CommandUse> {
        self.command().piped_from.iter().filter_map(|index| self.uses.get(*index))
    }

    /// The command for people.
    pub(crate) fn text(&self) -> String {
        let one = self.command();
        match &one.problem {
            Some(problem) => problem.clone(),
            None if one.words.is_empty() && one.redirections.is_empty() => {
                "an assignment".to_owned()
            }
            None if one.words.is_empty() => "a redirection".to_owned(),
            None => format!("`{}`", one.short_text()),
        }
    }
}

/// The commands in the arguments that these tests name.
pub(crate) fn command_subjects<'t>(
    tests: impl Iterator<Item = &'t CommandTest>,
    arguments: &[u8],
) -> Vec<CommandSubject> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for test in tests {
        let argument = test.argument.path_text();
        if !seen.insert(argument.to_owned()) {
            continue;
        }
        let texts = test.argument.texts(arguments);
        for (line, exact) in texts.lines {
            add(&mut all, (&line, read_line(&line).uses), argument, exact);
        }
        if texts.unclear {
            let problem = "the command is not given as a text".to_owned();
            add(&mut all, ("", vec![CommandUse::with_problem(problem)]), argument, false);
        }
    }
    all
}

fn add(
    all: &mut Vec<CommandSubject>,
    (line, uses): (&str, Vec<CommandUse>),
    argument: &str,
    exact: bool,
) {
    let uses = match uses.len() {
        0 => vec![CommandUse::default()],
        1..=COMMANDS_MAX => uses,
        _ => {
            let problem = format!("the line has more than {COMMANDS_MAX} commands");
            vec![CommandUse::with_problem(problem)]
        }
    };
    let (line, uses): (Rc<str>, Rc<[CommandUse]>) = (line.trim().into(), uses.into());
    for index in 0..uses.len() {
        let (line, uses) = (Rc::clone(&line), Rc::clone(&uses));
        all.push(CommandSubject { line, uses, index, argument: argument.to_owned(), exact });
    }
}
