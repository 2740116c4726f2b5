//! Where an actor session's output goes: a client on a pipe, or a bridge in the same process.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::tape::{Provenance, RecordError};
use tapegate_core::time::Timestamp;
use tokio::time::Instant;

use super::bridge_channel::{ActorOutput, OutputSender};
use super::client_input::ClientLine;
use super::pipe_client::PipeClient;
use super::raw_piece::ActorPiece;
use crate::stdio::EndCause;

/// How much output may be queued for a client that does not read before the actor gets no more
/// events. A few small requests may cause large answers, so this is checked after every message.
pub(super) const OUT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The receiver of a session's output.
pub(super) enum ClientEnd<'d> {
    Pipe(Box<PipeClient<'d>>),
    Bridge(BridgeClient),
}

/// A bridge in the same process. It records what it receives, so nothing is recorded here.
pub(super) struct BridgeClient {
    pub(super) output: OutputSender,
    /// Whether clients share the session, so that output must name the request it belongs to.
    pub(super) shared: bool,
    /// Whether answers have streams, which may be ended early.
    pub(super) streams: bool,
    /// Set once the output is discarded even if it is read: the grace for the passthrough server.
    pub(super) discard_grace: Rc<Cell<Option<Duration>>>,
}

impl ClientEnd<'_> {
    /// Whether clients share the session, and whether answers have streams.
    pub(super) fn sharing(&self) -> (bool, bool) {
        match self {
            Self::Pipe(_) => (false, false),
            Self::Bridge(bridge) => (bridge.shared, bridge.streams),
        }
    }

    /// Adds a message. `provenance` is that of a played one.
    pub(super) fn add_message(
        &mut self,
        at: Timestamp,
        about: Option<&[u8]>,
        parts: &[&[u8]],
        provenance: Option<Provenance>,
    ) {
        match self {
            Self::Pipe(pipe) => pipe.add_message(at, parts, provenance),
            Self::Bridge(BridgeClient { output, shared, .. }) => output.add(ActorOutput::Message {
                about: about.filter(|_| *shared).map(<[u8]>::to_vec),
                bytes: parts.concat(),
                provenance: provenance.unwrap_or_default(),
            }),
        }
    }

    /// Adds bytes that need not be a message.
    pub(super) fn add_piece(
        &mut self,
        at: Timestamp,
        about: Option<&[u8]>,
        bytes: &[u8],
        ends: bool,
    ) {
        match self {
            Self::Pipe(pipe) => pipe.add_piece(at, bytes, ends),
            Self::Bridge(bridge) => {
                let (about, piece) = (about.map(<[u8]>::to_vec), ActorPiece::new(bytes.to_vec()));
                bridge.output.add(ActorOutput::Piece { about, piece, ends });
            }
        }
    }

    /// Ends the stream of a request before its answer, if there are streams.
    pub(super) fn end_stream(&self, about: &[u8]) {
        if let Self::Bridge(BridgeClient { output, streams: true, .. }) = self {
            output.add(ActorOutput::StreamEnd { about: about.to_vec() });
        }
    }

    /// Closes the client's connection; returns whether that ends the session. Of clients that share
    /// it, the bridge disconnects the one concerned.
    pub(super) fn disconnect(&mut self, about: Option<&[u8]>, abrupt: bool) -> bool {
        match self {
            Self::Pipe(pipe) if abrupt => pipe.discard_unwritten(),
            Self::Pipe(_) => {}
            Self::Bridge(BridgeClient { output, shared, .. }) => {
                if abrupt && !*shared {
                    output.clear();
                }
                let about = about.map(<[u8]>::to_vec);
                output.add(ActorOutput::Disconnect { about, abrupt });
                return !*shared;
            }
        }
        true
    }

    /// Records a client's message.
    pub(super) fn record_received(&mut self, at: Timestamp, line: &ClientLine<'_>) {
        if let Self::Pipe(pipe) = self {
            pipe.record_received(at, line);
        }
    }

    /// How much the client has not read.
    pub(super) fn unread_bytes(&self) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.unwritten_bytes(),
            Self::Bridge(bridge) => bridge.output.queued_bytes(),
        }
    }

    /// Whether there is room for more output.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.has_room(),
            Self::Bridge(_) => self.unread_bytes() < OUT_BYTES_MAX,
        }
    }

    /// Whether output must be read before the client is.
    pub(super) fn blocks_input(&self) -> bool {
        matches!(self, Self::Pipe(pipe) if pipe.is_mid_line() && pipe.unwritten_bytes() > 0)
    }

    /// Whether the client has stopped reading.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Pipe(pipe) if pipe.is_gone())
    }

    /// Checks whether a client that is not read from has left unnoticed.
    pub(super) fn check_hangup(&mut self) {
        if let Self::Pipe(pipe) = self {
            pipe.check_hangup();
        }
    }

    /// Commits recorded output, and sends it as far as possible without waiting. While there is
    /// more input, `eager` is false and output is gathered.
    pub(super) fn send(&mut self, eager: bool) -> Result<(), RecordError> {
        match self {
            Self::Pipe(pipe) if eager || pipe.should_write() => pipe.send(),
            Self::Pipe(_) | Self::Bridge(_) => Ok(()),
        }
    }

    /// Whether [`ClientEnd::progress`] has something to wait for.
    pub(super) fn can_progress(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.has_writable(),
            // A bridge takes output by itself; only a session without room depends on it.
            Self::Bridge(_) => !self.has_room(),
        }
    }

    /// Waits until the client takes some of the output.
    pub(super) async fn progress(&mut self) {
        match self {
            Self::Pipe(pipe) => pipe.write().await,
            Self::Bridge(bridge) => bridge.output.taken().await,
        }
    }

    /// When held output must be looked at again.
    pub(super) fn next_check(&self) -> Option<Instant> {
        match self {
            Self::Pipe(pipe) => pipe.next_check(),
            Self::Bridge(_) => None,
        }
    }

    /// The grace for the passthrough server, once the output is discarded.
    pub(super) fn discard_grace(&self) -> Option<Duration> {
        match self {
            Self::Pipe(_) => None,
            Self::Bridge(bridge) => bridge.discard_grace.get(),
        }
    }

    /// Sends the rest of the output within `time`. A bridge takes it by itself.
    pub(super) async fn finish(&mut self, at: Timestamp, cause: &EndCause, time: Duration) {
        if let Self::Pipe(pipe) = self {
            pipe.finish(at, cause, time).await;
        }
    }

    /// Discards everything that is added from now on.
    pub(super) fn close(&mut self) {
        match self {
            Self::Pipe(pipe) => pipe.stop_recording(),
            Self::Bridge(bridge) => bridge.output.close(),
        }
    }
}
