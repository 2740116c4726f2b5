//! Where an actor session's output goes.

use std::time::Duration;

use tapegate_core::tape::{Provenance, RecordError};
use tapegate_core::time::Timestamp;
use tokio::time::Instant;

use crate::port::ReceivedLine;
use crate::stdio::EndCause;

/// How much output may be queued for a client that does not read before the actor gets no more
/// events. A few small requests may cause large answers, so this is checked after every message.
pub(super) const OUT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The receiver of a session's output: a client on a pipe, or a bridge in the same process. `about`
/// is the id of the request that output belongs to.
pub(super) trait ClientEnd {
    /// Adds a message. `provenance` is that of a played one.
    fn add_message(
        &mut self,
        at: Timestamp,
        about: Option<&[u8]>,
        parts: &[&[u8]],
        provenance: Option<Provenance>,
    );

    /// Adds bytes that need not be a message.
    fn add_piece(&mut self, at: Timestamp, about: Option<&[u8]>, bytes: &[u8], ends: bool);

    /// Ends the stream of a request before its answer, if there are streams.
    fn end_stream(&mut self, _about: &[u8]) {}

    /// Closes the client's connection; returns whether that ends the session.
    fn disconnect(&mut self, about: Option<&[u8]>, abrupt: bool) -> bool;

    /// Records a client's message, if that is done here.
    fn record_received(&mut self, _at: Timestamp, _line: &ReceivedLine<'_>) {}

    /// How much the client has not taken.
    fn unread_bytes(&self) -> usize;

    /// Whether there is room for more output.
    fn has_room(&self) -> bool {
        self.unread_bytes() < OUT_BYTES_MAX
    }

    /// Whether output must be read before the client is.
    fn blocks_input(&self) -> bool {
        false
    }

    /// Commits recorded output, and sends it as far as possible without waiting. While there is
    /// more input, it is not `urgent` and a little output is gathered first.
    fn send(&mut self, _urgent: bool) -> Result<(), RecordError> {
        Ok(())
    }

    /// Whether [`ClientEnd::progress`] has something to wait for.
    fn can_progress(&self) -> bool;

    /// Waits until the client takes some of the output.
    async fn progress(&mut self);

    /// When held output must be looked at again.
    fn next_check(&self) -> Option<Instant> {
        None
    }

    /// Whether the client has stopped reading.
    fn is_gone(&self) -> bool {
        false
    }

    /// Checks whether a client that is not read from has left unnoticed.
    fn check_hangup(&mut self) {}

    /// Set once the output is discarded even if it is read: the grace for the passthrough server.
    fn discard_grace(&self) -> Option<Duration> {
        None
    }

    /// Sends the rest of the output within `time`.
    async fn finish(&mut self, _at: Timestamp, _cause: &EndCause, _time: Duration) {}

    /// Discards everything that is added from now on.
    fn close(&mut self);
}
