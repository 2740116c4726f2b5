//! Serves HTTP clients from MCP servers on pipes.
//!
//! The bridge provides the HTTP side of a server that has none: Streamable HTTP of every revision
//! at `/mcp` and `/` (and `/message`, for compatibility with an earlier tool), and the older
//! HTTP+SSE at `/sse` and `/messages`. Each session gets its own server, a process or an in-process
//! actor; clients of the sessionless revision share one. Every message is recorded before it is
//! forwarded, in either direction.

mod board;
mod book;
mod checks;
mod down;
mod ending;
mod exchange;
mod get;
mod held;
mod history;
mod old;
mod post;
mod raw;
mod refusals;
mod servers;
mod stream;
mod streams;
mod target;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use tapegate_core::side::Lane;
use tokio::task::JoinSet;

use super::listen::{Cord, Handler, Reply};
use super::{Outbound, ReplyBody, Station, headers};
use crate::child::SpawnError;
use crate::stdio::Patience;
use board::{Board, Kind};
pub use servers::{OnServerEnd, Servers};

/// How long servers that end on their own may take to deliver their last messages.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Serves HTTP clients from servers on pipes.
pub struct Bridge {
    station: Rc<Station>,
    servers: Servers,
    patience: Patience,
    sessions: RefCell<HashMap<String, Rc<Board>>>,
    shared: RefCell<Option<Rc<Board>>>,
    tasks: RefCell<JoinSet<()>>,
    closing: Cell<bool>,
}

/// A reply made before any server is contacted.
type Refused = Box<Response<ReplyBody>>;

/// Why a client gets no server.
enum NoServer {
    Spawn(SpawnError),
    /// Too many sessions are in use.
    Full,
    /// The system could not supply random bytes for a session id.
    Unnamed,
}

impl Bridge {
    /// A bridge to `servers`.
    pub fn new(station: Rc<Station>, servers: Servers, patience: Patience) -> Rc<Self> {
        Rc::new(Self {
            station,
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
        cord: Rc<Cord>,
    ) -> Response<ReplyBody> {
        if self.closing.get() || self.servers.farewell().is_some() {
            return headers::refusal(503, "tapegate is shutting down");
        }
        let request = match self.check(request) {
            Ok(request) => request,
            Err(refused) => return *refused,
        };
        let (path, method) = (request.uri().path().to_owned(), request.method().clone());
        match (path.trim_end_matches('/'), method) {
            ("" | "/mcp" | "/message", Method::POST) => post::post(&self, request, &cord).await,
            ("" | "/mcp" | "/message", Method::GET) => get::get(&self, &request, &cord),
            ("" | "/mcp" | "/message", Method::DELETE) => get::delete(&self, &request),
            ("" | "/mcp" | "/message", _) => not_allowed("GET, POST, DELETE"),
            ("/sse", Method::GET) => old::get(&self, &request, &cord),
            // A client that knows both transports tries the newer one first.
            ("/sse", _) => not_allowed("GET"),
            ("/messages", Method::POST) => old::post(&self, request, &cord).await,
            ("/messages", _) => not_allowed("POST"),
            _ => headers::refusal(404, "not found; the MCP endpoint is /mcp"),
        }
    }

    /// The session with this id, if it has not ended.
    fn session(&self, id: &str, kind: Kind) -> Option<Rc<Board>> {
        let board = self.sessions.borrow().get(id).cloned()?;
        (board.kind == kind && !board.is_ended()).then_some(board)
    }

    /// Starts a session with its own server and an unguessable id.
    fn open_session(&self, kind: Kind) -> Result<(String, Rc<Board>), NoServer> {
        self.make_room()?;
        let id = fresh_id().ok_or(NoServer::Unnamed)?;
        let lane = self.station.open_session();
        let board = self.start(lane, kind)?;
        self.sessions.borrow_mut().insert(id.clone(), Rc::clone(&board));
        Ok((id, board))
    }

    /// The server shared by all clients without a session.
    fn shared(&self) -> Result<Rc<Board>, NoServer> {
        if let Some(board) = self.shared.borrow().as_ref().filter(|board| !board.is_ended()) {
            return Ok(Rc::clone(board));
        }
        let lane = Lane::session(self.station.open_exchange().session);
        let board = self.start(lane, Kind::Shared)?;
        *self.shared.borrow_mut() = Some(Rc::clone(&board));
        Ok(board)
    }

    fn start(&self, lane: Lane, kind: Kind) -> Result<Rc<Board>, NoServer> {
        let server = self.servers.start(kind).map_err(NoServer::Spawn)?;
        let (board, task) = Board::start(&self.station, (lane, kind), server, self.patience);
        let mut tasks = self.tasks.borrow_mut();
        while tasks.try_join_next().is_some() {}
        tasks.spawn_local(task);
        Ok(board)
    }

    /// Ends the session that has been idle longest if the limit is reached. Clients often disappear
    /// without closing their session.
    fn make_room(&self) -> Result<(), NoServer> {
        let mut sessions = self.sessions.borrow_mut();
        sessions.retain(|_, board| !board.is_ended());
        if sessions.len() < self.servers.sessions_max() {
            return Ok(());
        }
        let idle =
            sessions.iter().filter_map(|(id, board)| Some((board.idle_since()?, id.clone())));
        let (_, id) = idle.min().ok_or(NoServer::Full)?;
        if let Some(board) = sessions.remove(&id) {
            board.end("a new session replaced this one", self.patience.grace);
        }
        Ok(())
    }

    /// Ends every server; clients waiting for an answer get `why`.
    async fn end_all(&self, why: &str) {
        self.closing.set(true);
        let why = self.servers.farewell().unwrap_or(why);
        let sessions: Vec<_> = self.sessions.borrow_mut().drain().map(|(_, board)| board).collect();
        for board in sessions.into_iter().chain(self.shared.take()) {
            board.end(why, self.patience.grace_on_signal);
        }
        self.ended().await;
    }

    /// Waits until every server has ended.
    async fn ended(&self) {
        // A panicked task has dropped its server, which ends it too.
        while poll_fn(|context| self.tasks.borrow_mut().poll_join_next(context)).await.is_some() {}
    }

    /// Waits until the servers have ended on their own and delivered their last messages.
    async fn over(&self) {
        self.servers.stopped().await;
        // Servers that take longer are not waited for.
        tokio::time::timeout(LAST_WORDS, self.ended()).await.ok();
    }
}

impl Handler for Bridge {
    type Piece = Outbound;

    fn handle(self: Rc<Self>, request: Request<Incoming>, cord: &Rc<Cord>) -> Reply {
        Box::pin(self.answer(request, Rc::clone(cord)))
    }

    fn refuse(&self, words: &str) -> Response<ReplyBody> {
        self.station.note_refusal(words);
        headers::refusal(403, words)
    }

    fn malformed(&self, words: &str) {
        self.station.note_refusal(words);
    }

    fn over<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(self.over())
    }

    fn shutdown<'a>(&'a self, why: &'a str) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(self.end_all(why))
    }
}

impl NoServer {
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
    (count == bytes.len()).then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
