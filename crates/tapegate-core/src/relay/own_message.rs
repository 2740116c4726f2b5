//! Messages of our own. Each has one of a few fixed forms, so that a message of a peer cannot be passed
//! off as one.

use super::own_tasks::{OwnTaskAnswer, ServerTaskMethod};
use crate::frame;
use crate::gate::{InputQuestion, OwnRequest, UserQuestion};
use crate::json::{self, JsonObject};

/// A message of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnMessage(Vec<u8>);

impl OwnMessage {
    /// An error in answer to the request with this raw id.
    pub fn error(id: &[u8], code: i32, message: &str) -> Self {
        Self(frame::own_error(as_id(id), code, message))
    }

    /// The same with other `data`, which is JSON text.
    pub fn error_with(id: &[u8], code: i32, message: &str, data: &str) -> Self {
        Self(frame::error_reply(as_id(id), code, message, data))
    }

    /// An error in answer to the request with this raw id. `error` must be a JSON-RPC error object on one
    /// line; otherwise the answer only says that the request failed.
    pub fn error_object(id: &[u8], error: &[u8]) -> Self {
        let text = frame::error_text(as_id(id), error);
        // `error` may be text of a server. A line end in it would split the message in two.
        let is_object = error.first() == Some(&b'{') && json::check(error).is_ok();
        match is_object && !error.contains(&b'\n') {
            true => Self(text),
            false => Self::error(id, super::CODE_GONE, "the request failed"),
        }
    }

    /// A request that the gate needs answered before it decides about a call.
    pub(super) fn request(request: OwnRequest) -> Self {
        Self(request.into_text())
    }

    /// A question to the client's user about a held call.
    pub(super) fn question(question: &UserQuestion) -> Self {
        Self(question.request())
    }

    /// A result for the request with this raw id that asks its client's user.
    pub(super) fn input_required(id: &[u8], question: &InputQuestion) -> Self {
        Self(frame::result_text(as_id(id), &question.result()))
    }

    /// An answer about a task of ours.
    pub(super) fn task_answer(id: &[u8], answer: &OwnTaskAnswer) -> Self {
        let (kind, text) = match answer {
            OwnTaskAnswer::Result(result) => (&b",\"result\":"[..], result),
            OwnTaskAnswer::Error(error) => (&b",\"error\":"[..], error),
        };
        Self([b"{\"jsonrpc\":\"2.0\",\"id\":", as_id(id), kind, text.as_bytes(), b"}"].concat())
    }

    /// A request about a task of the server that stands behind one of ours. `id` is a raw id.
    pub(super) fn task_request(id: &[u8], method: ServerTaskMethod, task_id: &str) -> Self {
        let mut text = [
            &b"{\"jsonrpc\":\"2.0\",\"id\":"[..],
            as_id(id),
            b",\"method\":\"",
            method.name().as_bytes(),
            b"\",\"params\":{\"taskId\":",
        ]
        .concat();
        json::write_str(&mut text, task_id);
        text.extend_from_slice(b"}}");
        Self(text)
    }

    /// A notification that the request with this raw id is cancelled.
    pub fn cancelled(id: &[u8], reason: &str) -> Self {
        let params = JsonObject::new().raw("requestId", as_id(id)).text("reason", reason).finish();
        Self(frame::notification_text("notifications/cancelled", Some(&params)))
    }

    /// A notification that a held call waits. `token` is the caller's raw progress token, and
    /// `message` says what the call waits for.
    pub(super) fn progress(token: &[u8], progress: &str, message: &str) -> Self {
        let params = JsonObject::new().raw("progressToken", as_id(token)).raw("progress", progress);
        let params = params.text("message", message).finish();
        Self(frame::notification_text("notifications/progress", Some(&params)))
    }

    /// Several messages of our own as one batch.
    pub fn batch(messages: &[Self]) -> Self {
        Self(json::array(messages.iter().map(Self::bytes)))
    }

    /// The text, line ending not included.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A raw id as we write it: a string or number unchanged, anything else as `null`.
pub(super) fn as_id(id: &[u8]) -> &[u8] {
    // The id comes from a peer. Any other value could carry a whole message of the peer inside
    // ours.
    let scalar = matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9'));
    match scalar && json::check(id).is_ok_and(|whole| whole.len() == id.len()) {
        true => id,
        false => b"null",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_none_is_answered_as_null() {
        for (id, written) in [
            ("1", "1"),
            ("\"a\"", "\"a\""),
            ("-1.5e3", "-1.5e3"),
            ("null", "null"),
            ("{}", "null"),
            ("1,\"method\":\"x\"", "null"),
            ("\"a\",\"method\":\"x\"", "null"),
            ("", "null"),
            ("01x", "null"),
        ] {
            assert_eq!(as_id(id.as_bytes()), written.as_bytes(), "{id}");
        }
    }

    #[test]
    fn an_error_object_that_is_none_is_not_sent() {
        let fine = OwnMessage::error_object(b"1", br#"{"code":1,"message":"m"}"#);
        assert_eq!(fine.bytes(), br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#);
        for bad in ["{},\"method\":\"tools/call\"", "{}}\n{\"id\":2}", "1", "{", ""] {
            let made = OwnMessage::error_object(b"1", bad.as_bytes());
            assert!(
                made.bytes().ends_with(
                    b"\"message\":\"the request failed\",\"data\":{\"by\":\"tapegate\"}}}"
                ),
                "{bad}"
            );
        }
    }
}
