//! How the reply of a governed server is read.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::content_type::ContentType;

/// What a reply carries, by its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyKind {
    /// A stream of events.
    Events,
    /// One JSON text.
    Json,
    /// Something that no client takes for a message.
    Other,
}

/// What a reply carries, if all clients read it alike; otherwise why they may not.
///
/// Clients look for the media type in different ways: some compare it, some search the header for it. And
/// some decode text in the charset that is named.
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
