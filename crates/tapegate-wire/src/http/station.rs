//! What all exchanges of one recording share.

mod waiting;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tapegate_core::frame::Frame;
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tokio::sync::Notify;

use super::BodyBudget;
use crate::deck::{Deck, Disposition, Outgoing};
use waiting::Waiters;
pub(crate) use waiting::{Waiting, Word};

/// The answer to a request of a server that would have to be held.
const DECLINED: &[u8] = br#"{"code":-32013,"message":"a request of a server cannot be held for approval by HTTP","data":{"by":"tapegate"}}"#;

/// One recording that many exchanges feed, on one thread.
pub struct Station {
    deck: RefCell<Deck>,
    message_bytes_max: usize,
    bodies: BodyBudget,
    stop: Notify,
    stopped: Cell<bool>,
    tape_error: RefCell<Option<RecordError>>,
    sessionless: Cell<Option<Lane>>,
    /// How many messages of clients nobody has read.
    unread: Cell<u64>,
    waiters: RefCell<Waiters>,
    /// A call was held.
    held: Notify,
    /// A hold has ended.
    unheld: Notify,
}

/// What is to become of a message that came, and what is to be said because of it.
#[derive(Debug)]
pub(crate) struct Judged<'e> {
    pub(crate) disposition: Disposition<Permitted<'e>>,
    /// Messages of our own, to whichever side.
    pub(crate) said: Vec<Outgoing<'e>>,
}

/// The proof that no policy is enforced, so that bytes pass as they came, read or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transparent(());

/// Nothing may pass any more: the tape failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("recording has stopped")]
pub struct Stopped;

impl Station {
    /// A station that records with `deck`.
    pub fn new(deck: Deck, message_bytes_max: usize) -> Rc<Self> {
        Self::bounded(deck, message_bytes_max, BodyBudget::new())
    }

