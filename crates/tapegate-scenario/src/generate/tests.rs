//! The output of generators, and the settings they refuse.

use super::*;
use crate::finding::Findings;
use crate::template::{InterpolationMode, JsonTemplate, TemplatePiece};
use crate::test_trees::node_of;

fn read(text: &str) -> Result<Generator, String> {
    read_with(text, &GeneratorLimits::default())
}

fn read_with(text: &str, limits: &GeneratorLimits) -> Result<Generator, String> {
    let mut findings = Findings::default();
    let generator = Generator::read(&node_of(text), limits, &mut findings);
    match findings.into_list().into_iter().next() {
        Some(finding) => Err(format!("{}: {}", finding.path, finding.message)),
        None => Ok(generator.expect("a generator or a reason")),
    }
}

fn read_form(node: &crate::node::Node, findings: &mut Findings) -> JsonTemplate {
    JsonTemplate::read(node, &|_| InterpolationMode::None, &GeneratorLimits::default(), findings)
}

fn made(text: &str) -> Vec<u8> {
    let generator = read(text).unwrap();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    generator.write(&mut one);
    read(text).unwrap().write(&mut two);
    assert_eq!(one, two, "it is always the same");
    assert!(one.len() <= generator.bytes_max(), "{} > {}", one.len(), generator.bytes_max());
    one
}

fn text(text: &str) -> String {
    String::from_utf8(made(text)).unwrap()
}

