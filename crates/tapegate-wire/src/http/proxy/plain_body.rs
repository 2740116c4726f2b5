//! Bodies that do not carry a message.

use bytes::Bytes;

/// The body of a request or reply that does not carry a message, such as OAuth metadata, a web page
/// or an HTTP error. Only the proxy creates one, after checking that the body is not a message and
/// cannot be mistaken for one.
pub(in crate::http) struct PlainBody(Bytes);

impl PlainBody {
    /// A body that is not a message as far as [`super::ProxyExchange`] knows.
    pub(super) fn new(body: Bytes) -> Self {
        Self(body)
    }

    pub(in crate::http) fn into_bytes(self) -> Bytes {
        self.0
    }
}
