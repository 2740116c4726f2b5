//! What the builtins of bash do.

use super::variables::{assignment, is_harmless_variable};
use super::{CommandEffects, EffectFinding, READS, found};
use crate::command_use::{CommandArgument, CommandUse};
use crate::reader::is_name;

/// Builtins that change nothing outside of the shell, whatever their arguments.
const PLAIN: [&str; 19] = [
    ":", "break", "caller", "cd", "continue", "dirs", "echo", "exit", "false", "logout", "popd",
    "pushd", "pwd", "return", "shift", "suspend", "times", "true", "type",
];
/// Builtins that may change what later commands mean, or run something.
const UNKNOWN: [&str; 13] = [
    ".", "alias", "bind", "coproc", "enable", "fc", "let", "shopt", "source", "unalias",
    "complete", "compgen", "compopt",
];
/// Letters of `set` that only affect when the shell stops and what it prints.
const SET_LETTERS: &[u8] = b"euxo";
const SET_NAMES: [&str; 4] = ["errexit", "nounset", "pipefail", "xtrace"];

/// The effects of a builtin; `None` if it is none.
pub(super) fn classify(program: &str, one: &CommandUse) -> Option<EffectFinding> {
    let arguments = one.arguments();
    if PLAIN.contains(&program) {
        return Some(READS());
    }
    if UNKNOWN.contains(&program) {
        let reason = format!("`{program}` may change what later commands do");
        return Some(found(CommandEffects::UNKNOWN, reason));
    }
    let is_safe = match program {
        "printf" => is_plain_printf(arguments),
        // `jobs -x` runs a command.
        "jobs" => !may_have_letter(arguments, 'x'),
        "test" | "[" => is_plain_test(arguments),
        "set" => return Some(set(arguments)),
        "export" | "declare" | "typeset" | "local" | "readonly" => return Some(declare(arguments)),
        "read" | "mapfile" | "readarray" | "getopts" | "unset" => {
            return Some(variables(program, arguments));
        }
        // With arguments, it changes which program a name leads to.
        "hash" => arguments.is_empty(),
        "wait" | "umask" | "ulimit" => !may_have_letter(arguments, 'p'),
        // The action itself is in the list of commands.
        "trap" => !arguments.iter().any(|word| word.text.is_none()),
        "command" | "exec" | "eval" | "builtin" => {
            arguments.is_empty() || !one.words.iter().any(|word| word.text.is_none())
        }
        _ => return None,
    };
    if is_safe {
        return Some(READS());
    }
    let reason = format!("`{program}` has arguments that may run code in a subscript");
    Some(found(CommandEffects::UNKNOWN, reason))
}

/// Whether an argument may be an option with this letter.
fn may_have_letter(arguments: &[CommandArgument], letter: char) -> bool {
    arguments.iter().any(|argument| match &argument.text {
        Some(text) => text.starts_with('-') && text.contains(letter),
        None => argument.may_be_option(),
    })
}

/// Whether `printf` only prints, or assigns a variable of the script. `-v` takes a name with a
/// subscript, and `%n` the name of a variable to assign.
fn is_plain_printf(arguments: &[CommandArgument]) -> bool {
    let rest = match arguments {
        [option, name, rest @ ..] if option.is("-v") => {
            if !is_variable(Some(name)) {
                return false;
            }
            rest
        }
        rest => rest,
    };
    let (rest, options_end) = match rest.split_first() {
        Some((first, after)) if first.is("--") => (after, true),
        _ => (rest, false),
    };
    let Some((format, values)) = rest.split_first() else { return true };
    let is_format = |text: &&str| options_end || !text.starts_with('-');
    let Some(text) = format.text.as_deref().filter(is_format) else {
        let is_safe = !format.splits && (options_end || !format.may_be_option());
        return is_safe && values.iter().all(|value| !may_name(value));
    };
    !assigns_count(text) || values.iter().all(|value| !may_name(value))
}

/// Whether a format has `%n`, with any flags, width and precision.
fn assigns_count(format: &str) -> bool {
    let modifiers = |letter: char| !letter.is_ascii_alphabetic() || "hlLjzt".contains(letter);
    format.split('%').skip(1).any(|part| part.trim_start_matches(modifiers).starts_with('n'))
}

/// Whether a value may be the name of a variable that programs read.
fn may_name(value: &CommandArgument) -> bool {
    match value.text.as_deref() {
        Some(text) => is_name(text) && !is_harmless_variable(text),
        None => value.splits || value.prefix.is_empty() || is_name(&value.prefix),
    }
}

/// Whether an argument is the name of a variable that may be assigned.
fn is_variable(argument: Option<&CommandArgument>) -> bool {
    let text = argument.and_then(|argument| argument.text.as_deref());
    text.is_some_and(|text| is_name(text) && is_harmless_variable(text))
}

