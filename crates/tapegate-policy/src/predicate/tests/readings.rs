//! All tests use the same readings of a value.

use tapegate_core::lenient::reading::ScanBudget;

use super::*;

fn arguments(key: &str, text: &str) -> Vec<u8> {
    let mut raw = format!("{{\"{key}\":").into_bytes();
    tapegate_core::json::write_str(&mut raw, text);
    raw.push(b'}');
    raw
}

fn regex(path: &str, text: &str) -> Predicate {
    predicate(path, ValueTest::Regex(Regex::new(text).unwrap()))
}

#[test]
fn a_path_is_stopped_in_every_spelling_by_every_test() {
    let tests = [
        glob("x", "/s/k"),
        glob("x", "*/s/k"),
        one_of("x", &["\"/s/k\""]),
        one_of("x", &["\"/a\"", "\"/s/k\""]),
        regex("x", "^/s/k$"),
        under("x", "/s/k"),
    ];
    let long = format!("{}/a/b%2Fc/../../s/k", "/.".repeat(9_000));
    for spelled in [
        "/s/k",
        "/s/k/",
        "/s/k//",
        "/s/k/./",
        "/s/./k",
        "/s//k",
        "/s/x/../k",
        "file:///s/k",
        "FILE:/s/k",
        "~/../../../../s/k",
        "/s/k#x",
        "/s/k?x",
        "/s/k\u{fe0f}",
        "/s/\u{34f}k",
        "/a/b%2Fc/../../s%2Fk",
        "\\s\\k",
        &long,
    ] {
        for test in &tests {
            assert!(test.may_hold(&arguments("x", spelled)), "{test}: {spelled:.40}");
            let negated = match &test.test {
                ValueTest::Glob(glob) => predicate("x", ValueTest::Glob(glob.clone())),
                _ => continue,
            };
            assert!(!not(negated).must_hold(&arguments("x", spelled)), "{spelled:.40}");
        }
    }
    for test in &tests {
        assert!(!test.may_hold(&arguments("x", "/s/kk")), "{test}");
        assert!(!test.may_hold(&arguments("x", "/t/k/")), "{test}");
    }
    assert!(glob("x", "*.env").may_hold(&arguments("x", "/p/.env/")));
}

#[test]
fn json_that_only_tolerant_parsers_take_is_looked_into() {
    for (test, text) in [
        (one_of("o.force", &["true"]), r#"{"\u0066orce": true, "x": NaN}"#),
        (one_of("..force", &["true"]), r#"{"force": true, "x": NaN}"#),
        (one_of("..force", &["true"]), r#"{"\u0066orce": true, "x": NaN}"#),
        (one_of("o.force", &["true"]), r#""\x66orce": true"#),
        (one_of("o.force", &["true"]), "a=1&f%6frce=true"),
        (one_of("o.force", &["true"]), "{'force', 'x'}"),
        (one_of("..force", &["true"]), "{f\\u006frce, x}"),
        (under("o[*].path", "/etc"), r#"[{"\u0070ath":"/etc/passwd","x":NaN}]"#),
        (glob("o[*]", "/etc/*"), r#"["\u002fetc/passwd",NaN]"#),
        (glob("o", "/etc/*"), r#"["\u002fetc/passwd",NaN]"#),
        (one_of("o", &["\"production\""]), r#"["\u0070roduction",NaN]"#),
        (regex("o", "^production$"), r#"{'\u0070roduction', 5}"#),
        (predicate("o.force", ValueTest::Exists), r#"{"\u0066orce": true, "x": NaN}"#),
    ] {
        assert!(test.may_hold(&arguments("o", text)), "{test}: {text}");
    }
    let text = r#"{"\u0066orce": true, "x": NaN}"#;
    assert!(!one_of("o.force", &["false"]).optional().must_hold(&arguments("o", text)));
    assert!(!not(predicate("o.force", ValueTest::Exists)).must_hold(&arguments("o", text)));
    for prose in
        ["[link](http://a.example) and more", "{ run(); }", "I enforce nothing", "[x] done"]
    {
        assert!(!one_of("..force", &["true"]).may_hold(&arguments("content", prose)), "{prose}");
        assert!(!regex("content", "PRIVATE KEY").may_hold(&arguments("content", prose)), "{prose}");
    }
}

#[test]
fn the_case_of_letters_counts_in_expressions_only() {
    for test in [
        one_of("m", &["\"POST\"", "\"DELETE\""]),
        glob("m", "DELETE"),
        glob("m", "DEL*"),
        glob("m", "D[E-F]LET?"),
        regex("m", "(?i)DELETE"),
    ] {
        for text in ["delete", "Delete", "DELETE", "\u{ff24}elete"] {
            assert!(test.may_hold(&arguments("m", text)), "{test}: {text}");
        }
        assert!(!test.may_hold(&arguments("m", "get")), "{test}");
    }
    assert!(!glob("m", "DELETE").must_hold(&arguments("m", "delete")));
    assert!(!regex("m", "DELETE").may_hold(&arguments("m", "delete")));
}

#[test]
fn a_list_is_also_a_command_line() {
    let push = regex("c", r"git\s+push\s.*--force");
    assert!(push.may_hold(br#"{"c":["git","push","origin","--force"]}"#));
    assert!(push.may_hold(br#"{"c":[["git","push"],["origin","--force"]]}"#));
    assert!(glob("c", "rm -rf *").may_hold(br#"{"c":["rm","-rf","/home/me"]}"#));
    assert!(glob("c", "sh -c 'a b'").may_hold(br#"{"c":["sh","-c","a b"]}"#));
    assert!(one_of("c", &["\"a b\""]).may_hold(br#"{"c":["a","b"]}"#));
    assert!(!push.may_hold(br#"{"c":["git","pull","--force"]}"#));
}

#[test]
fn a_document_is_stopped_only_for_what_is_in_it() {
    let line = "#include <x.h> /* a%20b; c\\d? e+f */ \u{fb01}n; // 100%\n\tint x;\r\n";
    for size in [1, 100, 1_000] {
        let text = line.repeat(size);
        for test in [regex("x", "PRIVATE KEY"), glob("x", "*PRIVATE KEY*")] {
            let found = test.may_hold(&arguments("x", &text));
            assert!(!found, "{test} {size}");
            assert!(test.may_hold(&arguments("x", &format!("{text}PRIVATE KEY"))), "{test} {size}");
        }
    }
}

#[test]
fn work_is_bounded_by_the_budget_and_what_is_beyond_it_stops() {
    let texts = vec!["\"/data/a%20b\""; 2_000].join(",");
    let deep = format!("{}{texts}{}", "[".repeat(60), "]".repeat(60));
    let test = ValueTest::Glob(Glob::parse("/etc/*").unwrap());
    let coerced = CoercedTest::new(&test);
    let flat = format!("[{texts}]");
    let budget = ScanBudget::new(flat.len());
    let all = budget.remaining();
    assert!(!coerced.may_match(&test, flat.as_bytes(), &budget));
    assert!(all - budget.remaining() < 64 * flat.len(), "{}", all - budget.remaining());
    let spent = ScanBudget::new(0);
    spent.spend(all);
    assert!(coerced.may_match(&test, deep.as_bytes(), &spent));
    // A list is joined once, not again for each list inside it.
    let budget = ScanBudget::new(deep.len());
    coerced.may_match(&test, deep.as_bytes(), &budget);
    let once = 128 * deep.len();
    assert!(all.max(ScanBudget::new(deep.len()).remaining()) - budget.remaining() < once);
}
