//! Lines come out the same however the stream is cut up. The first bytes say how.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::lines::{Cut, Lines};

fn all(stream: &[u8], step: usize, bytes_max: usize) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
    let mut lines = Lines::new(bytes_max);
    let (mut passed, mut over) = (Vec::new(), Vec::new());
    let mut keep = |lines: &Lines, cut: Cut| match cut {
        Cut::Line(range) => {
            assert!(range.len() <= bytes_max);
            passed.extend_from_slice(lines.bytes(range));
            passed.push(b'\n');
        }
        Cut::Unterminated(range) => passed.extend_from_slice(lines.bytes(range)),
        Cut::Oversize(message) => over.push((message.bytes_total, message.head)),
    };
    for piece in stream.chunks(step) {
        lines.room()[..piece.len()].copy_from_slice(piece);
        lines.filled(piece.len());
        while let Some(cut) = lines.cut() {
            keep(&lines, cut);
        }
        lines.release();
    }
    if let Some(cut) = lines.finish() {
        keep(&lines, cut);
    }
    (passed, over)
}

fuzz_target!(|bytes: &[u8]| {
    let [step, max, stream @ ..] = bytes else { return };
    let (step, max) = (usize::from(*step) + 1, usize::from(*max) + 1);
    let whole = all(stream, 4096, max);
    assert_eq!(all(stream, step, max), whole);
    if whole.1.is_empty() {
        assert_eq!(whole.0, stream);
    }
});
