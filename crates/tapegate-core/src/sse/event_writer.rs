//! Writes events so that every parser finds the same lines in them.
//!
//! All parsers agree about `\n`. Some also end a line at U+0085, U+2028 or U+2029, at a vertical tab or at
//! a form feed, so none of these may occur in what is written, or a parser would find fields there.

use super::SsePiece;

/// Appends an event with one message as data. An id or name that a parser may split into several lines is
/// left out.
pub fn write_event(out: &mut Vec<u8>, id: Option<&str>, event: Option<&str>, message: &[u8]) {
    let one_line = |text: &&str| is_one_line(text.as_bytes());
    if let Some(event) = event.filter(one_line) {
        write_line(out, b"event: ", event.as_bytes());
    }
    if let Some(id) = id.filter(one_line) {
        write_line(out, b"id: ", id.as_bytes());
    }
    write_message(out, message);
    out.push(b'\n');
}

/// Appends an event made only from its parsed parts: its id, its retry time, and `message`, which must be
/// JSON. Without a message, an otherwise empty piece becomes an empty comment, which keeps the stream
/// alive, and blank lines become nothing. A partial event at the end of a stream, which is not
/// `terminated`, is not completed.
pub fn rewrite_event(
    out: &mut Vec<u8>,
    piece: &SsePiece,
    message: Option<&[u8]>,
    terminated: bool,
) {
    let id_bytes = piece.id.as_ref().map_or(0, Vec::len);
    let start = out.len();
    if let Some(message) = message {
        out.reserve(message.len() + id_bytes + 64);
        // Clients treat an event without a name as a message.
        if piece.event.is_some() {
            out.extend_from_slice(b"event: message\n");
        }
    }
    write_resumption(out, piece);
    match message {
        Some(message) => write_message(out, message),
        None if out.len() == start && piece.raw.trim_ascii().is_empty() => return,
        None if out.len() == start => out.extend_from_slice(b":\n"),
        // Some parsers remember an id only if there is data.
        None if piece.data.is_some() => out.extend_from_slice(b"data: \n"),
        None => {}
    }
    if terminated {
        out.push(b'\n');
    }
}

/// Appends what a client needs to resume a stream after an event: its id, and the retry time. An id that a
/// parser may split into several lines is left out, so that the client resumes from the previous one.
fn write_resumption(out: &mut Vec<u8>, piece: &SsePiece) {
    if let Some(id) = piece.id.as_deref().filter(|id| is_one_line(id)) {
        write_line(out, b"id: ", id);
    }
    if let Some(retry_ms) = piece.retry_ms {
        write_line(out, b"retry: ", retry_ms.to_string().as_bytes());
    }
}

/// Appends a message, which must be JSON, as data. Separators can only occur in its strings and are escaped
/// there, which makes no difference to a JSON parser.
fn write_message(out: &mut Vec<u8>, message: &[u8]) {
    let mut rest = message;
    out.extend_from_slice(b"data: ");
    while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
        write_escaped(out, &rest[..end]);
        out.extend_from_slice(b"\ndata: ");
        let is_pair = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(is_pair)..];
    }
    write_escaped(out, rest);
    out.push(b'\n');
}

fn write_line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn write_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut written = 0;
    // Plain text costs one search.
    for at in memchr::memchr2_iter(0xC2, 0xE2, text) {
        if let Some((escape, length)) = separator(&text[at..]) {
            out.extend_from_slice(&text[written..at]);
            out.extend_from_slice(escape);
            written = at + length;
        }
    }
    out.extend_from_slice(&text[written..]);
}

/// The escape for the separator at the start of a text, and the separator's length: NEL, LINE SEPARATOR or
/// PARAGRAPH SEPARATOR.
fn separator(text: &[u8]) -> Option<(&'static [u8], usize)> {
    match text {
        [0xC2, 0x85, ..] => Some((b"\\u0085", 2)),
        [0xE2, 0x80, 0xA8, ..] => Some((b"\\u2028", 3)),
        [0xE2, 0x80, 0xA9, ..] => Some((b"\\u2029", 3)),
        _ => None,
    }
}

/// Whether every parser reads a text as the rest of one line. U+0085 is a control character too.
fn is_one_line(text: &[u8]) -> bool {
    let splits = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    std::str::from_utf8(text).is_ok_and(|text| !text.contains(splits))
}
