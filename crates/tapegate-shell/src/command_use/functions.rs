//! Which commands of a line call a function of the line.
//!
//! A call of a function counts as harmless, since the commands in its body are in the list. So it
//! must be certain that a name leads to the function: `(rm() { ls; }); rm x` and
//! `false && rm() { ls; }; rm x` run the program. A definition counts for what follows it in the
//! same list, and for everything inside of that, unless something before it can make bash skip it:
//! after a failed expansion, bash drops the rest of the text line, and goes on with the next one.

use std::collections::BTreeSet;
use std::ops::Range;

use super::CommandUse;
use crate::command_tree::{
    CommandList, CommandNode, CompoundKind, PipelineEnd, ShellWord, SimpleCommand, WordPart,
};

/// Builtins that some shells find before a function of the same name.
const SPECIAL_BUILTINS: [&str; 15] = [
    ".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
    "shift", "source", "trap", "unset",
];
/// Builtins that can fail in a way that drops the rest of the text line.
const MAY_DROP: [&str; 9] =
    ["eval", "trap", "declare", "typeset", "local", "export", "readonly", "source", "."];

/// The maximum number of functions; a line with more is not read.
const FUNCTIONS_MAX: usize = 200;

/// The functions of a line.
#[derive(Debug, Default)]
pub(super) struct FunctionTable {
    /// All functions, with the commands in their bodies.
    bodies: Vec<(String, Range<usize>)>,
    scope: FunctionScope,
    /// Names that are unset somewhere.
    removed: BTreeSet<String>,
}

/// What holds for one list of commands.
#[derive(Debug, Clone, Default)]
pub(super) struct FunctionScope {
    /// The functions that exist for certain.
    defined: BTreeSet<String>,
    /// Whether a command before may have dropped what follows.
    may_have_dropped: bool,
}

impl FunctionTable {
    /// Begins a list that may not run, or runs elsewhere. Returns what [`Self::leave`] needs.
    pub(super) fn enter(&mut self) -> FunctionScope {
        let outer = self.scope.clone();
        self.scope.may_have_dropped = false;
        outer
    }

    /// Ends a list.
    pub(super) fn leave(&mut self, outer: FunctionScope) {
        self.scope = outer;
    }

    /// Forgets all functions: the current list runs in another shell.
    pub(super) fn forget(&mut self) {
        self.scope = FunctionScope::default();
    }

    /// Adds a function.
    pub(super) fn define(&mut self, name: &str, body: Range<usize>) {
        self.bodies.push((name.to_owned(), body));
        if !self.scope.may_have_dropped && !SPECIAL_BUILTINS.contains(&name) {
            self.scope.defined.insert(name.to_owned());
        }
    }

    /// Whether there are more functions than a line may have.
    pub(super) fn are_too_many(&self) -> bool {
        self.bodies.len() > FUNCTIONS_MAX
    }

    /// Whether a command certainly calls a function.
    pub(super) fn is_call(&self, one: &CommandUse) -> bool {
        let program = one.words.first().and_then(|word| word.text.as_deref());
        program.is_some_and(|program| self.scope.defined.contains(program))
    }

    /// Notes the names that a command removes.
    pub(super) fn note_unset(&mut self, one: &CommandUse) {
        if one.program() == Some("unset") {
            let names = one.arguments().iter().filter_map(|word| word.text.clone());
            self.removed.extend(names);
        }
    }

    /// Notes a command that may make bash drop what follows it on its text line.
    pub(super) fn note_end(&mut self, command: &CommandNode) {
        self.scope.may_have_dropped |= match command {
            CommandNode::Simple(simple) => !self.runs_on(simple),
            CommandNode::Compound(compound) => !matches!(compound.kind, CompoundKind::Function(..)),
        };
    }

    /// Whether what follows a command certainly runs, unless the shell ends.
    fn runs_on(&self, command: &SimpleCommand) -> bool {
        let program = command.words.first().and_then(ShellWord::literal);
        let is_plain = program.is_none_or(|program| {
            !MAY_DROP.contains(&program.as_str())
                && !self.bodies.iter().any(|(name, _)| *name == program)
        });
        let assigned = &command.assignments;
        let assigns_plainly = assigned.iter().all(|one| one.subscript.is_none() && !one.is_array);
        let values = assigned.iter().flat_map(|one| &one.values);
        let targets = command.redirections.iter().map(|one| &one.target);
        is_plain
            && assigns_plainly
            && command.words.iter().chain(values).chain(targets).all(cannot_fail)
    }

    /// Whether a function may call itself, as `:(){ :|:& };:` does. One that only calls functions
    /// from earlier in the line cannot.
    pub(super) fn may_recurse(&self, uses: &[CommandUse]) -> bool {
        self.bodies.iter().enumerate().any(|(index, (_, body))| {
            let calls = uses.get(body.clone()).unwrap_or_default();
            calls
                .iter()
                .filter_map(|one| one.words.first()?.text.as_deref())
                .any(|called| self.bodies[index..].iter().any(|(name, _)| name == called))
        })
    }

    /// Corrects calls of functions that are unset somewhere.
    pub(super) fn correct(&self, uses: &mut [CommandUse]) {
        for one in uses.iter_mut().filter(|one| one.calls_function) {
            let program = one.words.first().and_then(|word| word.text.as_ref());
            one.calls_function = program.is_some_and(|program| !self.removed.contains(program));
        }
    }
}

/// Whether the expansions of a word cannot fail.
fn cannot_fail(word: &ShellWord) -> bool {
    word.parts.iter().all(|part| match part {
        WordPart::Literal { .. }
        | WordPart::Tilde(_)
        | WordPart::Wildcard(_)
        | WordPart::Braces(_)
        | WordPart::Commands { .. } => true,
        WordPart::Parameter(one) => {
            one.words.is_empty() && one.arithmetic.is_empty() && one.runs_value.is_none()
        }
        WordPart::Process(_) | WordPart::Arithmetic(_) | WordPart::Array(_) => false,
    })
}

/// For each pipeline of a list, whether it may not run, or runs in a shell of its own.
pub(super) fn optional_pipelines(list: &CommandList) -> Vec<bool> {
    let is_chained = |end: PipelineEnd| matches!(end, PipelineEnd::And | PipelineEnd::Or);
    let ends: Vec<PipelineEnd> = list.pipelines.iter().map(|pipeline| pipeline.end).collect();
    let mut all = vec![false; ends.len()];
    // From the end, since a `&` belongs to the whole chain in front of it.
    let mut in_background = false;
    for (index, end) in ends.iter().enumerate().rev() {
        if !is_chained(*end) {
            in_background = *end == PipelineEnd::Background;
        }
        let after_other = index.checked_sub(1).is_some_and(|before| is_chained(ends[before]));
        all[index] = after_other || in_background;
    }
    all
}
