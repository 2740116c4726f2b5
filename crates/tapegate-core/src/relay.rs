//! The state of a live session: who waits for what, what is let through, and what is recorded
//! before it is sent.
//!
//! The relay does no I/O and reads no clock: the wire feeds it [`Event`]s and carries out the
//! [`Action`]s it returns, in order. Four invariants live here and nowhere else: an entry is recorded
//! before its frame is sent; nothing is sent that the gate has not let through; a request is pending
//! before its bytes leave; and a request that can no longer be answered gets one error from us, if
//! its sender is still listening.

mod endings;
mod event;
mod gating;
mod holds;
mod orphans;
mod own;
mod own_message;
mod permit;
mod queue;
mod refusals;
mod taken_back;
mod unsent;

use std::borrow::Cow;

use crate::frame::{self, Body, Envelope, Frame, Kind};
use crate::gate::{Gate, Ticket, Topic};
use crate::pending::Pending;
use crate::side::{Lane, Side};
use crate::tape::{Element, Entry, Fate, Provenance, Reply, UNDELIVERED, What};
use crate::time::At;
use gating::topic_of;
use holds::Holds;
use own::OwnRequests;
use unsent::UnsentCalls;

pub use event::{Action, Event};
pub use holds::HELD_MAX;
pub use own_message::{OWN_DATA, OwnMessage};
pub use permit::{IdEdits, Payload, Permitted};
pub use queue::{Cleared, DueLines, LineBuffer, LineQueue};

/// Receives the actions to carry out, in order. Entries are lent for the call (`'r`); a message that
/// is sent on unchanged lives as long as the event (`'e`).
type Emit<'s, 'e> = dyn for<'r> FnMut(Action<'r, 'e>) + 's;

/// The error code of answers sent because the other side is gone.
pub const CODE_GONE: i32 = -32000;
/// The error code of answers about a message over the size limit.
pub const CODE_TOO_LARGE: i32 = -32010;

/// The state machine of a session, or of all sessions of one recording.
#[derive(Debug, Default)]
pub struct Relay {
    /// Requests of the client that the server has not answered.
    from_client: Pending,
    /// Requests of the server that the client has not answered.
    from_server: Pending,
    /// Calls that wait for a decision.
    holds: Holds,
    /// The most recent calls that were never sent.
    unsent: UnsentCalls,
    /// Requests of our own that the server has not answered.
    own: OwnRequests,
    /// When to check for requests that have waited too long, by the monotonic clock.
    late_check_ns: Option<u64>,
    /// How many messages have been recorded, which is also the number of the last one.
    count: u64,
}

/// How a message arrived.
#[derive(Debug, Clone, Copy)]
struct Way {
    at: At,
    lane: Lane,
    from: Side,
    terminated: bool,
    resumed: bool,
    provenance: Provenance,
}

