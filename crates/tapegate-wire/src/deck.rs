//! The relay, the gate and the tape of one recording, kept in step.

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Gate, Open, Settlement, Ticket};
use tapegate_core::relay::{Action, Event, HELD_MAX, Permitted, Relay};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{Entry, RecordError, Recorder};
use tapegate_core::time::At;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::stdio::Cause;

/// Where decisions about held calls come from.
pub type Settlements = mpsc::Receiver<(Ticket, Settlement)>;

/// What happens when the tape cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTapeError {
    /// The session ends: nothing passes unrecorded.
    Stop,
    /// The session goes on without a tape, and says so once.
    Continue,
}

/// One recording: who waits for what, what may pass, and the tape.
pub struct Deck {
    relay: Relay,
    /// `None` if everything may pass.
    gate: Option<Box<dyn Gate>>,
    settlements: Option<Settlements>,
    last_held: Option<Ticket>,
    renamed: Option<(Ticket, Ticket)>,
    recorder: Box<dyn Recorder>,
    clock: Clock,
    on_tape_error: OnTapeError,
    lost: Option<RecordError>,
    /// Is told once that the session has come to its end.
    on_end: Option<OnEnd>,
    sessions: u32,
    exchanges: u64,
}

/// Is told why a session has come to its end, before the server's end is waited for.
pub type OnEnd = Box<dyn FnOnce(&Cause)>;

/// A message to be sent: the one that arrived, another in its place, or one of our own.
#[derive(Debug)]
pub struct Outgoing<'e> {
    /// The conversation.
    pub lane: Lane,
    /// Where to.
    pub to: Side,
    /// The message, with the proof that it may be sent.
    pub message: Permitted<'e>,
}

/// What becomes of a message. `F` is what is sent on; `R` is what its sender is told if it is refused.
#[derive(Debug)]
pub enum Disposition<F, R = ()> {
    /// It is sent on.
    Forward(F),
    /// It goes nowhere.
    Refuse(R),
    /// It waits for a decision.
    Hold(Ticket),
}

/// Keeps nothing.
struct Nowhere;

impl Recorder for Nowhere {
    fn append(&mut self, _: &Entry<'_>) {}

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    fn close(&mut self, _: At) -> Result<(), RecordError> {
        Ok(())
    }
}

impl Deck {
    /// A deck that records with `recorder`.
    pub fn new(recorder: Box<dyn Recorder>, clock: Clock, on_tape_error: OnTapeError) -> Self {
        let (sessions, exchanges) = (0, 0);
        Self {
            relay: Relay::default(),
            gate: None,
            settlements: None,
            last_held: None,
            renamed: None,
            recorder,
            clock,
            on_tape_error,
            lost: None,
            on_end: None,
            sessions,
            exchanges,
        }
    }

    /// A deck that records with `recorder` and lets pass what `gate` lets pass. What people decide
    /// about held calls comes by `settlements`.
    pub fn governed(
        recorder: Box<dyn Recorder>,
        gate: Box<dyn Gate>,
        settlements: Settlements,
        clock: Clock,
        on_tape_error: OnTapeError,
    ) -> Self {
        let (gate, settlements) = (Some(gate), Some(settlements));
        Self { gate, settlements, ..Self::new(recorder, clock, on_tape_error) }
    }

    /// A deck that records nothing, for a wire that needs one.
    pub fn silent(clock: Clock) -> Self {
        Self::new(Box::new(Nowhere), clock, OnTapeError::Stop)
    }

    /// This moment.
    pub fn now(&self) -> At {
        self.clock.now()
    }

