//! Exchanges that wait for held calls, and how they are notified.

use std::collections::BTreeMap;
use std::rc::Rc;

use tapegate_core::frame::{Body, Frame, Kind, each_element};
use tapegate_core::gate::Ticket;
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::{Lane, Side};

use super::Station;
use crate::deck::{Outgoing, settled, tick};

/// The waiting exchanges, by sequence number: the ticket of a held call may change.
#[derive(Default)]
pub(super) struct Waiters {
    count: u64,
    waiting: BTreeMap<u64, (Ticket, Listener)>,
}

/// Called with updates about a held call.
type Listener = Rc<dyn Fn(Word)>;

/// An update about a held call.
#[derive(Debug)]
pub(crate) enum Word {
    /// The call may be sent, in this form.
    Send(Permitted<'static>),
    /// The call is answered with this.
    Answer(Permitted<'static>),
    /// A message for the caller while the call stays held.
    Tell(Permitted<'static>),
    /// The call was withdrawn; there is no answer.
    Over,
}

/// A registered waiter for a held call. Dropping it withdraws the call.
pub(crate) struct Waiting {
    station: Rc<Station>,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let waiter = self.station.waiters.borrow_mut().waiting.remove(&self.number);
        if let Some((ticket, _)) = waiter {
            // If the tape has failed, the session ends anyway.
            self.station.pass(Event::Withdrawn { ticket }).ok();
            self.station.unheld.notify_waiters();
        }
    }
}

impl Station {
    /// Registers `listener` for updates on a held call. Any update but [`Word::Tell`] is the last.
    pub(crate) fn wait(
        self: &Rc<Self>,
        ticket: Ticket,
        listener: impl Fn(Word) + 'static,
    ) -> Waiting {
        let mut waiters = self.waiters.borrow_mut();
        waiters.count += 1;
        let number = waiters.count;
        waiters.waiting.insert(number, (ticket, Rc::new(listener)));
        self.held.notify_one();
        Waiting { station: Rc::clone(self), number }
    }

    /// If `bytes` contain a request, waits until another call of this session may be held. Other
    /// sessions are not affected.
    pub(crate) async fn room_for(&self, lane: Lane, bytes: &[u8]) {
        while self.deck.borrow().is_full_for(lane) && asks(bytes) {
            self.unheld.notified().await;
        }
    }

    /// Waits until another call may be held.
    pub(crate) async fn room(&self) {
        while self.deck.borrow().is_full() {
            self.unheld.notified().await;
        }
    }

    /// Processes decisions and timeouts of held calls; never returns.
    pub(crate) async fn attend(&self) {
        if !self.is_governed() {
            return std::future::pending().await;
        }
        let mut settlements = self.deck.borrow_mut().take_settlements();
        loop {
            let due = self.deck.borrow().due();
            let event = tokio::select! {
                (ticket, settlement) = settled(&mut settlements) => {
                    Event::Settled { ticket, settlement }
                }
                () = tick(due) => Event::Tick,
                () = self.held.notified() => continue,
            };
            if self.pass(event).is_err() {
                // The tape has failed; the task that runs the session notices that and ends it.
                return std::future::pending().await;
            }
        }
    }

    /// Notifies the waiters of held calls; returns the messages that are for no waiter.
    pub(super) fn tell<'e>(&self, outgoing: Vec<Outgoing<'e>>) -> Vec<Outgoing<'e>> {
        if self.waiters.borrow().waiting.is_empty() {
            return outgoing;
        }
        let mut rest = Vec::new();
        let mut words = Vec::new();
        {
            let mut deck = self.deck.borrow_mut();
            let mut waiters = self.waiters.borrow_mut();
            if let Some((was, now)) = deck.renamed() {
                waiters.rename(was, now);
            }
            for outgoing in outgoing {
                let ticket = outgoing.message.ticket();
                let Some(number) = ticket.and_then(|ticket| waiters.number(ticket)) else {
                    rest.push(outgoing);
                    continue;
                };
                let going_on = ticket.is_some_and(|ticket| deck.is_held(ticket));
                words.extend(waiters.word(number, outgoing, going_on));
            }
            let over = waiters.waiting.extract_if(.., |_, (ticket, _)| !deck.is_held(*ticket));
            words.extend(over.map(|(_, (_, listener))| (listener, Word::Over)));
        }
        if !words.is_empty() {
            self.unheld.notify_waiters();
        }
        words.into_iter().for_each(|(listener, word)| listener(word));
        rest
    }
}

/// Whether a text contains a request.
fn asks(bytes: &[u8]) -> bool {
    let frame = Frame::read(bytes);
    let is_request =
        |one: &Frame<'_>| one.envelope().is_some_and(|said| said.kind() == Kind::Request);
    match frame.body() {
        Body::Batch => each_element(bytes).any(|one| is_request(&one)),
        _ => is_request(&frame),
    }
}

impl Waiters {
    fn number(&self, ticket: Ticket) -> Option<u64> {
        self.waiting.iter().find(|(_, one)| one.0 == ticket).map(|(number, _)| *number)
    }

    fn rename(&mut self, was: Ticket, now: Ticket) {
        self.waiting.values_mut().filter(|one| one.0 == was).for_each(|one| one.0 = now);
    }

    /// Turns a message into an update for a waiter; the last update removes the waiter.
    fn word(
        &mut self,
        number: u64,
        outgoing: Outgoing<'_>,
        going_on: bool,
    ) -> Option<(Listener, Word)> {
        let Outgoing { to, message, .. } = outgoing;
        let message = message.into_owned();
        if going_on {
            return Some((Rc::clone(&self.waiting.get(&number)?.1), Word::Tell(message)));
        }
        let (_, listener) = self.waiting.remove(&number)?;
        debug_assert!(message.is_own() || to == Side::Server);
        let own = message.is_own();
        Some((listener, if own { Word::Answer(message) } else { Word::Send(message) }))
    }
}
