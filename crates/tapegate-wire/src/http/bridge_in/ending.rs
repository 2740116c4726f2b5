//! How a board comes to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use tapegate_core::frame::Frame;
use tapegate_core::relay::{CODE_GONE, Event, OwnMessage, Permitted};
use tapegate_core::side::{Lane, Side};

use super::board::{Board, Kind};
use super::book::Book;

/// Why and how a board is to end.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) why: String,
    pub(super) grace: Duration,
}

impl Board {
    /// Asks the board to end, or to end sooner.
    pub(super) fn end(&self, why: &str, grace: Duration) {
        let mut end = self.end.borrow_mut();
        let end = end.get_or_insert_with(|| End { why: why.to_owned(), grace });
        end.grace = end.grace.min(grace);
        self.end_asked.notify_one();
    }

    /// Waits until the board was asked to end, with less grace than `grace`.
    pub(super) async fn end_before(&self, grace: Duration) -> End {
        loop {
            if let Some(end) = self.end.borrow().clone().filter(|end| end.grace < grace) {
                return end;
            }
            self.end_asked.notified().await;
        }
    }

    /// How many requests of clients wait for an answer.
    pub(super) fn unanswered(&self) -> usize {
        let book = self.book.borrow();
        book.exchanges().iter().map(|exchange| book.unanswered(exchange).len()).sum()
    }

    /// Takes nothing more, and tells everybody who waits why no answer comes.
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
        // What is left was cancelled, or the tape has failed: it is told all the same.
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

    /// Gives an answer of our own to whoever asked.
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