    /// Feeds an event and appends what is to be sent. It may be sent after [`Deck::commit`].
    pub fn feed<'e>(&mut self, at: At, event: Event<'e>, send: &mut dyn FnMut(Outgoing<'e>)) {
        let (recorder, lost) = (&mut self.recorder, self.lost.is_some());
        let (held, renamed) = (&mut self.last_held, &mut self.renamed);
        let mut emit = |action: Action<'_, 'e>| match action {
            Action::Record(_) if lost => {}
            Action::Record(entry) => recorder.append(entry),
            Action::Held { ticket, .. } => *held = Some(ticket),
            Action::HeldAgain { was, ticket } => *renamed = Some((was, ticket)),
            Action::Forward { lane, to, message } => send(Outgoing { lane, to, message }),
            Action::Answer { lane, to, message } => send(Outgoing { lane, to, message }),
        };
        match &mut self.gate {
            None => self.relay.handle(at, event, &mut Open, &mut emit),
            Some(gate) => self.relay.handle(at, event, &mut **gate, &mut emit),
        }
    }

    /// Has the tape take what was fed, and the gate keep what it noted. An error means that nothing
    /// of it may be sent.
    pub fn commit(&mut self) -> Result<(), RecordError> {
        if self.lost.is_none()
            && let Err(error) = self.recorder.commit()
        {
            match self.on_tape_error {
                OnTapeError::Stop => return Err(error),
                OnTapeError::Continue => self.lost = Some(error),
            }
        }
        self.gate.as_mut().map_or(Ok(()), |gate| gate.commit())
    }

