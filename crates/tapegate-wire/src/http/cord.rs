//! A handle by which a client's connection can be closed.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// A handle by which a connection can be closed.
#[derive(Debug, Default)]
pub struct Cord {
    cut: Cell<Option<Cut>>,
    news: Notify,
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// After the current reply.
    InOrder,
    /// At once, discarding unsent data.
    Abrupt,
}

/// A connection's socket, which is reset instead of closed if the connection was cut abruptly.
pub(super) struct Socket {
    stream: TcpStream,
    cord: Rc<Cord>,
}

impl Cord {
    /// Closes the connection.
    pub(crate) fn cut(&self, abrupt: bool) {
        self.cut.set(Some(if abrupt { Cut::Abrupt } else { Cut::InOrder }));
        self.news.notify_one();
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn cut_through(&self) -> Cut {
        loop {
            if let Some(cut) = self.cut.get() {
                return cut;
            }
            self.news.notified().await;
        }
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream, cord: &Rc<Cord>) -> Self {
        Self { stream, cord: Rc::clone(cord) }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.cord.cut.get() == Some(Cut::Abrupt) {
            // With zero linger, closing resets the connection. On error, it is closed normally.
            rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).ok();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
