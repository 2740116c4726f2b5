//! How a server connection is shut down.

use std::collections::BTreeSet;
use std::time::Duration;

use tapegate_core::frame::Frame;
use tapegate_core::relay::{CODE_GONE, Event, OwnMessage, Permitted};
use tapegate_core::side::{Lane, Side};

use super::board::{Board, Kind};
use super::book::Book;

/// Why a server connection is to end, and how long the server may take.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) why: String,
    pub(super) grace: Duration,
}

impl Board {
    /// Asks the connection to end, or to end sooner.
    pub(super) fn end(&self, why: &str, grace: Duration) {
        let mut end = self.end.borrow_mut();
        let end = end.get_or_insert_with(|| End { why: why.to_owned(), grace });
        end.grace = end.grace.min(grace);
        self.end_asked.notify_one();
    }

    /// Waits for a request to end with less grace than `grace`.
    pub(super) async fn end_before(&self, grace: Duration) -> End {
        loop {
            if let Some(end) = self.end.borrow().clone().filter(|end| end.grace < grace) {
                return end;
            }
            self.end_asked.notified().await;
        }
    }

    /// How many client requests are unanswered.
    pub(super) fn unanswered(&self) -> usize {
        let book = self.book.borrow();
        book.exchanges().iter().map(|exchange| book.unanswered(exchange).len()).sum()
    }

    /// Accepts no more messages, and answers all pending requests with `why`.
    pub(super) fn close(&self, why: &str, error_type: Option<&str>) {
        self.ended.set(true);
        self.input.take();
        let exchanges = self.book.borrow().exchanges();
        let mut lanes: BTreeSet<Lane> = exchanges.iter().map(|exchange| exchange.lane).collect();
        lanes.insert(self.lane);
        lanes.extend(self.held.borrow().lanes());
        for lane in lanes {
            let gone = Event::Gone { lane: Some(lane), side: Side::Server, why, error_type };
            let answers = self.station.pass(gone).unwrap_or_default();
            answers.into_iter().filter(|answer| answer.to == Side::Client).for_each(|answer| {
                self.last_answer(lane, answer.message.into_owned());
            });
        }
        // The rest was cancelled, or the tape has failed: these clients get an error all the same.
        for exchange in exchanges {
            let unanswered = self.book.borrow().unanswered(&exchange);
            for (_, theirs) in unanswered {
                exchange.answer(OwnMessage::error(&theirs, CODE_GONE, why).into(), true).ok();
            }
        }
        *self.book.borrow_mut() = Book::new(self.station.is_governed());
        self.history.borrow_mut().clear();
        self.main.finish();
    }

    /// Delivers one of our own answers to the client that asked.
    pub(super) fn last_answer(&self, lane: Lane, message: Permitted<'static>) {
        if self.kind == Kind::Old {
            return self.main.push(message);
        }
        let asker = Frame::read(message.bytes())
            .envelope()
            .and_then(|said| self.book.borrow_mut().take(lane, said.id?));
        if let Some(exchange) = asker {
            exchange.answer(message, true).ok();
        }
    }
}
