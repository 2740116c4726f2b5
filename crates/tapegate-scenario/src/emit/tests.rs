//! Any document reads back as it was meant.

use proptest::prelude::*;

use super::*;
use crate::finding::Findings;
use crate::yaml;

fn key(name: &str) -> NodeKey {
    NodeKey { spot: Default::default(), name: name.to_owned() }
}

/// The node without positions.
fn bare(node: &Node) -> Node {
    as_read(node)
}

#[track_caller]
fn comes_back(node: &Node) {
    let document = YamlDocument {
        head: vec!["head".to_owned()],
        entries: vec![MapEntry::new("it", node.clone())],
    };
    let text = write(&document);
    let mut findings = Findings::default();
    let read = yaml::parse(&text, 0, &mut findings);
    let findings = findings.into_list();
    assert!(findings.is_empty(), "{findings:?}\n{text}");
    assert_eq!(bare(&read.unwrap()), document.to_node(), "{text}");
}

fn shown(node: Node) -> String {
    write(&YamlDocument { head: Vec::new(), entries: vec![MapEntry::new("a", node)] })
}

/// Words that YAML reads as another type, or that are hard to see.
#[rustfmt::skip]
const ODD: &[&str] = &[
    "yes", "No", "ON", "off", "y", "N", "true", "False", "null", "Null", "~", "", " ", "1",
    "1e3", "0x1", "0o7", "1_000", "-1", "+1", ".5", ".inf", "-.INF", ".nan", "2026-11-15",
    "12:30:45", "=", "<<", "-", "- a", "? a", "a: b", "a:", ": a", "a #b", "#a", " a", "a ",
    "\ta", "a\t", "&a", "*a", "!a", "|", ">", "'a'", "\"a\"", "%a", "@a", "`a", "[a]", "{a}",
    "a, b: c", "---", "...", "${HOME}", "$json", "a\\b", "NaN", "inf", "none", "é", "x\u{85}y",
    "x\u{2028}y", "\u{feff}x", "\u{7f}", "\r", "\r\n", "\n", "\n\n", "a\n", "a\nb", "a\nb\n",
    "a\nb\n\n", "\na", " a\nb", "a \nb", "a\n b", "a\n\tb", "\ta\nb", "a\n\nb", "a\r\nb",
    "a\n# b\n--- c\n", "a\u{0}b\nc", "a\u{200b}\nb", "\u{10ffff}", "\u{fffe}", "e3",
    "😀\u{200d}❤\u{fe0f}",
];

#[test]
fn words_that_yaml_takes_for_something_else_are_quoted() {
    for &word in ODD {
        comes_back(&Node::text(word));
        let node = Node::new(NodeValue::Map(vec![(key(word), Node::text(word))]));
        comes_back(&node);
        comes_back(&Node::new(NodeValue::List(vec![Node::text(word), node])));
    }
}

#[test]
fn what_can_be_read_is_not_quoted() {
    assert_eq!(
        shown(Node::text("Read a file, or (rarely) two")),
        "a: Read a file, or (rarely) two\n"
    );
    assert_eq!(shown(Node::text("one\n  two\n")), "a: |\n  one\n    two\n");
    assert_eq!(shown(Node::text("one\n\ntwo")), "a: |-\n  one\n\n  two\n");
    let list = Node::new(NodeValue::List(vec![Node::text("path"), Node::new(NodeValue::Null)]));
    assert_eq!(shown(list), "a: [\"path\", null]\n");
}

#[test]
fn what_an_editor_would_hide_is_escaped() {
    let hidden = "\u{1b}[31m\u{202e}\u{200b}\u{e0041}\u{ad}\u{a0}\u{feff}\u{0}";
    let text = shown(Node::text(hidden));
    assert_eq!(text, "a: \"\\e[31m\\u202E\\u200B\\U000E0041\\xAD\\xA0\\uFEFF\\x00\"\n");
    let document =
        YamlDocument { head: vec!["a\nserver: \u{2028}x".to_owned()], entries: Vec::new() };
    assert_eq!(write(&document), "# a\\x0Aserver: \\u2028x\n{}\n");
}

