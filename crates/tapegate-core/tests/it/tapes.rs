//! Tapes that are written can be read back, and writing them again restores every byte.

use std::borrow::Cow;

use proptest::prelude::*;
use tapegate_core::frame::Frame;
use tapegate_core::gate::PermitAllGate;
use tapegate_core::relay::{Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{
    Dialect, EntryWriter, EntryWriterOptions, TapeAudit, TapeHeader, TapeLine, TapeReader,
    TapeSeverity,
};
use tapegate_core::time::Timestamp;

use crate::json::good_json;

/// A frame: valid or not, terminated or not.
fn frame() -> impl Strategy<Value = (bool, Vec<u8>, bool)> {
    let message = (any::<bool>(), 0..3u8, good_json()).prop_map(|(ask, id, json)| {
        if ask {
            format!("{{\"id\":{id},\"method\":\"m\",\"params\":{json}}}")
        } else {
            format!("{{\"id\":{id},\"result\":{json}}}")
        }
    });
    let bytes = prop_oneof![
        4 => message.prop_map(String::into_bytes),
        2 => good_json().prop_map(|text| format!(" {text}\r").into_bytes()),
        1 => proptest::collection::vec(any::<u8>().prop_filter("a line", |b| *b != b'\n'), 0..30),
    ];
    (any::<bool>(), bytes, prop::bool::weighted(0.9))
}

fn header() -> TapeHeader<'static> {
    TapeHeader {
        version: "1.0".into(),
        name: Some("a \"name\"".into()),
        tags: vec!["x".into(), "é".into()],
        recorded_at: "2026-01-01T00:00:00.000000Z".into(),
        upstream: "cmd 'a b'".into(),
        tool_version: "0".into(),
        extra: b",\"recorder\":\"tapegate/0\"".to_vec(),
    }
}

/// A tape of these frames, and its anomalies.
fn write(frames: &[(bool, Vec<u8>, bool)], dialect: Dialect, raw: bool) -> (Vec<u8>, Vec<u8>) {
    let (mut tape, mut beside) = (Vec::new(), Vec::new());
    let options = EntryWriterOptions { dialect, raw, shared: false };
    let mut entry_writer = EntryWriter::new(options, None, Timestamp::default());
    let mut relay = Relay::default();
    entry_writer.open(&header(), &mut tape);
    for (n, (client, bytes, terminated)) in frames.iter().enumerate() {
        let from = if *client { Side::Client } else { Side::Server };
        let at = Timestamp { wall_us: n as i64 * 1_234_567, mono_ns: n as u64 * 7_000_000 };
        let lane = Lane { session: 1 + n as u32 % 2, exchange: 0 };
        let terminated = *terminated;
        let frame = &Frame::read_without_gate_details(bytes);
        let event = match from {
            Side::Server if n % 3 == 0 => RelayEvent::Resumed { lane, frame, terminated },
            _ => RelayEvent::Received { lane, from, frame, terminated },
        };
        relay.handle(at, event, &mut PermitAllGate, &mut |action| {
            if let RelayAction::Record(entry) = action {
                entry_writer.write(entry, &mut tape, &mut beside);
            }
        });
    }
    entry_writer.close(Timestamp::default(), &mut tape);
    (tape, beside)
}

/// Reads a tape and writes it again.
fn again(text: &[u8]) -> Vec<u8> {
    let mut reader = TapeReader::new(text);
    let mut out = Vec::new();
    while let Some(next) = reader.next() {
        match next.unwrap_or_else(|problem| panic!("{problem}")).entry {
            TapeLine::Header(header) => header.write(&mut out),
            TapeLine::Message(message) if message.seq.is_some() => {
                message.write_thoughtjack(&mut out)
            }
            TapeLine::Message(message) => message.write_overwatch(&mut out),
            TapeLine::Bad(bad) => bad.write(&mut out),
            TapeLine::Footer(footer) => footer.write(&mut out),
            TapeLine::Unknown(kind) => panic!("{kind}"),
        }
    }
    out
}

/// The text with more keys at the end of every line.
fn with_keys(text: &[u8], keys: &str) -> Vec<u8> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| [&line[..line.len() - 2], keys.as_bytes(), b"}\n"].concat()).collect()
}

fn dialect() -> impl Strategy<Value = Dialect> {
    prop_oneof![Just(Dialect::Thoughtjack), Just(Dialect::Overwatch)]
}

