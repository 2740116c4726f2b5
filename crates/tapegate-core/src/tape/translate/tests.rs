//! Tests that converting a tape there and back restores every line.

use proptest::prelude::*;

use super::*;
use crate::json;
use crate::tape::TapeReader;

fn translate(
    to: Dialect,
    tape: &str,
    beside: &str,
    asides: Vec<AsideLine>,
) -> (String, String, Vec<AsideLine>) {
    let mut lines: VecDeque<Vec<u8>> =
        beside.lines().map(|line| line.as_bytes().to_vec()).collect();
    let origin = HeaderOrigin { name: "t".to_owned(), tool_version: "v".to_owned() };
    let mut translator = Translator::new(to, origin, asides, Box::new(move || lines.pop_front()));
    let (mut out, mut out_beside) = (Vec::new(), Vec::new());
    let mut reader = TapeReader::new(tape.as_bytes());
    while let Some(line) = reader.next() {
        let line = line.unwrap();
        translator.line(line.text, &line.entry, &mut out, &mut out_beside).unwrap();
    }
    let (_, asides) = translator.finish(&mut out);
    (String::from_utf8(out).unwrap(), String::from_utf8(out_beside).unwrap(), asides)
}

#[track_caller]
fn there_and_back(from: Dialect, tape: &str, beside: &str) -> String {
    let to = match from {
        Dialect::Thoughtjack => Dialect::Overwatch,
        Dialect::Overwatch => Dialect::Thoughtjack,
    };
    let (other, other_beside, asides) = translate(to, tape, beside, Vec::new());
    let (back, back_beside, _) = translate(from, &other, &other_beside, asides);
    assert_eq!(back, tape);
    assert!(beside.is_empty() || !back_beside.is_empty());
    other
}

const TS: &str = "2026-01-01T00:00:0";

fn ow(second: u32, client: bool, rest: &str) -> String {
    let direction = if client { "client_to_server" } else { "server_to_client" };
    format!("{{\"ts\":\"{TS}{second}.000Z\",\"direction\":\"{direction}\",{rest}}}\n")
}

