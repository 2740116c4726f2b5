//! Writes the parts of a line: timestamps, numbers and texts.

use super::{ByteSink, EntryTime};
use crate::json::write_str;
use crate::tape::base64;
use crate::time::{SubSecond, write_rfc3339};

/// Appends a timestamp.
pub(super) fn put_stamp(out: &mut impl ByteSink, ts: EntryTime<'_>, digits: SubSecond) {
    match ts {
        EntryTime::Text(text) => out.put(text.as_bytes()),
        EntryTime::At(wall_us) => {
            let mut text = Vec::with_capacity(32);
            write_rfc3339(&mut text, wall_us, digits);
            out.put(&text);
        }
    }
}

/// Appends a number.
pub(super) fn put_number(out: &mut impl ByteSink, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.put(&digits[at..]);
}

/// How much of a long text is quoted at once, so that it is not copied as a whole.
const PART_BYTES: usize = 128 * 1024;

/// Appends text as a JSON string with quotes.
pub(super) fn put_string(out: &mut impl ByteSink, text: &str) {
    if text.len() > PART_BYTES {
        put_lossy(out, text.as_bytes());
        return;
    }
    let mut quoted = Vec::with_capacity(text.len() + 16);
    write_str(&mut quoted, text);
    out.put(&quoted);
}

/// Appends bytes as a JSON string, with replacement characters for invalid UTF-8; returns whether
/// all of it was valid.
pub(super) fn put_lossy(out: &mut impl ByteSink, bytes: &[u8]) -> bool {
    let mut exact = true;
    let (mut quoted, mut quoted_part) = (b"\"".to_vec(), Vec::new());
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
            quoted_part.clear();
            write_str(&mut quoted_part, part);
            // All parts share one pair of quotes.
            quoted.extend_from_slice(&quoted_part[1..quoted_part.len() - 1]);
            rest = after;
            if quoted.len() >= PART_BYTES {
                out.put(&quoted);
                quoted.clear();
            }
        }
        if !chunk.invalid().is_empty() {
            exact = false;
            quoted.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    quoted.push(b'"');
    out.put(&quoted);
    exact
}

/// Appends bytes as base64 with quotes.
pub(super) fn put_base64(out: &mut impl ByteSink, bytes: &[u8]) {
    out.put(b"\"");
    // Groups of three bytes are independent of each other.
    for part in bytes.chunks(PART_BYTES / 4 * 3) {
        out.put(base64::encode(part).as_bytes());
    }
    out.put(b"\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_quoted_as_short_ones_are() {
        let odd = "a\"\\\n\u{1}\u{e9}\u{1f600}";
        for repeats in [1, 3, PART_BYTES / odd.len(), 3 * PART_BYTES / odd.len() + 1] {
            for shift in 0..4 {
                let text = "x".repeat(shift) + &odd.repeat(repeats);
                let (mut expected, mut quoted) = (Vec::new(), Vec::new());
                write_str(&mut expected, &text);
                put_string(&mut quoted, &text);
                assert!(quoted == expected, "{repeats} {shift}");
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_written_as_before_and_told_of() {
        let odd: &[u8] = b"a\xff\xe2\x82b\"\xc3";
        for repeats in [1, 2, PART_BYTES / odd.len() + 1] {
            let bytes = odd.repeat(repeats);
            let (mut expected, mut quoted, mut packed) = (Vec::new(), Vec::new(), Vec::new());
            write_str(&mut expected, &String::from_utf8_lossy(&bytes));
            assert!(!put_lossy(&mut quoted, &bytes));
            assert!(quoted == expected, "{repeats}");
            put_base64(&mut packed, &bytes);
            assert!(packed == format!("\"{}\"", base64::encode(&bytes)).into_bytes());
        }
        assert!(put_lossy(&mut Vec::new(), b"plain"));
    }
}
