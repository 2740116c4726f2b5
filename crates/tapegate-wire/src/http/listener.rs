//! Accepts and serves client connections.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tracing::debug;

pub use super::connection_handle::ConnectionHandle;
use super::connection_handle::{ConnectionShutdown, ConnectionSocket};
use super::connection_rejection::ConnectionRejector;
use super::exchange_trace::ExchangeTrace;
pub use super::origin_check::AllowedNames;
use super::origin_check::{OriginCheck, OriginRefusal};
use super::{Chunk, OutboundBytes, ReplyBody};

/// The pause after a failed accept, most often caused by a lack of file descriptors.
const SHORTAGE: Duration = Duration::from_millis(50);

/// The default limit on the time to receive a request head.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

/// The default limit on simultaneous connections.
const CONNECTIONS_MAX: usize = 512;

/// A pending reply.
pub type ReplyFuture<P = OutboundBytes> = Pin<Box<dyn Future<Output = Response<ReplyBody<P>>>>>;

/// Answers the requests of a listener.
pub trait RequestHandler {
    /// What its replies consist of: [`OutboundBytes`] for a session.
    type Piece: Chunk;

    /// Answers a request that arrived on the connection of `connection_handle`. The future is dropped if the
    /// client disconnects.
    fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        client_connection: &Rc<ConnectionHandle>,
    ) -> ReplyFuture<Self::Piece>;

    /// Whether a request that the origin check refuses is handled all the same.
    fn admits(&self, request: &Request<Incoming>, refusal: &OriginRefusal) -> bool {
        let _ = (request, refusal);
        false
    }

    /// The reply to a request that the origin check refuses.
    fn refuse(&self, message: &str) -> Response<ReplyBody<Self::Piece>>;

    /// Called for bytes that are not an HTTP request, after they have been answered.
    fn malformed(&self, message: &str) {
        let _ = message;
    }

    /// Waits until the handler has ended on its own, with nothing in progress.
    fn finished<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(std::future::pending())
    }

    /// Ends all work in progress; clients waiting for an answer get `reason`.
    fn shutdown<'a>(&'a self, reason: &'a str) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        let _ = reason;
        Box::pin(std::future::ready(()))
    }
}

/// A bound listener.
#[derive(Debug)]
pub struct HttpListener {
    socket: TcpListener,
    origin_check: OriginCheck,
    /// Tells connections to end, and notices when they have.
    ending: watch::Sender<bool>,
    /// One permit per connection.
    room: Arc<Semaphore>,
    /// Answers clients beyond the connection limit; without it, they wait.
    turn_away: Option<ConnectionRejector>,
    head_patience: Duration,
}

/// Why a listener could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is not valid.
    #[error("`{0}` is not a valid listen address; expected `:PORT`, `HOST:PORT` or `PORT`")]
    Address(String),
    /// The system refused.
    #[error("cannot listen on {address}: {source}")]
    Bind { address: String, source: io::Error },
}

impl HttpListener {
    /// Binds `address`; without a host, on loopback.
    pub async fn bind(address: &str) -> Result<Self, ListenError> {
        let (host, port) =
            split(address).ok_or_else(|| ListenError::Address(address.to_owned()))?;
        let target = (host.trim_matches(['[', ']']), port);
        let bind_error = |source| ListenError::Bind { address: format!("{host}:{port}"), source };
        let socket = TcpListener::bind(target).await.map_err(bind_error)?;
        let bound = socket.local_addr().map_err(bind_error)?;
        let origin_check = OriginCheck::new(bound, Some(host.to_owned()));
        let (ending, head_patience) = (watch::Sender::new(false), HEAD_PATIENCE);
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let turn_away = Some(ConnectionRejector::default());
        Ok(Self { socket, origin_check, ending, room, turn_away, head_patience })
    }

    /// Accepts requests for these names too.
    pub fn with_allowed(self, allowed: AllowedNames) -> Self {
        Self { origin_check: self.origin_check.with_allowed(allowed), ..self }
    }

