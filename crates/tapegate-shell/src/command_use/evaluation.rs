//! Whether arithmetic may run a value as code.
//!
//! Bash evaluates the value of a variable in arithmetic as an expression again, and runs the command
//! substitutions in its subscripts: after `x='a[$(reboot)]'`, `$((x))` runs `reboot`. So arithmetic
//! on names is harmless only in a line in which no variable gets a value that could hold one.

use super::{CommandArgument, CommandUse};
use crate::classifier::is_harmless_variable;
use crate::command_tree::{ArithmeticText, ShellWord, WordPart};
use crate::reader::is_name;

/// The operators of `[[` that evaluate their operands as arithmetic.
const ARITHMETIC_TESTS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Builtins that give variables values that are not in the line.
const VALUE_READERS: [&str; 5] = ["read", "mapfile", "readarray", "getopts", "select"];
/// Builtins that assign their arguments.
const DECLARATIONS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

/// What is known about the values and the arithmetic of a line.
#[derive(Debug, Default)]
pub(super) struct EvaluationCheck {
    /// Whether some arithmetic uses the value of a variable.
    uses_variables: bool,
    /// Whether some variable may have a value with a subscript or an assignment.
    has_unknown_value: bool,
    /// Whether some variable is made an array.
    has_array: bool,
    /// Whether a declaration has a value that may be `(…)`, which is evaluated for an array.
    declares_unknown: bool,
}

impl EvaluationCheck {
    /// The problem of the whole line, if there is one.
    pub(super) fn problem(&self) -> Option<String> {
        let problem = if self.uses_variables && self.has_unknown_value {
            "arithmetic on a variable whose value may be run as code"
        } else if self.has_array && self.declares_unknown {
            "a declaration may evaluate the elements of an array"
        } else {
            return None;
        };
        Some(problem.to_owned())
    }

    pub(super) fn array(&mut self) {
        self.has_array = true;
    }

    pub(super) fn unknown_value(&mut self) {
        self.has_unknown_value = true;
    }

    /// Notes the value that a variable gets.
    pub(super) fn value(&mut self, word: &ShellWord) {
        self.argument_value(&CommandArgument::of(word));
    }

    fn argument_value(&mut self, value: &CommandArgument) {
        let is_plain = value.text.as_deref().is_some_and(is_plain_value);
        self.has_unknown_value |= !is_plain && !value.never_option;
    }

    /// Notes the values that a builtin assigns.
    pub(super) fn builtin(&mut self, one: &CommandUse) {
        let Some(program) = one.program() else { return };
        if VALUE_READERS.contains(&program)
            || program == "printf"
                && one.arguments().iter().any(|word| word.prefix.starts_with("-v"))
        {
            self.has_unknown_value = true;
        }
        self.has_array |= matches!(program, "mapfile" | "readarray")
            || program == "read"
                && one
                    .arguments()
                    .iter()
                    .any(|word| word.may_be_option() && word.prefix.contains('a'));
        if DECLARATIONS.contains(&program) {
            one.arguments().iter().for_each(|word| self.declaration(word));
        }
    }

    fn declaration(&mut self, word: &CommandArgument) {
        let known = word.prefix.as_str();
        self.has_array |= known.starts_with('-') && known.contains(['a', 'A']);
        match known.split_once('=') {
            Some((_, value)) => {
                self.declares_unknown |=
                    value.starts_with('(') || value.is_empty() && word.text.is_none();
                let value = CommandArgument {
                    text: word.text.as_ref().map(|_| value.to_owned()),
                    ..word.clone()
                };
                self.argument_value(&value);
            }
            None => self.argument_value(word),
        }
    }

    /// Notes an expression; returns its own problem.
    pub(super) fn arithmetic(&mut self, arithmetic: &ArithmeticText) -> Option<String> {
        if assigns_other(arithmetic) {
            return Some("arithmetic assigns a variable that programs may read".to_owned());
        }
        for part in &arithmetic.parts {
            match part {
                WordPart::Literal { text, .. } if text.contains('[') => {
                    return Some("arithmetic on text with a subscript".to_owned());
                }
                WordPart::Literal { text, .. } => self.uses_variables |= has_name(text),
                WordPart::Parameter(parameter) if parameter.is_number() => {}
                // Positional parameters get their values from the caller.
                WordPart::Parameter(parameter)
                    if is_name(&parameter.name) && parameter.words.is_empty() =>
                {
                    self.uses_variables = true;
                }
                WordPart::Arithmetic(_) => {}
                _ => return Some("arithmetic on a value that may be run as code".to_owned()),
            }
        }
        // Names need no `$` in arithmetic.
        self.uses_variables |= has_name(&arithmetic.text);
        None
    }

    /// Notes the operands of `[[ … ]]`; returns its own problem.
    pub(super) fn test(&mut self, words: &[ShellWord]) -> Option<String> {
        for (index, word) in words.iter().enumerate() {
            let text = CommandArgument::of(word).text;
            let next = words.get(index + 1);
            if matches!(text.as_deref(), Some("-v" | "-R"))
                && next.is_some_and(|name| !name.literal().is_some_and(|name| is_name(&name)))
            {
                return Some("a test of a variable whose subscript may be run as code".to_owned());
            }
            if text.as_deref().is_some_and(|text| ARITHMETIC_TESTS.contains(&text)) {
                let before = index.checked_sub(1).and_then(|index| words.get(index));
                for operand in before.into_iter().chain(next) {
                    if let Some(problem) = self.operand(operand) {
                        return Some(problem);
                    }
                }
            }
        }
        None
    }

    fn operand(&mut self, operand: &ShellWord) -> Option<String> {
        self.arithmetic(&ArithmeticText { text: String::new(), parts: operand.parts.clone() })
    }
}

/// Whether an expression has the name of a variable.
fn has_name(text: &str) -> bool {
    names(text).next().is_some()
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(move |letter| !is_part(letter)).filter(|part| is_name(part))
}

/// Whether arithmetic on a value only reads it.
fn is_plain_value(text: &str) -> bool {
    !["[", "=", "++", "--"].iter().any(|sign| text.contains(sign))
}

/// Whether an expression may assign a variable that is not one of a script: `PATH=1`.
fn assigns_other(arithmetic: &ArithmeticText) -> bool {
    let mut text = arithmetic.text.clone();
    // Quotes may be in the middle of an operator.
    let mut has_quoted_operator = false;
    for part in &arithmetic.parts {
        if let WordPart::Literal { text: literal, .. } = part {
            has_quoted_operator |= literal.contains(['+', '-', '=']);
            text.push(' ');
            text.push_str(literal);
        }
    }
    let compared = ["==", "!="].iter().fold(text.clone(), |text, sign| text.replace(sign, " "));
    let assigns = compared.contains('=') && !only_compares(&compared);
    (assigns || has_quoted_operator || text.contains("++") || text.contains("--"))
        && names(&text).any(|name| !is_harmless_variable(name))
}

/// Whether every `=` belongs to `<=` or `>=`, and not to `<<=` or `>>=`.
fn only_compares(text: &str) -> bool {
    let letters: Vec<char> = text.chars().collect();
    letters.iter().enumerate().filter(|(_, letter)| **letter == '=').all(|(index, _)| {
        let before = |back: usize| index.checked_sub(back).and_then(|at| letters.get(at));
        matches!(before(1), Some('<' | '>')) && before(1) != before(2)
    })
}
