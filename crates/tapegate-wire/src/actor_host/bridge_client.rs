//! A bridge in the same process as the client of a session. It records what it receives and takes
//! output by itself, so nothing is recorded or written here.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::tape::Provenance;
use tapegate_core::time::Timestamp;

use super::bridge_channel::{ActorOutput, OutputSender};
use super::client_end::ClientEnd;
use super::raw_piece::ActorPiece;

pub(super) struct BridgeClient {
    pub(super) output: OutputSender,
    /// Whether clients share the session, so that output must name the request it belongs to.
    pub(super) shared: bool,
    /// Whether answers have streams, which may be ended early.
    pub(super) streams: bool,
    /// Set once the output is discarded: the grace for the passthrough server.
    pub(super) discard_grace: Rc<Cell<Option<Duration>>>,
}

impl ClientEnd for BridgeClient {
    fn add_message(
        &mut self,
        _at: Timestamp,
        about: Option<&[u8]>,
        parts: &[&[u8]],
        provenance: Option<Provenance>,
    ) {
        let about = about.filter(|_| self.shared).map(<[u8]>::to_vec);
        let (bytes, provenance) = (parts.concat(), provenance.unwrap_or_default());
        self.output.add(ActorOutput::Message { about, bytes, provenance });
    }

    fn add_piece(&mut self, _at: Timestamp, about: Option<&[u8]>, bytes: &[u8], ends: bool) {
        let (about, piece) = (about.map(<[u8]>::to_vec), ActorPiece::new(bytes.to_vec()));
        self.output.add(ActorOutput::Piece { about, piece, ends });
    }

    fn end_stream(&mut self, about: &[u8]) {
        if self.streams {
            self.output.add(ActorOutput::StreamEnd { about: about.to_vec() });
        }
    }

    fn disconnect(&mut self, about: Option<&[u8]>, abrupt: bool) -> bool {
        // Of clients that share the session, the bridge disconnects only the one concerned.
        if abrupt && !self.shared {
            self.output.clear();
        }
        let about = about.map(<[u8]>::to_vec);
        self.output.add(ActorOutput::Disconnect { about, abrupt });
        !self.shared
    }

    fn unread_bytes(&self) -> usize {
        self.output.queued_bytes()
    }

    fn can_progress(&self) -> bool {
        // Only a session without room depends on it.
        !self.has_room()
    }

    async fn progress(&mut self) {
        self.output.taken().await;
    }

    fn discard_grace(&self) -> Option<Duration> {
        self.discard_grace.get()
    }

    fn close(&mut self) {
        self.output.close();
    }
}