#[test]
fn values_are_nested_in_objects_arrays_or_both() {
    assert_eq!(text(r#"{"type":"nested_json","depth":2}"#), r#"{"a":{"a":null}}"#);
    let array = r#"{"type":"nested_json","depth":3,"structure":"array","inner":{"x":[1]}}"#;
    assert_eq!(text(array), r#"[[[{"x":[1]}]]]"#);
    let mixed = r#"{"type":"nested_json","depth":3,"structure":"mixed","key":"k\"","inner":1}"#;
    assert_eq!(text(mixed), r#"{"k\"":[{"k\"":1}]}"#);
}

#[test]
fn ec_gen_depth_0_gives_what_is_inside_and_bytes_0_nothing() {
    assert_eq!(text(r#"{"type":"nested_json","depth":0,"inner":"x"}"#), "\"x\"");
    assert_eq!(text(r#"{"type":"garbage","bytes":0}"#), "");
    assert_eq!(text(r#"{"type":"unicode_spam","bytes":0,"category":"rtl","carrier":"abc"}"#), "");
}

#[test]
fn ec_gen_count_0_is_an_error() {
    for kind in [
        r#"{"type":"batch_notifications","count":0}"#,
        r#"{"type":"repeated_keys","count":0}"#,
        r#"{"type":"ansi_escape","sequences":["clear"],"count":0}"#,
    ] {
        assert_eq!(read(kind).unwrap_err(), "count: must be at least 1");
    }
}

#[test]
fn ec_cfg_006_ec_gen_002_what_is_over_a_limit_is_refused_before_it_is_made() {
    let limits = GeneratorLimits { payload_bytes: 1000, depth: 100, count: 10 };
    for (kind, message) in [
        (r#"{"type":"nested_json","depth":101}"#, "depth: 101 is over the limit of 100"),
        (r#"{"type":"batch_notifications","count":11}"#, "count: 11 is over the limit of 10"),
        (r#"{"type":"repeated_keys","count":11}"#, "count: 11 is over the limit of 10"),
        (
            r#"{"type":"garbage","bytes":1001}"#,
            ": the payload would have 1001 bytes; the limit is 1000",
        ),
        (
            r#"{"type":"garbage","bytes":"1kb"}"#,
            ": the payload would have 1024 bytes; the limit is 1000",
        ),
        (
            r#"{"type":"repeated_keys","count":10,"key_length":100}"#,
            ": the payload would have 1071 bytes; the limit is 1000",
        ),
    ] {
        assert_eq!(read_with(kind, &limits).unwrap_err(), message, "{kind}");
    }
    assert!(read_with(r#"{"type":"garbage","bytes":1000}"#, &limits).is_ok());
    assert!(read_with(r#"{"type":"nested_json","depth":100}"#, &limits).is_ok());
}

#[test]
fn ec_cfg_012_ec_cfg_014_unknown_generators_and_negative_numbers_are_errors() {
    let unknown = read(r#"{"type":"nested_jsn"}"#).unwrap_err();
    assert!(unknown.starts_with("type: `nested_jsn` is not one of `nested_json`, "), "{unknown}");
    assert_eq!(read("{}").unwrap_err(), ": `type` is missing");
    assert_eq!(read(r#"{"type":"garbage"}"#).unwrap_err(), ": `bytes` is missing");
    assert_eq!(read(r#"{"type":"garbage","bytes":-1}"#).unwrap_err(), "bytes: `-1` is negative");
    let charset = read(r#"{"type":"garbage","bytes":1,"charset":"x"}"#).unwrap_err();
    assert!(charset.starts_with("charset: `x` is not one of"), "{charset}");
    let sequence = read(r#"{"type":"ansi_escape","sequences":["clear","x"]}"#).unwrap_err();
    assert!(sequence.starts_with("sequences.[1]") || sequence.starts_with("sequences[1]: `x`"));
}

#[test]
fn a_batch_is_an_array_of_notifications() {
    let batch = text(r#"{"type":"batch_notifications","count":2,"params":{"a":1}}"#);
    let one = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"a":1}}"#;
    assert_eq!(batch, format!("[{one},{one}]"));
}

#[test]
fn repeated_keys_are_all_the_same() {
    let object = text(r#"{"type":"repeated_keys","count":3,"key_length":2,"value":null}"#);
    assert_eq!(object, r#"{"kk":null,"kk":null,"kk":null}"#);
}

#[test]
fn garbage_has_the_size_and_the_characters_that_were_asked_for() {
    type TextTest = fn(&str) -> bool;
    let charsets: [(&str, TextTest); 4] = [
        ("ascii", |text| text.bytes().all(|byte| (0x20..0x7f).contains(&byte))),
        ("numeric", |text| text.bytes().all(|byte| byte.is_ascii_digit())),
        ("alphanumeric", |text| text.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        ("utf8", |text| {
            text.chars().any(|c| c.len_utf8() == 4) && text.chars().any(|c| c.len_utf8() == 2)
        }),
    ];
    for (charset, is_right) in charsets {
        let garbage = text(&format!(r#"{{"type":"garbage","bytes":5001,"charset":"{charset}"}}"#));
        assert_eq!(garbage.len(), 5001, "{charset}");
        assert!(is_right(&garbage), "{charset}");
    }
    let binary = made(r#"{"type":"garbage","bytes":5001,"charset":"binary"}"#);
    assert_eq!(binary.len(), 5001);
    assert!((0..=255).all(|byte| binary.contains(&byte)));
    let other = made(r#"{"type":"garbage","bytes":5001,"charset":"binary","seed":1}"#);
    assert_ne!(binary, other, "another seed makes another payload");
}

#[test]
fn in_a_json_string_each_byte_of_binary_garbage_is_one_character() {
    let kind = r#"{"type":"garbage","bytes":1000,"charset":"binary"}"#;
    let (bytes, mut json) = (made(kind), Vec::new());
    read(kind).unwrap().write_json_string(&mut json);
    let string: String = serde_json::from_slice(&json).unwrap();
    let back: Option<Vec<u8>> = string.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    assert_eq!(back, Some(bytes));
}

#[test]
fn where_bytes_are_written_in_base64_so_is_what_is_made() {
    let garbage = r#"{"$generate":{"type":"garbage","bytes":5,"charset":"binary"}}"#;
    let bytes = made(r#"{"type":"garbage","bytes":5,"charset":"binary"}"#);
    let encoded = tapegate_core::tape::base64_encode(&bytes);
    for (text, in_base64) in [
        (format!(r#"{{"uri":"x","blob":{garbage}}}"#), true),
        (format!(r#"[{{"type":"image","data":{garbage}}}]"#), true),
        (format!(r#"{{"level":"info","data":{garbage}}}"#), false),
        (format!(r#"{{"type":"text","text":{garbage}}}"#), false),
    ] {
        let (node, mut findings) = (node_of(&text), Findings::default());
        let form = read_form(&node, &mut findings);
        let strings: Vec<String> = form
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                TemplatePiece::Generated(generator) => {
                    let mut json = Vec::new();
                    generator.write_json_string(&mut json);
                    Some(serde_json::from_slice(&json).unwrap())
                }
                _ => None,
            })
            .collect();
        assert_eq!(strings.len(), 1, "{text}");
        assert_eq!(strings[0] == encoded, in_base64, "{text}");
    }
}

#[test]
fn json_is_a_value_where_any_value_may_stand_and_text_where_text_is_wanted() {
    let deep = r#"{"$generate":{"type":"nested_json","depth":2}}"#;
    let (node, mut findings) =
        (node_of(&format!(r#"{{"text":{deep},"structuredContent":{deep}}}"#)), Findings::default());
    let form = read_form(&node, &mut findings);
    let kinds: Vec<bool> = form
        .pieces
        .iter()
        .filter(|piece| !matches!(piece, TemplatePiece::Json(_)))
        .map(|piece| matches!(piece, TemplatePiece::Tree(_)))
        .collect();
    assert_eq!(kinds, [false, true]);
}

#[test]
fn any_payload_is_a_json_string_of_itself() {
    for kind in [
        r#"{"type":"nested_json","depth":5}"#,
        r#"{"type":"garbage","bytes":999,"charset":"utf8"}"#,
        r#"{"type":"ansi_escape","sequences":["title","clear","hyperlink","color","cursor_move"],"payload":"\"x\""}"#,
        r#"{"type":"unicode_spam","bytes":500,"category":"rtl"}"#,
    ] {
        let mut json = Vec::new();
        read(kind).unwrap().write_json_string(&mut json);
        assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text(kind));
    }
}

#[test]
fn spam_is_put_between_the_characters_of_its_carrier() {
    for category in ["zero_width", "rtl", "homoglyph", "combining", "emoji"] {
        let kind = format!(
            r#"{{"type":"unicode_spam","bytes":100,"category":"{category}","carrier":"pay him"}}"#
        );
        let spam = text(&kind);
        assert!((97..=100).contains(&spam.len()), "{category}: {}", spam.len());
        let carried: String = spam.chars().filter(char::is_ascii).collect();
        assert_eq!(carried, "pay him", "{category}");
        assert!(spam.starts_with('p') && !spam.starts_with("pay"), "{spam:?}");
    }
    let kind = r#"{"type":"unicode_spam","bytes":3,"category":"rtl","carrier":"long"}"#;
    assert!(read(kind).unwrap_err().contains("the carrier alone"));
}

#[test]
fn terminals_are_commanded_by_turns() {
    let kind = r#"{"type":"ansi_escape","sequences":["title","clear"],"count":3,"payload":"x"}"#;
    assert_eq!(text(kind), "\u{1b}]0;x\u{7}\u{1b}[2J\u{1b}[H\u{1b}]0;x\u{7}x");
    let many = text(r#"{"type":"ansi_escape","sequences":["color","cursor_move"]}"#);
    assert_eq!(many.matches('\u{1b}').count(), 100);
}
