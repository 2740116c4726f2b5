//! Unusual and large YAML texts.

use proptest::prelude::*;

use super::*;

/// Parses a text; returns it as JSON, or its findings.
fn read(text: &str) -> Result<String, Vec<String>> {
    let mut findings = Findings::default();
    let node = parse(text, 0, &mut findings);
    let told: Vec<String> = findings
        .into_list()
        .into_iter()
        .map(|finding| format!("{}:{} {}", finding.spot.line, finding.spot.column, finding.message))
        .collect();
    match node {
        Some(node) if told.is_empty() => Ok(String::from_utf8(node.to_json()).unwrap()),
        _ => Err(told),
    }
}

#[track_caller]
fn is(text: &str, json: &str) {
    assert_eq!(read(text).as_deref(), Ok(json), "{text}");
}

#[track_caller]
fn fails(text: &str, message: &str) {
    assert_eq!(read(text), Err(vec![message.to_owned()]), "{text}");
}

#[test]
fn words_are_what_the_core_schema_says() {
    is(
        "[yes, no, on, off, y, n, ~, null, true, False, 0o7, 1e3]",
        r#"["yes","no","on","off","y","n",null,null,true,false,7,1e3]"#,
    );
    is("['1', \"true\", !!str 5, ! 6]", r#"["1","true","5","6"]"#);
    is("[!!int 5, !!float 5, !!bool true, !!null ~]", "[5,5,true,null]");
    is("{1: a, true: b, on: c, 0x1: d}", r#"{"1":"a","true":"b","on":"c","0x1":"d"}"#);
    is("!!map {a: !!seq [b]}", r#"{"a":["b"]}"#);
}

#[test]
fn tags_that_mean_nothing_are_errors() {
    fails("a: !x b", "1:4 the tag `!x` is unknown or does not fit `b`");
    fails("a: !!int b", "1:4 the tag `tag:yaml.org,2002:!int` is unknown or does not fit `b`");
    fails("a: !x {b: c}", "1:4 the tag `!x` is not supported here");
}

#[test]
fn texts_of_several_lines_are_kept() {
    is(
        "a: |\n  x\n    y\n\n  z\nb: >-\n  p\n  q\nc: \"a\\\n  b\\u00e9\\n\"\n",
        r#"{"a":"x\n  y\n\nz\n","b":"p q","c":"abé\n"}"#,
    );
}

#[test]
fn anchors_aliases_and_merge_keys_work() {
    is(
        "a: &a {x: 1, y: 2}\nb: *a\nc: {y: 3, <<: *a, z: 4}\n",
        r#"{"a":{"x":1,"y":2},"b":{"x":1,"y":2},"c":{"y":3,"x":1,"z":4}}"#,
    );
    is(
        "- &a {x: 1}\n- &b {x: 2, y: 2}\n- <<: [*a, *b]\n  z: 3\n",
        r#"[{"x":1},{"x":2,"y":2},{"x":1,"y":2,"z":3}]"#,
    );
    is("- &k key\n- {*k : v, '<<': 1}\n", r#"["key",{"key":"v","<<":1}]"#);
    fails("a: {<<: 5}", "1:5 `<<` takes a map or a list of maps, but this is a number");
    fails("a: &a [*a]", "1:8 this alias refers to a value that contains it");
    fails("a: *b", "1:4 this is not valid YAML: while parsing node, found unknown anchor");
}

#[test]
fn a_billion_laughs_are_refused() {
    let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let below = level - 1;
        text += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{below}"); 10].join(", "));
    }
    let told = read(&text).unwrap_err();
    assert!(
        told.len() == 1 && told[0].ends_with("aliases expand to too much text or nest too deeply"),
        "{told:?}"
    );
    let mut text = format!("a: &a {}\nb:\n", "x".repeat(1 << 20));
    text += &"- *a\n".repeat(100);
    assert_eq!(read(&text).unwrap_err().len(), 1);
    let mut text = format!("a0: &a0 {}1{}\n", "[".repeat(40), "]".repeat(40));
    for level in 1..10 {
        text +=
            &format!("a{level}: &a{level} {}*a{}{}\n", "[".repeat(10), level - 1, "]".repeat(10));
    }
    assert_eq!(read(&text).unwrap_err().len(), 1);
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    is(&nested(64), &nested(64));
    fails(&nested(65), "1:65 lists and maps are nested more than 64 levels deep");
    assert!(read(&"[".repeat(100_000)).is_err());
    assert!(read(&"- ".repeat(100_000)).is_err());
    assert!(read(&"? ".repeat(10_000)).is_err());
}

#[test]
fn one_file_is_one_document() {
    is("---\na: 1\n...\n", r#"{"a":1}"#);
    fails("a: 1\n---\nb: 2\n", "2:1 a second document begins here; only one is allowed");
    is("", "null");
}

#[test]
fn keys_are_text() {
    fails("{[a]: b, c: d}", "1:2 a key must be text, but this is a list");
    fails("? {a: b}\n: c\n", "1:3 a key must be text, but this is a map");
    fails("{: b}", "1:2 a key is missing");
}

#[test]
fn keys_that_come_twice_are_told_in_long_maps_too() {
    let mut text: String = (0..100).map(|n| format!("k{n}: {n}\n")).collect();
    text += "k7: x\n";
    fails(&text, "101:1 the key `k7` is already on line 8; the last one is used");
}

#[test]
fn ten_megabytes_are_read_in_time_in_proportion() {
    let texts = [
        format!("a: \"{}\"\n", "x\\n".repeat(1 << 18)),
        format!("a: |\n{}", "  line of text\n".repeat(1 << 16)),
        format!("[{}]", "1,".repeat(1 << 18)),
        (0..1 << 16).map(|n| format!("k{n}: {n}\n")).collect(),
        format!("a: {}\n", "word ".repeat(1 << 17)),
        format!("# {}\na: 1\n", "x".repeat(1 << 20)),
        "a:\n".to_owned() + &" ".repeat(1 << 20) + "b: c\n",
    ];
    for text in texts {
        // A parser that takes quadratic time would never finish.
        drop(read(&text));
    }
}

/// Any tree that YAML can hold.
fn tree() -> impl Strategy<Value = Node> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>()
            .prop_filter("JSON has it", |n| n.is_finite())
            .prop_map(|n| serde_json::to_string(&n).unwrap()),
    ];
    let leaf = prop_oneof![
        Just(NodeValue::Null),
        any::<bool>().prop_map(NodeValue::Bool),
        number.prop_map(NodeValue::Number),
        any::<String>().prop_map(NodeValue::Text),
        "[ -~\\n\\t]{0,40}".prop_map(NodeValue::Text),
    ];
    let node = leaf.prop_map(Node::new);
    node.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(NodeValue::List),
            prop::collection::btree_map(any::<String>(), inner, 0..6).prop_map(|map| {
                let pair = |(name, node)| (NodeKey { spot: Spot::default(), name }, node);
                NodeValue::Map(map.into_iter().map(pair).collect())
            }),
        ]
        .prop_map(Node::new)
    })
}

