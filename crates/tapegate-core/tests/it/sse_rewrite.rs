//! Every parser finds in a rewritten stream only what we read in the original.

use proptest::prelude::*;
use tapegate_core::frame::{Frame, FrameBody};
use tapegate_core::sse::{SseParser, SsePiece, rewrite_event};

use crate::sse_readers::READERS;

/// Rewrites a stream like a gate that lets all messages pass; returns it and the messages.
fn again(stream: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (mut out, mut judged) = (Vec::new(), Vec::new());
    let mut events = SseParser::new(1 << 20);
    events.feed(stream);
    let mut take = |piece: &SsePiece, terminated: bool| {
        let named = piece.event.as_deref().is_none_or(|name| name == b"message");
        let data = piece.data.as_deref().filter(|_| named);
        let message =
            data.filter(|data| !matches!(Frame::read(data).body(), FrameBody::Garbage(_)));
        judged.extend(message.map(escaped));
        rewrite_event(&mut out, piece, message, terminated);
    };
    while let Some(piece) = events.next() {
        take(&piece.unwrap(), true);
    }
    if let Some(piece) = events.take_rest() {
        take(&piece, false);
    }
    (out, judged)
}

/// A message as it may be written: with escapes for what some parsers take for line endings.
fn escaped(message: &[u8]) -> String {
    let text = String::from_utf8(message.to_vec()).unwrap();
    text.replace('\u{85}', "\\u0085").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn is_harmless(stream: &[u8]) {
    let (out, judged) = again(stream);
    for reader in &READERS {
        for found in reader.messages(&out) {
            assert!(
                judged.contains(&found),
                "{} reads `{found}` in `{}`, written for `{}`",
                reader.name,
                out.escape_ascii(),
                stream.escape_ascii()
            );
        }
    }
}

const EVIL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#;

#[test]
fn marks_separators_and_names_hide_no_message() {
    let parts = ["\u{85}", "\u{2028}", "\u{2029}", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"];
    for part in parts {
        for head in ["x: ", ": ", "event: ", "event: message", "id: 1", "retry: 1", "data: {}"] {
            is_harmless(format!("{head}{part}{part}data: {EVIL}{part}{part}\n\n").as_bytes());
            is_harmless(format!("{head}{part}data:{EVIL}").as_bytes());
        }
        let text = format!(r#"{{"text":"{part}{part}data: {{}}{part}{part}"}}"#);
        is_harmless(format!("data: {text}\n\n").as_bytes());
    }
    for mark in ["\u{ef}\u{bb}\u{bf}", "\u{feff}\u{feff}", "\u{feff}\u{ef}\u{bb}\u{bf}", "\0"] {
        is_harmless(format!("{mark}data: {EVIL}\n\n").as_bytes());
    }
    for name in ["DATA", "data ", " data", "Data", "data\t", "data\0"] {
        is_harmless(format!("{name}: {EVIL}\n\n").as_bytes());
    }
    for name in ["Message", "message ", "ping", "endpoint", "x\u{2028}data: {}"] {
        is_harmless(format!("event: {name}\ndata: {EVIL}\n\n").as_bytes());
    }
}

#[test]
fn what_was_read_is_written_and_nothing_else() {
    for (stream, written) in [
        ("data: {}\n\n", "data: {}\n\n"),
        ("event: message\r\nid: 7\r\ndata: {}\r\n\r\n", "event: message\nid: 7\ndata: {}\n\n"),
        ("data: {\ndata: }\nx: y\nretry: 5\n\n", "retry: 5\ndata: {\ndata: }\n\n"),
        (": ping - 2026-01-01\n\n", ":\n\n"),
        ("x: y\n\n", ":\n\n"),
        ("\n\n\n", ""),
        ("id: 1\ndata: \n\n", "id: 1\ndata: \n\n"),
        ("id: 1\n\n", "id: 1\n\n"),
        ("id: a\u{2028}b\ndata: {}\n\n", "data: {}\n\n"),
        ("event: ping\nid: 2\ndata: now\n\n", "id: 2\ndata: \n\n"),
        ("data: {}", "data: {}\n"),
        ("data: {\"a\":\"\u{2028}\"}\n\n", "data: {\"a\":\"\\u2028\"}\n\n"),
        ("data: {\"a\":\"\u{e9}\u{2014}\"}\n\n", "data: {\"a\":\"\u{e9}\u{2014}\"}\n\n"),
    ] {
        let (out, _) = again(stream.as_bytes());
        assert_eq!(String::from_utf8(out).unwrap(), written, "{stream:?}");
    }
}

/// Parts of streams that parsers disagree about.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let odd = "\u{feff}|\u{ef}\u{bb}\u{bf}|\u{85}|\u{2028}|\u{2029}|\x0b|\x0c|\x1c|\x1e|\r|\n|\n\n|\r\n|\0| |:|data|data:|data: |DATA: |event: |event: message\n|id: |retry: 1|x|\"|\\|{|}|,|[|]";
    let odd: Vec<Vec<u8>> = odd.split('|').map(|part| part.as_bytes().to_vec()).collect();
    let message = [EVIL, r#"{"a":"b"}"#, "{}", "[]", "7"];
    let piece = prop_oneof![
        6 => proptest::sample::select(odd),
        3 => proptest::sample::select(message.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn no_reader_finds_a_message_that_was_not_judged(stream in stream()) {
        is_harmless(&stream);
    }
}
