//! Random command lines, compared with what bash does with them.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the tests run bash in scratch folders and compare what is there"
)]

mod scratch;

use proptest::prelude::*;
use scratch::{changes, is_accepted};
use tapegate_shell::classifier::CommandClass;
use tapegate_shell::command_use::read_line;
use tapegate_shell::reader::read_commands;

/// Pieces of lines that change a file, hide it, or affect how the rest is read.
const PIECES: &[&str] = &[
    "touch y",
    "rm a.txt",
    "rm",
    "a.txt",
    "y",
    "ls",
    "cat",
    "echo",
    "$x",
    "x=",
    "x='touch y'",
    "'",
    "\"",
    "\\",
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    "{a,b}",
    ";",
    "\n",
    "|",
    "||",
    "&&",
    "&",
    ">",
    ">>",
    ">|",
    "&>",
    "<",
    "<<EOF\n",
    "\nEOF\n",
    "<<'EOF'\n",
    "<<<",
    "<(",
    ">(",
    "[[ ",
    " ]]",
    "((",
    "))",
    "$((",
    "${x",
    "${x:-",
    "@P}",
    "}",
    "eval ",
    "bash -c ",
    "sh -c ",
    "xargs ",
    "find . -exec ",
    " \\;",
    " {} ",
    "-delete",
    "a[",
    "]",
    "=",
    "1",
    "-v ",
    "test ",
    "[ ",
    " ]",
    "if ",
    "; then ",
    "; fi",
    "for x in ",
    "; do ",
    "; done",
    "while ",
    "case x in x) ",
    ";; esac",
    "f() ",
    "f",
    "function f ",
    "!",
    "#",
    "~",
    "*",
    "?",
    "$'",
    "\\x72m",
    "time ",
    "env ",
    "timeout 5 ",
    "command ",
    "exec ",
    "trap ",
    "' EXIT",
    "read x ",
    "unset ",
    "declare ",
    "local ",
    "sed ",
    "-i ",
    "'s/a/b/' ",
    "'w y' ",
    "awk ",
    "'{print > \"y\"}' ",
    "sort -o y ",
    "tee y",
    "2>&1 ",
    ">&2 ",
    ">&y ",
    "-n ",
    "printf ",
    "$1",
    "\"$@\"",
    "0",
    "\\\n",
    "rm() { ls; }",
    "unset -f rm",
    "PATH=1",
    "printf -vPATH 1",
    "printf %n PATH",
    "read -aPATH <<< 1",
    "jobs -x ",
    "{PATH}>",
    "$!",
    "env -u ",
    "exec -a ",
    "xargs -E ",
    "\"${x-$@}\"",
    "'a[$(touch y)]'",
    "'($(touch y))'",
    "declare -a ",
    "x=(1)",
    "3<<< ",
    "a.txt{,y}",
    "uniq ",
    "$((PATH=1))",
    "/dev/fd/",
];

fn line() -> impl Strategy<Value = String> {
    let piece = (proptest::sample::select(PIECES), prop::bool::weighted(0.7));
    prop::collection::vec(piece, 1..9).prop_map(|pieces| {
        let join =
            |(piece, spaced): (&str, bool)| format!("{piece}{}", if spaced { " " } else { "" });
        pieces.into_iter().map(join).collect()
    })
}

