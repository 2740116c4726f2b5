//! Why a message got no answer, in words for the one who asked.

use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;
use tapegate_core::frame::Frame;
use tapegate_core::json;
use tapegate_core::relay::CODE_GONE;

use super::super::body::{Collected, collect};
use super::super::station::Stopped;

/// How much of an error page is quoted.
const QUOTE_CHARS_MAX: usize = 300;

/// Why a message got no answer.
#[derive(Debug)]
pub(super) struct Problem {
    /// The reason, for people.
    pub(super) words: String,
    /// The status of the reply, if there was one.
    pub(super) status: Option<StatusCode>,
    /// A JSON-RPC message that came with the status.
    pub(super) message: Option<Vec<u8>>,
}

impl Problem {
    /// A problem that is not of the server's making, or not in its words.
    pub(super) fn new(words: impl ToString) -> Self {
        Self { words: words.to_string(), status: None, message: None }
    }

    /// The problem that something answers in the place of a server that is none.
    pub(super) fn of_no_message(parts: &Parts) -> Self {
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        let status = parts.status;
        Self::new(format!(
            "the MCP server replied without an answer: {status} with a body{kind} that is no MCP \
             message"
        ))
    }

    /// The problem that a reply with an error status tells of.
    pub(super) async fn of_reply(
        parts: &Parts,
        mut body: Incoming,
        in_session: bool,
        bytes_max: usize,
    ) -> Self {
        let body = match collect(&mut body, bytes_max).await {
            Ok(Collected::Whole(body)) => body.to_vec(),
            Ok(Collected::TooLarge(_)) | Err(_) => Vec::new(),
        };
        let frame = Frame::read(&body);
        let error = frame.envelope().and_then(|said| said.error);
        let told = match error.and_then(|error| json::member(error, "message")) {
            Some(message) => json::string(message).map(|message| message.into_owned()),
            None => quote(&parts.headers, &body),
        };
        let status = parts.status;
        let told = told.map(|told| format!(": {told}")).unwrap_or_default();
        let words = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => format!(
                "the MCP server answered {status}{told}; if it wants credentials, pass them with \
                 --header 'Authorization: Bearer TOKEN'"
            ),
            StatusCode::NOT_FOUND if in_session => format!(
                "the MCP server does not know this session any more ({status}{told}); the client \
                 must initialize again"
            ),
            _ => format!("the MCP server answered {status}{told}"),
        };
        // In the first two cases what we say helps more than what the server says.
        let ours = words.contains("--header") || words.contains("initialize again");
        let message = error.filter(|_| !ours).map(|_| body.clone());
        Self { words, status: Some(status), message }
    }

    /// Whether what answered may be the older transport, which takes no POST here.
    pub(super) fn hints_at_older_transport(&self) -> bool {
        match self.status {
            Some(StatusCode::METHOD_NOT_ALLOWED) => true,
            Some(StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND) => self.message.is_none(),
            _ => false,
        }
    }

    /// The JSON-RPC error object for the one who asked: the server's own, if it gave one.
    pub(super) fn error(&self) -> Vec<u8> {
        let message = self.message.as_deref().map(Frame::read);
        if let Some(error) = message.and_then(|frame| frame.envelope()?.error) {
            return json::compact(error).into_owned();
        }
        let mut text = format!("{{\"code\":{CODE_GONE},\"message\":").into_bytes();
        json::write_str(&mut text, &self.words);
        let status = self
            .status
            .map(|status| format!(",\"status\":{}", status.as_u16()))
            .unwrap_or_default();
        text.extend_from_slice(format!(",\"data\":{{\"by\":\"tapegate\"{status}}}}}").as_bytes());
        text
    }
}

impl From<Stopped> for Problem {
    fn from(stopped: Stopped) -> Self {
        Self::new(stopped)
    }
}

/// The beginning of a body that people can read.
fn quote(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let text = std::str::from_utf8(body).ok()?;
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || kind.contains("html") || text.trim_start().starts_with('<') {
        return None;
    }
    Some(words.join(" ").chars().take(QUOTE_CHARS_MAX).collect())
}
