//! Client calls that wait for an approval decision.
//!
//! The exchange of a held call behaves like any other: its client gets keep-alives and progress
//! notifications, and cancels the call by disconnecting.

use std::collections::BTreeMap;
use std::rc::Rc;

use tapegate_core::frame::Frame;
use tapegate_core::gate::Ticket;
use tapegate_core::relay::{CODE_GONE, Event, OwnMessage, Permitted};
use tapegate_core::side::{Lane, Side};

use super::board::Board;
use super::exchange::Exchange;
use crate::http::station::{Waiting, Word};

/// The held calls of a server connection, by sequence number.
#[derive(Default)]
pub(super) struct HeldCalls {
    count: u64,
    calls: BTreeMap<u64, HeldCall>,
}

struct HeldCall {
    lane: Lane,
    /// The waiting exchange; `None` where all answers go to one stream.
    exchange: Option<Rc<Exchange>>,
    _waiting: Waiting,
}

impl HeldCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The lanes that have held calls.
    pub(super) fn lanes(&self) -> Vec<Lane> {
        self.calls.values().map(|call| call.lane).collect()
    }

    /// Removes the call of an exchange.
    fn take(&mut self, exchange: &Exchange) -> Option<HeldCall> {
        let is_it = |call: &HeldCall| {
            call.exchange.as_ref().is_some_and(|one| one.number == exchange.number)
        };
        let number = self.calls.iter().find(|(_, call)| is_it(call)).map(|(number, _)| *number)?;
        self.calls.remove(&number)
    }
}

impl Board {
    /// Registers a held call and waits for its decision in the background.
    pub(super) fn hold_call(
        self: &Rc<Self>,
        lane: Lane,
        ticket: Ticket,
        exchange: Option<&Rc<Exchange>>,
    ) {
        let number = {
            let mut held = self.held.borrow_mut();
            held.count += 1;
            held.count
        };
        let (board, whose) = (Rc::downgrade(self), exchange.cloned());
        let waiting = self.station.wait(ticket, move |word| {
            let Some(board) = board.upgrade() else { return };
            if !matches!(word, Word::Tell(_)) {
                let done = board.held.borrow_mut().calls.remove(&number);
                drop(done);
            }
            board.hear_of(lane, whose.as_ref(), word);
        });
        let call = HeldCall { lane, exchange: exchange.cloned(), _waiting: waiting };
        self.held.borrow_mut().calls.insert(number, call);
    }

    /// Acts on an update about a held call.
    fn hear_of(self: &Rc<Self>, lane: Lane, exchange: Option<&Rc<Exchange>>, word: Word) {
        match (word, exchange) {
            (Word::Send(message), exchange) => {
                tokio::task::spawn_local(Rc::clone(self).release(lane, message, exchange.cloned()));
            }
            (Word::Answer(message), Some(exchange)) => drop(exchange.answer(message, true)),
            (Word::Tell(message), Some(exchange)) => {
                if exchange.can_be_told() {
                    self.stream_of(exchange).push(message);
                }
            }
            (Word::Answer(message) | Word::Tell(message), None) => self.main.push(message),
            (Word::Over, Some(exchange)) => exchange.give_up(),
            (Word::Over, None) => {}
        }
    }

    /// Sends a released call if its client still waits.
    async fn release(
        self: Rc<Self>,
        lane: Lane,
        message: Permitted<'static>,
        exchange: Option<Rc<Exchange>>,
    ) {
        let slot = self.reserve().await;
        let wanted = exchange.as_ref().is_none_or(|one| !one.gone.get());
        if let (Ok(slot), true) = (slot, wanted) {
            return self.forward(slot, lane, message, exchange.as_ref());
        }
        let (asker, bytes) = (Side::Client, Some(message.bytes()));
        // If the tape has failed, the session ends anyway.
        self.station.pass(Event::Dismissed { lane, asker, bytes, why: None }).ok();
        let frame = Frame::read(message.bytes());
        if let (Some(exchange), Some(id)) = (exchange, frame.envelope().and_then(|said| said.id)) {
            let why = "the session ended before the MCP server answered";
            exchange.answer(OwnMessage::error(id, CODE_GONE, why).into(), true).ok();
        }
    }

    /// Cancels the held call of an exchange whose connection is gone.
    pub(super) fn take_back(&self, exchange: &Exchange) {
        let call = self.held.borrow_mut().take(exchange);
        drop(call);
    }
}
