//! What shells such as dash read differently than bash.
//!
//! Lines are read by the grammar of bash. Another shell of the family may run something else where
//! the two differ: for dash, `$'\'` ends at the second quote. So each form that is not certainly
//! the same in both is a difference; it is better to hold a line too many than one too few.

use super::{CommandArgument, CommandUse};

/// Forms of bash, and forms that both have and end in different places.
const FORMS: [&str; 19] = [
    "[[", "((", "$'", "$\"", "$[", "<(", ">(", "&>", "|&", "<<", ";&", "=(", "]=", "+=", "~+",
    "~-", "}>", "}<", "\\\n",
];
/// Words that one of them takes for a keyword or a builtin, and the other for a program.
const WORDS: [&str; 20] = [
    "alias",
    "builtin",
    "caller",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "enable",
    "function",
    "let",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "readarray",
    "select",
    "source",
    "suspend",
    "time",
    "typeset",
];
/// Builtins whose arguments dash splits into words like those of other commands.
const DECLARATIONS: [&str; 3] = ["export", "local", "readonly"];

/// A form of a line that other shells may read differently.
pub(super) fn different_form(text: &str) -> Option<String> {
    let shown = |form: &str| match form {
        "\\\n" => Some("a backslash at the end of a line".to_owned()),
        form => Some(format!("`{form}`")),
    };
    if let Some(form) = FORMS.iter().find(|form| text.contains(**form)) {
        return shown(form);
    }
    let is_word = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    let mut words = text.split(|letter: char| !is_word(letter));
    if let Some(word) = words.find(|word| WORDS.contains(word)) {
        return shown(word);
    }
    if text.contains('`') && text.contains('\\') {
        return Some("a backslash beside backquotes".to_owned());
    }
    if text.contains(|letter: char| letter.is_control() && !"\n\t".contains(letter)) {
        return Some("a control character".to_owned());
    }
    if !text.split("${").skip(1).all(is_plain_expansion) {
        return shown("${");
    }
    let bytes = text.as_bytes();
    let mut signs = bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'<' | b'>'));
    signs.find_map(|(at, _)| different_redirection(&bytes[..at], &bytes[at + 1..]))
}

/// Whether `${` begins an expansion with a name and a plain text, and nothing else.
fn is_plain_expansion(after: &str) -> bool {
    let Some((inside, _)) = after.split_once('}') else { return false };
    let rest =
        inside.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    let is_operator = rest.is_empty() || rest.starts_with(['-', '+', '=', '?', '#', '%', ':']);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-+=?#%:_./, ".contains(letter);
    rest.len() < inside.len() && is_operator && rest.chars().all(is_plain)
}

/// Descriptors of two digits, and what follows `>&` where it is no descriptor.
fn different_redirection(before: &[u8], after: &[u8]) -> Option<String> {
    if matches!(before, [.., first, second] if first.is_ascii_digit() && second.is_ascii_digit()) {
        return Some("a descriptor of several digits".to_owned());
    }
    let target = after.strip_prefix(b"&")?;
    let digits = target.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
    let ends = target.get(digits).is_none_or(|byte| b" \t\n;|&)".contains(byte));
    (digits != 1 || !ends).then(|| "`>&` with a file".to_owned())
}

/// Why other shells may run a command differently, although they read it as bash does.
pub(super) fn different_command(one: &CommandUse) -> Option<String> {
    let program = one.words.first()?.text.as_deref()?;
    let may_split = |word: &CommandArgument| !word.is_one_word();
    let splits = DECLARATIONS.contains(&program) && one.arguments().iter().any(may_split);
    if splits {
        return Some(format!("`{program}` with a value that is split into words"));
    }
    // Also in quotes, where it is no keyword.
    WORDS.contains(&program).then(|| format!("`{program}`"))
}

#[cfg(test)]
mod tests {
    use crate::command_use::posix_difference;

    #[test]
    fn what_dash_reads_differently_is_found() {
        for line in [
            r"echo $'\'; touch pwn #\''",
            r#"eval "echo \$'a'""#,
            "eval 'echo $'\"'\\\\'; touch pwn #'",
            "trap 'a[0]=x ls' EXIT",
            "a[0]=x ls",
            "x+=1 ls",
            "a=(1 2)",
            "echo a >& b",
            "echo a >&2b",
            "echo a &> b",
            "ls {fd}>b",
            "echo 10>b",
            "cat <<E\nE\n",
            "echo ${x/a/b}",
            "echo \"${x:-'}'}\"",
            "echo `echo \\`ls\\``",
            "time ls",
            "\"time\" ls",
            "function f { ls; }",
            "alias ls='touch x'\nls",
            "export x=$y",
            "export x=*",
            "ls ~+",
            "l\\\ns",
            "(( x ))",
            "echo $((1))",
            "sh -c 'echo $[1]'",
            "env sh -c 'eval \"echo \\$[1]\"'",
        ] {
            assert!(posix_difference(line).is_some(), "{line:?}");
        }
    }

    #[test]
    fn plain_lines_are_the_same_in_dash() {
        for line in [
            "ls -la | grep x 2>&1 > /dev/null; echo $? ${HOME}",
            "for i in a b; do echo \"$i\" >&2; done",
            "cd sub && make -j4 || exit 1",
            "if [ -f a ]; then cat a; fi",
            "x=$(cat a) && echo \"${x:-none}\" \"$x\"",
            "bash -c 'echo $((1)) [[ a ]]' | head",
            "exec 2>&-",
            "timeout 5 ls --time-style=iso",
            "export A=1 B=\"$x\"",
        ] {
            let found = posix_difference(line);
            // Inside of `bash -c`, bash decides; the text of the line around it is still compared.
            assert_eq!(found.is_some(), line.contains("bash"), "{line:?} {found:?}");
        }
    }
}
