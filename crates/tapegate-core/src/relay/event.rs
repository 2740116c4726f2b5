//! The events that the wire feeds into the relay, and the actions that the relay returns.

use super::own_message::OwnMessage;
use super::permit::PermittedMessage;
use crate::frame::Frame;
use crate::gate::{HoldId, HoldOutcome};
use crate::lines::OversizeMessage;
use crate::side::{Lane, Side};
use crate::tape::{Provenance, TapeEntry};

/// Something that happened on the wire.
#[derive(Debug)]
pub enum RelayEvent<'a> {
    /// A message arrived; `terminated` is false for a last line without a line ending.
    Received {
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// The message as it was scanned, line ending not included.
        frame: &'a Frame<'a>,
        /// Whether its line ending arrived too.
        terminated: bool,
    },
    /// A message from the server arrived on a stream that had broken off and was resumed.
    Resumed {
        lane: Lane,
        /// The message as it was scanned, line ending not included.
        frame: &'a Frame<'a>,
        /// Whether its line ending arrived too.
        terminated: bool,
    },
    /// A recorded message was replayed, or a message was sent in place of the recorded server.
    Played {
        lane: Lane,
        /// Who sent it when it was recorded.
        from: Side,
        /// The message as it was scanned, line ending not included.
        frame: &'a Frame<'a>,
        /// Whether it is sent on a stream that had broken off and was resumed.
        resumed: bool,
        provenance: Provenance,
    },
    /// A message over the limit arrived; it was drained and is not forwarded.
    TooLarge {
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// The parts of it that were kept.
        message: OversizeMessage,
        /// The limit it exceeded.
        bytes_max: usize,
    },
    /// Send a message of our own, unprompted; it is recorded as ours.
    SendOwn {
        lane: Lane,
        /// Its recipient.
        to: Side,
        message: OwnMessage,
    },
    /// Something arrived that is not part of the conversation, or could not be delivered. The relay
    /// only records it.
    RecordOnly {
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// Its exact bytes, line ending not included.
        bytes: &'a [u8],
        /// The reason to record.
        reason: &'a str,
        /// Whether the other side gets it anyway.
        delivered: bool,
    },
    /// A message arrived too late to be judged: it is not sent, and a request gets an error.
    RefuseUnjudged {
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// Its exact bytes, line ending not included.
        bytes: &'a [u8],
        /// The reason, for the side that waits for an answer.
        reason: &'a str,
    },
    /// Requests will get no JSON-RPC answer: HTTP failed, or their client is gone.
    RequestsDropped {
        lane: Lane,
        /// The side that made them.
        asker: Side,
        /// Their raw ids; `None` for all requests pending in the lane.
        ids: Option<&'a [Vec<u8>]>,
        /// The error message to answer with; `None` for no answer.
        reason: Option<&'a str>,
    },
    /// A request failed in transit or was refused there: its sender gets `error`.
    RequestFailed {
        lane: Lane,
        /// The side that made it.
        asker: Side,
        /// The raw id of the request.
        id: &'a [u8],
        /// The text of a JSON-RPC error object, on one line.
        error: &'a [u8],
    },
    /// A held call was decided.
    HoldSettled {
        /// The held call.
        hold_id: HoldId,
        /// The decision.
        outcome: HoldOutcome,
    },
    /// The caller of a held call is gone and needs no answer.
    HoldWithdrawn {
        /// The held call.
        hold_id: HoldId,
    },
    /// Time has passed: handle everything due by [`super::Relay::next_due_ns`].
    Tick,
    /// No decision can be waited for any longer: answer the held calls.
    HoldsEnded {
        /// Their lane, or all lanes.
        lane: Option<Lane>,
        /// The reason, for the callers.
        reason: &'a str,
        cause: HoldsEndedCause,
        /// Whether to keep calls that only wait for a list of ours, which needs no person.
        keeps_lists: bool,
    },
    /// A side is gone and will not answer its requests.
    SideGone {
        /// The lane, or all lanes.
        lane: Option<Lane>,
        /// Who is gone.
        side: Side,
        /// The reason, for requests that still wait.
        reason: &'a str,
        /// The `error_type` of the answers, if there is one.
        error_type: Option<&'a str>,
    },
}

/// Why decisions are no longer waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldsEndedCause {
    /// The session ends, or its client has left.
    SessionEnded,
    /// The service that asks people is gone. They can still decide about its requests.
    ServiceGone,
}

/// Something the wire must do, in order. Entries are lent (`'r`); a message that is sent on unchanged
/// lives as long as the event (`'e`).
#[derive(Debug)]
pub enum RelayAction<'r, 'e> {
    /// Put an entry on the tape.
    Record(&'r TapeEntry<'r>),
    /// Send on a message that the gate has let through.
    Forward {
        lane: Lane,
        /// Its recipient.
        to: Side,
        message: PermittedMessage<'e>,
    },
    /// The message that was just received is held under this id.
    Held { lane: Lane, hold_id: HoldId },
    /// A held call is held again under another id.
    HeldAgain {
        /// The old id.
        was: HoldId,
        /// The new id.
        hold_id: HoldId,
    },
    /// The message that was just received answers a question of our own, and goes no further.
    Consumed,
    /// Send a message of our own.
    Answer {
        lane: Lane,
        /// Its recipient.
        to: Side,
        message: PermittedMessage<'static>,
    },
}
