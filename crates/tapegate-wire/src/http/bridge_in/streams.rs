//! The streams of a server connection: opening, breaking off and resuming them.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::relay::{Event, OwnMessage};
use tapegate_core::side::Side;

use super::board::{Board, Kind};
use super::exchange::Exchange;
use super::history::EventId;
use super::stream::Stream;

/// The reason for cancelling a request whose client has gone.
const CLOSED: &str = "the client closed the stream of its request";
/// When a client is told to reconnect for the rest of a stream.
const RETRY: Duration = Duration::from_millis(100);

impl Board {
    /// The stream of an exchange, opened if necessary.
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

    /// Handles the loss of an exchange's connection.
    pub(super) fn abandoned(&self, exchange: &Exchange) {
        if exchange.is_answered() || self.is_ended() {
            return;
        }
        match exchange.stream() {
            // Another connection has resumed it.
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
                // The tape shows the id that the client used, the server gets the one it knows.
                if self.station.pass(Event::Ours { lane, to, message }).is_ok() {
                    self.say(OwnMessage::cancelled(&ours, CLOSED).into());
                }
            }
        }
    }

    /// The stream to resume for a client that has seen event `last`, with its exchange if a request
    /// of it is still unanswered.
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

    /// Closes the stream of the request the server knows as `id` before its answer, as the server
    /// asked. For clients that cannot resume, the stream stays open.
    pub(super) fn part(&self, id: &[u8]) {
        let asker = self.book.borrow().asker(id);
        if let Some(exchange) = asker.filter(|one| self.by_stream && one.can_resume()) {
            self.stream_of(&exchange).part(RETRY);
            exchange.parted.set(true);
        }
    }
}
