//! The reading end of a stream, held by a connection.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use super::super::super::Outbound;
use super::super::super::body::{BrokenBody, Pieces};
use super::{Line, Listening, Stream, wake};

/// How often an idle stream sends a keep-alive comment.
pub(in super::super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The reading end of a stream, held by a connection.
pub(in super::super) struct Outlet {
    stream: Rc<Stream>,
    connection: u64,
    keep_alive: Pin<Box<Sleep>>,
    /// Dropped with the connection.
    _guard: Option<Box<dyn std::any::Any>>,
}

impl Stream {
    /// Attaches a connection, replacing any other. `guard` is dropped with it.
    pub(in super::super) fn attach(
        self: &Rc<Self>,
        guard: Option<Box<dyn std::any::Any>>,
    ) -> Outlet {
        let inner = &mut *self.inner.borrow_mut();
        inner.connection += 1;
        if inner.listening == Listening::Yes {
            // The old connection got the first pieces; the rest is useless to the new one.
            inner.lose_pieces();
        }
        inner.listening = Listening::Yes;
        wake(inner);
        let keep_alive = Box::pin(tokio::time::sleep(KEEP_ALIVE));
        Outlet { stream: Rc::clone(self), connection: inner.connection, keep_alive, _guard: guard }
    }
}

impl Pieces for Outlet {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Outbound, BrokenBody>>> {
        let inner = &mut *self.stream.inner.borrow_mut();
        if inner.connection != self.connection {
            let words = "the stream was taken over or its reader was too slow".to_owned();
            return Poll::Ready(Some(Err(BrokenBody(words))));
        }
        if let Some(event) = self.stream.next(inner) {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(Ok(event)));
        }
        if inner.is_over() || inner.parting.is_some() {
            return Poll::Ready(None);
        }
        inner.waker = Some(cx.waker().clone());
        // Nothing can be inserted between two pieces.
        if self.stream.plain || inner.line == Line::Open {
            return Poll::Pending;
        }
        if self.keep_alive.as_mut().poll(cx).is_ready() {
            self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(Ok(Outbound::comment("keep-alive"))));
        }
        Poll::Pending
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let inner = &mut *self.stream.inner.borrow_mut();
        if inner.connection == self.connection {
            inner.listening = Listening::No;
            inner.parting = None;
            inner.ahead.clear();
            inner.lose_pieces();
            if self.stream.number > 0 {
                self.stream.file_away(inner);
            }
            self.stream.changed.notify_one();
        }
    }
}
