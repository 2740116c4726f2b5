//! A tape that is read in chunks, by the fast reader where possible, gives the same result as the
//! general reader does line by line, wherever it is cut and whatever it contains.

use proptest::prelude::*;
use tapegate_core::json::path::JsonPath;
use tapegate_core::signature::Signer;
use tapegate_core::tape::TapeReader;
use tapegate_core::tape::index::{Index, IndexSplicer, TapeChunk, TapeRejection, first_line_start};

use crate::json::good_json;

/// Everything that is known about a tape, or why it is rejected.
fn told(made: Result<(Index, Vec<tapegate_core::tape::TapeFinding>), TapeRejection>) -> String {
    let (index, findings) = match made {
        Ok(made) => made,
        Err(refusal) => return refusal.to_string(),
    };
    let slots: Vec<_> = (0..index.len() as u32).map(|slot| index.entry(slot)).collect();
    let asks: Vec<_> = (0..index.request_count())
        .map(|ask| (index.request(ask), index.next_with_hash(ask), index.next_with_subject(ask)))
        .collect();
    format!(
        "{slots:#?}\n{asks:?}\n{:?}\n{:?}\n{:?}\n{findings:?}",
        index.sessions(),
        index.client_notifications(),
        index.headers()
    )
}

fn line_by_line(text: &[u8], signer: &Signer) -> String {
    let mut splicer = IndexSplicer::new(signer.clone());
    let mut reader = TapeReader::new(text);
    while let Some(next) = reader.next() {
        if let Err(refusal) = splicer.line(next) {
            return refusal.to_string();
        }
    }
    told(splicer.finish())
}

/// Reads it in chunks, cut after every `piece` bytes or as soon as possible then.
fn in_stretches(text: &[u8], piece: usize, signer: &Signer) -> String {
    let mut splicer = IndexSplicer::new(signer.clone());
    let (mut stretch, mut start, mut aim) = (TapeChunk::default(), 0, piece);
    while start < text.len() {
        let behind = text.get(aim - 1..).and_then(first_line_start);
        let end = behind.map_or(text.len(), |behind| aim - 1 + behind);
        stretch.read(&text[start..end], end == text.len(), signer);
        if let Err(refusal) = splicer.add(&mut stretch) {
            return refusal.to_string();
        }
        (start, aim) = (end, end + piece);
    }
    told(splicer.finish())
}

fn message() -> impl Strategy<Value = String> {
    let id = prop_oneof![
        4 => (0..4u8).prop_map(|id| id.to_string()),
        1 => Just("\"a\"".to_owned()), 1 => Just("\"\\u0061\"".to_owned()), 1 => Just("null".to_owned()),
        1 => Just("\"a very long id that fits no small place\"".to_owned()),
    ];
    (0..10u8, id, good_json()).prop_map(|(sort, id, json)| match sort {
        0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","arguments":{json}}}}}"#),
        1 => format!(r#"{{"method":"m","params":{{"_meta":{{"progressToken":{id}}},"cursor":{json}}},"jsonrpc":"2.0","id":{id}}}"#),
        2 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{json}}}"#),
        3 => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{json}}}"#),
        4 => format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":1}}}}"#),
        5 => format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#),
        6 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m\u0061","params":{json}}}"#),
        7 => format!(r#"{{"method":"n","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"inputResponses":{json}}}}}"#),
        8 => format!("{{\r\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}"),
        _ => json,
    })
}

fn moment() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..62u8, 0..1_000_000u32).prop_map(|(s, us)| format!("2026-01-01T00:00:{s:02}.{us:06}Z")),
        2 => (0..60u8, 0..1000u32).prop_map(|(s, ms)| format!("2026-01-01T00:01:{s:02}.{ms:03}Z")),
        1 => Just("2026-01-01T02:00:00+01:00".to_owned()),
        1 => Just("2026-01-01T00:00:0x.000000Z".to_owned()),
        1 => Just("2026-01-01T00:00:\\u0030".to_owned()),
        1 => Just(String::new()),
    ]
}

