//! Tests of the commands in a call: what a shell tool is asked to run.
//!
//! The command line in an argument is read by the grammar of the shell, and each of its commands is
//! decided about on its own; the strictest decision is that of the call. A test answers in three
//! ways: it holds, it may hold, since a part of the command is only known when it runs, or it does
//! not. A rule that permits needs the first. A rule that stops takes the first as it is written and
//! turns the second into a question to a person.

mod command_lines;
mod path_parts;
mod paths;
/// Policies from recorded commands, and recorded commands under a policy.
pub mod recorded;
mod run_pattern;
mod unseen_paths;

use std::collections::BTreeSet;
use std::fmt::{self, Display};

use tapegate_core::lenient::folder::FolderPath;
use tapegate_shell::classifier::{CommandClass, is_harmless_variable};
use tapegate_shell::command_tree::RedirectionKind;
use tapegate_shell::command_use::CommandUse;

pub(crate) use command_lines::{CommandSubject, command_subjects};
pub use run_pattern::RunPattern;

use crate::glob::Glob;
use crate::predicate::ArgumentTexts;
use paths::UsePaths;

/// Whether a test holds for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchCertainty {
    /// It does not hold.
    No,
    /// It depends on values that are only known when the command runs.
    Maybe,
    /// It holds.
    Yes,
}

/// A test of one command.
#[derive(Debug)]
pub struct CommandTest {
    /// Where the command line is in the arguments.
    pub argument: ArgumentTexts,
    /// Where the folder is in which it runs.
    pub folder_argument: ArgumentTexts,
    /// The folder in which it runs if the arguments name none.
    pub folder: Option<String>,
    /// Patterns of the program and its arguments; empty for any.
    pub run: Vec<RunPattern>,
    /// Whole command lines, compared as text; empty for any.
    pub lines: BTreeSet<String>,
    /// What the command may do; empty for anything.
    pub classes: Vec<CommandClass>,
    /// The folders that all its paths are in; empty for anywhere.
    pub under: Vec<FolderPath>,
    /// The files that its redirections write; empty for none, or those in `under`.
    pub redirects_to: Vec<Glob>,
    /// Patterns of the commands in front of it in its pipeline; empty for any.
    pub piped_from: Vec<RunPattern>,
}

/// The argument of the bash tool that names the folder of a command line.
pub(crate) const FOLDER_ARGUMENT: &str = "working_directory";

impl CommandTest {
    /// Sets the folder of lines that name none. A test that looks for it in another argument is
    /// about another tool.
    pub(crate) fn default_folder(&mut self, folder: &str) {
        if self.folder.is_none() && self.folder_argument.path_text() == FOLDER_ARGUMENT {
            self.folder = Some(folder.to_owned());
        }
    }

    /// Whether the test holds for a command in a rule that permits it.
    pub(crate) fn must_hold(&self, subject: &CommandSubject, arguments: &[u8]) -> bool {
        let one = subject.command();
        if !self.is_about(subject) || !subject.is_exact() || one.problem.is_some() {
            return false;
        }
        // A command without effects that only belongs to the grammar, such as `cd` and `timeout`,
        // is permitted with the commands around it.
        if one.is_inert() {
            return true;
        }
        // Whole lines and patterns of words are alternatives. A line that is permitted as text is
        // permitted with its redirections and assignments.
        let by_line = self.lines.contains(subject.line());
        if by_line && self.has_no_limits() {
            return true;
        }
        let any_words = self.run.is_empty() && self.lines.is_empty();
        let by_words = by_line || any_words || self.run.iter().any(|run| run.must_match(one));
        let by_class = self.classes.is_empty() || one.effects.are_within(&self.classes);
        let by_pipe = self.piped_from.is_empty()
            || subject
                .piped_from()
                .any(|first| self.piped_from.iter().any(|run| run.must_match(first)));
        if !(by_words && by_class && by_pipe) {
            return false;
        }
        // The table of a class covers assignments; a pattern of words says nothing about them.
        let assigns_plainly = || one.assignments.iter().all(|(name, _)| is_harmless_variable(name));
        if self.classes.is_empty() && !assigns_plainly() {
            return false;
        }
        let paths = self.paths(subject, arguments);
        let in_folders = self.under.is_empty() || paths.must_be_in(&self.under);
        in_folders && self.permits_redirections(one, &paths)
    }

    /// Whether there is no test but those of lines and words.
    fn has_no_limits(&self) -> bool {
        self.classes.is_empty()
            && self.under.is_empty()
            && self.redirects_to.is_empty()
            && self.piped_from.is_empty()
    }

    fn permits_redirections(&self, one: &CommandUse, paths: &UsePaths<'_>) -> bool {
        let mut written = one.redirections.iter().filter(|redirection| redirection.writes_file());
        if !self.redirects_to.is_empty() {
            return written
                .all(|redirection| paths.must_match(&redirection.target, &self.redirects_to));
        }
        // `under` has covered them, and so has a class that includes writing.
        let covered = !self.under.is_empty() || self.classes.contains(&CommandClass::Writes);
        covered || written.next().is_none()
    }

