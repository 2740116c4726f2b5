//! The streams of a server connection: opening, breaking off and resuming them.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::relay::{OwnMessage, RelayEvent};
use tapegate_core::side::Side;

use super::exchange::PostExchange;
use super::history::EventId;
use super::server_connection::{ConnectionKind, ServerConnection};
use super::stream::ClientStream;

/// The reason for cancelling a request whose client has gone.
const CLOSED: &str = "the client closed the stream of its request";
/// When a client is told to reconnect for the rest of a stream.
const RETRY: Duration = Duration::from_millis(100);

impl ServerConnection {
    /// The stream of an exchange, opened if necessary.
    pub(super) fn stream_of(&self, exchange: &PostExchange) -> Rc<ClientStream> {
        exchange.stream_or_open(|| {
            self.streams.set(self.streams.get() + 1);
            let stream = ClientStream::new(self.streams.get(), &self.history);
            // The sessionless revision cannot resume streams, so ids would be a false promise.
            if self.kind == ConnectionKind::Shared {
                stream.without_ids();
            }
            if self.by_stream {
                exchange.send_priming_event(&stream);
            }
            stream
        })
    }

    /// Handles the loss of an exchange's connection.
    pub(super) fn connection_lost(&self, exchange: &PostExchange) {
        if exchange.is_answered() || self.is_ended() {
            return;
        }
        match exchange.event_stream() {
            // Another connection has resumed it.
            Some(stream) if stream.is_connected() => return,
            Some(stream) => stream.disconnect(),
            None => {}
        }
        exchange.gone.set(true);
        // No one waits for the decision about a call that is held.
        let hold = exchange.hold.take();
        drop(hold);
        // Without a session, a closed stream cancels the request. The client of a session may
        // resume.
        if self.kind == ConnectionKind::Shared && !exchange.cancelled.replace(true) {
            let unanswered = self.id_map.borrow().unanswered(exchange);
            for (ours, theirs) in unanswered {
                let (lane, to) = (exchange.lane, Side::Server);
                let message = OwnMessage::cancelled(&theirs, CLOSED);
                // The tape shows the id that the client used, the server gets the one it knows.
                if self.session.feed_and_commit(RelayEvent::SendOwn { lane, to, message }).is_ok() {
                    self.send_own(OwnMessage::cancelled(&ours, CLOSED).into());
                }
            }
        }
    }

    /// The stream to resume for a client that has seen event `last`, with its exchange if a request
    /// of it is still unanswered.
    pub(super) fn resume(&self, last: EventId) -> (Rc<ClientStream>, Option<Rc<PostExchange>>) {
        if last.stream == 0 {
            self.main.rewind(last.number);
            return (Rc::clone(&self.main), None);
        }
        let waiting = self.id_map.borrow().with_stream(last.stream);
        if let Some((exchange, stream)) = waiting {
            exchange.gone.set(false);
            stream.rewind(last.number);
            return (stream, Some(exchange));
        }
        // The request is answered, but its events may still be in the history.
        let stream = ClientStream::new(last.stream, &self.history);
        stream.rewind(last.number);
        stream.finish();
        (stream, None)
    }

    /// Closes the stream of the request the server knows as `id` before its answer, as the server
    /// asked. For clients that cannot resume, the stream stays open.
    pub(super) fn close_stream_for_resumption(&self, id: &[u8]) {
        let asker = self.id_map.borrow().exchange_for(id);
        if let Some(exchange) = asker.filter(|one| self.by_stream && one.can_resume()) {
            self.stream_of(&exchange).close_for_resumption(RETRY);
            exchange.parted.set(true);
        }
    }
}
