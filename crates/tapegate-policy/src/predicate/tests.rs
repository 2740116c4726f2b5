//! Predicates over arguments, honest and not.

use super::*;

fn predicate(path: &str, test: Test) -> Predicate {
    let path_text = path.to_owned();
    Predicate { path: Path::read(path).unwrap(), path_text, test, not: false, every: false }
}

fn glob(path: &str, text: &str) -> Predicate {
    predicate(path, Test::Glob(Glob::parse(text).unwrap()))
}

fn range(min: Option<&str>, max: Option<&str>) -> Test {
    Test::Range { min: min.map(str::to_owned), max: max.map(str::to_owned) }
}

#[test]
fn text_is_compared_by_its_meaning_however_it_is_escaped() {
    let work = glob("path", "/data/*");
    assert!(work.holds(br#"{"path":"/data/a"}"#));
    assert!(work.holds(br#"{ "\u0070ath" : "\/d\u0061ta/a" }"#));
    assert!(!work.holds(br#"{"path":"/etc/a"}"#));
    assert!(!work.holds(br#"{"Path":"/data/a"}"#));
    assert!(!work.holds(br#"{"path":["/data/a"]}"#));
}

#[test]
fn a_path_that_leads_nowhere_holds_nothing_but_that_it_is_not_there() {
    for arguments in [&b"{}"[..], b"[]", b"7", b"\"path\"", br#"{"a":{"path":"x"}}"#] {
        assert!(!glob("path", "*").holds(arguments));
        assert!(!Predicate { not: true, ..glob("path", "*") }.holds(arguments));
        assert!(!predicate("path", Test::Exists).holds(arguments));
        assert!(Predicate { not: true, ..predicate("path", Test::Exists) }.holds(arguments));
    }
    assert!(predicate("path", Test::Exists).holds(br#"{"path":null}"#));
}

#[test]
fn what_is_no_json_holds_nothing() {
    for arguments in [&b""[..], b"{", br#"{"path":"x"} {}"#, b"{\"path\":\"\xff\"}"] {
        assert!(!glob("path", "*").holds(arguments));
        assert!(!Predicate { not: true, ..predicate("q", Test::Exists) }.holds(arguments));
    }
}

#[test]
fn what_stops_a_call_needs_one_value_and_what_lets_it_through_needs_all() {
    let mixed = br#"{"paths":["/data/a","/etc/passwd"]}"#;
    let good = br#"{"paths":["/data/a","/data/b"]}"#;
    let some = glob("paths[*]", "/data/*");
    let every = Predicate { every: true, ..glob("paths[*]", "/data/*") };
    assert!(some.holds(mixed) && !every.holds(mixed));
    assert!(some.holds(good) && every.holds(good));
    let outside = Predicate { not: true, ..glob("paths[*]", "/data/*") };
    assert!(outside.holds(mixed) && !outside.holds(good));
    assert!(!every.holds(br#"{"paths":[]}"#));
}

#[test]
fn a_key_that_comes_twice_cannot_hide_one_of_its_values() {
    let twice = br#"{"path":"/data/a","path":"/etc/passwd"}"#;
    assert!(!Predicate { every: true, ..glob("path", "/data/*") }.holds(twice));
    assert!(glob("path", "/etc/*").holds(twice));
}

#[test]
fn a_value_of_another_kind_is_not_known_to_be_harmless() {
    let list = br#"{"path":["/etc/passwd"]}"#;
    let lets = Predicate { not: true, every: true, ..glob("path", "/etc/*") };
    let stops = Predicate { not: true, ..glob("path", "/data/*") };
    assert!(!lets.holds(list));
    assert!(stops.holds(list));
}

#[test]
fn numbers_are_compared_exactly() {
    let most = predicate("n", range(None, Some("9007199254740992")));
    assert!(most.holds(br#"{"n":9007199254740992}"#));
    assert!(!most.holds(br#"{"n":9007199254740993}"#));
    assert!(!most.holds(br#"{"n":9007199254740992.0000000001}"#));
    assert!(!most.holds(br#"{"n":"5"}"#));
    assert!(!most.holds(br#"{"n":1e99999999999999999999}"#));
    let both = predicate("n", range(Some("1"), Some("1e2")));
    assert!(both.holds(br#"{"n":1.0}"#) && both.holds(br#"{"n":100}"#));
    assert!(!both.holds(br#"{"n":0.999}"#) && !both.holds(br#"{"n":101}"#));
}

#[test]
fn one_of_several_values_is_found_by_value() {
    let texts = ["\"a/b\"", "5", "true", "null"].map(str::to_owned).to_vec();
    let one = predicate("x", Test::OneOf(texts));
    for good in ["\"a\\/b\"", "5.0", "50e-1", "true", "null"] {
        assert!(one.holds(format!("{{\"x\":{good}}}").as_bytes()), "{good}");
    }
    for bad in ["\"5\"", "\"true\"", "false", "[5]", "{}", "6"] {
        assert!(!one.holds(format!("{{\"x\":{bad}}}").as_bytes()), "{bad}");
    }
}

#[test]
fn expressions_are_searched_for() {
    let regex = predicate("sql", Test::Regex(Regex::new(r"(?i)\bdrop\s+table\b").unwrap()));
    assert!(regex.holds(br#"{"sql":"x; DROP  TABLE y"}"#));
    assert!(!regex.holds(br#"{"sql":"backdrop table"}"#));
}

#[test]
fn however_deep_arguments_are_they_are_walked_once() {
    let depth = 200_000;
    let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let anywhere = predicate("..a", range(Some("1"), Some("1")));
    assert!(anywhere.holds(text.as_bytes()));
    assert!(!predicate("..b", Test::Exists).holds(text.as_bytes()));
}

#[test]
fn predicates_say_what_they_want() {
    assert_eq!(glob("a.b", "x*").to_string(), "`a.b` is like `x*`");
    let outside = Predicate { not: true, ..predicate("n", range(Some("1"), None)) };
    assert_eq!(outside.to_string(), "`n` is not at least 1");
}
