//! Compares our JSON reader with another one: they accept the same texts.

use proptest::prelude::*;
use serde_json::value::RawValue;
use tapegate_core::frame::{EnvelopeSkimmer, Frame, FrameBody, FrameError, elements};
use tapegate_core::json::diff::{DiffOptions, ValueChange, diff};
use tapegate_core::json::{self, JsonLocation, LocationStep};

/// Texts that are JSON, or nearly so.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just(" "),
        Just("\t"),
        Just("\"a\""),
        Just("\"id\""),
        Just("\"method\""),
        Just("\"params\""),
        Just("\"_meta\""),
        Just("\"\\u00e9\""),
        Just("\"\\ud800\""),
        Just("\"\\x\""),
        Just("\"\\u12\""),
        Just("\"é😀\""),
        Just("0"),
        Just("-0"),
        Just("01"),
        Just("1.5"),
        Just("1."),
        Just("1e309"),
        Just("1e"),
        Just("-"),
        Just("18446744073709551616"),
        Just(".5"),
        Just("+1"),
        Just("NaN"),
        Just("true"),
        Just("fals"),
        Just("null"),
        Just("\""),
        Just("\\"),
        Just("\r"),
        Just("\n"),
        Just("\u{0}"),
        Just("\u{feff}"),
        Just("/**/"),
        Just("'a'"),
    ];
    let soup =
        proptest::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat().into_bytes());
    prop_oneof![2 => soup, 3 => mutated(), 1 => proptest::collection::vec(any::<u8>(), 0..12)]
}

/// JSON with at most one byte changed, removed or inserted.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    (good_json(), any::<prop::sample::Index>(), any::<u8>(), 0..4u8).prop_map(
        |(text, at, byte, how)| {
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                _ => {}
            }
            bytes
        },
    )
}

/// JSON of every kind.
pub(crate) fn good_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("-0.5e+3".to_owned()),
        Just("1e309".to_owned()),
        any::<u64>().prop_map(|n| n.to_string()),
        Just("\"\\ud83d\\ude00 \\u0000 \\/\"".to_owned()),
        "[a-zé😀 ]{0,40}".prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let key = prop_oneof![
            Just("id"),
            Just("method"),
            Just("a"),
            Just("params"),
            Just("\\u0069d"),
            Just("_meta")
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5)
                .prop_map(|all| format!("[{}]", all.join(", "))),
            proptest::collection::vec((key, inner), 0..5).prop_map(|all| {
                let all: Vec<_> =
                    all.into_iter().map(|(key, value)| format!("\"{key}\" :{value}")).collect();
                format!("{{{}}}", all.join(","))
            }),
        ]
    })
}

fn theirs(text: &[u8]) -> bool {
    serde_json::from_slice::<Box<RawValue>>(text).is_ok()
}

/// The value at a location, if there is one.
fn at<'v>(value: &'v serde_json::Value, place: &JsonLocation) -> Option<&'v serde_json::Value> {
    place.steps.iter().try_fold(value, |value, hop| match hop {
        LocationStep::Key(key) => value.get(key),
        LocationStep::Index(index) => value.get(index),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn texts_differ_exactly_if_their_values_do(one in good_json(), two in good_json()) {
        // The other reader accepts no number beyond the range of a double.
        let plain = |text: &str| text.replace("1e309", "7");
        let (one, two) = (plain(&one), plain(&two));
        let terms = DiffOptions { root: JsonLocation::default(), ignored: &[], listed_max: 10_000 };
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let parsed = |text: &[u8]| value(std::str::from_utf8(text).unwrap());
        let (old, new) = (value(&one), value(&two));
        let found = diff(one.as_bytes(), two.as_bytes(), &terms).unwrap();
        prop_assert_eq!(found.is_empty(), old == new, "{} {} {:?}", one, two, found);
        let printed = serde_json::to_string_pretty(&old).unwrap();
        prop_assert!(diff(one.as_bytes(), printed.as_bytes(), &terms).unwrap().is_empty());
        for difference in found.listed {
            let text = match difference.change {
                ValueChange::Removed(_) => continue,
                ValueChange::Added(text) => text,
                ValueChange::Value { new: text, .. } | ValueChange::Kind { new: text, .. } => text,
            };
            let there = at(&new, &difference.location);
            prop_assert_eq!(there, Some(&parsed(text)), "{}", difference.location);
        }
    }

    #[test]
    fn both_readers_agree_on_what_json_is(text in nearly_json()) {
        prop_assert_eq!(json::check(&text).is_ok(), theirs(&text), "{}", text.escape_ascii());
    }

    #[test]
    fn a_frame_is_garbage_exactly_if_it_is_no_json_object_or_array(text in nearly_json()) {
        let object = text.trim_ascii().starts_with(b"{");
        let array = text.trim_ascii().starts_with(b"[");
        let expected = match (theirs(&text), object, array) {
            (false, ..) => "no JSON",
            (true, true, _) => "message",
            (true, _, true) => "batch",
            (true, ..) => "neither",
        };
        let seen = match Frame::read(&text).body() {
            FrameBody::Message(_) => "message",
            FrameBody::Batch => "batch",
            FrameBody::Garbage(FrameError::NotAnObject) => "neither",
            FrameBody::Garbage(_) => "no JSON",
        };
        prop_assert_eq!(seen, expected, "{}", text.escape_ascii());
    }

    #[test]
    fn the_elements_of_a_batch_are_its_elements(items in proptest::collection::vec(good_json(), 0..6)) {
        let batch = format!(" [ {} ] ", items.join(" , "));
        let seen: Vec<_> = elements(batch.as_bytes()).iter().map(|e| e.bytes().to_vec()).collect();
        let items: Vec<_> = items.into_iter().map(String::into_bytes).collect();
        prop_assert_eq!(seen, items);
    }

    #[test]
    fn a_skim_finds_the_id_and_method_that_a_scan_finds(text in good_json(), step in 1usize..9) {
        let frame = Frame::read(text.as_bytes());
        let Some(envelope) = frame.envelope() else { return Ok(()) };
        let mut skim = EnvelopeSkimmer::default();
        text.as_bytes().chunks(step).for_each(|piece| skim.feed(piece));
        let found = skim.finish();
        // A skim does not recognise escaped keys, or values that are not ids.
        let plain = !text.contains("\\u0069d");
        let simple = |id: &[u8]| !id.starts_with(b"{") && !id.starts_with(b"[");
        if let Some(id) = envelope.id.filter(|id| plain && simple(id) && !envelope.repeated) {
            prop_assert_eq!(found.id.as_deref(), Some(id));
        }
        if let Some(method) = envelope.method.filter(|_| plain && !envelope.repeated) {
            let quoted = [b"\"", method.raw, b"\""].concat();
            prop_assert_eq!(found.method, Some(quoted));
        }
    }
}
