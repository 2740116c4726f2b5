//! The state shared by all exchanges of one recording.

mod hold_waiters;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::LazyLock;

use tapegate_core::frame::{Frame, OWN_DATA, error_object};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::{CODE_UNAVAILABLE, PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tokio::sync::Notify;

use super::BodyBudget;
use crate::recorded_session::{Disposition, OutgoingMessage, RecordedSession, split_by_side};
use hold_waiters::HoldWaiters;
pub(crate) use hold_waiters::{HoldUpdate, HoldUpdates, HoldWaiter};

/// The answer to a server's request that would have to be held.
static DECLINED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let message = "a request of a server cannot be held for approval by HTTP";
    error_object(CODE_UNAVAILABLE, message, Some(OWN_DATA.as_bytes()))
});

/// One recording that many exchanges feed, on one thread.
pub struct SharedSession {
    recording: RefCell<RecordedSession>,
    message_bytes_max: usize,
    bodies: BodyBudget,
    stop: Notify,
    stopped: Cell<bool>,
    tape_error: RefCell<Option<RecordError>>,
    sessionless: Cell<Option<Lane>>,
    /// How many client messages were too large to be read.
    unread: Cell<u64>,
    waiters: RefCell<HoldWaiters>,
    /// Notified when a call is held.
    held: Notify,
    /// Notified when a hold ends.
    unheld: Notify,
}

/// The gate's decision on a message, and the messages that follow from it.
#[derive(Debug)]
pub(crate) struct GateResult<'e> {
    pub(crate) disposition: Disposition<PermittedMessage<'e>>,
    /// Our own messages, to either side.
    pub(crate) outgoing: Vec<OutgoingMessage<'e>>,
}

/// Proof that no policy is enforced, so that bytes may pass as received, parsed or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnenforcedProof(());

/// The tape failed, so nothing may pass any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("recording has stopped")]
pub struct SessionStoppedError;

impl SharedSession {
    /// A shared session that records with `recording`.
    pub fn new(recording: RecordedSession, message_bytes_max: usize) -> Rc<Self> {
        Self::with_budget(recording, message_bytes_max, BodyBudget::new())
    }

    /// A shared session whose clients share the budget `bodies`.
    pub fn with_budget(
        recording: RecordedSession,
        message_bytes_max: usize,
        bodies: BodyBudget,
    ) -> Rc<Self> {
        Rc::new(Self {
            recording: RefCell::new(recording),
            message_bytes_max,
            bodies,
            stop: Notify::new(),
            stopped: Cell::new(false),
            tape_error: RefCell::new(None),
            sessionless: Cell::new(None),
            unread: Cell::new(0),
            waiters: RefCell::default(),
            held: Notify::new(),
            unheld: Notify::new(),
        })
    }

    /// The largest message that passes.
    pub fn message_bytes_max(&self) -> usize {
        self.message_bytes_max
    }

    /// The memory budget for request bodies.
    pub(crate) fn bodies(&self) -> &BodyBudget {
        &self.bodies
    }

    /// Whether there is a gate.
    pub(crate) fn is_governed(&self) -> bool {
        self.recording.borrow().is_governed()
    }

    /// The proof that bytes may pass as received, unless the gate currently enforces a policy.
    pub(crate) fn transparent(&self) -> Option<UnenforcedProof> {
        (!self.recording.borrow_mut().is_enforced()).then_some(UnenforcedProof(()))
    }

