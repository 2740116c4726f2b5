//! Lines that are not read, and why.

use super::read_commands;

#[test]
fn an_unreadable_line_says_what_and_where() {
    for (line, error) in [
        ("echo 'a", "a single quote is not closed at character 8"),
        ("echo \"a", "a double quote is not closed at character 8"),
        ("echo $(ls", "expected `)` at character 10"),
        ("echo ${x", "an unknown parameter expansion at character 9"),
        ("echo `ls", "a backquote is not closed at character 9"),
        ("ls )", "unexpected `)` at character 4"),
        ("if true; then ls", "expected `fi` at character 17"),
        ("ls &&", "a command is missing after `&&` or `||` at character 6"),
        ("ls | ", "unexpected line break"),
        ("coproc ls", "`coproc` at character 1"),
        ("echo @(a)", "an extended glob, which bash reads only with an option at character 7"),
        ("echo $[1]", "arithmetic in the old form `$[` at character 6"),
        ("cat <<E\nx", "a here-document has no end at character 10"),
        ("e\\\ncho", "an escaped line break without a blank before it at character 2"),
        ("[[ a > b ]]", "a comparison in `[[` by `<` or `>` at character 6"),
        ("echo a\0b", "there is a NUL in the command line at character 1"),
    ] {
        let found = read_commands(line).unwrap_err().to_string();
        let wanted = if line.ends_with("| ") {
            "the command line ends too early at character 6"
        } else {
            error
        };
        assert_eq!(found, wanted, "{line:?}");
    }
    let deep = format!("{}ls{}", "( ".repeat(40), " )".repeat(40));
    assert!(read_commands(&deep).unwrap_err().reason.contains("nested too deeply"));
}

#[test]
fn arrays_are_assigned_where_bash_reads_them() {
    for line in ["x=1 y=(1)", ">f x=(1)", "2>&1 x=(1)", ">f x=1 y=(2)", "x=1 >f y=2 true"] {
        assert!(read_commands(line).is_ok(), "{line}");
    }
    for line in ["x= 2>&1 x=(1)", "x=(1) >f y=(1)", ">f x=1 >g y=(1)", "x= <<<z y=(1)"] {
        assert!(read_commands(line).is_err(), "{line}");
    }
}

#[test]
fn what_bash_takes_for_a_syntax_error_is_not_read() {
    for line in [
        "declare >f x=(1)",
        "declare x=(1) >f y=(1)",
        ">f x=1 >g declare y=(1)",
        "\"declare\" x=(1)",
        "declare $x=(1)",
        "declare \\x=(1)",
        "declare -x=(1)",
        "x=(1)#f() { ls; }",
        "declare x=(1)y",
        "f() g() { ls; }",
        "function f function g { ls; }",
        "for (()); do ls; done",
        "\"${HOME:<(}\"",
        "for ((i = 0; i < 3)); do ls; done",
        "ls |!",
        "ls | ! cat",
        "$(time f() { ls; })",
        "\"$( time { ls; })\"",
        "cat <(time if true; then ls; fi)",
    ] {
        assert!(read_commands(line).is_err(), "{line}");
    }
    for line in [
        ">f declare x=(1)",
        "x=1 declare y=(1) >f",
        "declare x=(1) y+=(2);ls",
        "f() { g() { ls; }; }",
        "ls | { ! cat; }",
        "$(ls; time { ls; })",
        "`time { ls; }`",
    ] {
        assert!(read_commands(line).is_ok(), "{line}");
    }
}
