//! Connection headers, and replies of our own.

use std::borrow::Cow;
use std::io::Read;

use http::header::{
    ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tapegate_core::frame::{Frame, FrameBody, MessageKind, envelopes};
use tapegate_core::relay::{OwnMessage, PermittedMessage};

use super::request_body::{RETRY_AFTER_S, UnreadBody};
use super::request_check::RequestRejection;
use super::{OutboundBytes, ReplyBody, SessionStoppedError};

/// The most that a compressed body is decompressed to; larger ones are recorded compressed.
const UNPACKED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Removes the hop-by-hop headers.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let keep_alive = HeaderName::from_static("keep-alive");
    let proxy_connection = HeaderName::from_static("proxy-connection");
    let always = [
        CONNECTION,
        keep_alive,
        proxy_connection,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    for name in named.into_iter().chain(always) {
        headers.remove(name);
    }
}

/// Removes the headers that describe a body's bytes, for a body that is being replaced. A digest of
/// the original would also let a reader confirm guesses at redacted secrets.
pub(super) fn strip_body_headers(headers: &mut HeaderMap) {
    let always = [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ACCEPT_RANGES, ETAG];
    let digests = ["content-md5", "content-digest", "repr-digest", "digest"];
    for name in always.into_iter().chain(digests.map(HeaderName::from_static)) {
        headers.remove(name);
    }
}

/// An empty 202 reply.
pub(super) fn accepted() -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::from_whole(OutboundBytes::empty()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// A reply of ours that ends an exchange early, in place of the one that was to come.
pub(super) type EarlyReply = Box<Response<ReplyBody>>;

/// The reply once recording has stopped.
impl From<SessionStoppedError> for EarlyReply {
    fn from(stopped: SessionStoppedError) -> Self {
        Self::new(refusal(503, &stopped.to_string()))
    }
}

/// The reply to an exchange that may have ended early.
pub(super) fn reply_of(reply: Result<Response<ReplyBody>, EarlyReply>) -> Response<ReplyBody> {
    reply.unwrap_or_else(|early| *early)
}

/// Whether the Content-Type is `wanted`, ignoring parameters.
pub(super) fn is_type(headers: &HeaderMap, wanted: &str) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

/// A decompressed body. Refused if its encoding is ambiguous or unsupported, or if the result is
/// over the limit.
pub(super) fn decompress_or_reject<'a>(
    headers: &HeaderMap,
    body: &'a [u8],
    bytes_max: usize,
) -> Result<Cow<'a, [u8]>, RequestRejection> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let coding = codings.next().map(|coding| coding.as_bytes());
    if !body.is_empty() && codings.next().is_some() {
        return Err(RequestRejection::new(415, "the body has more than one Content-Encoding"));
    }
    if body.is_empty() || coding.is_none_or(|coding| coding.eq_ignore_ascii_case(b"identity")) {
        return Ok(Cow::Borrowed(body));
    }
    match decompress(headers, body, bytes_max.min(UNPACKED_BYTES_MAX)) {
        Some(Ok(text)) => Ok(Cow::Owned(text)),
        Some(Err(BodyTooLargeError)) => {
            Err(RequestRejection::new(413, "the uncompressed body is over the size limit"))
        }
        None => {
            Err(RequestRejection::new(415, "the body cannot be decompressed; send it uncompressed"))
        }
    }
}

/// A body for inspection: decompressed where possible, otherwise unchanged.
pub(super) fn decompress_for_reading<'a>(headers: &HeaderMap, body: &'a [u8]) -> Cow<'a, [u8]> {
    match decompress(headers, body, UNPACKED_BYTES_MAX) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(body),
    }
}

/// The decompressed body would exceed the limit.
struct BodyTooLargeError;

/// Decompresses a body; `None` if it is not compressed, or not in a way that we support.
fn decompress(
    headers: &HeaderMap,
    body: &[u8],
    bytes_max: usize,
) -> Option<Result<Vec<u8>, BodyTooLargeError>> {
    let encoding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let packed: Box<dyn Read + '_> = match encoding.unwrap_or_default().trim() {
        name if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
            Box::new(flate2::read::MultiGzDecoder::new(body))
        }
        name if name.eq_ignore_ascii_case("deflate") => {
            Box::new(flate2::read::ZlibDecoder::new(body))
        }
        _ => return None,
    };
    let mut text = Vec::new();
    let count = packed.take(bytes_max as u64 + 1).read_to_end(&mut text).ok()?;
    Some(if count <= bytes_max { Ok(text) } else { Err(BodyTooLargeError) })
}

