//! The part of a client's message that is kept while a server over HTTP works on it.

use tapegate_core::frame::{Frame, MessageKind, find_envelope};

/// What is kept of a client's message until its requests are answered.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct PendingMessage {
    /// The raw ids of the requests in it.
    pub(in crate::http) ids: Vec<Vec<u8>>,
    /// Whether it contains a request.
    pub(in crate::http) has_request: bool,
    /// Whether it asks for the server's tools.
    pub(in crate::http) lists_tools: bool,
}

impl PendingMessage {
    pub(in crate::http) fn of(frame: &Frame<'_>) -> Self {
        let mut message = Self::default();
        find_envelope(frame, |envelope| {
            if envelope.kind() == MessageKind::Request {
                // Not those of answers: an own request may be pending under the same id.
                message.ids.extend(envelope.id.map(<[u8]>::to_vec));
                message.has_request = true;
            }
            message.lists_tools |= envelope.is_method("tools/list");
            None::<()>
        });
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_the_client_is_none_of_its_requests() {
        let ids = |text: &str| PendingMessage::of(&Frame::read(text.as_bytes())).ids;
        assert_eq!(ids(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#), [b"1"]);
        assert_eq!(ids(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), [b""; 0]);
        let both =
            r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"1","method":"ping"}]"#;
        assert_eq!(ids(both), [b"\"1\""]);
    }
}
