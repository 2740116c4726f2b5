//! Every byte of an event stream comes out once, and events are the same in any chunking. In a stream
//! that is written again no reader finds a message that was not judged.
#![no_main]

#[path = "../../crates/tapegate-core/tests/it/sse_readers.rs"]
mod sse_readers;

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::{Body, Frame};
use tapegate_core::sse::{Events, Piece, write_again};

type Said = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<u8>);

fn all(stream: &[u8], step: usize, bytes_max: usize) -> (Vec<u8>, Vec<Said>, usize) {
    let mut events = Events::new(bytes_max);
    let (mut raw, mut said, mut over) = (Vec::new(), Vec::new(), 0);
    for piece in stream.chunks(step) {
        events.feed(piece);
        while let Some(next) = events.next() {
            match next {
                Ok(piece) => {
                    raw.extend_from_slice(&piece.raw);
                    said.extend(piece.data.map(|data| (piece.event, piece.id, data)));
                }
                Err(_) => over += 1,
            }
        }
    }
    raw.extend(events.finish().map(|piece| piece.raw).unwrap_or_default());
    (raw, said, over)
}

/// Writes a stream again as a gate does that lets all messages pass; returns it and the messages.
fn again(stream: &[u8]) -> (Vec<u8>, Vec<String>) {
    let (mut out, mut judged) = (Vec::new(), Vec::new());
    let mut events = Events::new(usize::MAX / 2);
    events.feed(stream);
    let mut take = |piece: &Piece, terminated: bool| {
        let named = piece.event.as_deref().is_none_or(|name| name == b"message");
        let data = piece.data.as_deref().filter(|_| named);
        let message = data.filter(|data| !matches!(Frame::read(data).body(), Body::Garbage(_)));
        judged.extend(message.map(|message| {
            let text = String::from_utf8_lossy(message).replace('\u{85}', "\\u0085");
            text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
        }));
        write_again(&mut out, piece, message, terminated);
    };
    while let Some(Ok(piece)) = events.next() {
        take(&piece, true);
    }
    if let Some(piece) = events.finish() {
        take(&piece, false);
    }
    (out, judged)
}

fuzz_target!(|bytes: &[u8]| {
    let [step, max, stream @ ..] = bytes else { return };
    let step = usize::from(*step) + 1;
    let wide = all(stream, step, usize::MAX / 2);
    assert_eq!(wide.0, stream);
    assert_eq!(wide, all(stream, usize::MAX, usize::MAX / 2));
    let (written, judged) = again(stream);
    for reader in &sse_readers::READERS {
        for found in reader.messages(&written) {
            assert!(judged.contains(&found), "{}: {found}", reader.name);
        }
    }
    // With a limit nothing may panic or repeat.
    let (raw, ..) = all(stream, step, usize::from(*max) + 1);
    assert!(raw.len() <= stream.len());
});