#[test]
fn an_overwatch_tape_comes_back_to_the_byte() {
    let tape = [
        ow(0, true, r#""parsed":{"id":1,"method":"m","params":{"b":1.0,"a":"\u00e9"}}"#),
        ow(1, true, r#""raw":"{not json","parse_error":"no key at byte 1""#),
        ow(
            2,
            false,
            r#""parsed":{ "id" : 1, "result":{"big":12345678901234567890123}},"mine":[1]"#,
        ),
        ow(3, true, r#""parsed":[{"id":2,"method":"x"},7,{"method":"n"}]"#),
        ow(3, false, r#""parsed":"text""#),
        ow(4, false, r#""raw":"","parse_error":"empty_frame""#),
        ow(5, false, r#""parsed":{"id":2,"result":{}},"session_id":"s2""#),
    ]
    .concat();
    let other = there_and_back(Dialect::Overwatch, &tape, "");
    assert!(other.contains(r#""msg":{"id":1,"method":"m","params":{"b":1.0,"a":"\u00e9"}}}"#));
    assert!(other.contains(
        r#""msg":{ "id" : 1, "result":{"big":12345678901234567890123}},"latency_ms":2000,"#
    ));
    assert!(other.ends_with("\"total_messages\":5,\"duration_ms\":5000,\"client_messages\":3,\"server_messages\":2}\n"), "{other}");
}

#[test]
fn raw_bytes_of_overwatch_lines_come_back() {
    let tape = [
        ow(0, true, r#""parsed":{"id":1,"method":"m"},"raw":"{\"id\":1,\"method\":\"m\"}""#),
        ow(0, true, r#""parsed":{"id":2,"method":"m"},"raw":" {\"id\":2,\"method\":\"m\"} ""#),
        ow(1, false, r#""parsed":{"id":1,"result":{}}"#),
        ow(1, false, r#""parsed":[{"id":2,"result":{}}],"raw":"[ {\"id\":2,\"result\":{}}]""#),
        ow(2, false, r#""parsed":[{"method":"n"}],"raw":"[{\"method\":\"n\"}]""#),
    ]
    .concat();
    there_and_back(Dialect::Overwatch, &tape, "");
}

#[test]
fn a_thoughtjack_tape_comes_back_with_headers_footers_and_odd_numbers() {
    let header = r#"{"type":"header","version":"1.0","name":"n","tags":["a"],"recorded_at":"2026-01-01T00:00:00Z","upstream":"u","thoughtjack_version":"0","more":{"x":1}}"#;
    let message = |seq: u32, second: u32, rest: &str| {
        format!("{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"{TS}{second}.123456Z\",{rest}}}\n")
    };
    let tape = [
        format!("{header}\n"),
        message(1, 0, r#""dir":"c2s","msg":{"id":1,"method":"m"}"#),
        message(2, 1, r#""dir":"s2c","msg":{"id":1,"result":{}},"latency_ms":7,"session":"s2","req":1"#),
        format!("{header}\n"),
        message(9, 2, r#""dir":"c2s","msg":{"method":"n"},"by":"tapegate","unterminated":true"#),
        r#"{"type":"footer","total_messages":3,"duration_ms":99,"client_messages":2,"server_messages":1}"#.to_owned() + "\n",
    ]
    .concat();
    let other = there_and_back(Dialect::Thoughtjack, &tape, "");
    assert_eq!(other.lines().count(), 3);
    assert!(other.contains(r#""latency_ms":7,"session_id":"s2","req":1}"#), "{other}");
}

#[test]
fn anomalies_and_batches_of_a_recording_stand_where_they_were() {
    let message = |seq: u32, second: u32, rest: &str| {
        format!("{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"{TS}{second}.000000Z\",{rest}}}\n")
    };
    let tape = [
        message(1, 1, r#""dir":"c2s","msg":{"id":1,"method":"m"},"batch":1"#),
        message(2, 1, r#""dir":"c2s","msg":{"method":"n"},"batch":1"#),
        message(3, 4, r#""dir":"s2c","msg":{"id":1,"result":{}},"latency_ms":3000"#),
    ]
    .concat();
    let batch =
        r#""raw":"[{\"id\":1,\"method\":\"m\"}, {\"method\":\"n\"}]","parse_error":"batch""#;
    let anomalies = [
        ow(0, true, r#""raw":"early","parse_error":"no JSON value at byte 0""#),
        ow(1, true, batch),
        ow(2, false, r#""raw":"late","parse_error":"no JSON value at byte 0""#),
    ]
    .concat();
    let (other, _, asides) = translate(Dialect::Overwatch, &tape, &anomalies, Vec::new());
    let kinds: Vec<bool> = other.lines().map(|line| line.contains("parse_error")).collect();
    assert_eq!(kinds, [true, false, true, false], "{other}");
    assert!(other.contains(r#""parsed":[{"id":1,"method":"m"}, {"method":"n"}]}"#), "{other}");
    let (back, back_beside, _) = translate(Dialect::Thoughtjack, &other, "", asides);
    let messages = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains("\"seq\"")).map(str::to_owned).collect()
    };
    let stamps = |text: &str| text.replace(".000000Z", ".000Z");
    assert_eq!(messages(&stamps(&back)), messages(&stamps(&tape)));
    assert_eq!(back_beside.lines().count(), 3);
}

/// A line of an overwatch tape, valid or not, with or without its bytes.
fn line() -> impl Strategy<Value = String> {
    let message = prop_oneof![
        (0u32..4).prop_map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#)),
        (0u32..4).prop_map(|id| format!(r#"{{ "id":{id}, "result":{{"x":1.0,"x":"\ud800"}} }}"#)),
        Just(r#"{"method":"n","params":{"big":12345678901234567890123}}"#.to_owned()),
        Just("{}".to_owned()),
    ];
    let element = prop_oneof![4 => message.clone(), 1 => Just("7".to_owned())];
    let batch = prop::collection::vec(element, 0..4).prop_map(|all| format!("[{}]", all.join(",")));
    let parsed = prop_oneof![6 => message, 2 => batch, 1 => Just("\"text\"".to_owned()), 1 => Just("null".to_owned())];
    let raw = prop_oneof![3 => Just(None), 2 => Just(Some("")), 1 => Just(Some(" "))];
    let rest = prop_oneof![3 => Just(""), 1 => Just(r#","session_id":"s2""#), 1 => Just(r#","by":"tapegate","redacted":["/x"],"mine":{"a":[1]}"#)];
    let good = (parsed, raw, rest).prop_map(|(parsed, raw, rest)| {
        let raw = raw.map(|blank| {
            let mut text = Vec::new();
            json::write_str(&mut text, &format!("{blank}{parsed}"));
            format!(",\"raw\":{}", String::from_utf8(text).unwrap())
        });
        format!("\"parsed\":{parsed}{}{rest}", raw.unwrap_or_default())
    });
    let bad = Just(r#""raw":"{oops","parse_error":"no key at byte 1""#.to_owned());
    (0u32..10, any::<bool>(), prop_oneof![5 => good, 1 => bad])
        .prop_map(|(second, client, rest)| ow(second, client, &rest))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_overwatch_tape_comes_back_to_the_byte(lines in prop::collection::vec(line(), 0..12)) {
        there_and_back(Dialect::Overwatch, &lines.concat(), "");
    }
}