/// Whether `test` looks at no variable by a name that could hold a subscript.
fn is_plain_test(arguments: &[CommandArgument]) -> bool {
    arguments.iter().enumerate().all(|(index, argument)| {
        if argument.splits {
            return false;
        }
        let next = arguments.get(index + 1);
        let next_is_risky = next.is_some_and(|next| match &next.text {
            Some(text) => text.contains('['),
            None => true,
        });
        match argument.text.as_deref() {
            // Both take the name of a variable, whose subscript is evaluated.
            Some("-v" | "-R") => next.and_then(|next| next.text.as_deref()).is_some_and(is_name),
            Some(_) => true,
            None => !(argument.may_be_option() && next_is_risky),
        }
    })
}

fn set(arguments: &[CommandArgument]) -> EffectFinding {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.text.as_deref();
        let is_known = match text {
            // Everything after it is a positional parameter.
            Some("--") => return READS(),
            Some(text) if text.starts_with(['-', '+']) && text.len() > 1 => {
                let letters = &text.as_bytes()[1..];
                let named = letters.ends_with(b"o");
                let names = !named
                    || words
                        .next()
                        .and_then(|name| name.text.as_deref())
                        .is_some_and(|name| SET_NAMES.contains(&name));
                letters.iter().all(|letter| SET_LETTERS.contains(letter)) && names
            }
            _ => false,
        };
        if !is_known {
            return found(
                CommandEffects::UNKNOWN,
                "`set` changes how the shell reads or runs commands",
            );
        }
    }
    READS()
}

/// `export`, `declare` and their relatives.
fn declare(arguments: &[CommandArgument]) -> EffectFinding {
    let is_array = arguments
        .iter()
        .any(|argument| argument.prefix.starts_with('-') && argument.prefix.contains(['a', 'A']));
    for argument in arguments {
        let known = argument.prefix.as_str();
        if known.starts_with(['-', '+']) {
            let plain = argument.text.is_some()
                // Not `-i`, which evaluates values as arithmetic, and not `-n`, which makes
                // references.
                && known[1..].bytes().all(|letter| b"xrgaAp".contains(&letter));
            if plain {
                continue;
            }
            return found(CommandEffects::UNKNOWN, "a declaration may evaluate its value");
        }
        let name = match known.split_once('=') {
            Some((name, _)) => name.strip_suffix('+').unwrap_or(name),
            None if argument.text.is_some() => known,
            None => return found(CommandEffects::UNKNOWN, "a declaration whose name is not known"),
        };
        // `a[$(…)]=1` runs the subscript even if it was quoted.
        let value = known.get(name.len()..).unwrap_or_default();
        let is_elements =
            value.trim_start_matches('+').starts_with("=(") || is_array && argument.text.is_none();
        if !is_name(name) || is_elements {
            return found(CommandEffects::UNKNOWN, "a declaration may evaluate a subscript");
        }
        let finding = assignment(name);
        if finding.0 != CommandEffects::READ_ONLY {
            return finding;
        }
    }
    READS()
}

/// Builtins that assign or remove the variables that they name.
fn variables(program: &str, arguments: &[CommandArgument]) -> EffectFinding {
    let (flags, valued) = match program {
        "read" => ("ers", "adinNptu"),
        "mapfile" | "readarray" => ("t", "dnOsu"),
        "unset" => ("fv", ""),
        _ => ("", ""),
    };
    let unknown = |reason: String| found(CommandEffects::UNKNOWN, reason);
    let mut words = arguments.iter();
    while let Some(argument) = words.next() {
        let Some(text) = argument.text.as_deref() else {
            return unknown(format!("`{program}` has arguments that are not known"));
        };
        if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let rest = letters.trim_start_matches(|letter| flags.contains(letter));
            let Some(option) = rest.chars().next() else { continue };
            if !valued.contains(option) {
                return unknown(format!("`{program} {text}` may run code"));
            }
            // The array of `-a` is a name like the others.
            let is_name_next = option == 'a' && rest.len() == 1;
            if is_name_next || rest.len() > 1 && option != 'a' {
                continue;
            }
            // The value of the option, which may be any text.
            if option == 'a' || words.next().is_none_or(|value| !value.is_one_word()) {
                return unknown(format!("`{program}` has arguments that are not known"));
            }
            continue;
        }
        // The first argument is the option string, not a variable.
        if program == "getopts" && std::ptr::eq(argument, &arguments[0]) {
            continue;
        }
        if !is_variable(Some(argument)) {
            return unknown(format!("`{program}` changes `{text}`"));
        }
    }
    READS()
}
