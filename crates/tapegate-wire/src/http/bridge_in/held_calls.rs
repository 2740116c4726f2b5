//! Client calls that wait for an approval decision.
//!
//! The exchange of a held call behaves like any other: its client gets keep-alives and progress
//! notifications, and cancels the call by disconnecting.

use std::rc::Rc;

use tapegate_core::frame::Frame;
use tapegate_core::gate::HoldId;
use tapegate_core::relay::{CODE_GONE, OwnMessage, PermittedMessage};
use tapegate_core::side::{Lane, Side};

use super::exchange::PostExchange;
use super::server_connection::ServerConnection;
use crate::http::shared_session::HoldUpdate;

impl ServerConnection {
    /// Waits in the background for the decision about a held call. `exchange` is the one that waits
    /// for its answer; `None` where all answers go to one stream.
    pub(super) fn hold_call(
        self: &Rc<Self>,
        lane: Lane,
        hold_id: HoldId,
        exchange: Option<&Rc<PostExchange>>,
    ) {
        let (connection, whose) = (Rc::downgrade(self), exchange.cloned());
        let listener = move |update| {
            if let Some(connection) = connection.upgrade() {
                connection.handle_hold_update(lane, whose.as_ref(), update);
            }
        };
        match exchange {
            Some(exchange) => {
                *exchange.hold.borrow_mut() = Some(self.session.wait(lane, hold_id, listener));
            }
            // If its client leaves, the session ends, and with it all that is held in its lane.
            None => drop(self.session.listen(lane, hold_id, listener)),
        }
    }

    /// Acts on an update about a held call.
    fn handle_hold_update(
        self: &Rc<Self>,
        lane: Lane,
        exchange: Option<&Rc<PostExchange>>,
        update: HoldUpdate,
    ) {
        match (update, exchange) {
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
        // If the tape has failed, the session ends anyway.
        self.session.forget_requests((lane, Side::Client), Some(&[id.to_vec()])).ok();
        if let Some(exchange) = exchange {
            let reason = "the session ended before the MCP server answered";
            exchange.answer(OwnMessage::error(id, CODE_GONE, reason).into(), true).ok();
        }
    }
}