/// The reply to a request that is refused because of its head.
pub(super) fn rejection_reply(rejection: &RequestRejection, id: &[u8]) -> Response<ReplyBody> {
    let mut reply = error(rejection.status, id, rejection.code, &rejection.reason);
    if let Some(methods) = rejection.allow {
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    }
    reply
}

/// Joins several messages into a batch; a single one stays as it is.
pub(super) fn single_or_batch(
    mut messages: Vec<PermittedMessage<'_>>,
) -> Option<PermittedMessage<'_>> {
    match messages.len() {
        0 | 1 => messages.pop(),
        _ => Some(PermittedMessage::batch(&messages)),
    }
}

/// The reply to a body that is refused because of its head: each request in it gets the error.
pub(super) fn rejection_replies(
    rejection: &RequestRejection,
    frame: &Frame<'_>,
) -> Response<ReplyBody> {
    let requests =
        envelopes(frame).into_iter().filter(|envelope| envelope.kind() == MessageKind::Request);
    let ids: Vec<&[u8]> = requests.filter_map(|envelope| envelope.id).collect();
    if !matches!(frame.body(), FrameBody::Batch) || ids.is_empty() {
        let id = frame.envelope().and_then(|envelope| envelope.id).unwrap_or(b"null");
        return rejection_reply(rejection, id);
    }
    let error = |id: &&[u8]| OwnMessage::error(id, rejection.code, &rejection.reason);
    let errors: Vec<OwnMessage> = ids.iter().map(error).collect();
    let mut reply = rejection_reply(rejection, b"null");
    *reply.body_mut() =
        ReplyBody::from_whole(OutboundBytes::message(OwnMessage::batch(&errors).into()));
    reply
}

/// A reply with a JSON-RPC error that answers no particular request.
pub(super) fn refusal(status: u16, message_text: &str) -> Response<ReplyBody> {
    error(status, b"null", -32000, message_text)
}

/// A reply with a JSON-RPC error.
pub(super) fn error(status: u16, id: &[u8], code: i32, message_text: &str) -> Response<ReplyBody> {
    json(status, OwnMessage::error(id, code, message_text).into())
}

/// Closes the connection after this reply, because the request was not read to its end.
pub(super) fn last(mut reply: Response<ReplyBody>) -> Response<ReplyBody> {
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

/// The reply to a request whose body was not read to its end. It answers no message.
pub(super) fn unread_body_reply(unread: UnreadBody) -> Response<ReplyBody> {
    let mut reply =
        Response::new(ReplyBody::from_whole(OutboundBytes::plain_notice(unread.message())));
    *reply.status_mut() =
        StatusCode::from_u16(unread.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if unread == UnreadBody::NoRoom {
        headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
    }
    last(reply)
}

/// A reply with an event stream as its body.
pub(super) fn events(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    response
}

/// A reply with a message as its JSON body.
pub(super) fn json(status: u16, message: PermittedMessage<'_>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::from_whole(OutboundBytes::message(message)));
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_body_that_was_packed_by_either_name_of_gzip_can_be_read() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(b"{}").unwrap();
        let packed = packer.finish().unwrap();
        for (name, text) in [("gzip", &b"{}"[..]), ("X-GZIP", b"{}"), ("br", &packed)] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, name.parse().unwrap());
            assert_eq!(decompress_for_reading(&headers, &packed), text, "{name}");
        }
    }

    #[test]
    fn a_packed_body_is_read_whole_or_not_at_all() {
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static("gzip"))]);
        for bytes in [10, UNPACKED_BYTES_MAX, UNPACKED_BYTES_MAX + 1] {
            let mut packed = Vec::new();
            let zeros = std::io::repeat(b'0').take(bytes as u64);
            flate2::read::GzEncoder::new(zeros, flate2::Compression::fast())
                .read_to_end(&mut packed)
                .expect("memory");
            let read = decompress_for_reading(&headers, &packed);
            let whole = bytes <= UNPACKED_BYTES_MAX;
            assert_eq!(read.len(), if whole { bytes } else { packed.len() });
        }
    }
}
