//! Tests of reading configs with places.

use super::*;

fn read(text: &str, format: ConfigFormat) -> ConfigNode {
    ConfigNode::read(text, format).unwrap_or_else(|reason| panic!("{reason}: {text}"))
}

/// Asserts that every value and key is where its span says.
fn check_spans(text: &str, node: &ConfigNode) {
    match &node.value {
        ConfigValue::Text(own) => {
            let written = &text[node.span.clone()];
            assert!(written.contains(own.as_str()) || written.contains('\\'), "{own}: {written}");
        }
        ConfigValue::List(elements) => elements.iter().for_each(|one| check_spans(text, one)),
        ConfigValue::Map(members) => {
            for member in members {
                assert!(text[member.key_span.clone()].contains(member.key.as_str()));
                check_spans(text, &member.node);
            }
        }
        _ => {}
    }
}

#[test]
fn the_same_config_is_the_same_whatever_it_is_written_in() {
    let json = "\u{feff}{ // one, \"x\": 1\n \"s\": {\"a\": {\"command\": \"x\", \"args\": [\"1\", \"2\",], \"on\": true}} /* ü */ }";
    let toml = "\u{feff}[s.a]\ncommand = \"x\"\nargs = ['1', \"2\"]\non = true\n";
    let yaml = "\u{feff}s:\n  a: # ü\n    command: x\n    args: [\"1\", \"2\"]\n    on: true\n";
    let expected = read(json, ConfigFormat::Json);
    for (text, format) in
        [(json, ConfigFormat::Json), (toml, ConfigFormat::Toml), (yaml, ConfigFormat::Yaml)]
    {
        let tree = read(text, format);
        assert!(tree.is_same(&expected), "{tree:#?}");
        check_spans(text, &tree);
    }
}

#[test]
fn blanks_and_comments_may_stand_before_a_config_and_after_it() {
    let expected = read(r#"{"a": {"b": [1, true]}}"#, ConfigFormat::Json);
    for text in [
        " {\"a\": {\"b\": [1, true]}}",
        "\r\n\t{\"a\":\n {\"b\" : [ 1 , true ] } }\n",
        "// mine\r\n{\"a\": {\"b\": [1, // one\r\n true]}} // end\r\n",
        "// mine\n{\"a\": /* 1 */ {\"b\": /* 2 */ [1, /* 3 */ true,],}} // end",
        "/* mine */ {\"a\": {\"b\": [1, true]}}",
        "{\"a\": {\"b\": [1, true, // last, really\n ] /* , */ , } }",
    ] {
        assert!(read(text, ConfigFormat::Json).is_same(&expected), "{text}");
    }
}

#[test]
fn what_is_broken_is_told_and_what_is_empty_is_null() {
    for (text, format) in [
        ("{", ConfigFormat::Json),
        ("{\"a\": }", ConfigFormat::Json),
        ("{,}", ConfigFormat::Json),
        ("[1,,]", ConfigFormat::Json),
        ("{\"a\": 1 /", ConfigFormat::Json),
        ("{ // note\r\"b\": 2,\n\"a\": 1}", ConfigFormat::Json),
        ("{ // note\u{2028}\"b\": 2,\r\n\"a\": 1}", ConfigFormat::Json),
        ("[a\n", ConfigFormat::Toml),
        ("a: [", ConfigFormat::Yaml),
        ("a: *b", ConfigFormat::Yaml),
        ("a: 1\n---\nb: 2\n", ConfigFormat::Yaml),
    ] {
        assert!(ConfigNode::read(text, format).is_err(), "{text}");
    }
    for format in [ConfigFormat::Json, ConfigFormat::Toml, ConfigFormat::Yaml] {
        let empty = read(" \n", format);
        assert!(matches!(empty.value, ConfigValue::Null));
    }
    for format in [ConfigFormat::Json, ConfigFormat::Yaml] {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        // Whatever it makes of it, it does not overflow the stack.
        let _ = ConfigNode::read(&deep, format);
    }
}

#[test]
fn members_of_a_merge_key_are_known_not_to_be_own() {
    let text = "base: &b {command: x, args: [a]}\nmcp:\n  one:\n    <<: *b\n    args: [c]\n";
    let tree = read(text, ConfigFormat::Yaml);
    let one = tree.get("mcp").unwrap().get("one").unwrap();
    assert_eq!(one.get("command").unwrap().as_text(), Some("x"));
    assert!(!one.member("command").unwrap().is_own);
    assert_eq!(one.get("args").unwrap().texts().unwrap(), ["c"]);
}
