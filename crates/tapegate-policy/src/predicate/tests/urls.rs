//! URLs in the arguments of a rule that stops.

use super::*;

/// Spellings of one address that node's `new URL`, Python and browsers take for the same.
const SPELLED: [&str; 17] = [
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
];

/// Arguments that have this text under `url`.
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
    predicate(path, Test::Regex(Regex::new(text).unwrap()))
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
