//! Client calls that wait for an approval decision.
//!
//! The exchange of a held call behaves like any other: its client gets keep-alives and progress
//! notifications, and cancels the call by disconnecting.

use std::collections::BTreeMap;
use std::rc::Rc;

use tapegate_core::frame::Frame;
use tapegate_core::gate::HoldId;
use tapegate_core::relay::{CODE_GONE, OwnMessage, PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};

use super::exchange::PostExchange;
use super::server_connection::ServerConnection;
use crate::http::shared_session::{HoldUpdate, HoldWaiter};

/// The held calls of a server connection.
pub(super) type HeldCalls = BTreeMap<HoldId, HeldCall>;

pub(super) struct HeldCall {
    pub(super) lane: Lane,
    /// The waiting exchange; `None` where all answers go to one stream.
    exchange: Option<Rc<PostExchange>>,
    _waiting: HoldWaiter,
}

impl ServerConnection {
    /// Registers a held call and waits for its decision in the background.
    pub(super) fn hold_call(
        self: &Rc<Self>,
        lane: Lane,
        hold_id: HoldId,
        exchange: Option<&Rc<PostExchange>>,
    ) {
        let (connection, whose) = (Rc::downgrade(self), exchange.cloned());
        let waiting = self.session.wait(hold_id, move |word| {
            let Some(connection) = connection.upgrade() else { return };
            if !matches!(word, HoldUpdate::Tell(_)) {
                let done = connection.held.borrow_mut().remove(&hold_id);
                drop(done);
            }
            connection.handle_hold_update(lane, whose.as_ref(), word);
        });
        let call = HeldCall { lane, exchange: exchange.cloned(), _waiting: waiting };
        self.held.borrow_mut().insert(hold_id, call);
    }

    /// Acts on an update about a held call.
    fn handle_hold_update(
        self: &Rc<Self>,
        lane: Lane,
        exchange: Option<&Rc<PostExchange>>,
        word: HoldUpdate,
    ) {
        match (word, exchange) {
            (HoldUpdate::Send(message), exchange) => {
                tokio::task::spawn_local(Rc::clone(self).release(lane, message, exchange.cloned()));
            }
            (HoldUpdate::Answer(message), Some(exchange)) => drop(exchange.answer(message, true)),
            (HoldUpdate::Tell(message), Some(exchange)) => {
                if exchange.accepts_notifications() {
                    self.stream_of(exchange).push(message);
                }
            }
            (HoldUpdate::Answer(message) | HoldUpdate::Tell(message), None) => {
                self.main.push(message)
            }
            (HoldUpdate::Over, Some(exchange)) => exchange.abandon(),
            (HoldUpdate::Over, None) => {}
        }
    }

    /// Sends a released call if its client still waits.
    async fn release(
        self: Rc<Self>,
        lane: Lane,
        message: PermittedMessage<'static>,
        exchange: Option<Rc<PostExchange>>,
    ) {
        // The server may be slow to read, so the client may leave during this wait.
        let slot = self.reserve().await;
        let wanted = exchange.as_ref().is_none_or(|one| !one.gone.get());
        if let (Ok(slot), true) = (slot, wanted) {
            return self.forward(slot, lane, message, exchange.as_ref());
        }
        // The relay has released the call and waits for an answer that cannot come.
        let frame = Frame::read(message.bytes());
        let Some(id) = frame.envelope().and_then(|envelope| envelope.id) else { return };
        let (asker, ids) = (Side::Client, Some(&[id.to_vec()][..]));
        // If the tape has failed, the session ends anyway.
        self.session.feed_and_commit(RelayEvent::Dismissed { lane, asker, ids, reason: None }).ok();
        if let Some(exchange) = exchange {
            let reason = "the session ended before the MCP server answered";
            exchange.answer(OwnMessage::error(id, CODE_GONE, reason).into(), true).ok();
        }
    }

    /// Cancels the held call of an exchange whose connection is gone.
    pub(super) fn withdraw_held(&self, exchange: &PostExchange) {
        let is_it = |call: &HeldCall| {
            call.exchange.as_ref().is_some_and(|one| one.number == exchange.number)
        };
        let hold_id = self.held.borrow().iter().find(|(_, call)| is_it(call)).map(|(id, _)| *id);
        // Dropped after the borrow, because that may end the call.
        let call = hold_id.and_then(|hold_id| self.held.borrow_mut().remove(&hold_id));
        drop(call);
    }
}
