//! Tests of differences as they are shown to people.

use super::*;

/// The differences, one per line: `path: old > new`.
fn shown(old: &str, new: &str) -> String {
    shown_with(old, new, &[], 100)
}

fn shown_with(old: &str, new: &str, ignored: &[&str], listed_max: usize) -> String {
    let ignored: Vec<JsonPath> = ignored.iter().map(|path| JsonPath::read(path).unwrap()).collect();
    let terms = DiffOptions { root: JsonLocation::default(), ignored: &ignored, listed_max };
    let found = diff(old.as_bytes(), new.as_bytes(), &terms).unwrap();
    let text = |raw: &[u8]| String::from_utf8(raw.to_vec()).unwrap();
    let line = |found: &JsonDifference<'_>| match found.change {
        ValueChange::Added(new) => format!("{}: > {}", found.location, text(new)),
        ValueChange::Removed(old) => format!("{}: {} >", found.location, text(old)),
        ValueChange::Value { old, new } => {
            format!("{}: {} > {}", found.location, text(old), text(new))
        }
        ValueChange::Kind { old, new } => {
            format!("{}: {} >> {}", found.location, text(old), text(new))
        }
    };
    let mut lines: Vec<String> = found.listed.iter().map(line).collect();
    if found.more > 0 {
        lines.push(format!("{} more", found.more));
    }
    lines.join("\n")
}

#[test]
fn spelling_is_no_difference() {
    for (old, new) in [
        (r#"{"a":1,"b":"é"}"#, r#" { "b" : "\u00e9", "a" : 1.0 } "#),
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"\u0061":[1e3]}"#, r#"{"a":[1000]}"#),
        (r#"[{"a":1,"b":2}]"#, r#"[{"b":2,"a":1}]"#),
        ("-0", "0.0"),
        ("[ ]", "[]"),
    ] {
        assert_eq!(shown(old, new), "", "{old} {new}");
    }
}

#[test]
fn members_are_compared_by_key() {
    let old = r#"{"z":1,"path":"a","gone":[1],"deep":{"x":{"y":true}}}"#;
    let new = r#"{"deep":{"x":{"y":false}},"path":"b","more":null,"z":"1"}"#;
    assert_eq!(
        shown(old, new),
        "z: 1 >> \"1\"\npath: \"a\" > \"b\"\ngone: [1] >\ndeep.x.y: true > false\nmore: > null"
    );
}

#[test]
fn the_last_of_several_members_counts() {
    assert_eq!(shown(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1,"b":2}"#), "a: 3 > 1");
}

#[test]
fn elements_that_belong_together_are_compared() {
    assert_eq!(shown("[1,2,3,4]", "[2,3,4]"), "[0]: 1 >");
    assert_eq!(shown("[1,2,3]", "[1,9,2,3]"), "[1]: > 9");
    assert_eq!(shown("[1,2,3]", "[1,9,3]"), "[1]: 2 > 9");
    assert_eq!(shown("[1,\"a\"]", "[1,true,\"a\"]"), "[1]: > true");
    let old = r#"{"tools":[{"name":"a","d":"x"},{"name":"b","d":"y"},{"name":"c"}]}"#;
    let new = r#"{"tools":[{"name":"new"},{"name":"b","d":"evil"},{"name":"c","t":1}]}"#;
    assert_eq!(
        shown(old, new),
        "tools[0]: {\"name\":\"a\",\"d\":\"x\"} >\n\
         tools[0]: > {\"name\":\"new\"}\n\
         tools[1].d: \"y\" > \"evil\"\n\
         tools[2].t: > 1"
    );
}

#[test]
fn what_is_ignored_is_not_compared() {
    let (old, new) = (r#"{"a":{"t":1,"x":1},"t":[1]}"#, r#"{"a":{"t":2,"x":2},"t":[2],"u":3}"#);
    assert_eq!(shown_with(old, new, &["..t", "u"], 9), "a.x: 1 > 2");
    assert_eq!(shown_with(old, new, &["t[0]", "a.*"], 9), "u: > 3");
    assert_eq!(shown_with(new, old, &["..t", "..x", "u"], 9), "");
}

#[test]
fn lists_have_an_end() {
    let row = |value: &str| format!("[{}]", [value; 50].join(","));
    let lines = shown_with(&row("1"), &row("2"), &[], 2);
    assert_eq!(lines, "[0]: 1 > 2\n[1]: 1 > 2\n48 more");
}

#[test]
fn long_arrays_are_compared_by_number() {
    let row = |last: &str| format!("[{}{last}]", "0,".repeat(5000));
    assert_eq!(shown(&row("1"), &row("2")), "[5000]: 1 > 2");
    assert_eq!(shown(&row("1"), &row("1,7")), "[5001]: > 7");
    assert_eq!(shown(&row("1,7"), &row("1")), "[5001]: 7 >");
    assert_eq!(shown("[0]", &row("1").replace('0', "5")).lines().count(), 100 + 1);
}

#[test]
fn strings_that_cannot_be_decoded_are_told_apart() {
    assert_eq!(shown(r#""\ud800""#, r#""\\ud800""#), r#"$: "\ud800" > "\\ud800""#);
    assert_eq!(shown(r#"{"\ud800":1}"#, r#"{"\uD800":1}"#), "");
}

#[test]
fn a_million_levels_need_no_stack_and_little_time() {
    let terms = DiffOptions { root: JsonLocation::default(), ignored: &[], listed_max: 9 };
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = |inner: &str| {
            let levels = 1_000_000;
            format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
        };
        let (old, new) = (deep("1"), deep("2"));
        let found = diff(old.as_bytes(), new.as_bytes(), &terms).unwrap();
        assert_eq!(found.count(), 1);
        let depth = found.listed[0].location.steps.len();
        assert!((PASSES_MAX..20).contains(&depth), "{depth}");
    }
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(1000), "]".repeat(1000));
    let (old, new) = (deep("1"), deep("2"));
    let found = diff(old.as_bytes(), new.as_bytes(), &terms).unwrap();
    assert_eq!(found.listed[0].location.steps.len(), DEPTH_MAX);
}

#[test]
fn what_is_no_json_is_a_fault() {
    let terms = DiffOptions { root: JsonLocation::default(), ignored: &[], listed_max: 9 };
    assert!(diff(b"{}", b"{", &terms).is_err());
    assert!(diff(b"[1] 2", b"[1]", &terms).is_err());
}
