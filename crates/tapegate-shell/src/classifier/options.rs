//! Options that change what a program does.

use crate::command_use::CommandArgument;

/// Whether one of the arguments may be one of these options.
///
/// `letters` are short options, which may be joined (`-uo`), and `names` are long ones without
/// dashes, which may be shortened (`--outp`). A letter in the value of another option counts too.
pub(super) fn has_option(arguments: &[CommandArgument], letters: &str, names: &[&str]) -> bool {
    arguments.iter().any(|argument| match &argument.text {
        // An unknown value may be any option that its known beginning permits.
        None => argument.may_be_option() && is_option_start(&argument.prefix, letters, names),
        Some(text) => match text.strip_prefix("--") {
            Some(long) => is_long_option(long, names),
            None => text
                .strip_prefix('-')
                .is_some_and(|cluster| cluster.contains(|letter| letters.contains(letter))),
        },
    })
}

fn is_long_option(long: &str, names: &[&str]) -> bool {
    let name = long.split('=').next().unwrap_or_default();
    !name.is_empty() && names.iter().any(|dangerous| dangerous.starts_with(name))
}

/// Whether an argument that begins like this may be one of the options. One whose name is known
/// entirely, such as `--max-count=…`, is only that one.
fn is_option_start(prefix: &str, letters: &str, names: &[&str]) -> bool {
    match prefix.strip_prefix("--") {
        Some(long) if long.contains('=') => is_long_option(long, names),
        _ => !(letters.is_empty() && names.is_empty()),
    }
}

/// The arguments that are not options; `None` if it is unknown which ones are.
pub(super) fn operands(arguments: &[CommandArgument]) -> Option<Vec<&CommandArgument>> {
    let mut all = Vec::new();
    let mut only_operands = false;
    for argument in arguments {
        if only_operands {
            all.push(argument);
        } else if argument.is("--") {
            only_operands = true;
        // A single dash is standard input.
        } else if argument.is("-") || !argument.may_be_option() {
            all.push(argument);
        } else if argument.text.is_none() {
            return None;
        }
    }
    // A word that may be several may be any number of operands.
    all.iter().all(|operand| operand.is_one_word()).then_some(all)
}
