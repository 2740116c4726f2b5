//! The state of a live session: who waits for what, what is let through, and what is recorded
//! before it is sent.
//!
//! The relay does no I/O and reads no clock: the wire feeds it [`RelayEvent`]s and carries out the
//! [`RelayAction`]s it emits, in order. Four invariants live here and nowhere else: an entry is recorded
//! before its frame is sent; nothing is sent that the gate has not let through; a request is pending
//! before its bytes leave; and a request that can no longer be answered gets one error from us, if
//! its sender is still listening.

mod cancellations;
mod event;
mod gate_dispatch;
mod holds;
mod line_queue;
mod linked_tasks;
mod orphans;
mod own_message;
mod own_requests;
mod own_tasks;
mod permit;
mod questions;
mod refusals;
mod task_calls;
mod task_requests;
mod unanswered_requests;
mod unsent_calls;

use std::borrow::Cow;

use crate::frame::{self, Envelope, Frame, FrameBody, MessageKind};
use crate::gate::{Gate, HoldId, MessagePlace, Topic};
use crate::pending::PendingRequests;
use crate::side::{Lane, Side};
use crate::tape::{
    EntryBody, EntryElement, GateOutcome, Provenance, ReplyLink, TapeEntry, UNDELIVERED,
};
use crate::time::Timestamp;
use gate_dispatch::topic_of;
use holds::HoldQueue;
use own_requests::OwnRequests;
use own_tasks::OwnTasks;
use questions::UserQuestions;
use unsent_calls::UnsentCalls;

pub use event::{HoldsEndedCause, RelayAction, RelayEvent};
pub use holds::{HELD_MAX, HELD_TOTAL_MAX};
pub use line_queue::{DueLines, LineBuffer, LineQueue, PermittedBytes};
pub use own_message::OwnMessage;
pub use permit::{IdEdits, MessagePayload, PermittedMessage};

/// Receives the actions to carry out, in order. Entries are lent for the call (`'r`); a message that
/// is sent on unchanged lives as long as the event (`'e`).
type ActionSink<'s, 'e> = dyn for<'r> FnMut(RelayAction<'r, 'e>) + 's;

/// The error code of answers sent because the other side is gone.
pub const CODE_GONE: i32 = -32000;
/// The error code of answers about a message over the size limit.
pub const CODE_TOO_LARGE: i32 = -32010;
/// The error code when a call would have to be held but cannot be.
pub const CODE_UNAVAILABLE: i32 = -32013;

/// The state machine of a session, or of all sessions of one recording.
#[derive(Debug, Default)]
pub struct Relay {
    /// Requests of the client that the server has not answered.
    from_client: PendingRequests,
    /// Requests of the server that the client has not answered.
    from_server: PendingRequests,
    /// Calls that wait for a decision.
    holds: HoldQueue,
    /// The most recent calls that were never sent.
    unsent: UnsentCalls,
    /// Requests of our own that the server has not answered.
    own: OwnRequests,
    /// Tasks of our own, which stand for held calls.
    tasks: OwnTasks,
    /// Questions of our own that the client's user has not answered.
    questions: UserQuestions,
    /// When to check for requests that have waited too long, by the monotonic clock.
    late_check_ns: Option<u64>,
    /// How many messages have been recorded, which is also the number of the last one.
    count: u64,
}

/// How a message arrived.
#[derive(Debug, Clone, Copy)]
struct MessageOrigin {
    at: Timestamp,
    lane: Lane,
    from: Side,
    terminated: bool,
    resumed: bool,
    provenance: Provenance,
}

impl MessageOrigin {
    fn place(&self) -> MessagePlace {
        MessagePlace { at: self.at, lane: self.lane, from: self.from }
    }

    /// A complete message that arrives for the first time.
    fn new(at: Timestamp, lane: Lane, from: Side) -> Self {
        let provenance = Provenance::default();
        Self { at, lane, from, terminated: true, resumed: false, provenance }
    }
}

