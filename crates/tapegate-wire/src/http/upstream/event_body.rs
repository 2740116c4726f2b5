//! Reads a reply that is a stream of events.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tapegate_core::lines::OversizeMessage;
use tapegate_core::sse::{SseParser, SsePiece};

/// A body that is a stream of events.
pub(in crate::http) struct EventBody {
    body: Incoming,
    events: SseParser,
}

/// An item read from an event stream.
pub(in crate::http) enum EventRead {
    /// Everything up to a blank line.
    Piece(SsePiece),
    /// An event over the limit.
    TooLarge(OversizeMessage),
    /// The stream has ended, with an error if it broke.
    End(Option<String>),
}

impl EventBody {
    /// A stream with events of at most `event_bytes_max` bytes.
    pub(in crate::http) fn new(body: Incoming, event_bytes_max: usize) -> Self {
        Self { body, events: SseParser::new(event_bytes_max) }
    }

    /// The next complete item.
    pub(in crate::http) async fn next(&mut self) -> EventRead {
        loop {
            match self.events.next() {
                Some(Ok(piece)) => return EventRead::Piece(piece),
                Some(Err(message)) => return EventRead::TooLarge(message),
                None => {}
            }
            match self.body.frame().await {
                // Data after the last blank line is an incomplete event and is discarded.
                None => return EventRead::End(None),
                Some(Err(error)) => return EventRead::End(Some(error.to_string())),
                Some(Ok(frame)) => frame.data_ref().iter().for_each(|data| self.events.feed(data)),
            }
        }
    }
}