    /// A station whose clients share `bodies`.
    pub fn bounded(deck: Deck, message_bytes_max: usize, bodies: BodyBudget) -> Rc<Self> {
        Rc::new(Self {
            deck: RefCell::new(deck),
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

    /// The memory for bodies of requests.
    pub(crate) fn bodies(&self) -> &BodyBudget {
        &self.bodies
    }

    /// Whether there is a gate.
    pub(crate) fn is_governed(&self) -> bool {
        self.deck.borrow().is_governed()
    }

    /// The proof that bytes may pass as they came, unless a gate enforces a policy by now.
    pub(crate) fn transparent(&self) -> Option<Transparent> {
        (!self.deck.borrow_mut().is_enforced()).then_some(Transparent(()))
    }

    /// Judges and records a message that arrived. When this returns `Ok` it is on the tape, and what
    /// is said may be sent.
    pub(crate) fn receive<'e>(
        &self,
        lane: Lane,
        from: Side,
        bytes: &'e [u8],
    ) -> Result<Judged<'e>, Stopped> {
        self.judge(Event::Received { lane, from, bytes, terminated: true }, from)
    }

    /// The same for a message of the server, which came on a stream that was gone on with if
    /// `resumed`, and with its end if `terminated`.
    pub(crate) fn hear<'e>(
        &self,
        lane: Lane,
        bytes: &'e [u8],
        (resumed, terminated): (bool, bool),
    ) -> Result<Judged<'e>, Stopped> {
        let from = Side::Server;
        let event = match resumed {
            true => Event::Resumed { lane, bytes, terminated },
            false => Event::Received { lane, from, bytes, terminated },
        };
        self.judge(event, from)
    }

    /// Feeds a message of `from`.
    pub(crate) fn judge<'e>(&self, event: Event<'e>, from: Side) -> Result<Judged<'e>, Stopped> {
        let asked = match event {
            Event::Received { lane, bytes, .. }
            | Event::Resumed { lane, bytes, .. }
            | Event::Played { lane, bytes, .. } => Some((lane, bytes)),
            _ => None,
        };
        let mut said = self.pass(event)?;
        let sent = said.iter().position(|one| one.to == from.other() && !one.message.is_own());
        let held = self.deck.borrow_mut().newly_held();
        let disposition = match (sent, held) {
            (Some(at), _) => Disposition::Forward(said.remove(at).message),
            (None, None) => Disposition::Refuse(()),
            (None, Some(ticket)) if from == Side::Client => Disposition::Hold(ticket),
            (None, Some(_)) => {
                if let Some((lane, bytes)) = asked {
                    said = self.decline(lane, bytes)?;
                }
                Disposition::Refuse(())
            }
        };
        Ok(Judged { disposition, said })
    }

    /// Notes a message that its reader may take for another, for the reason `why`, and returns whether
    /// it is refused.
    pub(crate) fn rejects(
        &self,
        lane: Lane,
        from: Side,
        bytes: &[u8],
        why: &str,
    ) -> Result<bool, Stopped> {
        if self.stopped.get() {
            return Err(Stopped);
        }
        let rejected = self.deck.borrow_mut().rejects(lane, from, bytes, why);
        rejected.map_err(|error| self.fail(error))
    }

    /// Notes a request that was refused before there was a message.
    pub(crate) fn note_refusal(&self, why: &str) {
        if self.stopped.get() || !self.is_governed() {
            return;
        }
        let lane = self.open_exchange();
        let noted = self.deck.borrow_mut().note_refusal(lane, why);
        noted.map_err(|error| self.fail(error)).ok();
    }

    /// Notes an exchange that carried no message, or had a query of its own: what it was and how it
    /// ended, in words without secrets.
    pub(crate) fn note_plain(&self, lane: Lane, what: &str) -> Result<(), Stopped> {
        if self.stopped.get() {
            return Err(Stopped);
        }
        let noted = self.deck.borrow_mut().note_plain(lane, what);
        noted.map_err(|error| self.fail(error))
    }

    /// Whether secrets are looked for in what the server says to its clients.
    pub(crate) fn masks(&self) -> bool {
        self.deck.borrow_mut().masks()
    }

    /// Masks the secrets in text of the server that is not a message, but is sent to a client; `what`
    /// says what it is. `None` if it is sent as it is.
    pub(crate) fn mask_text(
        &self,
        lane: Lane,
        what: &str,
        text: &[u8],
    ) -> Result<Option<Vec<u8>>, Stopped> {
        if self.stopped.get() {
            return Err(Stopped);
        }
        let masked = self.deck.borrow_mut().mask_text(lane, what, text);
        masked.map_err(|error| self.fail(error))
    }

    /// Ends the recording, because the tape or the log has failed.
    fn fail(&self, error: RecordError) -> Stopped {
        *self.tape_error.borrow_mut() = Some(error);
        self.stopped.set(true);
        self.stop.notify_one();
        Stopped
    }

    /// Answers a request of the server that would have to be held, and has nobody decide about it: by
    /// HTTP there is no stream that it surely could go on by once somebody has.
    fn decline<'e>(&self, lane: Lane, bytes: &'e [u8]) -> Result<Vec<Outgoing<'e>>, Stopped> {
        let frame = Frame::read(bytes);
        let Some(id) = frame.envelope().and_then(|said| said.id) else { return Ok(Vec::new()) };
        self.pass(Event::Failed { lane, asker: Side::Server, id, error: DECLINED })
    }

    /// Feeds an event and has it recorded; returns what is to be sent because of it, but for what
    /// somebody waits for in front of a held call.
    pub fn pass<'e>(&self, event: Event<'e>) -> Result<Vec<Outgoing<'e>>, Stopped> {
        if self.stopped.get() {
            return Err(Stopped);
        }
        if let Event::TooLarge { from: Side::Client, .. } = event {
            self.unread.set(self.unread.get() + 1);
        }
        let due = self.deck.borrow().due();
        let passed = self.deck.borrow_mut().pass(event);
        if due.is_none() && self.deck.borrow().due().is_some() {
            // Whoever attends waits for nothing so far.
            self.held.notify_one();
        }
        let outgoing = passed.map_err(|error| self.fail(error))?;
        Ok(self.tell(outgoing))
    }

    /// How many messages of clients were over the limit, so that nobody has read them.
    pub fn unread(&self) -> u64 {
        self.unread.get()
    }

    /// A lane for a new session.
    pub fn open_session(&self) -> Lane {
        self.deck.borrow_mut().open_session()
    }

    /// A lane for one exchange of a client without a session.
    pub fn open_exchange(&self) -> Lane {
        let session = self.sessionless.get().unwrap_or_else(|| self.open_session());
        self.sessionless.set(Some(session));
        self.deck.borrow_mut().open_exchange(session)
    }

    /// Takes `lane` as the session of all clients without one, if there is none yet.
    pub fn adopt(&self, lane: Lane) {
        if self.sessionless.get().is_none() {
            self.sessionless.set(Some(lane));
        }
    }

    /// Waits until the tape has failed, and says why.
    pub async fn failed(&self) -> RecordError {
        loop {
            if let Some(error) = self.tape_error.borrow_mut().take() {
                return error;
            }
            self.stop.notified().await;
        }
    }

    /// The deck, for whoever ends the recording.
    pub fn deck(&self) -> std::cell::RefMut<'_, Deck> {
        self.deck.borrow_mut()
    }
}
