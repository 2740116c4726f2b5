//! The relay and the tape of one recording, kept in step.

use tapegate_core::relay::{Action, Event, Relay};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{Entry, RecordError, Recorder};
use tapegate_core::time::At;

use crate::clock::Clock;

/// What happens when the tape cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTapeError {
    /// The session ends: nothing passes unrecorded.
    Stop,
    /// The session goes on without a tape, and says so once.
    Continue,
}

/// One recording: who waits for what, and the tape.
pub struct Deck {
    relay: Relay,
    recorder: Box<dyn Recorder>,
    clock: Clock,
    on_tape_error: OnTapeError,
    lost: Option<RecordError>,
    sessions: u32,
    exchanges: u64,
}

/// A message to be sent: the one that arrived, or one of our own (without line end).
#[derive(Debug)]
pub struct Outgoing {
    /// The conversation.
    pub lane: Lane,
    /// Where to.
    pub to: Side,
    /// Our own text, or `None` for what arrived.
    pub text: Option<Vec<u8>>,
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
            recorder,
            clock,
            on_tape_error,
            lost: None,
            sessions,
            exchanges,
        }
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
    pub fn feed(&mut self, at: At, event: Event<'_>, send: &mut dyn FnMut(Outgoing)) {
        let (recorder, lost) = (&mut self.recorder, self.lost.is_some());
        self.relay.handle(at, event, &mut |action| match action {
            Action::Record(_) if lost => {}
            Action::Record(entry) => recorder.append(&entry),
            Action::Forward { lane, to, .. } => send(Outgoing { lane, to, text: None }),
            Action::Answer { lane, to, text } => send(Outgoing { lane, to, text: Some(text) }),
        });
    }

    /// Has the tape take what was fed. An error means that nothing of it may be sent.
    pub fn commit(&mut self) -> Result<(), RecordError> {
        if self.lost.is_some() {
            return Ok(());
        }
        match (self.recorder.commit(), self.on_tape_error) {
            (Ok(()), _) => Ok(()),
            (Err(error), OnTapeError::Stop) => Err(error),
            (Err(error), OnTapeError::Continue) => {
                self.lost = Some(error);
                Ok(())
            }
        }
    }

    /// Feeds one event by itself and commits it.
    pub fn pass(&mut self, event: Event<'_>) -> Result<Vec<Outgoing>, RecordError> {
        let mut outgoing = Vec::new();
        self.feed(self.now(), event, &mut |message| outgoing.push(message));
        self.commit()?;
        Ok(outgoing)
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