proptest! {
    #[test]
    fn a_tape_that_is_read_and_written_is_the_same_tape(
        frames in proptest::collection::vec(frame(), 0..20),
        dialect in dialect(),
        raw in any::<bool>(),
    ) {
        let (tape, beside) = write(&frames, dialect, raw);
        for text in [&tape, &beside] {
            prop_assert_eq!(&again(text), text);
            let more = with_keys(text, ",\"note\" :\"mine\",\"x\":{\"b\":1.0,\"a\":[]},\"x\":2");
            // White space after a key is not kept, but every key and value is.
            let wanted = with_keys(text, ",\"note\":\"mine\",\"x\":{\"b\":1.0,\"a\":[]},\"x\":2");
            prop_assert_eq!(again(&more), wanted);
        }
    }

    #[test]
    fn an_overwatch_tape_gives_back_the_exact_bytes_of_every_frame(
        frames in proptest::collection::vec(frame(), 0..20),
    ) {
        let (tape, _) = write(&frames, Dialect::Overwatch, true);
        let mut reader = TapeReader::new(tape.as_slice());
        let mut seen = Vec::new();
        while let Some(next) = reader.next() {
            match next.unwrap().entry {
                TapeLine::Message(message) => seen.push((message.from, message.raw.map(|raw| raw.into_owned().into_bytes()))),
                TapeLine::Bad(bad) => seen.push((bad.from, Some(bad.raw.into_owned()))),
                other => panic!("{other:?}"),
            }
        }
        let sent: Vec<_> = frames.into_iter().map(|(client, bytes, _)| {
            (if client { Side::Client } else { Side::Server }, Some(bytes))
        }).collect();
        prop_assert_eq!(seen, sent);
    }

    #[test]
    fn a_tape_we_wrote_has_no_errors_however_it_is_cut_off(
        frames in proptest::collection::vec(frame(), 0..12),
        dialect in dialect(),
        cut in any::<prop::sample::Index>(),
    ) {
        let (tape, _) = write(&frames, dialect, true);
        let tape = &tape[..cut.index(tape.len() + 1)];
        let (mut reader, mut audit) = (TapeReader::new(tape), TapeAudit::default());
        while let Some(next) = reader.next() {
            audit.line(&next);
        }
        let (findings, _) = audit.finish();
        let errors: Vec<_> = findings.iter().filter(|f| f.severity == TapeSeverity::Error).collect();
        prop_assert!(errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        pieces in proptest::collection::vec(prop_oneof![
            Just(b"{\"type\":\"header\"".to_vec()), Just(b"{\"ts\":\"x\",\"direction\":\"client_to_server\",\"parsed\":".to_vec()),
            Just(b"{\"type\":\"message\",\"seq\":18446744073709551615,\"ts\":\"\",\"dir\":\"c2s\",\"msg\":{}}\n".to_vec()),
            Just(b"\"raw_b64\":\"A===\",".to_vec()), Just(b"}\n".to_vec()), Just(b",".to_vec()), Just(b"\n  ".to_vec()),
            good_json().prop_map(String::into_bytes), proptest::collection::vec(any::<u8>(), 0..12),
        ], 0..12),
    ) {
        let text = pieces.concat();
        let (mut reader, mut audit) = (TapeReader::new(text.as_slice()), TapeAudit::default());
        let mut count = 0;
        while let Some(next) = reader.next() {
            audit.line(&next);
            count += 1;
            prop_assert!(count <= text.len() + 1);
        }
        audit.finish();
    }
}

#[test]
fn keys_of_others_that_are_spelled_like_ours_are_kept() {
    for line in [
        r#"{"ts":"t","direction":"client_to_server","parsed":{},"by":"somebody"}"#,
        r#"{"ts":"t","direction":"client_to_server","parsed":{},"unterminated":false}"#,
        r#"{"ts":"t","direction":"client_to_server","parsed":{},"resumed":1}"#,
        r#"{"ts":"t","direction":"client_to_server","parsed":{},"redacted":[]}"#,
        r#"{"ts":"t","direction":"client_to_server","parsed":{},"raw":null}"#,
        r#"{"ts":"t","direction":"client_to_server","raw":"x","parse_error":"y","raw_b64":"not base64"}"#,
        r#"{"type":"header","version":"1.0","recorded_at":"r","upstream":"u","thoughtjack_version":"v","tags":[]}"#,
        r#"{"type":"header","version":"1.0","recorded_at":"r","upstream":"u","thoughtjack_version":"v","name":null}"#,
    ] {
        let text = format!("{line}\n");
        assert_eq!(
            Cow::from(again(text.as_bytes())).escape_ascii().to_string(),
            text.as_bytes().escape_ascii().to_string()
        );
    }
}
