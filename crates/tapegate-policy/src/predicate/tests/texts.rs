//! Texts that servers convert numbers and lists to.

use super::*;

#[test]
fn a_number_is_the_text_that_a_server_prints() {
    let thousand = predicate("x", ValueTest::Regex(Regex::new("^1000$").unwrap()));
    for value in ["1000", "1e3", "1000.0", "10E2", "\"1000\"", "[1e3]"] {
        assert!(thousand.may_hold(&x(value)), "{value}");
    }
    assert!(!thousand.may_hold(&x("1001")) && !thousand.may_hold(&x("1e4")));
    assert!(glob("x", "1000000*").may_hold(&x("1e20")));
}

#[test]
fn a_list_is_the_text_that_javascript_makes_of_it() {
    let pair = one_of("x", &["\"a,b\""]);
    for value in ["[\"a\",\"b\"]", "[[\"a\"],[\"b\"]]", "[\"a,b\"]", "\"[\\\"a\\\",\\\"b\\\"]\""] {
        assert!(pair.may_hold(&x(value)) && !pair.must_hold(&x(value)), "{value}");
    }
    for value in ["[\"a\",\"c\"]", "[\"a\",{},\"b\"]", "[\"a\"]"] {
        assert!(!pair.may_hold(&x(value)), "{value}");
    }
    assert!(glob("x", "1,,true,*").may_hold(&x("[1.0,null,true,\"x\"]")));
    let files = glob("x", "/etc/*");
    assert!(!files.may_hold(&x("[\"/data/a\",\"/data/b\"]")));
}