    /// Whether the test holds for a command in a rule that stops it.
    pub(crate) fn may_hold(&self, subject: &CommandSubject, arguments: &[u8]) -> MatchCertainty {
        let one = subject.command();
        if !self.is_about(subject) {
            return MatchCertainty::No;
        }
        if one.problem.is_some() {
            let names_it = self.classes.contains(&CommandClass::Unknown);
            let only_class = self.run.is_empty()
                && self.lines.is_empty()
                && self.under.is_empty()
                && self.redirects_to.is_empty()
                && self.piped_from.is_empty();
            return if names_it && only_class {
                MatchCertainty::Yes
            } else {
                MatchCertainty::Maybe
            };
        }
        let mut certainty = MatchCertainty::Yes;
        let by_line = self.lines.contains(subject.line());
        let any_words = self.run.is_empty() && self.lines.is_empty();
        if !by_line && !any_words {
            certainty = certainty.min(best(self.run.iter().map(|run| run.may_match(&one.words))));
        }
        if !self.classes.is_empty() {
            certainty = certainty.min(self.class_certainty(one));
        }
        if !self.piped_from.is_empty() {
            let first = subject.piped_from().flat_map(|first| {
                let unknown = first.problem.as_ref().map(|_| MatchCertainty::Maybe);
                let found = self.piped_from.iter().map(|run| run.may_match(&first.words));
                unknown.into_iter().chain(found)
            });
            certainty = certainty.min(best(first));
        }
        let paths = self.paths(subject, arguments);
        if !self.under.is_empty() {
            certainty = certainty.min(paths.may_be_in(&self.under));
        }
        if !self.redirects_to.is_empty() {
            let written = one
                .redirections
                .iter()
                .filter(|redirection| redirection.kind == RedirectionKind::Write);
            let found =
                written.map(|redirection| paths.may_match(&redirection.target, &self.redirects_to));
            certainty = certainty.min(best(found));
        }
        certainty
    }

    /// A command that runs others, or that the tables do not know, may do anything.
    fn class_certainty(&self, one: &CommandUse) -> MatchCertainty {
        if one.effects.include_any(&self.classes) {
            return MatchCertainty::Yes;
        }
        let is_open = one.effects.class() >= CommandClass::RunsCommands;
        if is_open { MatchCertainty::Maybe } else { MatchCertainty::No }
    }

    /// Whether the command comes from the argument that the test is about.
    fn is_about(&self, subject: &CommandSubject) -> bool {
        self.argument.path_text() == subject.argument()
    }

    fn paths<'s>(&self, subject: &'s CommandSubject, arguments: &[u8]) -> UsePaths<'s> {
        let start = self.folder_argument.only_text(arguments).map_or_else(
            |is_missing| if is_missing { self.folder.clone() } else { None },
            |start| match (start.starts_with('/'), &self.folder) {
                (true, _) => Some(start),
                (false, Some(folder)) => Some(format!("{folder}/{start}")),
                (false, None) => None,
            },
        );
        UsePaths::new(subject.command(), start)
    }

    /// What commands the test permits, for a caller whose command was stopped.
    pub(crate) fn permitted_texts(&self) -> Vec<String> {
        let mut limits = String::new();
        if !self.classes.is_empty() {
            limits += &format!(" if {}", class_names(&self.classes));
        }
        if !self.under.is_empty() {
            limits += &format!(" under {}", folder_names(&self.under));
        }
        let lines = self.lines.iter().map(|line| format!("`{line}`"));
        let runs = self.run.iter().map(|run| format!("`{}`{limits}", run.text()));
        let mut all: Vec<String> = lines.chain(runs).collect();
        if all.is_empty() {
            all.push(format!("commands{limits}"));
        }
        all
    }
}

fn best(all: impl Iterator<Item = MatchCertainty>) -> MatchCertainty {
    all.max().unwrap_or(MatchCertainty::No)
}

fn class_names(classes: &[CommandClass]) -> String {
    let names: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
    names.join(" or ")
}

fn folder_names(folders: &[FolderPath]) -> String {
    let names: Vec<String> = folders.iter().map(|folder| format!("`{}`", folder.text())).collect();
    names.join(" or ")
}

impl CommandTest {
    /// A message for a command that fails the test.
    pub(crate) fn mismatch_text(&self) -> String {
        let parts = self.parts();
        match parts.as_slice() {
            [part] => format!("the command is not {part}"),
            parts => format!("the command is not all of: {}", parts.join("; ")),
        }
    }

    /// What a command must be, each part as text that follows "the command is".
    fn parts(&self) -> Vec<String> {
        let runs = |runs: &[RunPattern]| {
            let texts: Vec<String> = runs.iter().map(|run| format!("`{}`", run.text())).collect();
            texts.join(" or ")
        };
        let mut parts = Vec::new();
        // Whole lines and patterns of words are alternatives.
        let lines = self.lines.iter().map(|line| format!("`{line}`"));
        let named: Vec<String> =
            lines.chain((!self.run.is_empty()).then(|| runs(&self.run))).collect();
        if !named.is_empty() {
            parts.push(named.join(" or "));
        }
        if !self.classes.is_empty() {
            parts.push(class_names(&self.classes));
        }
        if !self.under.is_empty() {
            parts.push(format!("under {}", folder_names(&self.under)));
        }
        if !self.redirects_to.is_empty() {
            let globs: Vec<String> =
                self.redirects_to.iter().map(|glob| format!("`{}`", glob.text())).collect();
            parts.push(format!("redirected to {}", globs.join(" or ")));
        }
        if !self.piped_from.is_empty() {
            parts.push(format!("piped from {}", runs(&self.piped_from)));
        }
        parts
    }
}

impl Display for CommandTest {
    /// The test, for people: "the command is `git *` and read-only".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the command is {}", self.parts().join(" and "))
    }
}

#[cfg(test)]
mod tests;
