//! Walks the tree of a line and lists its commands.

use super::evaluation::EvaluationCheck;
use super::functions::{FunctionTable, optional_pipelines};
use super::replay::ReplayTable;
use super::wrappers::{InnerCommand, LinePlace, WrapperUse, descend};
use super::{CommandArgument, CommandUse, RedirectionUse, posix};
use crate::command_tree::{
    ArithmeticText, CommandList, CommandNode, CompoundCommand, CompoundKind, NamedDescriptor,
    ParameterExpansion, ShellRedirection, ShellWord, SimpleCommand, VariableAssignment, WordPart,
};
use crate::reader::read_commands;

/// The maximum number of commands; a line with more is not read.
const USES_MAX: usize = 2000;
/// The maximum nesting of lines in lines, as in `bash -c "bash -c …"`.
const LINES_DEPTH_MAX: usize = 8;
/// The maximum number of folders that commands may run in.
const FOLDERS_MAX: usize = 16;

/// The commands that were found so far.
pub(super) struct LineWalk {
    uses: Vec<CommandUse>,
    functions: FunctionTable,
    piped_from: Vec<usize>,
    folders: Option<Vec<String>>,
    /// Whether what is walked may run more than once.
    repeats: bool,
    depth: usize,
    evaluation: EvaluationCheck,
    replay: ReplayTable,
    /// Whether the shell that reads the current line follows POSIX and is not bash.
    is_posix: bool,
    /// The first thing that such a shell may read differently.
    posix_difference: Option<String>,
}

impl Default for LineWalk {
    fn default() -> Self {
        Self {
            uses: Vec::new(),
            functions: FunctionTable::default(),
            piped_from: Vec::new(),
            // The empty name is the folder in which the line starts.
            folders: Some(vec![String::new()]),
            repeats: false,
            depth: 0,
            evaluation: EvaluationCheck::default(),
            replay: ReplayTable::default(),
            is_posix: false,
            posix_difference: None,
        }
    }
}

impl LineWalk {
    /// The commands of the line.
    pub(super) fn finish(mut self) -> Vec<CommandUse> {
        if let Some(problem) = self.evaluation.problem() {
            self.problem(problem);
        }
        if self.functions.may_recurse(&self.uses) {
            self.problem("a function may call itself".to_owned());
        }
        // Counted as a problem, so that a rule never passes a line of which it saw only a part.
        if self.uses.len() > USES_MAX || self.functions.are_too_many() {
            self.uses.truncate(USES_MAX);
            self.problem("there are too many commands or functions in the line".to_owned());
        }
        self.functions.correct(&mut self.uses);
        self.replay.correct(&mut self.uses);
        self.uses
    }

    /// A walk of a line that another shell than bash runs.
    pub(super) fn in_posix_shell() -> Self {
        Self { is_posix: true, ..Self::default() }
    }

    /// What that shell may read differently.
    pub(super) fn into_posix_difference(self) -> Option<String> {
        self.posix_difference
    }

    /// Looks for forms that another shell reads differently, if it is one that reads this text.
    pub(super) fn note_posix_form(&mut self, text: &str) {
        if self.is_posix {
            self.note_difference(posix::different_form(text));
        }
    }

    fn note_difference(&mut self, difference: Option<String>) {
        let Some(difference) = difference else { return };
        self.problem(format!("another shell than bash may read {difference} differently"));
        self.posix_difference.get_or_insert(difference);
    }

    /// Adds something that may run anything.
    pub(super) fn problem(&mut self, problem: String) {
        self.add(CommandUse { problem: Some(problem), ..CommandUse::default() });
    }

    fn add(&mut self, mut one: CommandUse) {
        one.piped_from = self.piped_from.clone();
        one.folders = self.folders.clone();
        // One more than the limit, so that the end sees that there were too many.
        if self.uses.len() <= USES_MAX {
            self.uses.push(one);
        }
    }