    /// Scans a message in as much detail as the gate needs.
    pub(crate) fn read<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        self.recording.borrow().read(bytes)
    }

    /// Evaluates and records a received message. Once this returns `Ok`, the message is on the tape
    /// and the returned messages may be sent.
    pub(crate) fn receive<'e>(
        &self,
        lane: Lane,
        from: Side,
        frame: &'e Frame<'e>,
    ) -> Result<GateResult<'e>, SessionStoppedError> {
        self.judge(RelayEvent::Received { lane, from, frame, terminated: true }, from)
    }

    /// The same for a server's message. `resumed` tells whether its stream was resumed,
    /// `terminated` whether the message was complete.
    pub(crate) fn receive_from_server<'e>(
        &self,
        lane: Lane,
        frame: &'e Frame<'e>,
        (resumed, terminated): (bool, bool),
    ) -> Result<GateResult<'e>, SessionStoppedError> {
        let from = Side::Server;
        let event = match resumed {
            true => RelayEvent::Resumed { lane, frame, terminated },
            false => RelayEvent::Received { lane, from, frame, terminated },
        };
        self.judge(event, from)
    }

    /// Feeds a message from `from`.
    pub(crate) fn judge<'e>(
        &self,
        event: RelayEvent<'e>,
        from: Side,
    ) -> Result<GateResult<'e>, SessionStoppedError> {
        let received_message = match event {
            RelayEvent::Received { lane, frame, .. }
            | RelayEvent::Resumed { lane, frame, .. }
            | RelayEvent::Played { lane, frame, .. } => Some((lane, frame)),
            _ => None,
        };
        let mut outgoing = self.feed_and_commit(event)?;
        // Our own messages may go the same way. Only a message of the sender itself is the
        // forwarded one.
        let sent = outgoing.iter().position(|one| one.to == from.other() && !one.message.is_own());
        let held = self.recording.borrow_mut().take_last_held();
        let consumed = self.recording.borrow_mut().take_consumed();
        let disposition = match (sent, held) {
            _ if consumed => Disposition::Consume,
            (Some(at), _) => Disposition::Forward(outgoing.remove(at).message),
            (None, None) => Disposition::Refuse(()),
            (None, Some(hold_id)) if from == Side::Client => Disposition::Hold(hold_id),
            (None, Some(_)) => {
                if let Some((lane, frame)) = received_message {
                    outgoing = self.refuse_server_request(lane, frame)?;
                }
                Disposition::Refuse(())
            }
        };
        Ok(GateResult { disposition, outgoing })
    }

    /// Records a message over the size limit, and returns the error for its sender, or for the
    /// request that waits for it.
    pub(crate) fn refuse_oversize(
        &self,
        lane: Lane,
        from: Side,
        message: OversizeMessage,
    ) -> Result<Vec<OutgoingMessage<'static>>, SessionStoppedError> {
        let bytes_max = self.message_bytes_max;
        self.feed_and_commit(RelayEvent::TooLarge { lane, from, message, bytes_max })
    }

    /// Records something that is not part of the conversation, or that the other side does not get.
    pub(crate) fn mark(
        &self,
        (lane, from): (Lane, Side),
        (bytes, delivered): (&[u8], bool),
        reason: &str,
    ) -> Result<(), SessionStoppedError> {
        self.feed_and_commit(RelayEvent::RecordOnly { lane, from, bytes, reason, delivered })
            .map(drop)
    }

    /// Forgets requests of `asker` whose answers are no longer wanted: those with these `ids`, or
    /// all in the lane.
    pub(crate) fn forget_requests(
        &self,
        (lane, asker): (Lane, Side),
        ids: Option<&[Vec<u8>]>,
    ) -> Result<(), SessionStoppedError> {
        let reason = None;
        self.feed_and_commit(RelayEvent::RequestsDropped { lane, asker, ids, reason }).map(drop)
    }

    /// Answers, in place of a server that is gone, what clients in this lane wait for.
    pub(crate) fn answer_for_server<'e>(
        &self,
        lane: Lane,
        reason: &'e str,
        error_type: Option<&'e str>,
    ) -> Result<Vec<PermittedMessage<'e>>, SessionStoppedError> {
        let (lane, side) = (Some(lane), Side::Server);
        let gone = RelayEvent::SideGone { lane, side, reason, error_type };
        Ok(split_by_side(self.feed_and_commit(gone)?).0)
    }

    /// Records that a message is ambiguous for `reason`, and returns whether it is refused.
    pub(crate) fn check_ambiguous(
        &self,
        lane: Lane,
        from: Side,
        bytes: &[u8],
        reason: &str,
    ) -> Result<bool, SessionStoppedError> {
        if self.stopped.get() {
            return Err(SessionStoppedError);
        }
        let rejected = self.recording.borrow_mut().check_ambiguous(lane, from, bytes, reason);
        rejected.map_err(|error| self.fail(error))
    }

    /// Records a request that was refused before a message was read.
    pub(crate) fn note_refusal(&self, reason: &str) {
        if self.stopped.get() || !self.is_governed() {
            return;
        }
        let lane = self.open_exchange();
        let noted = self.recording.borrow_mut().note_refusal(lane, reason);
        noted.map_err(|error| self.fail(error)).ok();
    }

    /// Records an exchange without a message, or with a query of its own: what it was and how it
    /// ended, without secrets.
    pub(crate) fn note_plain_exchange(
        &self,
        lane: Lane,
        what: &str,
    ) -> Result<(), SessionStoppedError> {
        if self.stopped.get() {
            return Err(SessionStoppedError);
        }
        let noted = self.recording.borrow_mut().note_plain_exchange(lane, what);
        noted.map_err(|error| self.fail(error))
    }

    /// Whether secrets are redacted in what clients receive.
    pub(crate) fn masks(&self) -> bool {
        self.recording.borrow_mut().masks()
    }

    /// Redacts secrets in server text that is not a message but is sent to a client; `what`
    /// describes it. `None` if it may be sent unchanged.
    pub(crate) fn mask_text(
        &self,
        lane: Lane,
        what: &str,
        text: &[u8],
    ) -> Result<Option<Vec<u8>>, SessionStoppedError> {
        if self.stopped.get() {
            return Err(SessionStoppedError);
        }
        let masked = self.recording.borrow_mut().mask_text(lane, what, text);
        masked.map_err(|error| self.fail(error))
    }

    /// Ends the recording because the tape or the log has failed.
    fn fail(&self, error: RecordError) -> SessionStoppedError {
        *self.tape_error.borrow_mut() = Some(error);
        self.stopped.set(true);
        self.stop.notify_one();
        SessionStoppedError
    }

    /// Answers a server's request that would have to be held, without asking an approver: over HTTP
    /// there may be no stream left to deliver it on after the decision.
    fn refuse_server_request<'e>(
        &self,
        lane: Lane,
        frame: &'e Frame<'e>,
    ) -> Result<Vec<OutgoingMessage<'e>>, SessionStoppedError> {
        let Some(id) = frame.envelope().and_then(|envelope| envelope.id) else {
            return Ok(Vec::new());
        };
        self.feed_and_commit(RelayEvent::RequestFailed {
            lane,
            asker: Side::Server,
            id,
            error: &DECLINED,
        })
    }

    /// Feeds and records an event; returns the resulting messages, except those for exchanges that
    /// wait for a held call.
    pub fn feed_and_commit<'e>(
        &self,
        event: RelayEvent<'e>,
    ) -> Result<Vec<OutgoingMessage<'e>>, SessionStoppedError> {
        if self.stopped.get() {
            return Err(SessionStoppedError);
        }
        if let RelayEvent::TooLarge { from: Side::Client, .. } = event {
            self.unread.set(self.unread.get() + 1);
        }
        let due = self.recording.borrow().next_hold_deadline();
        let passed = self.recording.borrow_mut().feed_and_commit(event);
        if due.is_none() && self.recording.borrow().next_hold_deadline().is_some() {
            // The task that serves held calls has no deadline yet and must learn about this one.
            self.held.notify_one();
        }
        // The deadline is announced even if the commit failed: the relay's state has changed.
        let outgoing = passed.map_err(|error| self.fail(error))?;
        Ok(self.notify_waiters(outgoing))
    }

    /// How many client messages were over the limit, and so not read.
    pub fn oversize_messages(&self) -> u64 {
        self.unread.get()
    }

    /// A lane for a new session.
    pub fn open_session(&self) -> Lane {
        self.recording.borrow_mut().open_session()
    }

    /// A lane for one exchange of a client without a session.
    pub fn open_exchange(&self) -> Lane {
        let session = self.sessionless.get().unwrap_or_else(|| self.open_session());
        self.sessionless.set(Some(session));
        self.recording.borrow_mut().open_exchange(session)
    }

    /// Uses `lane` as the session of all clients without one, if there is none yet.
    pub fn adopt_lane(&self, lane: Lane) {
        if self.sessionless.get().is_none() {
            self.sessionless.set(Some(lane));
        }
    }

    /// Waits until the tape has failed, and returns the error.
    pub async fn tape_failed(&self) -> RecordError {
        loop {
            if let Some(error) = self.tape_error.borrow_mut().take() {
                return error;
            }
            self.stop.notified().await;
        }
    }

    /// The recorded session, for the code that ends the recording.
    pub fn recorded_session(&self) -> std::cell::RefMut<'_, RecordedSession> {
        self.recording.borrow_mut()
    }
}
