//! How the parts of a line are written: moments, numbers and texts.

use super::{Sink, Stamp};
use crate::json::write_str;
use crate::time::{SubSecond, write_rfc3339};

/// Appends a moment.
pub(super) fn put_stamp(out: &mut impl Sink, ts: Stamp<'_>, digits: SubSecond) {
    match ts {
        Stamp::Text(text) => out.put(text.as_bytes()),
        Stamp::At(wall_us) => {
            let mut text = Vec::with_capacity(32);
            write_rfc3339(&mut text, wall_us, digits);
            out.put(&text);
        }
    }
}

/// Appends a number.
pub(super) fn put_number(out: &mut impl Sink, number: u64) {
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

/// Appends text as JSON, quotes and all.
pub(super) fn put_string(out: &mut impl Sink, text: &str) {
    let mut quoted = Vec::with_capacity(text.len() + 16);
    write_str(&mut quoted, text);
    out.put(&quoted);
}
