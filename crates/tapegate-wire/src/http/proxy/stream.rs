//! Response bodies that are passed on as they arrive.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body as _, Incoming};
use tapegate_core::sse::SseParser;

use super::super::OutboundBytes;
use super::super::body::{BrokenBody, PieceStream};
use super::super::shared_session::SessionStoppedError;
use super::redaction::BodyWatch;
use super::{PlainBody, ProxyExchange, recording_ended};

/// An event stream that is recorded as it passes.
pub(super) struct EventStream {
    exchange: ProxyExchange,
    body: Incoming,
    events: SseParser,
    ready: Vec<OutboundBytes>,
    ended: bool,
    /// Resolves when the recording ends.
    ending: Pin<Box<dyn Future<Output = String>>>,
}

impl EventStream {
    pub(super) fn new(exchange: ProxyExchange, body: Incoming) -> Self {
        let events = SseParser::new(exchange.proxy.shared_session.message_bytes_max());
        let ending = Box::pin(recording_ended(exchange.proxy.ending.subscribe()));
        Self { exchange, body, events, ready: Vec::new(), ended: false, ending }
    }

    /// Parses bytes of the stream, and adds the events to send to `ready`.
    fn feed(&mut self, bytes: &[u8]) -> Result<(), SessionStoppedError> {
        self.events.feed(bytes);
        // Events are parsed whole, so a message in several network packets is judged once.
        while let Some(next) = self.events.next() {
            match next {
                Ok(piece) => {
                    let sent = self.exchange.forward_event(&piece, true)?;
                    self.send(sent);
                }
                Err(message) => {
                    if let Some(answer) = self.exchange.record_oversize(message)? {
                        self.ready.push(OutboundBytes::event(&answer, None));
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the stream before the server does; pending requests are answered with `why`.
    fn abort(&mut self, reason: &str) {
        self.ended = true;
        // If the tape itself has failed, there are no answers; the stream just ends.
        for answer in self.exchange.dismiss_requests(Some(reason)).unwrap_or_default() {
            self.ready.push(OutboundBytes::event(&answer, None));
        }
    }

    fn finish(&mut self) -> Result<(), SessionStoppedError> {
        self.ended = true;
        if let Some(rest) = self.events.take_rest() {
            let sent = self.exchange.forward_event(&rest, false)?;
            self.send(sent);
        }
        // Checked at the end: a later event may still have brought the answer.
        if self.exchange.has_dropped {
            // The withheld event may have been the answer, which the client still waits for.
            self.abort("the server's reply has no answer that may be forwarded");
        }
        Ok(())
    }

    fn send(&mut self, event: OutboundBytes) {
        if !event.is_empty() {
            self.ready.push(event);
        }
    }
}

impl PieceStream for EventStream {
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<OutboundBytes, BrokenBody>>> {
        loop {
            // Recorded output is sent before anything else is read (invariant 6).
            if !self.ready.is_empty() {
                let ready = std::mem::take(&mut self.ready);
                return Poll::Ready(Some(Ok(OutboundBytes::concat(&ready))));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            // Our own messages do not wait for the server, which may be silent for long.
            if let Some(inbox) = &mut self.exchange.inbox
                && let Poll::Ready(Some(event)) = inbox.poll_recv(cx)
            {
                self.ready.push(event);
                continue;
            }
            if let Poll::Ready(reason) = self.ending.as_mut().poll(cx) {
                self.abort(&reason);
                continue;
            }
            let passed = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(bytes) = frame.into_data() else { continue };
                    self.feed(&bytes)
                }
                // The client must notice that the stream broke, or it would wait for the rest.
                Some(Err(error)) => return Poll::Ready(Some(Err(BrokenBody(error.to_string())))),
                None => self.finish(),
            };
            if let Err(SessionStoppedError) = passed {
                return Poll::Ready(Some(Err(BrokenBody(SessionStoppedError.to_string()))));
            }
        }
    }
}

/// A body that is passed on as it arrives.
pub(super) struct PlainStream {
    body: Incoming,
    /// Inspects the body as it passes.
    watch: Option<BodyWatch>,
}

impl PlainStream {
    pub(super) fn new(body: Incoming, watch: Option<BodyWatch>) -> Self {
        Self { body, watch }
    }
}

impl PieceStream for PlainStream {
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<OutboundBytes, BrokenBody>>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        self.watch.iter_mut().for_each(|watch| watch.feed(&bytes));
                        let piece = OutboundBytes::plain(PlainBody::new(bytes));
                        return Poll::Ready(Some(Ok(piece)));
                    }
                    Err(_) => continue,
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(BrokenBody(error.to_string())))),
                None => return Poll::Ready(None),
            }
        }
    }
}
