//! URLs in the arguments of a rule that stops calls.

use super::*;

/// Spellings of one address that node's `new URL`, Python and browsers treat as the same.
const SPELLED: [&str; 27] = [
    "http://169.254.169.254/latest",
    "http://169.254.169.254",
    "HTTP://169.254.169.254/",
    "http://169.254.169.254:80/latest",
    "http://a@169.254.169.254/latest",
    "http://a:b@169.254.169.254:80/",
    "http://2852039166/",
    "http://0xa9fea9fe/latest",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http:169.254.169.254/latest",
    "http:\\\\169.254.169.254\\latest",
    "http:///169.254.169.254/latest",
    "ht\ttp://169.254.169.254/latest",
    " http://169.254.169.254/latest",
    "http://169\u{3002}254\u{3002}169\u{3002}254/latest",
    "http://169.254.169.254./latest",
    "http://x\\@169.254.169.254/latest",
    "http://169.254\u{fe0f}.169.254/latest",
    "http://169.254.169\u{34f}.254/latest",
    "URL:http://169.254.169.254/latest",
    "<http://169.254.169.254/latest>",
    " <url: http://169.254.169.254/latest> ",
    "http://169.254.169.254:8_0/latest",
    "http://169.254.169.254: 80/latest",
    "http://169.254.169.254:\u{668}\u{660}/latest",
    "http://169.254.169.254:080/latest",
];

/// Arguments with this text under `url`.
fn url(text: &str) -> Vec<u8> {
    let text: String = text
        .chars()
        .flat_map(|letter| match letter {
            '\t' => vec!['\\', 't'],
            '\\' => vec!['\\', '\\'],
            letter => vec![letter],
        })
        .collect();
    format!("{{\"url\":\"{text}\"}}").into_bytes()
}

fn regex(path: &str, text: &str) -> Predicate {
    predicate(path, ValueTest::Regex(Regex::new(text).unwrap()))
}

#[test]
fn the_host_of_any_scheme_is_found_behind_users_and_ports() {
    for (stopped, spellings) in [
        (
            "redis://prod:6379/*",
            &["redis://u:p@prod:6379/0", "redis://@prod:06379/0", "REDIS://PROD:6_379/0"][..],
        ),
        ("s3://bucket/*", &["s3://x@bucket/k", "s3://bucket:/k", "s3://:@Bucket/k"]),
        ("http://[::1]/*", &["http://[::1]/x", "http://[0:0::1]:80/x", "http://u@[::1]"]),
    ] {
        for spelled in spellings {
            assert!(glob("url", stopped).may_hold(&url(spelled)), "{stopped} {spelled}");
        }
    }
    assert!(!glob("url", "redis://prod:6379/*").may_hold(&url("redis://test:6379/0")));
    assert!(!glob("url", "redis://prod:6379/*").may_hold(&url("redis://prod:6380/0")));
}

#[test]
fn a_url_is_stopped_in_every_spelling() {
    let by_glob = glob("url", "http://169.254.169.254/*");
    let by_regex = regex("url", r"^http://169\.254\.169\.254/");
    for spelled in SPELLED {
        assert!(by_glob.may_hold(&url(spelled)), "{spelled}");
        assert!(by_regex.may_hold(&url(spelled)), "{spelled}");
    }
    let exact = one_of("url", &["\"http://169.254.169.254/latest\""]);
    for spelled in SPELLED.iter().filter(|spelled| spelled.contains("latest")) {
        assert!(exact.may_hold(&url(spelled)), "{spelled}");
    }
}

