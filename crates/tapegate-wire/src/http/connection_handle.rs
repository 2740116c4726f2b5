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
pub struct ConnectionHandle {
    cut: Cell<Option<ConnectionShutdown>>,
    notify: Notify,
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionShutdown {
    /// After the current reply.
    InOrder,
    /// At once, discarding unsent data.
    Abrupt,
}

/// A connection's socket, which is reset instead of closed if the connection was cut abruptly.
pub(super) struct ConnectionSocket {
    stream: TcpStream,
    client_connection: Rc<ConnectionHandle>,
}

impl ConnectionHandle {
    /// Closes the connection.
    pub(crate) fn shutdown(&self, abrupt: bool) {
        self.cut.set(Some(if abrupt {
            ConnectionShutdown::Abrupt
        } else {
            ConnectionShutdown::InOrder
        }));
        self.notify.notify_one();
    }

    /// Waits until the connection is to be closed.
    pub(super) async fn shutdown_requested(&self) -> ConnectionShutdown {
        loop {
            if let Some(cut) = self.cut.get() {
                return cut;
            }
            self.notify.notified().await;
        }
    }
}

impl ConnectionSocket {
    pub(super) fn new(stream: TcpStream, client_connection: &Rc<ConnectionHandle>) -> Self {
        Self { stream, client_connection: Rc::clone(client_connection) }
    }
}

impl Drop for ConnectionSocket {
    fn drop(&mut self) {
        if self.client_connection.cut.get() == Some(ConnectionShutdown::Abrupt) {
            // With zero linger, closing resets the connection. On error, it is closed normally.
            rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).ok();
        }
    }
}

impl AsyncRead for ConnectionSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ConnectionSocket {
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