    /// Limits the number of connections, and the time each may take for a request head or be idle.
    /// Clients beyond the limit wait.
    pub fn with_limits(self, connections_max: usize, head_patience: Duration) -> Self {
        let room = Arc::new(Semaphore::new(connections_max));
        Self { room, turn_away: None, head_patience, ..self }
    }

    /// Limits the number of connections. Clients beyond the limit get an error reply.
    pub fn with_connection_limit(self, connections_max: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(connections_max)), ..self }
    }

    /// The bound address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves clients; never returns. Must run inside a `LocalSet`.
    pub async fn serve(&self, handler: Rc<impl RequestHandler + 'static>) -> Infallible {
        loop {
            let (stream, peer, room) = self.accept().await;
            debug!(%peer, "connection accepted");
            stream.set_nodelay(true).ok();
            let (handler, origin_check) = (Rc::clone(&handler), self.origin_check.clone());
            let client_connection = Rc::<ConnectionHandle>::default();
            let held = Rc::clone(&client_connection);
            let watcher = Rc::clone(&handler);
            let service = service_fn(move |request: Request<Incoming>| {
                let refused = origin_check
                    .check(request.uri(), request.headers())
                    .err()
                    .filter(|refusal| !handler.admits(&request, refusal));
                let (handler, held) = (Rc::clone(&handler), Rc::clone(&held));
                let trace = ExchangeTrace::start("client", request.method(), request.uri().path());
                async move {
                    let reply = match refused {
                        Some(refusal) => handler.refuse(&refusal.to_string()),
                        None => handler.handle(request, &held).await,
                    };
                    trace.into_iter().for_each(|trace| trace.answered(reply.status()));
                    Ok::<_, Infallible>(reply)
                }
            });
            let (mut ending, head_patience) = (self.ending.subscribe(), self.head_patience);
            tokio::task::spawn_local(async move {
                let _room = room;
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(head_patience)
                    .preserve_header_case(true)
                    .serve_connection(
                        TokioIo::new(ConnectionSocket::new(stream, &client_connection)),
                        service,
                    );
                let mut connection = pin!(connection);
                // A client that disconnects is not an error of the recording.
                tokio::select! {
                    biased;
                    // Checked first: a cut connection sends nothing more, even if data is ready.
                    cut = client_connection.shutdown_requested() => {
                        if cut == ConnectionShutdown::Abrupt {
                            debug!(%peer, "connection cut");
                            return;
                        }
                    }
                    done = connection.as_mut() => {
                        debug!(%peer, error = done.as_ref().err().map(tracing::field::display), "connection closed");
                        if let Err(error) = done && error.is_parse() {
                            watcher.malformed(&format!("malformed HTTP request: {error}"));
                        }
                        return;
                    }
                    _ = ending.wait_for(|ending| *ending) => {}
                }
                connection.as_mut().graceful_shutdown();
                connection.await.ok();
                debug!(%peer, "connection closed at shutdown");
            });
        }
    }

    /// The next connection within the limit.
    async fn accept(&self) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
        loop {
            let mut room = match &self.turn_away {
                Some(_) => None,
                // The semaphore is never closed.
                None => Arc::clone(&self.room).acquire_owned().await.ok(),
            };
            // The failure concerns one connection, or a resource that is freed when a connection
            // ends; existing connections must not be affected.
            let (stream, peer) = match self.socket.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    debug!(%error, "connection not accepted");
                    tokio::time::sleep(SHORTAGE).await;
                    continue;
                }
            };
            if let Some(turn_away) = &self.turn_away {
                room = Arc::clone(&self.room).try_acquire_owned().ok();
                if room.is_none() {
                    debug!(%peer, "connection refused, too many are open");
                    turn_away.answer(stream);
                    continue;
                }
            }
            return (stream, peer, room);
        }
    }

    /// Lets every connection finish its current reply, waiting at most `patience`.
    pub async fn drain(&self, patience: Duration) {
        self.ending.send_replace(true);
        // Connections that take longer are cut off.
        tokio::time::timeout(patience, self.ending.closed()).await.ok();
    }
}

fn split(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    // This takes an address, not a URL.
    if host.contains('/') {
        return None;
    }
    Some((host, port.parse().ok()?))
}
