//! Tests that also hold for a missing value.

use super::{one_of, under};

#[test]
fn an_optional_argument_may_be_left_out_but_not_spelled_in_another_way() {
    let optional = under("path", "/data").optional();
    for good in [&b"{}"[..], br#"{"other":1}"#, br#"{"path":null}"#, br#"{"path":"/data/a"}"#] {
        assert!(optional.must_hold(good), "{}", String::from_utf8_lossy(good));
    }
    for bad in [
        &br#"{"path":"/etc/a"}"#[..],
        br#"{"Path":"/etc/a"}"#,
        br#"{"PATH":"/data/a"}"#,
        br#"{"path":["/etc/a"]}"#,
        br#"{"path":""}"#,
        br#"["/etc/a"]"#,
        br#""{\"path\":\"/etc/a\"}""#,
    ] {
        assert!(!optional.must_hold(bad), "{}", String::from_utf8_lossy(bad));
    }
    let each = under("paths[*]", "/data").optional();
    assert!(each.must_hold(br#"{"paths":[]}"#) && each.must_hold(b"{}"));
    assert!(!each.must_hold(br#"{"paths":"/etc/a"}"#));
    assert!(!each.must_hold(br#"{"paths":"[\"/etc/a\"]"}"#));
    let inner = one_of("opts.force", &["false"]).optional();
    assert!(inner.must_hold(br#"{"opts":{"deep":true}}"#) && inner.must_hold(b"{}"));
    assert!(!inner.must_hold(br#"{"opts":"{\"force\":true}"}"#));
    assert!(!inner.must_hold(br#"{"Opts":{"force":true}}"#));
}

#[test]
fn an_optional_test_that_stops_matches_where_there_is_nothing() {
    let missing = one_of("reason", &["\"none\""]).optional();
    for hit in [&b"{}"[..], br#"{"reason":null}"#, br#"{"reason":"none"}"#] {
        assert!(missing.may_hold(hit), "{}", String::from_utf8_lossy(hit));
    }
    assert!(!missing.may_hold(br#"{"reason":"rent"}"#));
    assert_eq!(missing.to_string(), "`reason` is \"none\", or is left out");
}