/// JSON that is also YAML: characters that YAML does not accept raw are escaped.
fn flow(node: &Node, out: &mut String) {
    match &node.value {
        NodeValue::List(elements) => {
            out.push('[');
            for element in elements {
                flow(element, out);
                out.push_str(", ");
            }
            out.push(']');
        }
        NodeValue::Map(entries) => {
            out.push('{');
            for (key, node) in entries {
                quote(&key.name, out);
                out.push_str(": ");
                flow(node, out);
                out.push_str(",\n ");
            }
            out.push('}');
        }
        NodeValue::Text(text) => quote(text, out),
        _ => out.push_str(&String::from_utf8(node.to_json()).unwrap()),
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            ' '..='~' => out.push(letter),
            _ => *out += &format!("\\U{:08x}", u32::from(letter)),
        }
    }
    out.push('"');
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(node in tree()) {
        let mut text = String::new();
        flow(&node, &mut text);
        let mut findings = Findings::default();
        let read = parse(&text, 0, &mut findings).unwrap();
        prop_assert_eq!(findings.into_list(), vec![]);
        prop_assert_eq!(read.to_json(), node.to_json());
    }

    #[test]
    fn nothing_makes_the_reader_fall_over(text in "[-?:,\\[\\]{}#&*!|>'\"%@` \\n\\ta-c0-9.<~]{0,200}") {
        let mut findings = Findings::default();
        let node = parse(&text, 0, &mut findings);
        prop_assert!(node.is_some() || findings.has_errors());
    }
}

#[test]
fn a_key_that_comes_twice_is_an_error_where_that_is_wished() {
    let mut findings = Findings::default();
    assert!(parse_strict("a: 1\nb: 2\na: 3\n", 0, &mut findings).is_some());
    assert!(findings.has_errors());
    let list = findings.into_list();
    assert_eq!(list[0].message, "the key `a` is already on line 1");
    assert_eq!(list[0].spot, Spot { file: 0, line: 3, column: 1 });
}