    /// Feeds one event by itself and commits it.
    pub fn pass<'e>(&mut self, event: Event<'e>) -> Result<Vec<Outgoing<'e>>, RecordError> {
        let mut outgoing = Vec::new();
        self.feed(self.now(), event, &mut |message| outgoing.push(message));
        self.commit()?;
        Ok(outgoing)
    }

    /// Tells the gate of an HTTP message that can be read in more than one way, and returns whether it
    /// is refused. What is refused is marked on the tape. Without a gate nothing is.
    pub(crate) fn rejects(
        &mut self,
        lane: Lane,
        from: Side,
        bytes: &[u8],
        why: &str,
    ) -> Result<bool, RecordError> {
        let at = self.now();
        let Some(gate) = &mut self.gate else { return Ok(false) };
        let refused = gate.rejects(at, lane, from, &Frame::read(bytes), why);
        if refused && !bytes.is_empty() && self.lost.is_none() {
            let recorder = &mut self.recorder;
            let mut emit = |action: Action<'_, '_>| {
                if let Action::Record(entry) = action {
                    recorder.append(entry);
                }
            };
            let event = Event::Marked { lane, from, bytes, why, delivered: false };
            // The gate has noted it already.
            self.relay.handle(at, event, &mut Open, &mut emit);
        }
        self.commit()?;
        Ok(refused)
    }

    /// Has the gate note a request that was refused before there was a message.
    pub(crate) fn note_refusal(&mut self, lane: Lane, why: &str) -> Result<(), RecordError> {
        let at = self.now();
        if let Some(gate) = &mut self.gate {
            gate.unsent(at, lane, Side::Client, &Frame::read(b""), why);
        }
        self.commit()
    }

    /// Has the gate note an exchange that carried no message.
    pub(crate) fn note_plain(&mut self, lane: Lane, what: &str) -> Result<(), RecordError> {
        let at = self.now();
        if let Some(gate) = &mut self.gate {
            gate.plain_exchange(at, lane, what);
        }
        self.commit()
    }

    /// Whether a gate looks for secrets in what the server says.
    pub(crate) fn masks(&mut self) -> bool {
        self.gate.as_mut().is_some_and(|gate| gate.masks())
    }

    /// Has the gate mask text of the server that is not a message; `None` if it is sent as it is.
    pub(crate) fn mask_text(
        &mut self,
        lane: Lane,
        what: &str,
        text: &[u8],
    ) -> Result<Option<Vec<u8>>, RecordError> {
        let at = self.now();
        let masked = self.gate.as_mut().and_then(|gate| gate.mask_text(at, lane, what, text));
        self.commit()?;
        Ok(masked)
    }

    /// A lane of its own for a new session.
    pub fn open_session(&mut self) -> Lane {
        self.sessions += 1;
        Lane::session(self.sessions)
    }

    /// A lane of its own for one exchange of a session whose ids may clash.
    pub fn open_exchange(&mut self, session: Lane) -> Lane {
        self.exchanges += 1;
        Lane { session: session.session, exchange: self.exchanges }
    }

    /// How many requests of `asker` wait for an answer that somebody still wants.
    pub fn wanted(&self, asker: Side) -> usize {
        self.relay.wanted(asker)
    }

    /// Whether there is a gate.
    pub fn is_governed(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether a gate carries out what it says by now, rather than observe.
    pub(crate) fn is_enforced(&mut self) -> bool {
        self.gate.as_mut().is_some_and(|gate| gate.enforces())
    }

    /// How many calls wait for somebody's decision.
    pub fn held(&self) -> usize {
        self.relay.held()
    }

    /// The name of the call that was held last, told once.
    pub(crate) fn newly_held(&mut self) -> Option<Ticket> {
        self.last_held.take()
    }

    /// The names that a call had and has that is held once more, told once.
    pub(crate) fn renamed(&mut self) -> Option<(Ticket, Ticket)> {
        self.renamed.take()
    }

    /// Whether a call is held by this name.
    pub(crate) fn is_held(&self, ticket: Ticket) -> bool {
        self.relay.is_held(ticket)
    }

    /// Where decisions come from, for whoever waits for them apart from the deck.
    pub(crate) fn take_settlements(&mut self) -> Option<Settlements> {
        self.settlements.take()
    }

    /// When something is due about held calls.
    pub(crate) fn due(&self) -> Option<std::time::Instant> {
        self.relay.due_ns().map(|due_ns| self.clock.moment(due_ns))
    }

    /// Whether so many calls are held that no client is to be read from.
    pub fn is_full(&self) -> bool {
        self.relay.held() >= HELD_MAX
    }

    /// Whether so many calls of a session are held that its client is to wait.
    pub(crate) fn is_full_for(&self, lane: Lane) -> bool {
        self.relay.is_full_for(lane)
    }

    /// Waits for the next thing that happens to held calls; for ever if nothing can.
    pub async fn stirred(&mut self) -> Event<'static> {
        let due = self.due();
        tokio::select! {
            biased;
            (ticket, settlement) = settled(&mut self.settlements) => {
                Event::Settled { ticket, settlement }
            }
            () = tick(due) => Event::Tick,
        }
    }

    /// Has `on_end` told when the session has come to its end.
    pub fn on_end(&mut self, on_end: OnEnd) {
        self.on_end = Some(on_end);
    }

    /// Makes the tape whole as it is, because a session has begun to end and whoever ends it may not
    /// wait. What comes yet is recorded too.
    pub(crate) fn settle(&mut self) {
        let at = self.now();
        if self.lost.is_none() {
            // What fails now fails at the next commit or at the end too, and is dealt with there.
            self.recorder.settle(at).ok();
        }
    }

    /// Closes the books: the session is over but for the server's own end, which may take long.
    pub(crate) fn close_books(&mut self, cause: &Cause) {
        self.settle();
        if let Some(on_end) = self.on_end.take() {
            on_end(cause);
        }
    }

    /// Why the tape was lost, if the session went on without it.
    pub fn lost(&self) -> Option<&RecordError> {
        self.lost.as_ref()
    }

    /// Ends the tape in order.
    pub fn close(&mut self) -> Result<(), RecordError> {
        let at = self.now();
        self.recorder.close(at)
    }
}

/// Waits until something is due.
pub(crate) async fn tick(due: Option<std::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next decision.
pub(crate) async fn settled(settlements: &mut Option<Settlements>) -> (Ticket, Settlement) {
    if let Some(open) = settlements {
        if let Some(settled) = open.recv().await {
            return settled;
        }
        // Nobody decides any more; what is held ends by its time.
        *settlements = None;
    }
    std::future::pending().await
}
