//! Predicates on ordinary and hostile arguments.

mod optional;
mod readings;
mod texts;
mod urls;

use super::*;

fn predicate(path: &str, test: ValueTest) -> Predicate {
    Predicate::new(JsonPath::read(path).unwrap(), path.to_owned(), test, false)
}

fn not(predicate: Predicate) -> Predicate {
    Predicate { not: true, ..predicate }
}

fn glob(path: &str, text: &str) -> Predicate {
    predicate(path, ValueTest::Glob(Glob::parse(text).unwrap()))
}

fn range(min: Option<&str>, max: Option<&str>) -> ValueTest {
    ValueTest::Range { min: min.map(str::to_owned), max: max.map(str::to_owned) }
}

fn one_of(path: &str, texts: &[&str]) -> Predicate {
    predicate(path, ValueTest::OneOf(texts.iter().map(|text| (*text).to_owned()).collect()))
}

fn under(path: &str, folder: &str) -> Predicate {
    predicate(path, ValueTest::Under(vec![FolderPath::parse(folder).unwrap()]))
}

/// Arguments with this JSON under `x`.
fn x(value: &str) -> Vec<u8> {
    format!("{{\"x\":{value}}}").into_bytes()
}

#[test]
fn text_is_compared_by_its_meaning_however_it_is_escaped() {
    let work = glob("path", "/data/*");
    assert!(work.must_hold(br#"{"path":"/data/a"}"#));
    assert!(work.must_hold(br#"{ "\u0070ath" : "\/d\u0061ta/a" }"#));
    assert!(!work.must_hold(br#"{"path":"/etc/a"}"#));
    assert!(!work.must_hold(br#"{"Path":"/data/a"}"#));
    assert!(!work.must_hold(br#"{"path":["/data/a"]}"#));
    assert!(!work.may_hold(br#"{"path":"/etc/a"}"#));
}

#[test]
fn a_path_that_leads_nowhere_holds_nothing_but_that_it_is_not_there() {
    for arguments in
        [&b"{}"[..], b"[]", b"7", b"\"x\"", br#"{"a":{"path":"x"}}"#, br#"{"a":"path"}"#]
    {
        assert!(!glob("path", "*").must_hold(arguments));
        assert!(!not(glob("path", "*")).must_hold(arguments));
        assert!(!predicate("path", ValueTest::Exists).must_hold(arguments));
        assert!(not(predicate("path", ValueTest::Exists)).must_hold(arguments));
        assert!(!glob("path", "*").may_hold(arguments));
        assert!(!not(glob("path", "*")).may_hold(arguments));
        assert!(!predicate("path", ValueTest::Exists).may_hold(arguments));
        assert!(not(predicate("path", ValueTest::Exists)).may_hold(arguments));
    }
    assert!(predicate("path", ValueTest::Exists).must_hold(br#"{"path":null}"#));
    assert!(!not(predicate("path", ValueTest::Exists)).must_hold(br#"{"path":null}"#));
    // A server may treat null as absent.
    assert!(not(predicate("path", ValueTest::Exists)).may_hold(br#"{"path":null}"#));
}

#[test]
fn arguments_that_are_no_json_let_nothing_through_and_stop_everything() {
    for arguments in [&b""[..], b"{", br#"{"path":"x"} {}"#, b"{\"path\":\"\xff\"}"] {
        assert!(!glob("path", "*").must_hold(arguments));
        assert!(!not(predicate("q", ValueTest::Exists)).must_hold(arguments));
        assert!(glob("path", "*").may_hold(arguments));
        assert!(not(predicate("q", ValueTest::Exists)).may_hold(arguments));
    }
}

#[test]
fn what_stops_a_call_needs_one_value_and_what_lets_it_through_needs_all() {
    let mixed = br#"{"paths":["/data/a","/etc/passwd"]}"#;
    let good = br#"{"paths":["/data/a","/data/b"]}"#;
    let work = glob("paths[*]", "/data/*");
    assert!(work.may_hold(mixed) && !work.must_hold(mixed));
    assert!(work.may_hold(good) && work.must_hold(good));
    let outside = not(glob("paths[*]", "/data/*"));
    assert!(outside.may_hold(mixed) && !outside.may_hold(good));
    assert!(!work.must_hold(br#"{"paths":[]}"#));
}

#[test]
fn a_key_that_comes_twice_cannot_hide_one_of_its_values() {
    let twice = br#"{"path":"/data/a","path":"/etc/passwd"}"#;
    assert!(!glob("path", "/data/*").must_hold(twice));
    assert!(glob("path", "/etc/*").may_hold(twice));
    for twin in ["Path", "PATH", "p_ath", "pa-th", "path ", "path\\u0000x", "ｐath", "pat\\u0068"]
    {
        let twins = format!("{{\"path\":\"/data/a\",\"{twin}\":\"/etc/passwd\"}}");
        assert!(!glob("path", "/data/*").must_hold(twins.as_bytes()), "{twin}");
        assert!(glob("path", "/etc/*").may_hold(twins.as_bytes()), "{twin}");
        let alone = format!("{{\"{twin}\":\"/etc/passwd\"}}");
        assert!(glob("path", "/etc/*").may_hold(alone.as_bytes()), "{twin}");
        assert!(not(under("path", "/data")).may_hold(alone.as_bytes()), "{twin}");
        assert!(!not(predicate("path", ValueTest::Exists)).must_hold(alone.as_bytes()), "{twin}");
    }
    assert!(glob("file_path", "/etc/*").may_hold(br#"{"filePath":"/etc/passwd"}"#));
    assert!(!glob("path", "/etc/*").may_hold(br#"{"paths":"/etc/passwd"}"#));
}

#[test]
fn a_value_of_another_kind_is_not_known_to_be_harmless() {
    let list = br#"{"path":["/etc/passwd"]}"#;
    assert!(!not(glob("path", "/etc/*")).must_hold(list));
    assert!(not(glob("path", "/data/*")).may_hold(list));
    assert!(!not(one_of("force", &["true"])).must_hold(br#"{"force":"true"}"#));
    assert!(not(one_of("force", &["true"])).must_hold(br#"{"force":false}"#));
}

#[test]
fn numbers_are_compared_exactly() {
    let most = predicate("n", range(None, Some("9007199254740992")));
    assert!(most.must_hold(br#"{"n":9007199254740992}"#));
    assert!(!most.must_hold(br#"{"n":9007199254740993}"#));
    assert!(!most.must_hold(br#"{"n":9007199254740992.0000000001}"#));
    assert!(!most.must_hold(br#"{"n":"5"}"#));
    assert!(!most.must_hold(br#"{"n":1e99999999999999999999}"#));
    let both = predicate("n", range(Some("1"), Some("1e2")));
    assert!(both.must_hold(br#"{"n":1.0}"#) && both.must_hold(br#"{"n":100}"#));
    assert!(!both.must_hold(br#"{"n":0.999}"#) && !both.must_hold(br#"{"n":101}"#));
}

#[test]
fn one_of_several_values_is_found_by_value() {
    let one = one_of("x", &["\"a/b\"", "5", "true", "null"]);
    for good in ["\"a\\/b\"", "5.0", "50e-1", "true", "null"] {
        assert!(one.must_hold(&x(good)), "{good}");
    }
    for bad in ["\"5\"", "\"true\"", "false", "[5]", "{}", "6"] {
        assert!(!one.must_hold(&x(bad)), "{bad}");
    }
}

#[test]
fn whatever_could_be_read_as_true_or_false_stops() {
    let (yes, no) = (one_of("x", &["true"]), one_of("x", &["false"]));
    for value in [
        "true",
        "\"true\"",
        "\"True\"",
        "\" TRUE \"",
        "\"yes\"",
        "\"Y\"",
        "\"on\"",
        "\"t\"",
        "\"1\"",
        "1",
        "1.0",
        "2",
        "-1",
        "\"1.0\"",
        "[true]",
        "[[1]]",
        "\"[true]\"",
        "\"\\\"true\\\"\"",
        "\"ｔｒｕｅ\"",
        "[]",
        "{}",
        "\"anything\"",
        "\"false\"",
        "1e400",
    ] {
        assert!(yes.may_hold(&x(value)), "{value}");
        assert!(value == "true" || !yes.must_hold(&x(value)), "{value}");
    }
    for value in ["false", "0", "-0.0", "0e9", "null", "\"\""] {
        assert!(!yes.may_hold(&x(value)), "{value}");
    }
    for value in [
        "false",
        "\"false\"",
        "\"no\"",
        "\"N\"",
        "\"off\"",
        "\"f\"",
        "\"0\"",
        "0",
        "0.0",
        "null",
        "\"\"",
        "\" \"",
        "[false]",
        "[]",
        "{}",
        "\"null\"",
        "1e-400",
        "\"anything\"",
    ] {
        assert!(no.may_hold(&x(value)), "{value}");
    }
    for value in ["true", "\"true\"", "\"True\"", "1", "[true]"] {
        assert!(!no.may_hold(&x(value)), "{value}");
    }
}

#[test]
fn whatever_could_be_read_as_a_number_in_the_range_stops() {
    let large = predicate("x", range(Some("1000"), None));
    for value in [
        "5000",
        "\"5000\"",
        "\" 5000 \"",
        "\"+5000\"",
        "\"005000\"",
        "\"5_000\"",
        "\"5,000\"",
        "\"5e3\"",
        "\"0x1388\"",
        "\"0o11610\"",
        "\"0b1001110001000\"",
        "5e3",
        "999.99999999999999999",
        "999.5",
        "1e400",
        "1e99999999999999999999",
        "-1e99999999999999999999",
        "\"NaN\"",
        "\"Infinity\"",
        "\"five thousand\"",
        "\"$5000\"",
        "\"5k\"",
        "[5000]",
        "[[5000]]",
        "\"[5000]\"",
        "{\"value\":5000}",
        "{}",
        "\"٥٠٠٠\"",
        "\"５０００\"",
        "[1,5000]",
        "\"\\\"5000\\\"\"",
    ] {
        assert!(large.may_hold(&x(value)), "{value}");
    }
    for value in [
        "5",
        "\"5\"",
        "999",
        "\"999.0\"",
        "true",
        "false",
        "null",
        "\"\"",
        "[]",
        "[5]",
        "\"-5000\"",
        "\"1,0\"",
    ] {
        assert!(!large.may_hold(&x(value)), "{value}");
    }
    let one = predicate("x", range(Some("1"), Some("1")));
    assert!(
        one.may_hold(&x("true")) && one.may_hold(&x("\"1\"")) && one.may_hold(&x("4294967297"))
    );
    let zero = predicate("x", range(None, Some("0")));
    assert!(zero.may_hold(&x("null")) && zero.may_hold(&x("false")) && zero.may_hold(&x("\"\"")));
    assert!(not(large).may_hold(&x("\"5000\"")));
}

#[test]
fn whatever_could_be_read_as_the_text_stops() {
    let etc = glob("x", "/etc/*");
    for value in [
        "\"/etc/passwd\"",
        "\" /etc/passwd\"",
        "\"/etc/passwd\\u0000.txt\"",
        "\"/tmp/../etc/passwd\"",
        "\"/./etc//passwd\"",
        "\"%2Fetc%2Fpasswd\"",
        "\"/%2565tc/passwd\"",
        "\"\\\\etc\\\\passwd\"",
        "\"file:///etc/passwd\"",
        "[\"/etc/passwd\"]",
        "[[\"/etc/passwd\"]]",
        "[\"/data/a\",\"/etc/passwd\"]",
        "\"[\\\"/etc/passwd\\\"]\"",
        "\"\\\"/etc/passwd\\\"\"",
        "{\"path\":\"/etc/passwd\"}",
        "\"/ｅtc/passwd\"",
    ] {
        assert!(etc.may_hold(&x(value)), "{value}");
    }
    for value in ["\"/data/etc/passwd\"", "\"etc\"", "5", "null", "true", "[]", "{}", "\"\""] {
        assert!(!etc.may_hold(&x(value)), "{value}");
    }
    let main = one_of("x", &["\"main\""]);
    assert!(
        main.may_hold(&x("\"main \""))
            && main.may_hold(&x("\"m%61in\""))
            && main.may_hold(&x("[\"main\"]"))
    );
    assert!(main.may_hold(&x("\"Main\"")) && !main.must_hold(&x("\"Main\"")));
    assert!(!main.may_hold(&x("\"maintenance\"")));
    let umlaut = glob("x", "*für*");
    assert!(umlaut.may_hold(&x("\"a fu\u{308}r b\"")) && umlaut.may_hold(&x("\"a f%C3%BCr b\"")));
    assert!(!umlaut.must_hold(&x("\"a fu\u{308}r b\"")));
    let apart = glob("x", "*fu\u{308}r*");
    assert!(apart.may_hold(&x("\"a für b\"")));
    for (wanted, value) in [
        ("\"5\"", "5"),
        ("\"5\"", "5.0"),
        ("5", "\"5\""),
        ("5", "\"5.0\""),
        ("5", "[5]"),
        ("\"true\"", "true"),
        ("\"yes\"", "true"),
        ("\"true\"", "1"),
        ("1", "true"),
        ("0", "false"),
        ("0", "null"),
        ("0", "\"\""),
        ("null", "\"null\""),
        ("null", "\"\""),
        ("\"null\"", "null"),
        ("\"\"", "null"),
        ("9007199254740992", "9007199254740993"),
        ("0", "4294967296"),
    ] {
        assert!(one_of("x", &[wanted]).may_hold(&x(value)), "{wanted} {value}");
        assert!(!one_of("x", &[wanted]).must_hold(&x(value)), "{wanted} {value}");
    }
    for (wanted, value) in [
        ("\"5\"", "6"),
        ("5", "\"6\""),
        ("5", "\"x\""),
        ("null", "0"),
        ("null", "false"),
        ("\"a\"", "null"),
        ("5", "true"),
        ("\"no\"", "true"),
        ("7", "9007199254740993"),
        ("\"a\"", "\"b\""),
        ("\"abc\"", "\"ab\""),
    ] {
        assert!(!one_of("x", &[wanted]).may_hold(&x(value)), "{wanted} {value}");
    }
}

#[test]
fn lists_texts_and_single_values_are_found_in_each_other() {
    let etc = glob("paths[*]", "/etc/*");
    for paths in [
        r#"["/etc/passwd"]"#,
        r#""[\"/etc/passwd\"]""#,
        r#""/etc/passwd""#,
        r#"[["/etc/passwd"]]"#,
        r#"{"0":"/etc/passwd"}"#,
        r#""/tmp/a,/etc/passwd""#,
        r#""['/etc/passwd']""#,
        r#"["[\"/etc/passwd\"]"]"#,
        r#""[\"[\\\"/etc/passwd\\\"]\"]""#,
        r#""\"[\\\"/etc/passwd\\\"]\"""#,
    ] {
        let arguments = format!("{{\"paths\":{paths}}}");
        assert!(etc.may_hold(arguments.as_bytes()), "{paths}");
        let whole = format!("{:?}", arguments);
        assert!(etc.may_hold(whole.as_bytes()), "{whole}");
        assert!(not(glob("paths[*]", "/data/*")).may_hold(arguments.as_bytes()), "{paths}");
    }
    let force = one_of("options.force", &["true"]);
    for arguments in [
        r#"{"options":{"force":true}}"#,
        r#"{"options":"{\"force\":true}"}"#,
        r#"{"Options":{"FORCE":"yes"}}"#,
        r#"{"options":[{"force":1}]}"#,
        r#"[{"options":{"force":true}}]"#,
        r#"{"options":"force: true"}"#,
        r#"{"options":"{'force': True}"}"#,
        r#"{"options":"a=1&force=true"}"#,
    ] {
        assert!(force.may_hold(arguments.as_bytes()), "{arguments}");
    }
    assert!(!force.may_hold(br#"{"options":"none"}"#));
    assert!(one_of("force", &["true"]).may_hold(br#"[true]"#));
    assert!(one_of("items[0].id", &["5"]).may_hold(br#"{"items":{"id":"5"}}"#));
    assert!(one_of("items[*].id", &["5"]).may_hold(br#"{"items":{"id":"5"}}"#));
    assert!(one_of("..id", &["5"]).may_hold(br#"{"a":"{\"b\":[{\"ID\":5}]}"}"#));
}

#[test]
fn what_is_too_deep_or_too_wide_to_follow_stops_and_lets_nothing_through() {
    let depth = 200_000;
    let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let anywhere = predicate("..a", range(Some("1"), Some("1")));
    assert!(anywhere.may_hold(text.as_bytes()));
    assert!(predicate("..b", ValueTest::Exists).may_hold(text.as_bytes()));
    assert!(!not(predicate("..b", ValueTest::Exists)).must_hold(text.as_bytes()));
    let mut json = "5".to_owned();
    for _ in 0..12 {
        json = format!("{:?}", format!("[{json}]"));
    }
    assert!(one_of("x", &["7"]).may_hold(&x(&json)));
    let steep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    assert!(predicate("..a..a..a..a..b", ValueTest::Exists).may_hold(steep.as_bytes()));
    assert!(!predicate("..a..b", ValueTest::Exists).may_hold(steep.as_bytes()));
}

#[test]
fn a_path_under_the_folder_is_found_by_every_reading_or_by_one() {
    let data = under("path", "/data");
    let path = |path: &str| format!("{{\"path\":{path:?}}}").into_bytes();
    for good in ["/data", "/data/a", "/data/./b/../c"] {
        assert!(data.must_hold(&path(good)) && data.may_hold(&path(good)), "{good}");
        assert!(!not(under("path", "/data")).may_hold(&path(good)), "{good}");
        assert!(!not(under("path", "/data")).must_hold(&path(good)), "{good}");
    }
    for bad in ["/data/../etc/passwd", "/data/%2e%2e/etc", "data/a", "~/data", "file:///data/a"] {
        assert!(!data.must_hold(&path(bad)), "{bad}");
        assert!(not(under("path", "/data")).may_hold(&path(bad)), "{bad}");
    }
    for list in [
        r#"{"path":["/data/a"]}"#,
        r#"{"path":"[\"/data/a\"]"}"#,
        r#"{"path":null}"#,
        r#"{"path":5}"#,
    ] {
        assert!(!data.must_hold(list.as_bytes()), "{list}");
        assert!(not(under("path", "/data")).may_hold(list.as_bytes()), "{list}");
    }
    assert!(under("path", "/etc").may_hold(br#"{"path":["/etc/passwd"]}"#));
    assert!(under("paths[*]", "/data").must_hold(br#"{"paths":["/data/a","/data"]}"#));
    assert!(!under("paths[*]", "/data").must_hold(br#"{"paths":["/data/a","/etc"]}"#));
}

#[test]
fn a_glob_lets_no_path_through_that_goes_up() {
    let tmp = glob("path", "/tmp/*");
    for path in [
        "/tmp/../etc/passwd",
        "/tmp/..",
        "/tmp/a/..",
        "/tmp/..\\\\etc",
        "/tmp/%2e%2e/etc",
        "/tmp/%252e./etc",
        "/tmp/..;/etc",
        "/tmp/..?x",
        "/tmp/{..,x}/etc",
    ] {
        let arguments = format!("{{\"path\":\"{path}\"}}");
        assert!(!tmp.must_hold(arguments.as_bytes()), "{path}");
        assert!(not(glob("path", "/tmp/*")).may_hold(arguments.as_bytes()), "{path}");
    }
    for path in ["/tmp/a..b", "/tmp/...", "/tmp/100%"] {
        assert!(tmp.must_hold(format!("{{\"path\":\"{path}\"}}").as_bytes()), "{path}");
    }
    assert!(glob("range", "v1..*").must_hold(br#"{"range":"v1../.."}"#));
}

#[test]
fn expressions_are_searched_for() {
    let regex = predicate("sql", ValueTest::Regex(Regex::new(r"(?i)\bdrop\s+table\b").unwrap()));
    assert!(regex.must_hold(br#"{"sql":"x; DROP  TABLE y"}"#));
    assert!(!regex.must_hold(br#"{"sql":"backdrop table"}"#));
    assert!(regex.may_hold(br#"{"sql":["drop%20table y"]}"#));
    assert!(!regex.may_hold(br#"{"sql":"backdrop table"}"#));
}

#[test]
fn predicates_say_what_they_want() {
    assert_eq!(glob("a.b", "x*").to_string(), "`a.b` matches `x*`");
    let outside = not(predicate("n", range(Some("1"), None)));
    assert_eq!(outside.to_string(), "`n` is not at least 1");
    assert_eq!(under("p", "/data").to_string(), "`p` is under `/data`");
    assert_eq!(one_of("f", &["true"]).possible_match_text(), "`f` could be read as true");
    assert_eq!(glob("a", "x*").possible_match_text(), "`a` could be read so that it matches `x*`");
}

#[test]
fn a_key_is_found_behind_brackets_and_what_is_not_seen() {
    let force = one_of("force", &["true"]);
    for key in ["force[]", "FORCE[]", "\\ufeffforce", "fo\\u00adrce", "\\u200bforce[]", "for_ce"] {
        let arguments = format!("{{\"{key}\":true}}");
        assert!(force.may_hold(arguments.as_bytes()), "{key}");
        assert!(!force.must_hold(arguments.as_bytes()), "{key}");
    }
    assert!(!force.may_hold(br#"{"force[0]x":true,"enforce":true}"#));
}

#[test]
fn a_word_for_nothing_is_nought_to_whoever_wants_a_number() {
    let nought = predicate("x", range(Some("0"), Some("0")));
    for value in [r#""null""#, r#""None""#, r#"" null ""#, r#""""#, "null", "[]"] {
        assert!(nought.may_hold(&x(value)), "{value}");
    }
    assert!(!predicate("x", range(Some("1"), None)).may_hold(&x("null")));
}
