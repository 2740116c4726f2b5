//! The trace that a call belongs to, as its caller says.

/// How long a `traceparent` may be; those of today have 55 bytes.
const TRACEPARENT_BYTES_MAX: usize = 128;

/// Whether a text can be a `traceparent`. Whatever else callers send by that name is not kept: it
/// is not masked either.
pub fn is_traceparent(text: &str) -> bool {
    let known = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    !text.is_empty() && text.len() <= TRACEPARENT_BYTES_MAX && text.bytes().all(known)
}