impl Relay {
    /// Handles one event that happened at `at` and emits the resulting actions, in order. Every
    /// message is judged by `gate`.
    pub fn handle<'e, G: Gate + ?Sized>(
        &mut self,
        at: At,
        event: Event<'e>,
        gate: &mut G,
        emit: &mut dyn for<'r> FnMut(Action<'r, 'e>),
    ) {
        let provenance = Provenance::default();
        match event {
            Event::Received { lane, from, bytes, terminated } => {
                let way = Way { at, lane, from, terminated, resumed: false, provenance };
                self.pass(way, &read(bytes, gate), gate, emit);
            }
            Event::Resumed { lane, bytes, terminated } => {
                let from = Side::Server;
                let way = Way { at, lane, from, terminated, resumed: true, provenance };
                self.pass(way, &read(bytes, gate), gate, emit);
            }
            Event::Played { lane, from, bytes, resumed, provenance } => {
                let way = Way { at, lane, from, terminated: true, resumed, provenance };
                self.pass(way, &read(bytes, gate), gate, emit);
            }
            Event::TooLarge { lane, from, message, bytes_max } => {
                gate.oversized(at, lane, from, message.bytes_total, &message.head);
                let way = Way { at, lane, from, terminated: true, resumed: false, provenance };
                let own = message.said.id.clone().filter(|_| from == Side::Server);
                self.refuse_large(way, message, bytes_max, emit);
                if let Some(id) = own {
                    self.own_failed(at, &id, "the server's answer is too large", gate, emit);
                }
            }
            Event::Ours { lane, to, message } => self.say(at, (lane, to), message, emit),
            Event::Marked { lane, from, bytes, why, delivered } => {
                let reason =
                    if delivered { why.to_owned() } else { format!("{UNDELIVERED}: {why}") };
                if !delivered && gate.governs() {
                    gate.unsent(at, lane, from, &Frame::read(bytes), why);
                }
                let way = Way { at, lane, from, terminated: true, resumed: false, provenance };
                let what = What::Garbage(reason);
                emit(Action::Record(&way.entry(Cow::Borrowed(bytes), what, Fate::Sent)));
            }
            Event::TurnedAway { lane, from, bytes, why } => {
                let way = Way { at, lane, from, terminated: true, resumed: false, provenance };
                self.turn_away(way, &Frame::read(bytes), why, emit);
            }
            Event::Dismissed { lane, asker, bytes, why } => {
                self.dismiss(at, (lane, asker), bytes, why, gate, emit);
            }
            Event::Failed { lane, asker, id, error } => {
                self.fail(at, (lane, asker), (id, error), gate, emit);
            }
            Event::Settled { ticket, settlement } => {
                self.settle(at, ticket, &settlement, gate, emit);
            }
            Event::Withdrawn { ticket } => self.withdraw(at, ticket, gate),
            Event::Tick => self.tick(at, gate, emit),
            Event::Unheld { lane, why, keeps_lists } => {
                self.close_holds(at, (lane, keeps_lists), why, gate, emit);
            }
            Event::Gone { lane, side, why, error_type } => {
                self.give_up(at, (lane, side), (why, error_type), gate, emit);
            }
        }
    }

    /// How many requests of `asker` wait for an answer and have not been cancelled.
    pub fn wanted(&self, asker: Side) -> usize {
        self.asks_of(asker).wanted() + self.holds.of(asker)
    }

    /// How many calls wait for a decision. At [`HELD_MAX`], clients must not be read from.
    pub fn held(&self) -> usize {
        self.holds.len()
    }

    /// Whether no further call of this lane's session can be held.
    pub fn is_full_for(&self, lane: Lane) -> bool {
        self.holds.is_full(lane.session)
    }

    /// Whether a call is held under this id.
    pub fn is_held(&self, ticket: Ticket) -> bool {
        self.holds.is_held(ticket)
    }

    /// When [`Event::Tick`] is due, by the monotonic clock.
    pub fn due_ns(&self) -> Option<u64> {
        self.holds.due_ns().into_iter().chain(self.late_check_ns).min()
    }

    /// Updates the pending requests and returns how the frame is recorded. Topics of requests are
    /// kept only if `topics` is set.
    fn note(&mut self, way: Way, frame: &Frame<'_>, topics: bool) -> What {
        match frame.body() {
            Body::Message(envelope) => What::Message(self.note_message(way, envelope, topics)),
            Body::Batch => {
                let elements = frame::elements(frame.bytes());
                let note = |one: &Frame<'_>| Some(self.note_message(way, one.envelope()?, topics));
                What::Batch(elements.iter().map(note).collect())
            }
            Body::Garbage(garbage) => What::Garbage(garbage.reason()),
        }
    }

    fn note_message(&mut self, way: Way, said: &Envelope<'_>, topics: bool) -> Element {
        let Way { at, lane, from, .. } = way;
        self.count += 1;
        let n = self.count;
        let mut reply = None;
        match (said.kind(), said.id) {
            (Kind::Request, Some(id)) => {
                let topic = if topics { topic_of(said) } else { Topic::Other };
                self.asked_by(from).ask(lane, id, at, n, topic);
                // A subscription is a stream and is answered only when it ends.
                if topics && said.is_method("subscriptions/listen") {
                    self.asked_by(from).expect_no_answer(lane, id);
                }
            }
            (Kind::Response | Kind::Error, Some(id)) => {
                let asked = self.asked_by(from.other()).answer(lane, id);
                reply = asked.map(|asked| {
                    let recorded_ms = way.provenance.latency_ms();
                    let latency_ms = recorded_ms.unwrap_or_else(|| at.ms_since(asked.at));
                    Reply { to: asked.n, latency_ms }
                });
            }
            (Kind::Notification, _) if said.is_method("notifications/cancelled") => {
                if let Some(id) = said.request_id {
                    self.asked_by(from).cancel(lane, id);
                }
            }
            _ => {}
        }
        Element { n, reply }
    }

    /// Records a message of our own as if the other side had sent it, and sends it.
    fn say(
        &mut self,
        at: At,
        (lane, to): (Lane, Side),
        message: OwnMessage,
        emit: &mut Emit<'_, '_>,
    ) {
        let element = Frame::read(message.bytes()).envelope().map(|envelope| {
            let (from, provenance) = (to.other(), Provenance::OWN);
            let way = Way { at, lane, from, terminated: true, resumed: false, provenance };
            self.note_message(way, envelope, true)
        });
        if let Some(element) = element {
            answer(at, lane, to, element, message, emit);
        }
    }

    fn asked_by(&mut self, side: Side) -> &mut Pending {
        match side {
            Side::Client => &mut self.from_client,
            Side::Server => &mut self.from_server,
        }
    }

    fn asks_of(&self, side: Side) -> &Pending {
        match side {
            Side::Client => &self.from_client,
            Side::Server => &self.from_server,
        }
    }
}

/// Reads a message in as much detail as the gate needs.
fn read<'a, G: Gate + ?Sized>(bytes: &'a [u8], gate: &G) -> Frame<'a> {
    if gate.governs() { Frame::read(bytes) } else { Frame::glance(bytes) }
}

/// Records a message of our own and sends it to `to`, as if from the other side.
fn answer(
    at: At,
    lane: Lane,
    to: Side,
    element: Element,
    message: OwnMessage,
    emit: &mut Emit<'_, '_>,
) {
    answer_with((at, lane, to), What::Message(element), message, None, emit);
}

/// The same for a message that may be a batch or refer to a held call.
fn answer_with(
    (at, lane, to): (At, Lane, Side),
    what: What,
    message: OwnMessage,
    ticket: Option<Ticket>,
    emit: &mut Emit<'_, '_>,
) {
    emit(Action::Record(&Entry {
        at,
        lane,
        from: to.other(),
        bytes: Cow::Borrowed(message.bytes()),
        what,
        terminated: true,
        ours: true,
        resumed: false,
        fate: Fate::Sent,
    }));
    emit(Action::Answer { lane, to, message: Permitted::own(message, ticket) });
}
