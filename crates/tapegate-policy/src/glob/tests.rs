//! Globs compared with a slow reference implementation.

use proptest::prelude::*;

use super::*;

fn matches(glob: &str, name: &str) -> bool {
    Glob::parse(glob).unwrap().matches(name)
}

#[test]
fn globs_match_whole_names() {
    for (glob, good, bad) in [
        ("*", &["", "a", "a/b", "é"][..], &[][..]),
        ("", &[""], &["a"]),
        ("read", &["read"], &["Read", "reads", "rea", ""]),
        ("read_*", &["read_", "read_file"], &["read", "aread_x"]),
        ("*_file", &["_file", "a_file"], &["file", "a_files"]),
        ("*a*b*", &["ab", "xaybz"], &["ba", "a", "b"]),
        ("file:///*/x", &["file:///a/b/x"], &["file:///x"]),
        ("a**b", &["ab", "a/b"], &["a"]),
        ("**/x", &["/x", "a/x"], &["x"]),
        ("?", &["a", "é", "/"], &["", "ab"]),
        ("[abc]1", &["a1", "c1"], &["d1", "a", "ab1"]),
        ("[a-cx]", &["b", "x"], &["d", "-"]),
        ("[!x]", &["a"], &["x", ""]),
        ("[!a-c]*", &["d", "dx"], &["a", ""]),
        ("[]]", &["]"], &["["]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[*]", &["*"], &["a"]),
        ("[[]x", &["[x"], &["x"]),
        ("*[0-9]?", &["10", "a1b"], &["1", "ab"]),
        ("ab*ba", &["abba", "abxba"], &["aba"]),
        ("a\\*", &["a\\b"], &["a*", "ab"]),
        ("{a,b}", &["{a,b}"], &["a", "b"]),
        ("http://[::1]/*", &["http://[::1]/x"], &["http://1/x", "http://:/x"]),
        ("http://u@[fd00::*]:8080/*", &["http://u@[fd00::1]:8080/x"], &["http://u@f:8080/x"]),
        ("http://[ab]/*", &["http://a/x"], &["http://[ab]/x"]),
        ("x[::1]", &["x:", "x1"], &["x[::1]"]),
    ] {
        for name in good {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for name in bad {
            assert!(!matches(glob, name), "{glob} {name}");
        }
    }
}

#[test]
fn what_is_no_glob_is_refused() {
    for text in ["[", "a[b", "[]", "[!]", "x[a-", "[z-a]"] {
        assert!(Glob::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_glob_knows_whether_it_is_a_name_or_everything() {
    let kind = |text| Glob::parse(text).map(|glob| (glob.is_plain(), glob.is_all())).unwrap();
    assert_eq!(kind("a[*]"), (true, false));
    assert_eq!(kind("**"), (false, true));
    assert_eq!(kind(""), (true, false));
    assert_eq!(kind("?*"), (false, false));
}

#[test]
fn many_stars_and_a_long_name_take_no_time() {
    let glob = Glob::parse(&"a*".repeat(1_000)).unwrap();
    let name = "a".repeat(100_000);
    assert!(glob.matches(&name));
    assert!(!Glob::parse(&format!("{}b", "a*".repeat(1_000))).unwrap().matches(&name));
    assert!(!Glob::parse(&"?a*".repeat(300)).unwrap().matches(&"b".repeat(100_000)));
}

/// The reference implementation.
fn slow(glob: &[char], name: &[char]) -> bool {
    match (glob, name) {
        ([], []) => true,
        (['*', rest @ ..], _) => slow(rest, name) || !name.is_empty() && slow(glob, &name[1..]),
        (['?', rest @ ..], [_, tail @ ..]) => slow(rest, tail),
        (['[', '!', no, ']', rest @ ..], [one, tail @ ..]) => no != one && slow(rest, tail),
        ([is, rest @ ..], [one, tail @ ..]) => is == one && slow(rest, tail),
        _ => false,
    }
}

proptest! {
    #[test]
    fn the_fast_way_is_the_slow_way(
        glob in r"([ab*?é]|\[!a\]){0,8}",
        name in "[abé]{0,10}",
    ) {
        let wanted = slow(
            &glob.chars().collect::<Vec<_>>(),
            &name.chars().collect::<Vec<_>>(),
        );
        prop_assert_eq!(matches(&glob, &name), wanted);
    }

    #[test]
    fn no_glob_and_no_name_make_trouble(glob in ".{0,20}", name in ".{0,20}") {
        if let Ok(glob) = Glob::parse(&glob) {
            glob.matches(&name);
        }
    }
}
