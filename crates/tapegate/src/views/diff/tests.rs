//! Differences as a person sees them.

use tapegate_core::json::JsonLocation;
use tapegate_core::json::diff::{DiffOptions, diff};

use super::*;
use crate::views::golden::assert_golden;

fn shown(old: &str, new: &str) -> String {
    painted(old, new, Palette::Plain)
}

fn painted(old: &str, new: &str, palette: Palette) -> String {
    let terms = DiffOptions { root: JsonLocation::member("result"), ignored: &[], listed_max: 20 };
    render(&diff(old.as_bytes(), new.as_bytes(), &terms).unwrap(), palette, "")
}

fn text(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    serde_json::to_string(&lines.join("\n")).unwrap()
}

#[test]
fn differences_look_as_the_golden_has_them() {
    let old = r#"{"path":"/a","n":1,"gone":{"x":[1, 2]},"a b":null,"t":"é"}"#;
    let new = r#"{"path":"/b","n":"1","a b":[],"new":true,"t":"e\u0301\u001b[31m\u202e"}"#;
    let plain = shown(old, new);
    let coloured = painted(old, new, Palette::Colour).replace('\x1b', "<ESC>");
    assert_golden("diff.txt", &format!("{plain}\n{coloured}"));
}

#[test]
fn a_long_string_is_cut_around_what_has_changed() {
    let long = |middle: &str| format!("\"{}{middle}{}\"", "a".repeat(500), "z".repeat(500));
    let (a, z) = ("a".repeat(40), "z".repeat(40));
    assert_eq!(
        shown(&long("1"), &long("")),
        format!(
            "- result: …\"{a}1{z}\"… (1001 characters)\n+ result: …\"{a}{z}\"… (1000 characters)\n"
        )
    );
    let added = "x".repeat(600);
    let whole = shown(&long(""), &long(&added));
    assert!(
        whole.contains(&format!("+ result: …\"{a}{added}{z}\"… (1600 characters)\n")),
        "{whole}"
    );
    let cut = shown("\"\"", &long(&added));
    assert!(cut.lines().all(|line| line.chars().count() < 900), "{cut}");
    let array = |middle: &str| format!("[{}{middle}]", "0,".repeat(300));
    let nested = |text: &str| format!("{}{text}{}", "[".repeat(70), "]".repeat(70));
    let cut = shown(&nested(&array("1")), &nested(&array("2")));
    assert!(cut.lines().all(|line| line.chars().count() < 420), "{cut}");
    assert!(cut.contains(",0,1]") && cut.contains(",0,2]"), "{cut}");
}

#[test]
fn texts_of_several_lines_are_shown_line_by_line() {
    let old = ["one", "two", "three", "four", "five", "six", "seven", "C:\\new", "end"];
    let mut new = old;
    new[1] = "zwei";
    new[7] = "C:\new";
    let removed = [&old[..2], &old[4..]].concat();
    let long = |middle: &str| format!("{}{middle}{}", "a".repeat(500), "z".repeat(500));
    let many = |word: &str| (0..60).map(|at| format!("{word}{at}")).collect::<Vec<_>>();
    let (one, two) = (many("a"), many("b"));
    let lines = |lines: &[String]| text(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let all = [
        shown(&text(&old), &text(&new)),
        shown(&text(&old), &text(&removed)),
        shown(&text(&["x", &long("1")]), &text(&["x", &long("2")])),
        shown(&lines(&one), &lines(&two)),
        shown(&text(&["a", ""]), "\"a\""),
        shown(&text(&["a\r", "b"]), &text(&["a", "\x1b[2Jb"])),
    ];
    assert_golden("lines.txt", &all.join("\n"));
}

#[test]
fn very_many_lines_are_shown_as_a_string() {
    let old = format!("\"{}\"", "\\n".repeat(5000));
    let new = format!("\"{}x\"", "\\n".repeat(5000));
    let shown = shown(&old, &new);
    assert_eq!(shown.lines().count(), 2);
    assert!(shown.ends_with("\\n\\nx\" (5001 characters)\n"), "{shown}");
}

#[test]
fn the_rest_is_counted() {
    let row = |value: &str| format!("[{}]", [value; 22].join(","));
    let shown = shown(&row("1"), &row("2"));
    assert_eq!(shown.lines().count(), 41);
    assert!(shown.ends_with("\n… and 2 more differences\n"), "{shown}");
}

#[test]
fn no_text_of_others_reaches_a_terminal_raw() {
    let bad = "\0\x07\x08\x1b[2J\x7f\u{85}\u{9b}31m\u{202e}\u{e0041}";
    let key = serde_json::to_string(bad).unwrap();
    let object = |value: &str| format!("{{{key}:{value}}}");
    for (old, new) in [
        (object(&key), object("1")),
        (object("[1]"), object(&format!("[{key}]"))),
        (object(&text(&["a", bad])), object(&text(&["b", bad]))),
        (object("1"), "{}".to_owned()),
    ] {
        let shown = shown(&old, &new);
        assert!(!shown.contains(|letter: char| letter.is_control() && letter != '\n'), "{shown}");
        assert!(!shown.contains('\u{202e}') && shown.contains("\\u202e"), "{shown}");
    }
}
