//! Waiting for clients.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::ReplyBody;
use super::guard::Guard;
use super::headers;

/// A reply that is being made.
pub type Reply = Pin<Box<dyn Future<Output = Response<ReplyBody>>>>;

/// What answers the requests of a listener.
pub trait Handler {
    /// Answers one request. Dropping the future means that the client has gone.
    fn handle(self: Rc<Self>, request: Request<Incoming>) -> Reply;
}

/// A listener that is bound.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    guard: Guard,
}

/// Why a listener could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address makes no sense.
    #[error("`{0}` is no address to listen on; expected `:PORT`, `HOST:PORT` or `PORT`")]
    Address(String),
    /// The system refused.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
}

impl Listener {
    /// Binds `address`; without a host, on loopback.
    pub async fn bind(address: &str) -> Result<Self, ListenError> {
        let (host, port) =
            split(address).ok_or_else(|| ListenError::Address(address.to_owned()))?;
        let target = (host.trim_matches(['[', ']']), port);
        let bind_error = |source| ListenError::Bind { address: format!("{host}:{port}"), source };
        let socket = TcpListener::bind(target).await.map_err(bind_error)?;
        let bound = socket.local_addr().map_err(bind_error)?;
        Ok(Self { socket, guard: Guard::new(bound, Some(host.to_owned())) })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves clients for ever. Must run inside a `LocalSet`.
    pub async fn serve(&self, handler: Rc<impl Handler + 'static>) -> io::Error {
        loop {
            let (stream, _) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return error,
            };
            stream.set_nodelay(true).ok();
            let (handler, guard) = (Rc::clone(&handler), self.guard.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let refused = guard.check(request.headers()).err();
                let handler = Rc::clone(&handler);
                async move {
                    Ok::<_, std::convert::Infallible>(match refused {
                        Some(refusal) => headers::refusal(403, &refusal.to_string()),
                        None => handler.handle(request).await,
                    })
                }
            });
            tokio::task::spawn_local(async move {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .preserve_header_case(true)
                    .serve_connection(TokioIo::new(stream), service);
                // A client that breaks off is no fault of the recording.
                connection.await.ok();
            });
        }
    }
}

/// Whether an accept failed for the sake of one connection, or for want of something that comes back.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | WouldBlock)
}

fn split(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Some((host, port.parse().ok()?))
}