/// Texts around a command.
const WRAPS: &[(&str, &str)] = &[
    ("", ""),
    ("ls; ", ""),
    ("", " | cat"),
    ("$(", ")"),
    ("echo $(", ")"),
    ("echo \"$(", ")\""),
    ("echo `", "`"),
    ("bash -c '", "'"),
    ("bash -c \"", "\""),
    ("eval '", "'"),
    ("eval \"", "\""),
    ("eval ", ""),
    ("if ", "; then ls; fi"),
    ("if true; then ", "; fi"),
    ("f() { ", "; }; f"),
    ("( ", " )"),
    ("{ ", "; }"),
    ("cat <<EOF\n$(", ")\nEOF\n"),
    ("cat <<'EOF'\n", "\nEOF\n"),
    ("echo '", "'"),
    ("echo \"", "\""),
    ("# ", "\n"),
    ("x='", "'; echo \"${x@P}\""),
    ("x='a[$(", ")]'; echo $((x))"),
    ("echo $((1 + $(", ")))"),
    ("cat <(", ")"),
    ("for x in $(", "); do ls; done"),
    ("case $(", ") in *) ls;; esac"),
    ("find . -exec ", " \\;"),
    ("find . -name a.txt -exec ", " {} +"),
    ("echo a.txt | xargs ", ""),
    ("timeout 5 ", ""),
    ("env ", ""),
    ("trap '", "' EXIT"),
    ("[[ -n $(", ") ]]"),
    ("! ", ""),
    ("time ", ""),
    ("ls && ", ""),
    ("false || ", ""),
    ("ls & ", "; wait"),
    ("\\", ""),
    ("echo ${x:-$(", ")}"),
    ("echo \"${x:-`", "`}\""),
    ("x=$(", ")"),
    ("export x=$(", ")"),
    ("rm() { ls; }; ", ""),
    ("(rm() { ls; }); ", ""),
    ("false && rm() { ls; }; ", ""),
    ("ls() { ", "; }; ls"),
    (": $((1/0)); rm() { ls; }\n", ""),
    ("bash -c 'rm() { ls; }'; ", ""),
    ("rm() { ls; }; unset rm; ", ""),
    ("rm() { ls; }; command ", ""),
    ("PATH=1; ", ""),
    ("((PATH=1)); ", ""),
    ("printf %n PATH; ", ""),
    ("exec {PATH}</dev/null; ", ""),
    ("jobs -x ", ""),
    ("env -u x ", ""),
    ("env -u $! ls ", ""),
    ("exec -a $! ls ", ""),
    ("xargs --replace ", ""),
    ("declare -a x='($(", "))'"),
    ("y='($(", "))'; declare -a x=\"$y\""),
    ("printf -v a -v 'b[$(", ")]' x"),
    ("bash 3<<< ls <<< '", "'"),
    ("echo '", "' | bash 3<<< ls"),
];

/// A line around a command that changes a file, so that more of the lines mean something.
fn nested_line() -> impl Strategy<Value = String> {
    let base = [
        "touch y",
        "rm a.txt",
        "r\"\"m a.txt",
        "$'\\x72m' a.txt",
        "echo > y",
        "ls",
        "cat a.txt",
        "echo a >&y",
        "sort -o y a.txt",
        "sed -i s/f/g/ a.txt",
        "tee y",
        "echo a 2>&1",
        "ls >/dev/null",
        "echo 'rm a.txt'",
        "echo '>y'",
    ];
    let wrap = proptest::sample::select(WRAPS.to_vec());
    (proptest::sample::select(base.to_vec()), prop::collection::vec(wrap, 0..4)).prop_map(
        |(base, wraps)| {
            wraps
                .into_iter()
                .fold(base.to_owned(), |line, (before, after)| format!("{before}{line}{after}"))
        },
    )
}

fn check(line: &str) {
    if read_line(line).effects().class() == CommandClass::ReadOnly {
        assert_eq!(changes(line), Vec::<String>::new(), "{line:?}");
    }
    if read_commands(line).is_ok() {
        assert!(is_accepted(line), "bash rejects {line:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_random_line_that_counts_as_read_only_changes_no_file(line in line()) {
        check(&line);
    }

    #[test]
    fn a_wrapped_command_that_counts_as_read_only_changes_no_file(line in nested_line()) {
        check(&line);
    }

    #[test]
    fn any_text_is_read_without_a_fault(text in any::<String>(), pieces in line()) {
        read_line(&text);
        read_line(&format!("{pieces}{text}"));
    }
}

#[test]
fn deep_nesting_and_long_lines_end_in_time() {
    for (open, close) in [
        ("(", ")"),
        ("$(", ")"),
        ("{ ", "; }"),
        ("${x:-", "}"),
        ("`", "`"),
        ("\"$(", ")\""),
        ("[[ ( ", " ) ]]"),
        ("$((", "))"),
        ("a[", "]"),
        ("if ", "; then ls; fi"),
        ("! ", ""),
        ("bash -c ", ""),
        ("eval ", ""),
    ] {
        let line = format!("{}ls{}", open.repeat(20_000), close.repeat(20_000));
        read_line(&line);
    }
    read_line(&"<<E ".repeat(20_000));
    read_line(&"a=(".repeat(20_000));
    read_line(&"x[".repeat(50_000));
    read_line(&"ls;".repeat(50_000));
    read_line(&"ls|".repeat(20_000));
    read_line(&"cd a;".repeat(20_000));
    read_line(&"~".repeat(100_000));
    read_line(&"{".repeat(100_000));
    read_line(&"{a ".repeat(80_000));
    read_line(&"f(){ a;};unset f;".repeat(14_000));
    let functions: String = (0..12_000).map(|number| format!("f{number}(){{ ((1));}};")).collect();
    read_line(&functions);
    let subscripts = format!("{}ls {}{}", "a[$(".repeat(10), "a ".repeat(100_000), ")]".repeat(10));
    read_line(&subscripts);
    let longest = format!("echo {}", "x".repeat(300_000));
    assert_eq!(read_line(&longest).effects().class(), CommandClass::Unknown);
}
