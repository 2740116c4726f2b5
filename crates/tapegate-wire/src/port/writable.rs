//! The bytes that may be written to a port.

use tapegate_core::relay::PermittedBytes;

/// Bytes that may be written to a port: messages permitted by the relay, or output that this
/// process originates as an endpoint of the session. Raw bytes are neither:
///
/// ```compile_fail,E0277
/// use tapegate_wire::port::StreamPort;
/// async fn send(port: &StreamPort, message: Vec<u8>) {
///     port.write(&message[..]).await.ok();
/// }
/// ```
///
/// ```
/// use tapegate_core::relay::LineBuffer;
/// use tapegate_wire::port::StreamPort;
/// async fn send(port: &StreamPort, messages: &LineBuffer) {
///     port.write(messages.writable()).await.ok();
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WritableBytes<'a>(&'a [u8]);

impl<'a> WritableBytes<'a> {
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }
}

impl<'a> From<PermittedBytes<'a>> for WritableBytes<'a> {
    fn from(cleared: PermittedBytes<'a>) -> Self {
        Self(cleared.bytes())
    }
}

/// Output that this process originates as an endpoint of a session: an actor in place of a server,
/// or a verifier or lister in place of a client. Nothing is relayed there, so no gate is involved.
/// A test (`tidy`) ensures that no relaying module creates one.
#[derive(Debug, Clone, Copy)]
pub struct OriginatedBytes<'a>(&'a [u8]);

impl<'a> OriginatedBytes<'a> {
    pub(crate) fn from_endpoint(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> From<OriginatedBytes<'a>> for WritableBytes<'a> {
    fn from(originated: OriginatedBytes<'a>) -> Self {
        Self(originated.0)
    }
}
