//! Waiting for clients.

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

pub use super::cord::Cord;
use super::cord::{Cut, Socket};
pub use super::guard::Allowed;
use super::guard::Guard;
use super::turn_away::TurnAway;
use super::{Chunk, Outbound, ReplyBody};

/// How long nobody is accepted after it went wrong, most often because descriptors have run out.
const SHORTAGE: Duration = Duration::from_millis(50);

/// How long the head of a request may take, unless something else is said.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);

/// How many connections there are at once, unless something else is said.
const CONNECTIONS_MAX: usize = 512;

/// A reply that is being made.
pub type Reply<P = Outbound> = Pin<Box<dyn Future<Output = Response<ReplyBody<P>>>>>;

/// What answers the requests of a listener.
pub trait Handler {
    /// What its replies are made of: [`Outbound`] for a session.
    type Piece: Chunk;

    /// Answers one request, which came by the connection that `cord` belongs to. Dropping the future
    /// means that the client has gone.
    fn handle(self: Rc<Self>, request: Request<Incoming>, cord: &Rc<Cord>) -> Reply<Self::Piece>;

    /// The reply to a request that the guard does not let in.
    fn refuse(&self, words: &str) -> Response<ReplyBody<Self::Piece>>;

    /// Bytes came that are not an HTTP request. They have been answered already.
    fn malformed(&self, words: &str) {
        let _ = words;
    }

    /// Waits until it has come to an end of its own accord, with nothing under way.
    fn over<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(std::future::pending())
    }

    /// Ends what is under way; whoever waits for an answer is told `why`.
    fn shutdown<'a>(&'a self, why: &'a str) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        let _ = why;
        Box::pin(std::future::ready(()))
    }
}

/// A listener that is bound.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    guard: Guard,
    /// Tells connections to end, and is told when they have.
    ending: watch::Sender<bool>,
    /// Room for connections.
    room: Arc<Semaphore>,
    /// What tells those who find no room so; without it they wait.
    turn_away: Option<TurnAway>,
    head_patience: Duration,
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
        let guard = Guard::new(bound, Some(host.to_owned()));
        let (ending, head_patience) = (watch::Sender::new(false), HEAD_PATIENCE);
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let turn_away = Some(TurnAway::default());
        Ok(Self { socket, guard, ending, room, turn_away, head_patience })
    }

    /// The same for clients that use these names too.
    pub fn allowing(self, allowed: Allowed) -> Self {
        Self { guard: self.guard.allowing(allowed), ..self }
    }

    /// The same with room for so many connections at once, each of which may take so long for the head
    /// of a request, or be idle. Who finds no room waits.
    pub fn limited(self, connections_max: usize, head_patience: Duration) -> Self {
        let room = Arc::new(Semaphore::new(connections_max));
        Self { room, turn_away: None, head_patience, ..self }
    }

    /// The same with room for so many connections at once. Who finds no room is told so.
    pub fn bounded(self, connections_max: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(connections_max)), ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves clients for ever. Must run inside a `LocalSet`.
    pub async fn serve(&self, handler: Rc<impl Handler + 'static>) -> Infallible {
        loop {
            let (stream, room) = self.accept().await;
            stream.set_nodelay(true).ok();
            let (handler, guard) = (Rc::clone(&handler), self.guard.clone());
            let cord = Rc::<Cord>::default();
            let held = Rc::clone(&cord);
            let watcher = Rc::clone(&handler);
            let service = service_fn(move |request: Request<Incoming>| {
                let refused = guard.check(request.uri(), request.headers()).err();
                let (handler, held) = (Rc::clone(&handler), Rc::clone(&held));
                async move {
                    Ok::<_, Infallible>(match refused {
                        Some(refusal) => handler.refuse(&refusal.to_string()),
                        None => handler.handle(request, &held).await,
                    })
                }
            });
            let (mut ending, head_patience) = (self.ending.subscribe(), self.head_patience);
            tokio::task::spawn_local(async move {
                let _room = room;
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(head_patience)
                    .preserve_header_case(true)
                    .serve_connection(TokioIo::new(Socket::new(stream, &cord)), service);
                let mut connection = pin!(connection);
                // A client that breaks off is no fault of the recording.
                tokio::select! {
                    biased;
                    // A connection that is broken says nothing more, whatever there is to say.
                    cut = cord.cut_through() => {
                        if cut == Cut::Abrupt {
                            return;
                        }
                    }
                    done = connection.as_mut() => {
                        if let Err(error) = done && error.is_parse() {
                            watcher.malformed(&format!("malformed HTTP request: {error}"));
                        }
                        return;
                    }
                    _ = ending.wait_for(|ending| *ending) => {}
                }
                connection.as_mut().graceful_shutdown();
                connection.await.ok();
            });
        }
    }

    /// The next connection that there is room for.
    async fn accept(&self) -> (TcpStream, Option<OwnedSemaphorePermit>) {
        loop {
            let mut room = match &self.turn_away {
                Some(_) => None,
                // It is never closed.
                None => Arc::clone(&self.room).acquire_owned().await.ok(),
            };
            // What fails here is one connection, or the want of something that comes back when a
            // connection ends; those who are served already must not suffer for it.
            let Ok((stream, _)) = self.socket.accept().await else {
                tokio::time::sleep(SHORTAGE).await;
                continue;
            };
            if let Some(turn_away) = &self.turn_away {
                room = Arc::clone(&self.room).try_acquire_owned().ok();
                if room.is_none() {
                    turn_away.answer(stream);
                    continue;
                }
            }
            return (stream, room);
        }
    }

    /// Lets every connection end with the reply it is at, but waits no longer than `patience`.
    pub async fn drain(&self, patience: Duration) {
        self.ending.send_replace(true);
        // Those that take longer are cut off, which is all that is left to do.
        tokio::time::timeout(patience, self.ending.closed()).await.ok();
    }
}

fn split(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    // A URL is what clients are told, and no host.
    if host.contains('/') {
        return None;
    }
    Some((host, port.parse().ok()?))
}
