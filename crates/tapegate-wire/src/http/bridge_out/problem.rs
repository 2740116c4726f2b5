//! Why a message got no answer, worded for the client.

use std::cell::OnceCell;

use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::response::Parts;
use hyper::body::Incoming;
use tapegate_core::frame::{Envelope, Frame, error_object, own_data};
use tapegate_core::json;
use tapegate_core::relay::CODE_GONE;

use super::super::body::{CollectedBody, collect};
use super::super::headers;
use super::super::shared_session::SessionStoppedError;

/// How much of an error page is quoted.
const QUOTE_CHARS_MAX: usize = 300;

/// Why a message got no answer.
#[derive(Debug, Clone)]
pub(super) struct ExchangeProblem {
    /// Our own description of the problem; empty if there is a reply.
    message_text: String,
    /// The status of the reply, if there was one.
    status: Option<StatusCode>,
    /// The reply, if it had an error status.
    reply: Option<ErrorReply>,
}

/// A server's reply with an error status.
#[derive(Debug, Clone)]
struct ErrorReply {
    status: StatusCode,
    /// The declared media type of the body.
    kind: String,
    /// The body, decompressed if possible.
    text: Vec<u8>,
    /// The redacted body. Redaction is done and recorded once, however often the body is quoted.
    masked_text: OnceCell<Vec<u8>>,
    /// Whether the failed message named a session.
    in_session: bool,
}

impl ExchangeProblem {
    /// A problem described by us rather than by the server.
    pub(super) fn new(message_text: impl ToString) -> Self {
        Self { message_text: message_text.to_string(), status: None, reply: None }
    }

    /// The problem that a reply has ended without the answer.
    pub(super) fn no_answer() -> Self {
        Self::new("the MCP server's reply has no answer")
    }

    /// The problem that a reply contains no MCP message.
    pub(super) fn not_a_message(status: StatusCode, kind: &str) -> Self {
        let kind = if kind.is_empty() { String::new() } else { format!(" ({kind})") };
        Self::new(format!(
            "the MCP server's reply has no answer: {status} with a body{kind} that is not an \
             MCP message"
        ))
    }

    /// The problem reported by a reply with an error status.
    pub(super) async fn from_reply(
        parts: &Parts,
        mut body: Incoming,
        in_session: bool,
        bytes_max: usize,
    ) -> Self {
        let body = match collect(&mut body, bytes_max).await {
            Ok(CollectedBody::Whole(body)) => body,
            Ok(CollectedBody::TooLarge(_)) | Err(_) => Bytes::new(),
        };
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let text = headers::decompress_for_reading(&parts.headers, &body).into_owned();
        let masked_text = OnceCell::new();
        let reply = ErrorReply { status: parts.status, kind, text, masked_text, in_session };
        Self { message_text: String::new(), status: Some(parts.status), reply: Some(reply) }
    }

    /// The same problem with the server's text redacted by `mask`, fit to be shown.
    pub(super) fn masked(&self, mask: impl FnOnce(&str, &[u8]) -> Option<Vec<u8>>) -> Self {
        let mut masked = self.clone();
        if let (Some(reply), Some(copy)) = (&self.reply, &mut masked.reply)
            && !reply.text.is_empty()
        {
            let what = format!("the body of HTTP status {}, quoted", reply.status.as_u16());
            let masked_text = || mask(&what, &reply.text).unwrap_or_else(|| reply.text.clone());
            copy.text = reply.masked_text.get_or_init(masked_text).clone();
        }
        masked
    }

    /// The problem as human-readable text.
    pub(super) fn reason_text(&self) -> String {
        self.reply.as_ref().map_or_else(|| self.message_text.clone(), ErrorReply::reason_text)
    }

    /// The JSON-RPC error in the reply, unless our own explanation is more helpful.
    pub(super) fn message(&self) -> Option<Frame<'_>> {
        let reply = self.reply.as_ref().filter(|reply| !reply.needs_own_message())?;
        let frame = Frame::read(&reply.text);
        frame.envelope().is_some_and(is_rpc_error).then_some(frame)
    }

    /// Whether the server may speak the older transport, which accepts no POST here.
    pub(super) fn suggests_legacy_transport(&self) -> bool {
        match self.status {
            Some(StatusCode::METHOD_NOT_ALLOWED) => true,
            Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) => self.message().is_none(),
            _ => false,
        }
    }

    /// The JSON-RPC error object for the client: the server's own, if it sent one.
    pub(super) fn error(&self) -> Vec<u8> {
        let message = self.message();
        if let Some(error) = message.as_ref().and_then(|frame| frame.envelope()?.error) {
            return json::compact(error).into_owned();
        }
        let status = self.status.map(|status| status.as_u16().to_string());
        let members: Vec<(&str, &[u8])> =
            status.iter().map(|status| ("status", status.as_bytes())).collect();
        error_object(CODE_GONE, &self.reason_text(), Some(own_data(&members).as_bytes()))
    }
}

/// Whether a message is an error of JSON-RPC. Web servers and gateways answer with JSON that has an
/// `error`, too, such as `{"error":"not found"}`, which no client would take for an answer.
fn is_rpc_error(envelope: &Envelope<'_>) -> bool {
    let code = envelope.error.and_then(|error| json::member(error, "code"));
    envelope.version_ok
        && code.is_some_and(|code| code.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-'))
}

impl From<SessionStoppedError> for ExchangeProblem {
    fn from(stopped: SessionStoppedError) -> Self {
        Self::new(stopped)
    }
}

impl ErrorReply {
    /// Whether our own explanation is more helpful than the server's.
    fn needs_own_message(&self) -> bool {
        match self.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => true,
            status => status == StatusCode::NOT_FOUND && self.in_session,
        }
    }

    fn reason_text(&self) -> String {
        let frame = Frame::read(&self.text);
        let error = frame.envelope().and_then(|envelope| envelope.error);
        let masked_text = match error.and_then(|error| json::member(error, "message")) {
            Some(message) => json::string(message).map(|message| message.into_owned()),
            None => self.quote(),
        };
        let status = self.status;
        let masked_text =
            masked_text.map(|masked_text| format!(": {masked_text}")).unwrap_or_default();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => format!(
                "the MCP server answered {status}{masked_text}; if it wants credentials, pass them with \
                 --header 'Authorization: Bearer TOKEN'"
            ),
            StatusCode::NOT_FOUND if self.in_session => format!(
                "the MCP server no longer knows this session ({status}{masked_text}); the client \
                 must initialize again"
            ),
            _ => format!("the MCP server answered {status}{masked_text}"),
        }
    }

    /// The beginning of the body, if it is human-readable text.
    fn quote(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.text).ok()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || self.kind.contains("html") || text.trim_start().starts_with('<') {
            return None;
        }
        Some(words.join(" ").chars().take(QUOTE_CHARS_MAX).collect())
    }
}
