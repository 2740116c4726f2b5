//! Exchanges that wait in front of a held call, and how they learn what became of it.

use std::collections::BTreeMap;
use std::rc::Rc;

use tapegate_core::frame::{Body, Frame, Kind, each_element};
use tapegate_core::gate::Ticket;
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::{Lane, Side};

use super::Station;
use crate::deck::{Outgoing, settled, tick};

/// Who waits, by numbers of their own: a call may come to be held by another name.
#[derive(Default)]
pub(super) struct Waiters {
    count: u64,
    waiting: BTreeMap<u64, (Ticket, Listener)>,
}

/// Hears what becomes of a held call.
type Listener = Rc<dyn Fn(Word)>;

/// What becomes of a held call.
#[derive(Debug)]
pub(crate) enum Word {
    /// It may be sent: this.
    Send(Permitted<'static>),
    /// It is answered, with this.
    Answer(Permitted<'static>),
    /// Its caller is told something meanwhile.
    Tell(Permitted<'static>),
    /// It was taken back; nobody is answered.
    Over,
}

/// Somebody who waits in front of a held call. If it is dropped, the call is taken back.
pub(crate) struct Waiting {
    station: Rc<Station>,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let waiter = self.station.waiters.borrow_mut().waiting.remove(&self.number);
        if let Some((ticket, _)) = waiter {
            // If the tape has failed, everything ends anyway.
            self.station.pass(Event::Withdrawn { ticket }).ok();
            self.station.unheld.notify_waiters();
        }
    }
}

impl Station {
    /// Has `listener` hear what becomes of a held call. The last word is any but [`Word::Tell`].
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

    /// Waits until a call of this session could be held, if `bytes` are one that might have to be. Other
    /// sessions need not wait for it.
    pub(crate) async fn room_for(&self, lane: Lane, bytes: &[u8]) {
        while self.deck.borrow().is_full_for(lane) && asks(bytes) {
            self.unheld.notified().await;
        }
    }

    /// Waits until another call could be held.
    pub(crate) async fn room(&self) {
        while self.deck.borrow().is_full() {
            self.unheld.notified().await;
        }
    }

    /// Deals with decisions about held calls and with the time they take, for ever.
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
                // The tape has failed, which whoever ends the session learns from the station.
                return std::future::pending().await;
            }
        }
    }

    /// Tells those who wait in front of held calls what became of them; returns the rest.
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

/// Whether there is a request among the messages of a text.
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

    /// The word that a message is to whoever waits; the last one ends the waiting.
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
