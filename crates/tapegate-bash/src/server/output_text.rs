//! Output of a command as text for an answer.

use crate::executor::StreamCapture;
use crate::recording::entry::unfinished_bytes;

/// A stream as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InlineText {
    pub(super) text: String,
    /// How many bytes in the middle are missing.
    pub(super) cut_bytes: u64,
    /// Whether bytes were replaced that are not UTF-8.
    pub(super) is_lossy: bool,
}

/// A stream within `bytes_max`: all of it, or its beginning and its end.
pub(super) fn inline(stream: &StreamCapture, bytes_max: usize) -> InlineText {
    let total = stream.total_bytes();
    if total <= bytes_max as u64 {
        let part = stream.part(0, bytes_max);
        let (text, is_lossy) = decode(&part.bytes);
        return InlineText { text, cut_bytes: 0, is_lossy };
    }
    let head = &stream.head()[..stream.head().len().min(bytes_max / 2)];
    let head = &head[..head.len() - unfinished_bytes(head)];
    // Beginning and end, because errors are at either.
    let end = stream.part(total - (bytes_max - bytes_max / 2) as u64, bytes_max);
    let tail = after_continuation(&end.bytes);
    let cut_bytes = total - (head.len() + tail.len()) as u64;
    let ((head, head_lossy), (tail, tail_lossy)) = (decode(head), decode(tail));
    let text = format!("{head}\n[... {cut_bytes} bytes cut ...]\n{tail}");
    InlineText { text, cut_bytes, is_lossy: head_lossy || tail_lossy }
}

/// Text of bytes that a reader continues later. Returns how many bytes at the end belong to a
/// character whose rest is yet to come.
pub(super) fn decode_part(bytes: &[u8], is_last: bool) -> (String, usize) {
    let unfinished = if is_last { 0 } else { unfinished_bytes(bytes) };
    // A part that is one unfinished character must be taken, or reading would never go on.
    let unfinished = if unfinished == bytes.len() { 0 } else { unfinished };
    (decode(&bytes[..bytes.len() - unfinished]).0, unfinished)
}

fn decode(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
    }
}

/// The bytes after those that continue a character whose beginning was cut.
fn after_continuation(bytes: &[u8]) -> &[u8] {
    // At most three, since more would not be UTF-8 anyway and must stay visible.
    let count = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    &bytes[count..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(head_max: usize, bytes: &[u8]) -> StreamCapture {
        let mut capture = StreamCapture::new(head_max);
        capture.push(bytes);
        capture
    }

    #[test]
    fn long_output_has_both_ends_and_the_count_of_what_is_missing() {
        let text = inline(&capture(100, &[b"a".repeat(60), b"b".repeat(60)].concat()), 20);
        assert_eq!(text.text, "aaaaaaaaaa\n[... 100 bytes cut ...]\nbbbbbbbbbb");
        assert_eq!((text.cut_bytes, text.is_lossy), (100, false));
        let whole = inline(&capture(100, b"short"), 20);
        assert_eq!((whole.text.as_str(), whole.cut_bytes), ("short", 0));
    }

    #[test]
    fn characters_are_not_cut_in_half() {
        let text = inline(&capture(1000, "é".repeat(100).as_bytes()), 21);
        assert!(!text.is_lossy, "{}", text.text);
        assert_eq!(text.text.matches('é').count() as u64 * 2 + text.cut_bytes, 200);
        assert!(inline(&capture(100, b"\xff\xfe"), 20).is_lossy);
        assert_eq!(decode_part("aé".split_at(1).0.as_bytes(), false), ("a".to_owned(), 0));
        assert_eq!(decode_part(&"aé".as_bytes()[..2], false), ("a".to_owned(), 1));
        assert_eq!(decode_part(&"é".as_bytes()[..1], false).1, 0);
        assert_eq!(decode_part(&"aé".as_bytes()[..2], true), ("a\u{fffd}".to_owned(), 0));
    }
}
