//! Every byte of an event stream comes out once, and events are the same in any chunking.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::sse::Events;

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

fuzz_target!(|bytes: &[u8]| {
    let [step, max, stream @ ..] = bytes else { return };
    let step = usize::from(*step) + 1;
    let wide = all(stream, step, usize::MAX / 2);
    assert_eq!(wide.0, stream);
    assert_eq!(wide, all(stream, usize::MAX, usize::MAX / 2));
    // With a limit nothing may panic or repeat.
    let (raw, ..) = all(stream, step, usize::from(*max) + 1);
    assert!(raw.len() <= stream.len());
});
