//! Which commands a line runs, with which words.

use super::{CommandUse, read_line};
use crate::command_tree::RedirectionKind;

/// The commands of a line as text, with `…` for unknown parts.
fn commands(line: &str) -> Vec<String> {
    let show = |one: &CommandUse| match &one.problem {
        Some(_) if one.words.is_empty() => "?".to_owned(),
        Some(_) => format!("?{}", one.text()),
        None => one.text(),
    };
    read_line(line).uses.iter().map(show).filter(|text| !text.is_empty()).collect()
}

#[test]
fn every_command_of_a_line_is_listed() {
    for (line, wanted) in [
        ("ls -la", &["ls -la"][..]),
        ("a; b && c || d & e", &["a", "b", "c", "d", "e"]),
        ("a | b |& c", &["a", "b", "c"]),
        ("! a", &["a"]),
        ("time a", &["a"]),
        ("{ a; b; }; (c)", &["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", &["a", "b", "c", "d"]),
        ("for x in $(a); do b \"$x\"; done", &["a", "b …"]),
        ("for ((i = 0; i < $(a); i++)) { b; }", &["a", "?", "b"]),
        ("case $(a) in x|y) b;; (z) c;& *) d;; esac", &["a", "b", "c", "d"]),
        ("select x in a; do b; done", &["b"]),
        ("f() { a; }; f 1", &["a", "f 1"]),
        ("function f { a; }", &["a"]),
        ("echo \"$(a \"$(b)\")\" `c \\`d\\``", &["b", "a …", "d", "c …", "echo … …"]),
        ("a <(b) > >(c)", &["b", "c", "a /dev/fd/…"]),
        ("a <<E\n$(b)\nE\nc", &["b", "a", "c"]),
        ("a <<'E'\n$(b)\nE\nc", &["a", "c"]),
        ("a <<E <<F\n$(b)\nE\n$(c)\nF\n", &["b", "c", "a"]),
        ("echo ${x:-$(a)} ${y/`b`/c}", &["a", "b", "echo … …"]),
        ("x=$(a) b; y=(c $(d))", &["a", "b", "d"]),
        ("[[ -n $(a) && b == c ]]", &["a"]),
        (
            "env A=1 timeout -k 1 5 nice -n 2 a b",
            &[
                "env A=1 timeout -k 1 5 nice -n 2 a b",
                "timeout -k 1 5 nice -n 2 a b",
                "nice -n 2 a b",
                "a b",
            ],
        ),
        ("bash -euc 'a; b'", &["bash -euc 'a; b'", "a", "b"]),
        ("sudo -u root a", &["sudo -u root a", "a"]),
        ("b | xargs -0 -n1 a x", &["b", "xargs -0 -n1 a x", "a x …"]),
        ("xargs -I{} a -{}- b", &["xargs '-I{}' a '-{}-' b", "a -… b"]),
        (
            "find . -exec a {} \\; -exec b {} +",
            &["find . -exec a '{}' ';' -exec b '{}' +", "a …", "b …"],
        ),
        ("eval 'a b' c", &["eval 'a b' c", "a b c"]),
        ("trap 'a; b' EXIT", &["trap 'a; b' EXIT", "a", "b"]),
        ("r\"\"m $'\\x61\\t' a\\ b", &["rm 'a\t' 'a b'"]),
        ("a ~/b *.c {d,e} HEAD@{1} {}", &["a ~/b … … 'HEAD@{1}' '{}'"]),
        ("$x a", &["?… a"]),
        ("a \"", &["?"]),
        ("# a\nb # c", &["b"]),
    ] {
        assert_eq!(commands(line), wanted, "{line:?}");
    }
}

#[test]
fn redirections_folders_and_pipes_are_known() {
    let uses = read_line("cd sub; cat a 2>&1 > out >>\"$x\" < in | tee b").uses;
    let cat = &uses[1];
    let kinds: Vec<(RedirectionKind, Option<&str>, bool)> = cat
        .redirections
        .iter()
        .map(|one| (one.kind, one.target.text.as_deref(), one.writes_file()))
        .collect();
    assert_eq!(
        kinds,
        [
            (RedirectionKind::Duplicate, Some("1"), false),
            (RedirectionKind::Write, Some("out"), true),
            (RedirectionKind::Write, None, true),
            (RedirectionKind::Read, Some("in"), false),
        ]
    );
    // `cd` may fail, so both folders are possible.
    assert_eq!(cat.folders, Some(vec![String::new(), "sub".to_owned()]));
    assert_eq!((cat.piped_from.as_slice(), uses[2].piped_from.as_slice()), (&[][..], &[1][..]));
    for line in
        ["cd \"$x\"; a", "cd -; a", "pushd a; a", "f() { cd a; }; a", "while cd ..; do a; done"]
    {
        assert_eq!(read_line(line).uses.last().unwrap().folders, None, "{line}");
    }
}

#[test]
fn only_the_program_and_its_subcommand_are_shown_where_arguments_may_be_secret() {
    for (line, short) in [
        ("git push https://user:secret@host", "git push …"),
        ("curl -H 'Authorization: x'", "curl …"),
        ("ls", "ls"),
        ("mysql SECRET", "mysql …"),
    ] {
        assert_eq!(read_line(line).uses[0].short_text(), short);
    }
}
