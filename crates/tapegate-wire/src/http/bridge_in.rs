//! Serves HTTP clients from MCP servers that do not speak HTTP.
//!
//! The bridge provides the HTTP side of a server that has none: Streamable HTTP of every revision
//! at `/mcp` and `/` (and `/message`, for compatibility with an earlier tool), and the older
//! HTTP+SSE at `/sse` and `/messages`. Each session gets its own server, a process or an in-process
//! actor; clients of the sessionless revision share one. Every message is recorded before it is
//! forwarded, in either direction.

mod checks;
mod exchange;
mod get_handler;
mod held_calls;
mod history;
mod id_map;
mod legacy_sse;
mod post_handler;
mod post_target;
mod raw_output;
mod refusals;
mod server_connection;
mod server_output;
mod servers;
mod shutdown;
mod stream;
mod streams;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use tapegate_core::hex;
use tapegate_core::side::Lane;
use tokio::task::JoinSet;

use super::headers::EarlyReply;
use super::listener::{ConnectionHandle, ReplyFuture, RequestHandler};
use super::{OutboundBytes, ReplyBody, SharedSession, headers};
use crate::child::SpawnError;
use crate::stdio::ShutdownTimeouts;
use server_connection::{ConnectionKind, ServerConnection};
pub use servers::{OnServerEnd, ServerProvider};

/// How long servers that end on their own may take to deliver their last messages.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves HTTP clients from servers on pipes.
pub struct InboundBridge {
    shared_session: Rc<SharedSession>,
    servers: ServerProvider,
    patience: ShutdownTimeouts,
    sessions: RefCell<HashMap<String, Rc<ServerConnection>>>,
    shared: RefCell<Option<Rc<ServerConnection>>>,
    tasks: RefCell<JoinSet<()>>,
    closing: Cell<bool>,
}

/// Why a client gets no server.
enum NoServerError {
    Spawn(SpawnError),
    /// Too many sessions are in use.
    Full,
    /// The system could not supply random bytes for a session id.
    Unnamed,
}

impl InboundBridge {
    /// A bridge to `servers`.
    pub fn new(
        shared_session: Rc<SharedSession>,
        servers: ServerProvider,
        patience: ShutdownTimeouts,
    ) -> Rc<Self> {
        Rc::new(Self {
            shared_session,
            servers,
            patience,
            sessions: RefCell::default(),
            shared: RefCell::default(),
            tasks: RefCell::default(),
            closing: Cell::new(false),
        })
    }

    async fn answer(
        self: Rc<Self>,
        request: Request<Incoming>,
        client_connection: Rc<ConnectionHandle>,
    ) -> Result<Response<ReplyBody>, EarlyReply> {
        if self.closing.get() || self.servers.end_reason().is_some() {
            return Ok(headers::refusal(503, "tapegate is shutting down"));
        }
        let request = self.check(request)?;
        let (path, method) = (request.uri().path().to_owned(), request.method().clone());
        match (path.trim_end_matches('/'), method) {
            ("" | "/mcp" | "/message", Method::POST) => {
                post_handler::post(&self, request, &client_connection).await
            }
            ("" | "/mcp" | "/message", Method::GET) => {
                get_handler::get(&self, &request, &client_connection)
            }
            ("" | "/mcp" | "/message", Method::DELETE) => get_handler::delete(&self, &request),
            ("" | "/mcp" | "/message", _) => Ok(not_allowed("GET, POST, DELETE")),
            ("/sse", Method::GET) => Ok(legacy_sse::get(&self, &request, &client_connection)),
            // A client that knows both transports tries the newer one first.
            ("/sse", _) => Ok(not_allowed("GET")),
            ("/messages", Method::POST) => {
                legacy_sse::post(&self, request, &client_connection).await
            }
            ("/messages", _) => Ok(not_allowed("POST")),
            _ => Ok(headers::refusal(404, "not found; the MCP endpoint is /mcp")),
        }
    }

    /// The session with this id, if it has not ended.
    fn session(&self, id: &str, kind: ConnectionKind) -> Option<Rc<ServerConnection>> {
        let connection = self.sessions.borrow().get(id).cloned()?;
        (connection.kind == kind && !connection.is_ended()).then_some(connection)
    }

    /// Starts a session with its own server and an unguessable id.
    fn open_session(
        &self,
        kind: ConnectionKind,
    ) -> Result<(String, Rc<ServerConnection>), NoServerError> {
        self.make_room()?;
        let id = fresh_id().ok_or(NoServerError::Unnamed)?;
        let lane = self.shared_session.open_session();
        let connection = self.start(lane, kind)?;
        self.sessions.borrow_mut().insert(id.clone(), Rc::clone(&connection));
        Ok((id, connection))
    }