#[test]
fn a_host_is_stopped_in_both_scripts_and_in_every_spelling() {
    let spelled = [
        "http://münchen.de/x",
        "http://xn--mnchen-3ya.de/x",
        "http://XN--MNCHEN-3YA.DE:80/x",
        "http://MÜNCHEN.de/x",
        "http://mu\u{308}nchen.de/x",
        "http://münchen\u{3002}de/x",
        "http://\u{ff4d}ünchen\u{ff0e}de./x",
        "http://mün\u{ad}chen.de/x",
        "http://m%C3%BCnchen.de/x",
        "http:\\\\me@münchen.de\\x",
    ];
    for wanted in ["http://münchen.de/x", "http://xn--mnchen-3ya.de/x", "HTTP://MÜNCHEN.DE/x"] {
        let (by_glob, exact) = (glob("url", wanted), one_of("url", &[&format!("\"{wanted}\"")]));
        let folder = glob("url", &wanted.replace("/x", "/*"));
        for spelled in spelled {
            for test in [&by_glob, &exact, &folder] {
                assert!(test.may_hold(&url(spelled)), "{test}: {spelled}");
                assert_eq!(test.must_hold(&url(spelled)), wanted == spelled, "{test}: {spelled}");
            }
        }
    }
    for (test, spelled) in [
        (regex("url", r"^https?://([^/]*\.)?münchen\.de/"), spelled[1]),
        (regex("url", r"^https?://([^/]*\.)?xn--mnchen-3ya\.de/"), spelled[0]),
        (glob("url", "*münchen.de/x"), "http://www.xn--mnchen-3ya.de/x?y"),
        (glob("url", "*.xn--mnchen-3ya.de/*"), "http://www.münchen.de/x"),
        (glob("url", "http://strasse.de/*"), "http://straße.de/x"),
        (glob("url", "http://straße.de/*"), "http://xn--strae-oqa.de/x"),
        (glob("url", "ssh://*.münchen.de"), "ssh://a.xn--mnchen-3ya.de"),
    ] {
        assert!(test.may_hold(&url(spelled)), "{test}: {spelled}");
    }
    let munich = glob("url", "http://münchen.de/*");
    for other in ["http://munchen.de/", "http://xn--mnchen-3ya.example/", "http://mün-chen.de/"] {
        assert!(!munich.may_hold(&url(other)), "{other}");
    }
}

#[test]
fn a_plus_in_a_url_is_also_a_blank() {
    let query = one_of("url", &["\"https://a.example/s?q=drop table\""]);
    for spelled in [
        "https://a.example/s?q=drop+table",
        "https://a.example/s?q=drop%20table",
        "https://a.example/s?q=drop%u0020table",
        "https://a.example/s?q=dr%6fp+table",
    ] {
        assert!(query.may_hold(&url(spelled)) && !query.must_hold(&url(spelled)), "{spelled}");
    }
    assert!(!query.may_hold(&url("https://a.example/s?q=drop-table")));
    let form = one_of("url", &["\"q=drop table\""]);
    assert!(form.may_hold(&url("q=drop+table")) && form.may_hold(&url("q=dr%u006fp+table")));
}

#[test]
fn a_plus_in_any_text_is_also_a_blank_where_calls_are_stopped() {
    for test in [
        glob("url", "drop table*"),
        one_of("url", &["\"drop table x\""]),
        predicate("url", ValueTest::Regex(Regex::new(r"(?i)\bdrop\s+table\b").unwrap())),
    ] {
        for spelled in ["drop+table+x", "DROP+TABLE%20x", "%64rop+table x", "+drop+table+x"] {
            let spelled = url(spelled);
            assert!(test.may_hold(&spelled) && !test.must_hold(&spelled), "{test}");
        }
        for other in ["drop-table-x", "droptable x", "c++", "1+1"] {
            assert!(!test.may_hold(&url(other)), "{test}: {other}");
        }
    }
    // What a rule forwards is what is written.
    let sum = one_of("url", &["\"1+1\""]);
    assert!(sum.must_hold(&url("1+1")) && !sum.must_hold(&url("1 1")));
}

#[test]
fn another_url_and_prose_are_not_stopped() {
    let metadata = glob("url", "http://169.254.169.254/*");
    for other in [
        "http://169.254.169.253/",
        "https://example.com/?next=http://169.254.169.254/",
        "see http://169.254.169.254/ for more",
        "note: 50% of 169.254.169.254",
        "169.254.169.254",
    ] {
        assert!(!metadata.may_hold(&url(other)), "{other}");
    }
}

#[test]
fn only_the_url_as_it_is_written_is_let_through() {
    let metadata = glob("url", "http://169.254.169.254/*");
    let held: Vec<&str> =
        SPELLED.into_iter().filter(|spelled| metadata.must_hold(&url(spelled))).collect();
    assert_eq!(held, ["http://169.254.169.254/latest"]);
}
