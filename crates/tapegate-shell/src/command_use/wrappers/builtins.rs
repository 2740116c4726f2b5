//! Builtins that run code from their arguments in forms that are not read.

use super::{CommandArgument, WrapperUse, unknown};

/// Options that name code, or another program for a name.
const CODE_OPTIONS: [(&str, char); 8] = [
    ("bind", 'x'),
    ("compgen", 'C'),
    ("complete", 'C'),
    ("enable", 'f'),
    ("hash", 'p'),
    ("jobs", 'x'),
    ("mapfile", 'C'),
    ("readarray", 'C'),
];
/// Builtins that evaluate the subscripts in their arguments, even in quoted ones.
const SUBSCRIPT_READERS: [&str; 11] = [
    "[", "declare", "export", "let", "local", "printf", "read", "readonly", "test", "typeset",
    "unset",
];

/// What a builtin runs in turn; `None` if its arguments hold no code.
pub(super) fn descend(name: &str, arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let has = |holds_code: &dyn Fn(&str) -> bool| {
        arguments.iter().any(|word| word.text.as_deref().is_some_and(holds_code))
    };
    let option = CODE_OPTIONS.iter().find(|(builtin, _)| *builtin == name);
    let by_option = option.is_some_and(|(_, letter)| {
        has(&|text| text.starts_with('-') && !text.starts_with("--") && text.contains(*letter))
    });
    // In dash, and in bash with an option, the name runs the text from the next line on.
    let by_alias = name == "alias" && has(&|text| text.contains('='));
    let by_subscript = SUBSCRIPT_READERS.contains(&name)
        && has(&|text| text.contains('[') && (text.contains("$(") || text.contains('`')));
    let runs = by_option || by_alias || by_subscript;
    runs.then(|| unknown(&format!("`{name}` may run code in its arguments"))).flatten()
}
