//! Every byte of an event stream is passed on once, and the events are the same in any chunking. In a
//! rewritten stream no reader finds a message that was not judged.
#![no_main]

#[path = "../../crates/tapegate-core/tests/it/sse_readers.rs"]
mod sse_readers;

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::{Frame, FrameBody};
use tapegate_core::sse::{SseParser, SsePiece, rewrite_event};

/// The name, id and data of an event.
type EventParts = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<u8>);

fn parse_all(stream: &[u8], step: usize, bytes_max: usize) -> (Vec<u8>, Vec<EventParts>, usize) {
    let mut parser = SseParser::new(bytes_max);
    let (mut raw, mut events, mut oversize) = (Vec::new(), Vec::new(), 0);
    for piece in stream.chunks(step) {
        parser.feed(piece);
        while let Some(next) = parser.next() {
            match next {
                Ok(piece) => {
                    raw.extend_from_slice(&piece.raw);
                    events.extend(piece.data.map(|data| (piece.event, piece.id, data)));
                }
                Err(_) => oversize += 1,
            }
        }
    }
    raw.extend(parser.take_rest().map(|piece| piece.raw).unwrap_or_default());
    (raw, events, oversize)
}

/// Rewrites a stream as a gate does that permits every message. Returns it and the messages.
fn rewrite_stream(stream: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (mut out, mut judged) = (Vec::new(), Vec::new());
    let mut parser = SseParser::new(usize::MAX / 2);
    parser.feed(stream);
    let mut take = |piece: &SsePiece, terminated: bool| {
        let is_message = piece.event.as_deref().is_none_or(|name| name == b"message");
        let data = piece.data.as_deref().filter(|_| is_message);
        let message =
            data.filter(|data| !matches!(Frame::read(data).body(), FrameBody::Garbage(_)));
        judged.extend(message.map(|message| {
            let text = String::from_utf8_lossy(message).replace('\u{85}', "\\u0085");
            text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
        }));
        rewrite_event(&mut out, piece, message, terminated);
    };
    while let Some(Ok(piece)) = parser.next() {
        take(&piece, true);
    }
    if let Some(piece) = parser.take_rest() {
        take(&piece, false);
    }
    (out, judged)
}

fuzz_target!(|bytes: &[u8]| {
    let [step, max, stream @ ..] = bytes else { return };
    let step = usize::from(*step) + 1;
    let unlimited = parse_all(stream, step, usize::MAX / 2);
    assert_eq!(unlimited.0, stream);
    assert_eq!(unlimited, parse_all(stream, usize::MAX, usize::MAX / 2));
    let (written, judged) = rewrite_stream(stream);
    for reader in &sse_readers::READERS {
        for message in reader.messages(&written) {
            assert!(judged.contains(&message), "{}: {message}", reader.name);
        }
    }
    // With a limit, nothing may panic or be repeated.
    let (raw, ..) = parse_all(stream, step, usize::from(*max) + 1);
    assert!(raw.len() <= stream.len());
});