#[test]
fn comments_stand_above_what_they_are_about() {
    let inner = vec![
        MapEntry::new("tool", DocumentPart::text("t")).with_comment("first"),
        MapEntry::new("response", DocumentPart::text("r")),
    ];
    let list = vec![
        ListElement::new(inner).with_comment("an item"),
        ListElement::new(DocumentPart::text("x")),
    ];
    let document = YamlDocument {
        head: vec!["top".to_owned(), String::new()],
        entries: vec![
            MapEntry::new("server", DocumentPart::text("s")),
            MapEntry::new("tools", list).with_comment("all of them").with_blank_line(),
        ],
    };
    let expected = "# top\n#\nserver: s\n\n# all of them\ntools:\n  # an item\n  # first\n  - tool: t\n    response: r\n  - x\n";
    assert_eq!(write(&document), expected);
}

#[test]
fn json_that_is_no_tree_stands_under_a_key_of_its_own() {
    let raw = Node::new(NodeValue::Raw(r#"{"a":"\ud800","a":1}"#.to_owned()));
    assert_eq!(shown(raw.clone()), "a:\n  $json: \"{\\\"a\\\":\\\"\\\\ud800\\\",\\\"a\\\":1}\"\n");
    comes_back(&raw);
    comes_back(&Node::new(NodeValue::List(vec![raw.clone(), raw])));
}

#[test]
fn keys_that_are_too_long_for_a_line_and_trees_that_are_deep_or_wide_come_back() {
    let long = "k".repeat(3000);
    let node = Node::new(NodeValue::Map(vec![
        (key(&long), Node::text("a\nb\n")),
        (
            key("b"),
            Node::new(NodeValue::Map(vec![(key(&long), Node::new(NodeValue::List(vec![])))])),
        ),
    ]));
    comes_back(&node);
    comes_back(&Node::new(NodeValue::List(vec![node])));
    let mut deep = Node::text("end");
    for level in 0..50 {
        deep = Node::new(match level % 3 {
            0 => NodeValue::Map(vec![(key("x"), deep)]),
            1 => NodeValue::List(vec![deep, Node::text("")]),
            _ => NodeValue::List(vec![deep]),
        });
    }
    comes_back(&deep);
    let wide = (0..20_000)
        .map(|at| (key(&format!("k{at}")), Node::new(NodeValue::Number(at.to_string()))));
    comes_back(&Node::new(NodeValue::Map(wide.collect())));
}

/// Text as servers send it, including text that no server should send.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("$".to_owned()),
        Just("${HOME}".to_owned()),
        Just("$$".to_owned()),
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("\\".to_owned()),
        Just("\t".to_owned()),
        Just("\r".to_owned()),
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\n ".to_owned()),
        Just(" ".to_owned()),
        Just(": ".to_owned()),
        Just(" #".to_owned()),
        Just("- ".to_owned()),
        Just("---".to_owned()),
        Just("yes".to_owned()),
        Just("null".to_owned()),
        Just("1e3".to_owned()),
        Just("0x1".to_owned()),
        Just("~".to_owned()),
        Just("2026-01-01".to_owned()),
        Just("|".to_owned()),
        Just(">".to_owned()),
        Just("😀".to_owned()),
        Just("\u{85}".to_owned()),
        Just("\u{2028}".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("{".to_owned()),
        Just("]".to_owned()),
        Just("&a".to_owned()),
        Just("%".to_owned()),
        Just("?".to_owned()),
        any::<char>().prop_map(String::from),
        "[a-z ]{1,9}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?"
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        Just(NodeValue::Null),
        any::<bool>().prop_map(NodeValue::Bool),
        number().prop_map(NodeValue::Number),
        text().prop_map(NodeValue::Text),
        Just(NodeValue::Raw(r#""\ud800""#.to_owned())),
    ];
    let leaf = leaf.prop_map(Node::new);
    leaf.prop_recursive(6, 48, 6, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..6).prop_map(NodeValue::List);
        let map = prop::collection::btree_map(text(), inner, 0..6).prop_map(|map| {
            NodeValue::Map(map.into_iter().map(|(name, node)| (key(&name), node)).collect())
        });
        prop_oneof![list, map].prop_map(Node::new)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_tree_that_is_written_is_read_as_the_same_tree(node in node()) {
        comes_back(&node);
    }

    #[test]
    fn any_text_that_is_written_is_read_as_the_same_text(text in text()) {
        comes_back(&Node::text(text));
    }
}
