//! Bodies that carry no message.

use bytes::Bytes;

/// The body of a request or reply that carries no message, such as OAuth metadata, a web page or an
/// error of HTTP. Only the proxy makes one, after it has looked whether the body is, or may be
/// taken for, a message; what it says of a message is never a `PlainBody`.
pub(in crate::http) struct PlainBody(Bytes);

impl PlainBody {
    /// A body that is not a message by what [`super::Exchange`] knows of it.
    pub(super) fn new(body: Bytes) -> Self {
        Self(body)
    }

    pub(in crate::http) fn into_bytes(self) -> Bytes {
        self.0
    }
}
