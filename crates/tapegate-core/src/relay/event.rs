//! What the wire tells the relay, and what the relay tells the wire.

use super::own_message::OwnMessage;
use super::permit::Permitted;
use crate::gate::{Settlement, Ticket};
use crate::lines::Oversize;
use crate::side::{Lane, Side};
use crate::tape::{Entry, Provenance};

/// Something that happened on the wire.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message arrived; `terminated` is false for a last line without its line end.
    Received {
        /// The conversation.
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// Its exact bytes, line end not included.
        bytes: &'a [u8],
        /// Whether its line end arrived too.
        terminated: bool,
    },
    /// A message of the server arrived on a stream that had ended early and was gone on with.
    Resumed {
        /// The conversation.
        lane: Lane,
        /// Its exact bytes, line end not included.
        bytes: &'a [u8],
        /// Whether its line end arrived too.
        terminated: bool,
    },
    /// A message of a tape was played, or something was said in the place of its server.
    Played {
        /// The conversation.
        lane: Lane,
        /// Who sent it when it was recorded.
        from: Side,
        /// Its exact bytes, line end not included.
        bytes: &'a [u8],
        /// Whether it is said on a stream that had ended early and is gone on with.
        resumed: bool,
        /// Where it is from.
        provenance: Provenance,
    },
    /// A message arrived that is over the limit; it was drained and is not forwarded.
    TooLarge {
        /// The conversation.
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// What is known of it.
        message: Oversize,
        /// The limit it broke.
        bytes_max: usize,
    },
    /// We have something to say of our own accord; it is recorded as ours.
    Ours {
        /// The conversation.
        lane: Lane,
        /// To whom.
        to: Side,
        /// The message.
        message: OwnMessage,
    },
    /// Something arrived that is no part of the conversation, or could not be handed on. It is
    /// marked on the tape, and that is all the relay does about it.
    Marked {
        /// The conversation.
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// Its exact bytes, line end not included.
        bytes: &'a [u8],
        /// What there is to say about it.
        why: &'a str,
        /// Whether the other side gets it all the same.
        delivered: bool,
    },
    /// A message arrived too late to be looked at: it goes nowhere, and who asks is told why.
    TurnedAway {
        /// The conversation.
        lane: Lane,
        /// Who sent it.
        from: Side,
        /// Its exact bytes, line end not included.
        bytes: &'a [u8],
        /// Why, for whoever waits because of it.
        why: &'a str,
    },
    /// Requests will not be answered by the protocol: HTTP failed, or their client has gone.
    Dismissed {
        /// The conversation.
        lane: Lane,
        /// Who asked.
        asker: Side,
        /// The request or batch; `None` for everything asked in the lane.
        bytes: Option<&'a [u8]>,
        /// What to answer in the server's place; `None` for nothing.
        why: Option<&'a str>,
    },
    /// A request failed on its way or was refused there: its asker gets `error`.
    Failed {
        /// The conversation.
        lane: Lane,
        /// Who asked.
        asker: Side,
        /// The raw id of the request.
        id: &'a [u8],
        /// The text of a JSON-RPC error object, on one line.
        error: &'a [u8],
    },
    /// Somebody has decided about a held call.
    Settled {
        /// The call.
        ticket: Ticket,
        /// What was decided.
        settlement: Settlement,
    },
    /// The caller of a held call has gone, and wants no answer.
    Withdrawn {
        /// The call.
        ticket: Ticket,
    },
    /// Time has passed: what is due by [`super::Relay::due_ns`] is dealt with.
    Tick,
    /// Nobody's decision can be waited for any longer: what is held is answered.
    Unheld {
        /// The conversation, or all.
        lane: Option<Lane>,
        /// Why, for those who wait.
        why: &'a str,
        /// Whether calls that wait only for a list of ours are waited for: no person is needed.
        keeps_lists: bool,
    },
    /// A side is gone and will not answer what it was asked.
    Gone {
        /// The conversation, or all.
        lane: Option<Lane>,
        /// Who is gone.
        side: Side,
        /// Why, for those who still wait.
        why: &'a str,
        /// The `error_type` of the answers, if there is one.
        error_type: Option<&'a str>,
    },
}

/// Something the wire must do, in order. Entries are lent (`'r`); a message that is sent on as it was
/// received lives as long as the event (`'e`).
#[derive(Debug)]
pub enum Action<'r, 'e> {
    /// Put an entry on the tape.
    Record(&'r Entry<'r>),
    /// Send a message on that the gate has let through.
    Forward {
        /// The conversation.
        lane: Lane,
        /// Where to.
        to: Side,
        /// The message.
        message: Permitted<'e>,
    },
    /// The message that was fed is held by this name.
    Held {
        /// The conversation.
        lane: Lane,
        /// The name.
        ticket: Ticket,
    },
    /// A held call goes on to be held by another name.
    HeldAgain {
        /// The name it had.
        was: Ticket,
        /// The name it has.
        ticket: Ticket,
    },
    /// Send a message of our own.
    Answer {
        /// The conversation.
        lane: Lane,
        /// Where to.
        to: Side,
        /// The message.
        message: Permitted<'static>,
    },
}
