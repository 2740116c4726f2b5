//! The trace context of a call, as sent by its caller.

/// The maximum length of a `traceparent`; current ones have 55 bytes.
const TRACEPARENT_BYTES_MAX: usize = 128;

/// Whether a text can be a `traceparent`. Anything else that callers send by that name is dropped,
/// because it would not be masked.
pub fn is_traceparent(text: &str) -> bool {
    let known = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    !text.is_empty() && text.len() <= TRACEPARENT_BYTES_MAX && text.bytes().all(known)
}
