//! Classifies replies of a server behind a gate.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::content_type::ContentType;

/// The kind of a reply, by its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// An event stream.
    Events,
    /// One JSON text.
    Json,
    /// A type that no client reads as a message.
    Other,
}

/// The kind of a reply if all clients read it alike; otherwise the reason why they may not.
///
/// Clients check the media type in different ways: some compare it, some search the header for it.
/// Some decode text in the named charset.
pub fn read_reply(headers: &HeaderMap) -> Result<ReplyKind, &'static str> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let Some(value) = lines.next() else { return Ok(ReplyKind::Other) };
    if lines.next().is_some() {
        return Err("the server's reply has more than one Content-Type");
    }
    let text = value.as_bytes().to_ascii_lowercase();
    let mentions = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    let parsed = ContentType::parse(value.as_bytes());
    let kind = match parsed.as_ref().map(|parsed| parsed.essence.as_str()) {
        Some("text/event-stream") => ReplyKind::Events,
        Some("application/json") => ReplyKind::Json,
        _ if mentions(b"event-stream") || mentions(b"application/json") => {
            return Err("the server's reply has a Content-Type that clients read differently");
        }
        _ => return Ok(ReplyKind::Other),
    };
    if !parsed.is_some_and(|parsed| parsed.is_utf8()) {
        return Err("the server's reply is not in UTF-8");
    }
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let packed = codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if packed && kind == ReplyKind::Events {
        return Err("the server compresses its events, though it was not asked to");
    }
    Ok(kind)
}
