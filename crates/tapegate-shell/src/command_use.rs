//! The commands of a line in a flat list: every program that it runs, also inside of substitutions,
//! functions and wrappers such as `timeout` and `bash -c`.

mod argument;
mod evaluation;
mod functions;
mod line_walk;
mod posix;
mod replay;
mod wrappers;

pub use argument::CommandArgument;
pub(crate) use wrappers::env_variables;

use crate::classifier::{self, CommandEffects};
use crate::command_tree::RedirectionKind;
use crate::reader::read_commands;
use line_walk::LineWalk;

/// Builtins that change nothing but the state of the shell, or only print.
const INERT: [&str; 21] = [
    ":", "[", "break", "cd", "continue", "declare", "echo", "exit", "export", "false", "local",
    "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "true", "wait",
];

/// The commands of a line, and what they do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineReport {
    /// The commands, in the order of the line; commands in substitutions come first.
    pub uses: Vec<CommandUse>,
}

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandUse {
    /// The program and its arguments; empty for assignments and redirections alone.
    pub words: Vec<CommandArgument>,
    /// The variables that are assigned in front of it, with their values where they are known.
    pub assignments: Vec<(String, Option<String>)>,
    pub redirections: Vec<RedirectionUse>,
    /// The commands in front of it in its pipeline, as indexes into the list.
    pub piped_from: Vec<usize>,
    /// The folders it may run in, relative to where the line starts; `None` if they are unknown.
    pub folders: Option<Vec<String>>,
    /// Whether it certainly calls a function of the line, whose commands are in the list too.
    pub calls_function: bool,
    /// Whether it only runs another command, which is in the list too: `timeout`, `env`.
    pub is_wrapper: bool,
    /// Why it is unknown what it runs, if it is.
    pub problem: Option<String>,
    /// What it does.
    pub effects: CommandEffects,
    /// Why it has these effects; empty if it only reads.
    pub reason: String,
}

/// A redirection to or from a file or descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectionUse {
    /// The descriptor that it changes; `None` if that is only known when the line runs.
    pub descriptor: Option<u32>,
    /// What it does.
    pub kind: RedirectionKind,
    pub target: CommandArgument,
}

/// Reads a command line. A line that cannot be read is one command with a problem.
pub fn read_line(text: &str) -> LineReport {
    // Functions may be called before their definition is walked, so classes are decided at the end.
    let mut walk = LineWalk::default();
    match read_commands(text) {
        Ok(list) => walk.list(&list),
        Err(error) => walk.problem(format!("the command line cannot be read: {error}")),
    }
    let mut uses = walk.finish();
    for one in &mut uses {
        let (effects, reason) = classifier::classify(one);
        one.effects = effects;
        one.reason = reason;
    }
    LineReport { uses }
}

/// Why a shell that follows POSIX, such as dash, may run something else than bash, by whose grammar
/// lines are read; `None` if it certainly does not.
pub fn posix_difference(text: &str) -> Option<String> {
    let mut walk = LineWalk::in_posix_shell();
    walk.note_posix_form(text);
    if let Ok(list) = read_commands(text) {
        walk.list(&list);
    }
    walk.into_posix_difference()
}

impl LineReport {
    /// What the whole line does.
    pub fn effects(&self) -> CommandEffects {
        self.uses.iter().fold(CommandEffects::READ_ONLY, |all, one| all | one.effects)
    }

    /// Why the line has its effects: the reasons of its commands, each once.
    pub fn reasons(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for one in &self.uses {
            if !one.reason.is_empty() && !all.contains(&one.reason.as_str()) {
                all.push(&one.reason);
            }
        }
        all
    }
}

impl CommandUse {
    /// The name of the program, if it is known: without the folder of system programs.
    pub fn program(&self) -> Option<&str> {
        // A program in a home folder may have any name, such as `~/ls`.
        let text = self.words.first().filter(|word| !word.has_tilde)?.text.as_deref()?;
        let system = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];
        let name = system.iter().find_map(|folder| text.strip_prefix(folder));
        Some(name.filter(|name| !name.contains('/')).unwrap_or(text))
    }

    /// The arguments after the program.
    pub fn arguments(&self) -> &[CommandArgument] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether it has no effect of its own and belongs to the commands around it: `cd`, `x=1`,
    /// `timeout 5`.
    pub fn is_inert(&self) -> bool {
        let builtin = || {
            let program = self.words.first().and_then(|word| word.text.as_deref());
            program.is_some_and(|program| INERT.contains(&program))
        };
        let mut redirections = self.redirections.iter();
        self.effects == CommandEffects::READ_ONLY
            && (self.words.is_empty() || self.is_wrapper || builtin())
            // Reading a file is an effect that rules on paths must see.
            && redirections.all(|redirection| redirection.kind != RedirectionKind::Read)
    }

    /// A command of which nothing is known.
    pub fn with_problem(problem: String) -> Self {
        let effects = CommandEffects::UNKNOWN;
        Self { reason: problem.clone(), problem: Some(problem), effects, ..Self::default() }
    }

    /// The program and its subcommand. Other arguments may be secret.
    pub fn short_text(&self) -> String {
        let is_plain = |word: &&CommandArgument| {
            let text = word.text.as_deref().unwrap_or_default();
            !text.is_empty()
                && text.len() <= 20
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        let mut words: Vec<String> =
            self.words.iter().take(1).map(CommandArgument::shown).collect();
        words.extend(self.words.get(1).filter(is_plain).map(CommandArgument::shown));
        if self.words.len() > words.len() {
            words.push("…".to_owned());
        }
        words.join(" ")
    }

    /// The command as text, with `…` for unknown parts.
    pub fn text(&self) -> String {
        let words: Vec<String> = self.words.iter().map(CommandArgument::shown).collect();
        words.join(" ")
    }
}

impl RedirectionUse {
    /// Whether it writes a file that stays.
    pub fn writes_file(&self) -> bool {
        self.kind == RedirectionKind::Write && self.names_file()
    }

    /// Whether it reads or writes a file, and not a descriptor, a text or a device.
    pub fn names_file(&self) -> bool {
        let is_file = matches!(self.kind, RedirectionKind::Read | RedirectionKind::Write);
        is_file
            && !self.target.is_pipe
            && !self.target.text.as_deref().is_some_and(classifier::is_device)
    }
}

#[cfg(test)]
mod tests;
