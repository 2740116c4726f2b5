//! JSON converts to Cedar values, and never to one that permits by mistake.

use super::*;
use cedar_policy::Context;

/// The arguments as Cedar sees them, without any known type.
fn shown(json: &str) -> (serde_json::Value, usize) {
    let whole = AttributeTree { whole: true, ..AttributeTree::default() };
    let made = arguments(Some(json.as_bytes()), &whole, MemberTypes::default(), None);
    let pairs = [("all".to_owned(), record(made.members).unwrap())];
    let context = Context::from_pairs(pairs).unwrap();
    (context.to_json_value().unwrap()["all"].clone(), made.misfits.len())
}

#[test]
fn values_are_what_they_look_like() {
    let (value, misfits) = shown(
        r#"{"a":null,"b":1,"c":-2.0,"d":1.5,"e":"x","f":[2,1,2,null],"g":{"h":true},"i":18446744073709551615,"j":1.23456,"k":1e2,"l":1e400,"m":-0.0001,"n":-9223372036854775808}"#,
    );
    assert_eq!(misfits, 0);
    let decimal = |text: &str| serde_json::json!({"__extn": {"fn": "decimal", "arg": text}});
    assert_eq!(
        value,
        serde_json::json!({
            "b": 1, "c": -2, "d": decimal("1.5000"), "e": "x", "f": [1, 2], "g": {"h": true},
            "i": "18446744073709551615", "j": "1.23456", "k": 100, "l": "1e400",
            "m": decimal("-0.0001"), "n": i64::MIN,
        })
    );
}

#[test]
fn depth_is_bounded_and_no_error() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let whole = AttributeTree { whole: true, ..AttributeTree::default() };
    let made = arguments(Some(deep.as_bytes()), &whole, MemberTypes::default(), None);
    assert_eq!(made.misfits.len(), 1);
    assert_eq!(made.misfits[0].reason, "it is nested too deeply");
}