/// Keys after a message, as we write them or nearly so.
fn more() -> impl Strategy<Value = String> {
    let number = prop_oneof![4 => (0..9u32).prop_map(|n| n.to_string()), 1 => Just("18446744073709551615".to_owned()), 1 => Just("07".to_owned()), 1 => Just("1.5".to_owned())];
    let key = (0..12u8, number).prop_map(|(key, number)| match key {
        0 => format!(",\"latency_ms\":{number}"),
        1 => ",\"session\":\"s2\"".to_owned(),
        2 => ",\"session_id\":\"s\\u0032\"".to_owned(),
        3 => format!(",\"req\":{number}"),
        4 => format!(",\"batch\":{number}"),
        5 => ",\"by\":\"tapegate\"".to_owned(),
        6 => ",\"unterminated\":true".to_owned(),
        7 => ",\"redacted\":[\"/a\"]".to_owned(),
        8 => ",\"raw\":\"{}\\n\"".to_owned(),
        9 => ",\"session\":{\"odd\":1}".to_owned(),
        10 => ",\"resumed\":true".to_owned(),
        _ => " , \"note\" : 1".to_owned(),
    });
    prop_oneof![4 => Just(String::new()), 2 => key.clone(), 1 => proptest::collection::vec(key, 2..4).prop_map(|keys| keys.concat())]
}

fn line() -> impl Strategy<Value = String> {
    let thoughtjack = (0..9u64, moment(), any::<bool>(), message(), more()).prop_map(
        |(seq, ts, client, msg, more)| {
            let dir = if client { "c2s" } else { "s2c" };
            format!(
                r#"{{"type":"message","seq":{seq},"ts":"{ts}","dir":"{dir}","msg":{msg}{more}}}"#
            )
        },
    );
    let overwatch =
        (moment(), any::<bool>(), message(), more()).prop_map(|(ts, client, msg, more)| {
            let direction = if client { "client_to_server" } else { "server_to_client" };
            format!(r#"{{"ts":"{ts}","direction":"{direction}","parsed":{msg}{more}}}"#)
        });
    prop_oneof![
        12 => thoughtjack,
        6 => overwatch,
        1 => Just(r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"u","thoughtjack_version":"0"}"#.to_owned()),
        1 => Just(r#"{"type":"footer","total_messages":3,"duration_ms":1,"client_messages":2,"server_messages":1}"#.to_owned()),
        1 => Just(r#"{"type":"news"}"#.to_owned()),
        1 => Just(r#"{"ts":"","direction":"client_to_server","raw":"","parse_error":"recovered_after_torn_tail"}"#.to_owned()),
        1 => Just(String::new()),
    ]
}

/// A tape, intact or modified.
fn tape() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![8 => Just("\n"), 1 => Just("\r\n"), 1 => Just(" "), 1 => Just("\n\n")];
    let spread = prop::bool::weighted(0.1);
    let line = (line(), end, spread).prop_map(|(line, end, spread)| {
        let line = if spread { line.replace(",\"", ",\n  \"").replace("}}", "}\n}") } else { line };
        line + end
    });
    let lines =
        proptest::collection::vec(line, 1..12).prop_map(|lines| lines.concat().into_bytes());
    let damage = prop_oneof![5 => Just(None), 1 => (any::<prop::sample::Index>(), any::<u8>(), 0..4u8).prop_map(Some)];
    (lines, damage).prop_map(|(mut text, damage)| {
        if let Some((at, byte, how)) = damage {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                2 => drop(text.remove(at)),
                _ => text.truncate(at),
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn a_tape_in_stretches_is_the_tape_line_by_line(text in tape(), piece in 1..2000usize) {
        for signer in [Signer::default(), Signer::new(vec![JsonPath::read("..name").unwrap()])] {
            prop_assert_eq!(in_stretches(&text, piece, &signer), line_by_line(&text, &signer));
        }
    }
}

#[test]
fn a_tape_that_is_not_indented_is_cut_before_any_line() {
    assert_eq!(first_line_start(b"a\n{\n"), Some(2));
    assert_eq!(first_line_start(b"{}\n  1,\n]\n\t2\n}\n{}\n{}"), Some(15));
    assert_eq!(first_line_start(b"{}\n"), None);
    assert_eq!(first_line_start(b"{}"), None);
    assert_eq!(first_line_start(b"\n\n"), Some(1));
}