impl Relay {
    /// Handles one event that happened at `at` and emits the resulting actions, in order. Every
    /// message is judged by `gate`.
    pub fn handle<'e, G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        event: RelayEvent<'e>,
        gate: &mut G,
        emit: &mut dyn for<'r> FnMut(RelayAction<'r, 'e>),
    ) {
        let is_heard = has_listening_client(&event);
        self.handle_event(at, event, gate, emit);
        self.cancel_ended_questions(at, is_heard, emit);
    }

    fn handle_event<'e, G: Gate + ?Sized>(
        &mut self,
        at: Timestamp,
        event: RelayEvent<'e>,
        gate: &mut G,
        emit: &mut dyn for<'r> FnMut(RelayAction<'r, 'e>),
    ) {
        match event {
            RelayEvent::Received { lane, from, frame, terminated } => {
                let origin = MessageOrigin { terminated, ..MessageOrigin::new(at, lane, from) };
                self.judge_and_forward(origin, frame, gate, emit);
            }
            RelayEvent::Resumed { lane, frame, terminated } => {
                let origin = MessageOrigin::new(at, lane, Side::Server);
                let origin = MessageOrigin { terminated, resumed: true, ..origin };
                self.judge_and_forward(origin, frame, gate, emit);
            }
            RelayEvent::Played { lane, from, frame, resumed, provenance } => {
                let origin = MessageOrigin::new(at, lane, from);
                let origin = MessageOrigin { resumed, provenance, ..origin };
                self.judge_and_forward(origin, frame, gate, emit);
            }
            RelayEvent::TooLarge { lane, from, message, bytes_max } => {
                let place = MessagePlace { at, lane, from };
                gate.note_oversize(place, message.bytes_total, &message.head);
                let origin = MessageOrigin::new(at, lane, from);
                // Our own requests are not pending in `from_client`, so `refuse_oversize` does not
                // find the call that waits for this answer.
                let own = message.envelope.id.clone().filter(|_| from == Side::Server);
                self.refuse_oversize(origin, message, bytes_max, emit);
                if let Some(id) = own {
                    let reason = "the server's answer is too large";
                    let error = frame::error_object(CODE_TOO_LARGE, reason, None);
                    if !self.task_request_failed(at, &id, &error, emit) {
                        self.own_request_failed(at, &id, reason, gate, emit);
                    }
                }
            }
            RelayEvent::SendOwn { lane, to, message } => {
                self.send_own(at, (lane, to), message, emit)
            }
            RelayEvent::RecordOnly { lane, from, bytes, reason, delivered } => {
                if !delivered && gate.is_active() {
                    let place = MessagePlace { at, lane, from };
                    gate.note_unsent(place, &Frame::read(bytes), reason);
                }
                let fault = match delivered {
                    true => reason.to_owned(),
                    false => format!("{UNDELIVERED}: {reason}"),
                };
                let origin = MessageOrigin::new(at, lane, from);
                let (bytes, body) = (Cow::Borrowed(bytes), EntryBody::Garbage(fault));
                emit(RelayAction::Record(&origin.entry(bytes, body, GateOutcome::Sent)));
            }
            RelayEvent::RefuseUnjudged { lane, from, bytes, reason } => {
                let origin = MessageOrigin::new(at, lane, from);
                self.refuse_unjudged(origin, &Frame::read(bytes), reason, emit);
            }
            RelayEvent::RequestsDropped { lane, asker, ids, reason } => {
                self.dismiss_requests(at, (lane, asker), ids, reason, gate, emit);
            }
            RelayEvent::RequestFailed { lane, asker, id, error } => {
                self.answer_with_error(at, (lane, asker), (id, error), gate, emit);
            }
            RelayEvent::HoldSettled { hold_id, outcome } => {
                self.settle(at, hold_id, &outcome, gate, emit);
            }
            RelayEvent::HoldWithdrawn { hold_id } => self.withdraw_held(at, hold_id, gate),
            RelayEvent::Tick => self.tick(at, gate, emit),
            RelayEvent::HoldsEnded { lane, reason, cause, keeps_lists } => {
                self.refuse_all_held(at, (lane, keeps_lists), (cause, reason), gate, emit);
            }
            RelayEvent::SideGone { lane, side, reason, error_type } => {
                self.answer_for_gone_side(at, (lane, side), (reason, error_type), gate, emit);
            }
        }
    }

    /// How many requests of `asker` wait for an answer and have not been cancelled.
    pub fn unanswered_requests(&self, asker: Side) -> usize {
        let for_tasks = if asker == Side::Client { self.tasks.waiting() } else { 0 };
        self.pending(asker).wanted_count() + self.holds.count_from(asker) + for_tasks
    }

    /// How many calls wait for a decision. At [`HELD_MAX`], clients must not be read from.
    pub fn held_calls(&self) -> usize {
        self.holds.len()
    }

    /// Whether no further call of this lane's session can be held.
    pub fn is_full_for(&self, lane: Lane) -> bool {
        self.holds.is_full(lane.session)
    }

    /// Whether a call is held under this id.
    pub fn is_held(&self, hold_id: HoldId) -> bool {
        self.holds.is_held(hold_id)
    }

    /// When [`RelayEvent::Tick`] is due, by the monotonic clock.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.holds.next_due_ns().into_iter().chain(self.late_check_ns).min()
    }

    /// Updates the pending requests and returns how the frame is recorded. Topics of requests are
    /// kept only if `topics` is set.
    fn note_frame(&mut self, origin: MessageOrigin, frame: &Frame<'_>, topics: bool) -> EntryBody {
        match frame.body() {
            FrameBody::Message(envelope) => {
                EntryBody::Message(self.note_message(origin, envelope, topics))
            }
            FrameBody::Batch => {
                let elements = frame::elements(frame.bytes());
                let note =
                    |one: &Frame<'_>| Some(self.note_message(origin, one.envelope()?, topics));
                EntryBody::Batch(elements.iter().map(note).collect())
            }
            FrameBody::Garbage(garbage) => EntryBody::Garbage(garbage.reason()),
        }
    }

    fn note_message(
        &mut self,
        origin: MessageOrigin,
        msg: &Envelope<'_>,
        topics: bool,
    ) -> EntryElement {
        let MessageOrigin { at, lane, from, .. } = origin;
        // Every message counts, paired or not: answers on the tape and lines of the activity log
        // refer to it by this number.
        self.count += 1;
        let n = self.count;
        let mut reply = None;
        match (msg.kind(), msg.id) {
            (MessageKind::Request, Some(id)) => {
                let topic = if topics { topic_of(msg) } else { Topic::Other };
                self.pending_mut(from).add(lane, id, at, n, topic);
                // A subscription is a stream and is answered only when it ends.
                if topics && msg.is_method("subscriptions/listen") {
                    self.pending_mut(from).expect_no_answer(lane, id);
                }
            }
            (MessageKind::Response | MessageKind::Error, Some(id)) => {
                let pending_request = self.pending_mut(from.other()).take_answered(lane, id);
                // A replayed answer keeps the latency of the recording; the time it took here says
                // nothing.
                reply = pending_request.map(|pending_request| {
                    let recorded_ms = origin.provenance.latency_ms();
                    let latency_ms = recorded_ms.unwrap_or_else(|| at.ms_since(pending_request.at));
                    ReplyLink { to: pending_request.n, latency_ms }
                });
            }
            (MessageKind::Notification, _) if msg.is_method("notifications/cancelled") => {
                if let Some(id) = msg.request_id {
                    // The request stays pending. The server may answer before it reads the
                    // cancellation, and that answer must still be paired.
                    self.pending_mut(from).cancel(lane, id);
                }
            }
            _ => {}
        }
        EntryElement { n, reply }
    }

    /// Records a message of our own as if the other side had sent it, and sends it.
    fn send_own(
        &mut self,
        at: Timestamp,
        (lane, to): (Lane, Side),
        message: OwnMessage,
        emit: &mut ActionSink<'_, '_>,
    ) {
        let element = Frame::read(message.bytes()).envelope().map(|envelope| {
            let (from, provenance) = (to.other(), Provenance::OWN);
            let origin =
                MessageOrigin { at, lane, from, terminated: true, resumed: false, provenance };
            self.note_message(origin, envelope, true)
        });
        if let Some(element) = element {
            send_own_answer(at, lane, to, element, message, emit);
        }
    }

    fn pending_mut(&mut self, side: Side) -> &mut PendingRequests {
        match side {
            Side::Client => &mut self.from_client,
            Side::Server => &mut self.from_server,
        }
    }

    fn pending(&self, side: Side) -> &PendingRequests {
        match side {
            Side::Client => &self.from_client,
            Side::Server => &self.from_server,
        }
    }
}