    /// Walks the commands of a line or of a part of it.
    pub(super) fn list(&mut self, list: &CommandList) {
        list.heredocs.iter().for_each(|body| self.word(body));
        for (pipeline, is_optional) in list.pipelines.iter().zip(optional_pipelines(list)) {
            // The end makes a problem of it.
            if self.uses.len() > USES_MAX || self.functions.are_too_many() {
                return;
            }
            let before = self.piped_from.len();
            let is_own_shell = pipeline.stages.len() > 1 || is_optional;
            for stage in &pipeline.stages {
                let first = self.uses.len();
                if is_own_shell {
                    self.scoped(|walk| walk.command(stage));
                } else {
                    self.command(stage);
                }
                self.functions.note_end(stage);
                // Later stages read the output of all commands of this one, also of those in
                // substitutions.
                self.piped_from.extend(first..self.uses.len());
            }
            self.piped_from.truncate(before);
        }
    }

    /// Walks something whose functions mean nothing for what follows.
    fn scoped(&mut self, walk: impl FnOnce(&mut Self)) {
        let outer = self.functions.enter();
        walk(self);
        self.functions.leave(outer);
    }

    fn scoped_list(&mut self, list: &CommandList) {
        self.scoped(|walk| walk.list(list));
    }

    fn command(&mut self, command: &CommandNode) {
        match command {
            CommandNode::Simple(simple) => self.simple(simple),
            CommandNode::Compound(compound) => self.compound(compound),
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        simple.assignments.iter().for_each(|assignment| self.assignment(assignment));
        // Substitutions run before the command whose words they make.
        simple.words.iter().for_each(|word| self.word(word));
        let redirections = self.redirections(&simple.redirections);
        let assigned = |one: &VariableAssignment| {
            let value = match one.values.as_slice() {
                [value] => CommandArgument::of(value).text,
                _ => None,
            };
            (one.name.clone(), value)
        };
        let one = CommandUse {
            words: simple.words.iter().map(CommandArgument::of).collect(),
            assignments: simple.assignments.iter().map(assigned).collect(),
            redirections,
            ..CommandUse::default()
        };
        let calls_function = self.functions.is_call(&one);
        self.command_use(CommandUse { calls_function, ..one });
    }

    /// Adds a command, and what it runs in turn.
    fn command_use(&mut self, mut one: CommandUse) {
        if one.words.first().is_some_and(|program| program.text.is_none()) {
            one.problem = Some("the program is only known when the line runs".to_owned());
        }
        self.evaluation.builtin(&one);
        self.functions.note_unset(&one);
        self.change_folder(&one);
        if self.is_posix {
            self.note_difference(posix::different_command(&one));
        }
        let descent = descend(&one);
        one.is_wrapper = descent.as_ref().is_some_and(|descent| descent.is_wrapper);
        // If a redirection fails, nothing runs, and nothing is defined.
        let may_not_run = !one.redirections.is_empty();
        self.add(one);
        let Some(WrapperUse { inner, keeps_folder, .. }) = descent else { return };
        let folders = self.folders.clone();
        // `find -execdir` and `env -C` run in folders that are not known here.
        if !keeps_folder {
            self.folders = None;
        }
        for inner in inner {
            match may_not_run {
                true => self.scoped(|walk| walk.inner(inner)),
                false => self.inner(inner),
            }
        }
        if !keeps_folder {
            self.folders = folders;
        }
    }

    fn inner(&mut self, inner: InnerCommand) {
        // Each level reads its text again, so depth multiplies the work.
        if self.depth == LINES_DEPTH_MAX {
            return self.problem("commands are nested too deeply".to_owned());
        }
        self.depth += 1;
        match inner {
            InnerCommand::Words(words) => {
                // A program that another one starts is neither a function nor a builtin.
                self.scoped(|walk| {
                    walk.functions.forget();
                    walk.command_use(CommandUse { words, ..CommandUse::default() });
                });
            }
            InnerCommand::Line { text, place } => self.inner_line(&text, place),
            InnerCommand::Unknown(problem) => self.problem(problem),
        }
        self.depth -= 1;
    }

    fn inner_line(&mut self, text: &str, place: LinePlace) {
        let outer = self.is_posix;
        match place {
            LinePlace::NewShell => self.is_posix = false,
            LinePlace::NewPosixShell => self.is_posix = true,
            LinePlace::Here | LinePlace::Later => {}
        }
        self.note_posix_form(text);
        match read_commands(text) {
            Ok(list) => self.inner_list(&list, place),
            Err(error) => self.problem(format!("an inner command line cannot be read: {error}")),
        }
        self.is_posix = outer;
    }

    fn inner_list(&mut self, list: &CommandList, place: LinePlace) {
        match place {
            LinePlace::Here => self.list(list),
            LinePlace::Later => {
                let first = self.uses.len();
                self.repeated(|walk| walk.scoped_list(list));
                self.replay.add_trap(first..self.uses.len());
            }
            LinePlace::NewShell | LinePlace::NewPosixShell => self.scoped(|walk| {
                walk.functions.forget();
                walk.list(list);
            }),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        let redirections = self.redirections(&compound.redirections);
        if !redirections.is_empty() {
            self.add(CommandUse { redirections, ..CommandUse::default() });
        }
        match &compound.kind {
            // If a redirection fails, nothing of the group runs.
            CompoundKind::Group(list) if compound.redirections.is_empty() => self.list(list),
            CompoundKind::Group(list) => self.scoped_list(list),
            CompoundKind::Subshell(list) => self.scoped_list(list),
            CompoundKind::If(lists) => lists.iter().for_each(|list| self.scoped_list(list)),
            CompoundKind::While(condition, body) => self.repeated(|walk| {
                walk.scoped_list(condition);
                walk.scoped_list(body);
            }),
            CompoundKind::For { variable, words, body } => {
                for word in words.iter().flatten() {
                    self.word(word);
                    self.evaluation.value(word);
                }
                // Without words, the loop is over the positional parameters.
                if words.is_none() {
                    self.evaluation.unknown_value();
                }
                let assignments = vec![(variable.clone(), None)];
                self.add(CommandUse { assignments, ..CommandUse::default() });
                self.repeated(|walk| walk.scoped_list(body));
            }
            CompoundKind::ArithmeticFor(arithmetic, body) => {
                self.arithmetic(arithmetic);
                self.repeated(|walk| walk.scoped_list(body));
            }
            CompoundKind::Case(subject, branches) => {
                self.word(subject);
                for (patterns, list) in branches {
                    patterns.iter().for_each(|pattern| self.word(pattern));
                    self.scoped_list(list);
                }
            }
            CompoundKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            CompoundKind::Test(words) => {
                words.iter().for_each(|word| self.word(word));
                if let Some(problem) = self.evaluation.test(words) {
                    self.problem(problem);
                }
            }
            CompoundKind::Function(name, body) => {
                let first = self.uses.len();
                self.repeated(|walk| walk.scoped(|walk| walk.command(body)));
                self.functions.define(name, first..self.uses.len());
                self.replay.add_function(first..self.uses.len());
            }
        }
    }

    /// Walks something that may run more than once. If it changes the folder, its commands may run
    /// in any folder.
    fn repeated(&mut self, walk: impl FnOnce(&mut Self)) {
        let (first, repeats) = (self.uses.len(), self.repeats);
        let before = self.folders.clone();
        self.repeats = true;
        walk(self);
        self.repeats = repeats;
        if self.folders != before {
            // In the second round, even the first command runs in the folder that the last one
            // chose.
            self.uses.iter_mut().skip(first).for_each(|one| one.folders = None);
        }
    }

    fn change_folder(&mut self, one: &CommandUse) {
        let program = one.words.first().and_then(|word| word.text.as_deref());
        let changes = matches!(program, Some("cd" | "pushd" | "popd" | "." | "source"));
        if !changes {
            return;
        }
        self.replay.note_change(self.uses.len());
        // The stack of folders is not followed, and files are not read.
        if program != Some("cd") {
            self.folders = None;
            return;
        }
        let operands: Vec<&CommandArgument> = one
            .arguments()
            .iter()
            .filter(|word| !["--", "-P", "-L"].iter().any(|flag| word.is(flag)))
            .collect();
        let target = match operands.as_slice() {
            [] => Some("~"),
            [target] => target.text.as_deref().filter(|text| !text.starts_with('-')),
            _ => None,
        };
        let (Some(target), Some(folders), false) = (target, &mut self.folders, self.repeats) else {
            self.folders = None;
            return;
        };
        // `cd` may fail, so the old folders stay possible.
        for index in 0..folders.len() {
            let joined = match folders[index].as_str() {
                folder if !folder.is_empty() && !target.starts_with(['/', '~']) => {
                    format!("{folder}/{target}")
                }
                _ => target.to_owned(),
            };
            if !folders.contains(&joined) {
                folders.push(joined);
            }
        }
        if folders.len() > FOLDERS_MAX {
            self.folders = None;
        }
    }

    fn redirections(&mut self, redirections: &[ShellRedirection]) -> Vec<RedirectionUse> {
        redirections.iter().for_each(|redirection| self.word(&redirection.target));
        for redirection in redirections {
            if let NamedDescriptor::Variable(name) = &redirection.descriptor {
                let assignments = vec![(name.clone(), None)];
                self.add(CommandUse { assignments, ..CommandUse::default() });
            }
        }
        let read = |one: &ShellRedirection| RedirectionUse {
            descriptor: match &one.descriptor {
                NamedDescriptor::Number(number) => number.parse().ok(),
                NamedDescriptor::Variable(_) => None,
            },
            kind: one.kind,
            target: CommandArgument::of(&one.target),
        };
        redirections.iter().map(read).collect()
    }

    fn assignment(&mut self, assignment: &VariableAssignment) {
        if let Some(subscript) = &assignment.subscript {
            self.arithmetic(subscript);
        }
        if assignment.is_array || assignment.subscript.is_some() {
            self.evaluation.array();
        }
        for value in &assignment.values {
            self.word(value);
            self.evaluation.value(value);
        }
    }

    fn word(&mut self, word: &ShellWord) {
        word.parts.iter().for_each(|part| self.part(part));
    }

    fn part(&mut self, part: &WordPart) {
        match part {
            WordPart::Literal { .. }
            | WordPart::Tilde(_)
            | WordPart::Wildcard(_)
            | WordPart::Braces(_) => {}
            WordPart::Parameter(parameter) => self.parameter(parameter),
            WordPart::Commands { list, .. } | WordPart::Process(list) => self.scoped_list(list),
            WordPart::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            WordPart::Array(words) => words.iter().for_each(|word| self.word(word)),
        }
    }

    fn parameter(&mut self, parameter: &ParameterExpansion) {
        // `${x@P}` expands commands in the value of `x`.
        if let Some(problem) = parameter.runs_value {
            self.problem(problem.to_owned());
        }
        parameter.arithmetic.iter().for_each(|one| self.arithmetic(one));
        parameter.words.iter().for_each(|word| self.word(word));
        if parameter.assigns {
            parameter.words.iter().for_each(|word| self.evaluation.value(word));
            let assignments = vec![(parameter.name.clone(), None)];
            self.add(CommandUse { assignments, ..CommandUse::default() });
        }
    }

    fn arithmetic(&mut self, arithmetic: &ArithmeticText) {
        arithmetic.parts.iter().for_each(|part| self.part(part));
        if let Some(problem) = self.evaluation.arithmetic(arithmetic) {
            self.problem(problem);
        }
    }
}
