//! The streams of a board: opened for an exchange, broken off, and gone on with.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::relay::{Event, OwnMessage};
use tapegate_core::side::Side;

use super::board::{Board, Kind};
use super::exchange::Exchange;
use super::history::EventId;
use super::stream::Stream;

/// Why a request of a client is cancelled that has gone.
const CLOSED: &str = "the client closed the stream of its request";
/// When a client is told to come back for the rest of a stream.
const RETRY: Duration = Duration::from_millis(100);

impl Board {
    /// The stream of an exchange, which is opened if it was not.
    pub(super) fn stream_of(&self, exchange: &Exchange) -> Rc<Stream> {
        exchange.stream_or(|| {
            self.streams.set(self.streams.get() + 1);
            let stream = Stream::new(self.streams.get(), &self.history);
            if self.kind == Kind::Shared {
                stream.without_ids();
            }
            if self.by_stream {
                exchange.prime(&stream);
            }
            stream
        })
    }

    /// The connection of an exchange is gone.
    pub(super) fn abandoned(&self, exchange: &Exchange) {
        if exchange.is_answered() || self.is_ended() {
            return;
        }
        match exchange.stream() {
            // Another connection goes on with it.
            Some(stream) if stream.is_connected() => return,
            Some(stream) => stream.break_off(),
            None => {}
        }
        exchange.gone.set(true);
        self.take_back(exchange);
        if self.kind == Kind::Shared && !exchange.cancelled.replace(true) {
            let unanswered = self.book.borrow().unanswered(exchange);
            for (ours, theirs) in unanswered {
                let (lane, to) = (exchange.lane, Side::Server);
                let message = OwnMessage::cancelled(&theirs, CLOSED);
                // On the tape it has the id that the client knows, on the wire the server's.
                if self.station.pass(Event::Ours { lane, to, message }).is_ok() {
                    self.say(OwnMessage::cancelled(&ours, CLOSED).into());
                }
            }
        }
    }

    /// The stream that a client which has seen event `last` wants to go on with.
    /// If a request of it still waits, its exchange comes along.
    pub(super) fn resume(&self, last: EventId) -> (Rc<Stream>, Option<Rc<Exchange>>) {
        if last.stream == 0 {
            self.main.rewind(last.number);
            return (Rc::clone(&self.main), None);
        }
        let waiting = self.book.borrow().with_stream(last.stream);
        if let Some((exchange, stream)) = waiting {
            exchange.gone.set(false);
            stream.rewind(last.number);
            return (stream, Some(exchange));
        }
        let stream = Stream::new(last.stream, &self.history);
        stream.rewind(last.number);
        stream.finish();
        (stream, None)
    }

    /// Ends the stream of the request that the server calls `id` before its answer, as the server
    /// has it. Whoever cannot come back for the rest gets it where it is.
    pub(super) fn part(&self, id: &[u8]) {
        let asker = self.book.borrow().asker(id);
        if let Some(exchange) = asker.filter(|one| self.by_stream && one.can_resume()) {
            self.stream_of(&exchange).part(RETRY);
            exchange.parted.set(true);
        }
    }
}
