//! The reading end of a stream, held by a connection.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep};

use super::super::super::OutboundBytes;
use super::super::super::body::{BrokenBody, KEEP_ALIVE, PieceStream};
use super::{ClientStream, LineStatus, ListenState, wake};

/// The reading end of a stream, held by a connection.
pub(in super::super) struct EventStreamReader {
    stream: Rc<ClientStream>,
    connection: u64,
    keep_alive: Pin<Box<Sleep>>,
    /// Dropped with the connection.
    _guard: Option<Box<dyn std::any::Any>>,
}

impl ClientStream {
    /// Attaches a connection, replacing any other. `guard` is dropped with it.
    pub(in super::super) fn attach(
        self: &Rc<Self>,
        guard: Option<Box<dyn std::any::Any>>,
    ) -> EventStreamReader {
        let inner = &mut *self.inner.borrow_mut();
        inner.connection += 1;
        if inner.listening == ListenState::Yes {
            // The old connection got the first pieces; the rest is useless to the new one.
            inner.drop_pieces();
        }
        inner.listening = ListenState::Yes;
        wake(inner);
        let keep_alive = Box::pin(tokio::time::sleep(KEEP_ALIVE));
        EventStreamReader {
            stream: Rc::clone(self),
            connection: inner.connection,
            keep_alive,
            _guard: guard,
        }
    }
}

impl PieceStream for EventStreamReader {
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<OutboundBytes, BrokenBody>>> {
        let inner = &mut *self.stream.inner.borrow_mut();
        if inner.connection != self.connection {
            let message = "the stream was taken over or its reader was too slow".to_owned();
            return Poll::Ready(Some(Err(BrokenBody(message))));
        }
        if let Some(event) = self.stream.next(inner) {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(Ok(event)));
        }
        if inner.is_finished() || inner.parting.is_some() {
            return Poll::Ready(None);
        }
        inner.waker = Some(cx.waker().clone());
        // Nothing can be inserted between two pieces.
        if self.stream.plain || inner.line == LineStatus::Open {
            return Poll::Pending;
        }
        if self.keep_alive.as_mut().poll(cx).is_ready() {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(Ok(OutboundBytes::comment("keep-alive"))));
        }
        Poll::Pending
    }
}

impl Drop for EventStreamReader {
    fn drop(&mut self) {
        let inner = &mut *self.stream.inner.borrow_mut();
        // A replaced connection must not take the stream from its successor.
        if inner.connection == self.connection {
            inner.listening = ListenState::No;
            inner.parting = None;
            inner.ahead.clear();
            inner.drop_pieces();
            if self.stream.number > 0 {
                self.stream.move_to_history(inner);
            }
            self.stream.changed.notify_one();
        }
    }
}
