//! The lines are the same however the stream is chunked. The first two bytes give the chunk size and the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::lines::{LineSplitter, StreamLine};

fn split_all(stream: &[u8], step: usize, bytes_max: usize) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
    let mut splitter = LineSplitter::new(bytes_max);
    let (mut passed, mut oversize) = (Vec::new(), Vec::new());
    let mut keep = |splitter: &LineSplitter, line: StreamLine| match line {
        StreamLine::Line(range) => {
            assert!(range.len() <= bytes_max);
            passed.extend_from_slice(splitter.bytes(range));
            passed.push(b'\n');
        }
        StreamLine::Unterminated(range) => passed.extend_from_slice(splitter.bytes(range)),
        StreamLine::Oversize(message) => oversize.push((message.bytes_total, message.head)),
    };
    for piece in stream.chunks(step) {
        splitter.read_buffer()[..piece.len()].copy_from_slice(piece);
        splitter.filled(piece.len());
        while let Some(line) = splitter.next_line() {
            keep(&splitter, line);
        }
        splitter.release();
    }
    if let Some(line) = splitter.take_rest() {
        keep(&splitter, line);
    }
    (passed, oversize)
}

fuzz_target!(|bytes: &[u8]| {
    let [step, max, stream @ ..] = bytes else { return };
    let (step, max) = (usize::from(*step) + 1, usize::from(*max) + 1);
    let whole = split_all(stream, 4096, max);
    assert_eq!(split_all(stream, step, max), whole);
    if whole.1.is_empty() {
        assert_eq!(whole.0, stream);
    }
});