    /// The server shared by all clients without a session.
    fn shared_server(&self) -> Result<Rc<ServerConnection>, NoServerError> {
        if let Some(connection) =
            self.shared.borrow().as_ref().filter(|connection| !connection.is_ended())
        {
            return Ok(Rc::clone(connection));
        }
        // Sessionless clients share one session number on the tape
        // (docs/decisions/session-numbers.md).
        let lane = Lane::session(self.shared_session.open_exchange().session);
        let connection = self.start(lane, ConnectionKind::Shared)?;
        *self.shared.borrow_mut() = Some(Rc::clone(&connection));
        Ok(connection)
    }

    fn start(
        &self,
        lane: Lane,
        kind: ConnectionKind,
    ) -> Result<Rc<ServerConnection>, NoServerError> {
        let (session, patience) = (&self.shared_session, self.patience);
        let (connection, task) =
            ServerConnection::start(session, (lane, kind), &self.servers, patience)
                .map_err(NoServerError::Spawn)?;
        let mut tasks = self.tasks.borrow_mut();
        // Finished tasks are collected here, or the set would grow with every session that ever
        // ran.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task);
        Ok(connection)
    }

    /// Ends the session that has been idle longest if the limit is reached. Clients often disappear
    /// without closing their session.
    fn make_room(&self) -> Result<(), NoServerError> {
        let mut sessions = self.sessions.borrow_mut();
        sessions.retain(|_, connection| !connection.is_ended());
        if sessions.len() < self.servers.sessions_max() {
            return Ok(());
        }
        let idle = sessions
            .iter()
            .filter_map(|(id, connection)| Some((connection.idle_since()?, id.clone())));
        let (_, id) = idle.min().ok_or(NoServerError::Full)?;
        if let Some(connection) = sessions.remove(&id) {
            connection.request_end("a new session replaced this one", self.patience.grace);
        }
        Ok(())
    }

    /// Ends every server; clients waiting for an answer get `reason`.
    async fn shutdown_all(&self, reason: &str) {
        // First, so that requests which arrive during the shutdown start no further server.
        self.closing.set(true);
        let reason = self.servers.end_reason().unwrap_or(reason);
        let sessions: Vec<_> =
            self.sessions.borrow_mut().drain().map(|(_, connection)| connection).collect();
        for connection in sessions.into_iter().chain(self.shared.take()) {
            connection.request_end(reason, self.patience.grace_on_signal);
        }
        self.all_ended().await;
    }

    /// Waits until every server has ended.
    async fn all_ended(&self) {
        // A panicked task has dropped its server, which ends it too.
        while poll_fn(|context| self.tasks.borrow_mut().poll_join_next(context)).await.is_some() {}
    }

    /// Waits until the servers have ended on their own and delivered their last messages.
    async fn finished(&self) {
        self.servers.stopped().await;
        // Servers that take longer are not waited for.
        tokio::time::timeout(FINAL_WRITE_TIMEOUT, self.all_ended()).await.ok();
    }
}

impl RequestHandler for InboundBridge {
    type Piece = OutboundBytes;

    fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        client_connection: &Rc<ConnectionHandle>,
    ) -> ReplyFuture {
        let answer = self.answer(request, Rc::clone(client_connection));
        Box::pin(async { headers::reply_of(answer.await) })
    }

    fn refuse(&self, message: &str) -> Response<ReplyBody> {
        self.shared_session.note_refusal(message);
        headers::refusal(403, message)
    }

    fn malformed(&self, message: &str) {
        self.shared_session.note_refusal(message);
    }

    fn finished<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(self.finished())
    }

    fn shutdown<'a>(&'a self, reason: &'a str) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(self.shutdown_all(reason))
    }
}

impl NoServerError {
    fn reply(&self, id: &[u8]) -> Response<ReplyBody> {
        match self {
            Self::Spawn(error) => headers::error(502, id, -32000, &error.to_string()),
            Self::Full => headers::error(503, id, -32000, "too many sessions are open"),
            Self::Unnamed => headers::error(500, id, -32000, "cannot generate a random session id"),
        }
    }
}

fn not_allowed(methods: &'static str) -> Response<ReplyBody> {
    let mut response = headers::refusal(405, "method not allowed");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

/// 128 random bits, in hexadecimal.
fn fresh_id() -> Option<String> {
    let mut bytes = [0u8; 16];
    let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).ok()?;
    (count == bytes.len()).then(|| hex::encode(&bytes))
}
