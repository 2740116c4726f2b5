//! How a server connection is shut down.

use std::collections::BTreeSet;
use std::time::Duration;

use tapegate_core::frame::Frame;
use tapegate_core::relay::{CODE_GONE, OwnMessage, PermittedMessage};
use tapegate_core::side::Lane;

use super::id_map::IdMap;
use super::server_connection::{ConnectionKind, ServerConnection};

/// Why a server connection is to end, and how long the server may take.
#[derive(Debug, Clone)]
pub(super) struct ConnectionEnd {
    pub(super) reason: String,
    pub(super) grace: Duration,
}

impl ServerConnection {
    /// Asks the connection to end, or to end sooner.
    pub(super) fn request_end(&self, reason: &str, grace: Duration) {
        let mut end = self.end.borrow_mut();
        let end = end.get_or_insert_with(|| ConnectionEnd { reason: reason.to_owned(), grace });
        // A later request can only hasten the end, and does not replace the reason.
        end.grace = end.grace.min(grace);
        self.end_asked.notify_one();
    }

    /// Waits for a request to end with less grace than `grace`.
    pub(super) async fn end_requested(&self, grace: Duration) -> ConnectionEnd {
        loop {
            if let Some(end) = self.end.borrow().clone().filter(|end| end.grace < grace) {
                return end;
            }
            self.end_asked.notified().await;
        }
    }

    /// How many client requests are unanswered.
    pub(super) fn unanswered_count(&self) -> usize {
        let id_map = self.id_map.borrow();
        id_map.exchanges().iter().map(|exchange| id_map.unanswered(exchange).len()).sum()
    }

    /// Accepts no more messages, and answers all pending requests with `reason`.
    pub(super) fn close(&self, reason: &str, error_type: Option<&str>) {
        // First, so that answers produced below are not sent into a connection that still accepts
        // calls.
        tracing::debug!(session = self.lane.session, reason, "session ended");
        self.input.take();
        let exchanges = self.id_map.borrow().exchanges();
        // On a shared server, every exchange has a lane of its own.
        let mut lanes: BTreeSet<Lane> = exchanges.iter().map(|exchange| exchange.lane).collect();
        lanes.insert(self.lane);
        lanes.extend(self.session.held_lanes(self.lane.session));
        for lane in lanes {
            let answers = self.session.answer_for_server(lane, reason, error_type);
            for answer in answers.unwrap_or_default() {
                self.send_final_answer(lane, answer.into_owned());
            }
        }
        // The rest was cancelled, or the tape has failed: these clients get an error all the same.
        for exchange in exchanges {
            let unanswered = self.id_map.borrow().unanswered(&exchange);
            for (_, theirs) in unanswered {
                exchange.answer(OwnMessage::error(&theirs, CODE_GONE, reason).into(), true).ok();
            }
        }
        // Drops the exchanges and their streams, which refer to this connection's history.
        *self.id_map.borrow_mut() = IdMap::new(self.session.is_governed());
        self.history.borrow_mut().clear();
        self.main.finish();
    }

    /// Delivers one of our own answers to the client that asked.
    pub(super) fn send_final_answer(&self, lane: Lane, message: PermittedMessage<'static>) {
        if self.kind == ConnectionKind::Old {
            return self.main.push(message);
        }
        let asker = Frame::read(message.bytes())
            .envelope()
            .and_then(|envelope| self.id_map.borrow_mut().take_request(lane, envelope.id?));
        if let Some(exchange) = asker {
            exchange.answer(message, true).ok();
        }
    }
}