/// Whether the clients that an event is about still read what is sent to them.
fn has_listening_client(event: &RelayEvent<'_>) -> bool {
    !matches!(
        event,
        RelayEvent::HoldWithdrawn { .. }
            | RelayEvent::RequestsDropped { asker: Side::Client, reason: None, .. }
            | RelayEvent::SideGone { side: Side::Client, .. }
    )
}

/// Records a message of our own and sends it to `to`, as if from the other side.
fn send_own_answer(
    at: Timestamp,
    lane: Lane,
    to: Side,
    element: EntryElement,
    message: OwnMessage,
    emit: &mut ActionSink<'_, '_>,
) {
    send_own_entry((at, lane, to), EntryBody::Message(element), message, None, emit);
}

/// The same for a message that may be a batch or refer to a held call.
fn send_own_entry(
    (at, lane, to): (Timestamp, Lane, Side),
    body: EntryBody,
    message: OwnMessage,
    hold_id: Option<HoldId>,
    emit: &mut ActionSink<'_, '_>,
) {
    // Record first: a message of ours is on the tape before its bytes leave (invariant 4).
    emit(RelayAction::Record(&TapeEntry {
        at,
        lane,
        from: to.other(),
        bytes: Cow::Borrowed(message.bytes()),
        body,
        terminated: true,
        ours: true,
        resumed: false,
        gate_outcome: GateOutcome::Sent,
    }));
    emit(RelayAction::Answer {
        lane,
        to,
        message: PermittedMessage::own_message(message, hold_id),
    });
}
