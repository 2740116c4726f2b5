//! A transparent HTTP proxy.
//!
//! Status, headers and bodies pass unchanged, for any number of clients, sessions and streams.
//! Bodies that carry messages are inspected: a request is recorded before it is sent to the server,
//! a reply or event before it is sent to the client. Three things are changed because they would
//! bypass the recorder or could not be read: an absolute `endpoint` or redirect to the server's own
//! origin becomes a path, and compression is not requested. With a gate, messages it refuses,
//! rewrites or holds are changed too, and ambiguous requests and replies are refused
//! (`request_check`).

mod event_rewrite;
mod exchange;
mod gated_request;
mod held_request;
mod location_rewrite;
mod own_requests;
mod plain_body;
mod redaction;
mod reply;
mod request_sender;
mod sessions;
mod stream;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, Uri};
use hyper::body::Incoming;
use tapegate_core::frame::{Envelope, MessageKind};
use tapegate_core::side::{Lane, Side};
use tokio::sync::{Notify, mpsc, watch};

use super::body::CollectedBody;
use super::headers::{self, EarlyReply};
use super::listener::{ConnectionHandle, ReplyFuture, RequestHandler};
use super::mirrored_params::MirroredParams;
use super::pending_message::PendingMessage;
use super::request_body::{IntakeError, collect_request};
use super::request_check::RequestRoute;
use super::request_headers::SESSION;
use super::shared_session::SharedSession;
use super::upstream::HttpUpstream;
use super::{OutboundBytes, ReplyBody};
use crate::recorded_session::Disposition;
pub(in crate::http) use plain_body::PlainBody;
use redaction::MaskedIds;
use sessions::ProxySessions;

/// A transparent proxy in front of one server.
pub struct Proxy {
    shared_session: Rc<SharedSession>,
    upstream: HttpUpstream,
    /// Where the server has moved its endpoint to, if clients could not follow it there.
    moved: RefCell<Option<PathAndQuery>>,
    sessions: RefCell<ProxySessions>,
    /// Which arguments are mirrored in headers, learned from tool lists.
    params: RefCell<MirroredParams>,
    /// Why the recording ends, once it does.
    ending: watch::Sender<Option<String>>,
    /// Senders to the clients of legacy sessions, whose answers go to one stream.
    inboxes: RefCell<HashMap<Lane, mpsc::Sender<OutboundBytes>>>,
    /// The original ids of events whose ids were redacted.
    event_ids: RefCell<MaskedIds>,
}

/// One request, and its state while its reply is pending.
struct ProxyExchange {
    proxy: Rc<Proxy>,
    /// The lane it is recorded in; `None` until something of it has been recorded.
    lane: Option<Lane>,
    scope: ExchangeScope,
    /// The path at the server; a legacy client's endpoint is derived from it.
    path: PathAndQuery,
    /// What that path leads to, as far as the gate knows.
    route: RequestRoute,
    /// Whether the server has announced that path, including the query, to its clients.
    announced_path: bool,
    /// Whether it is a GET, whose reply clients read as events whatever its content type.
    is_get: bool,
    /// The request's headers, for messages of our own to the server in this session.
    headers: HeaderMap,
    /// What is kept of the request, if it was a message.
    client_message: Option<PendingMessage>,
    deletes: Option<Vec<u8>>,
    /// Whether the reply is the one stream that carries all answers of a legacy session.
    answers_all: bool,
    /// Our own messages for that stream.
    inbox: Option<mpsc::Receiver<OutboundBytes>>,
    /// Whether it is a POST of a legacy session, which is answered on that stream.
    older: bool,
    /// Whether a server message on the stream was withheld, so that an answer may be missing.
    has_dropped: bool,
    /// Notified once the request has been handed to the server connection.
    begun: Rc<Notify>,
}

/// What an exchange's lane covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeScope {
    /// A known session.
    Session,
    /// A session that this request opens, if the server assigns it an id.
    Opening,
    /// This exchange only.
    Alone,
}

impl Proxy {
    /// A proxy in front of `upstream`.
    pub fn new(shared_session: Rc<SharedSession>, upstream: HttpUpstream) -> Rc<Self> {
        Rc::new(Self {
            shared_session,
            upstream,
            moved: RefCell::default(),
            params: RefCell::default(),
            sessions: RefCell::default(),
            ending: watch::Sender::new(None),
            inboxes: RefCell::default(),
            event_ids: RefCell::default(),
        })
    }

    async fn exchange(
        self: Rc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<ReplyBody>, EarlyReply> {
        let (mut parts, body) = request.into_parts();
        let path = self.path_at_server(&parts.uri);
        // The server knows only its own ids, so this comes before anything is sent or compared.
        self.restore_event_id(&mut parts.headers);
        let (bytes_max, bodies) =
            (self.shared_session.message_bytes_max(), self.shared_session.bodies());
        let collected = match collect_request(body, bytes_max, bodies).await {
            Ok(collected) => collected,
            Err(IntakeError::Unread(unread)) => return Ok(headers::unread_body_reply(unread)),
            Err(IntakeError::Broken(error)) => {
                return Ok(headers::refusal(400, &format!("the request ended early: {error}")));
            }
        };
        // After the body: a request that breaks off while it is read leaves no trace in the
        // sessions.
        let mut exchange = self.open(&parts, path);
        // The form is checked before the policy is asked (docs/decisions/form-before-policy.md).
        exchange.check(&parts, &collected)?;
        let body = match collected {
            CollectedBody::Whole(body) => match exchange.judge_request(&mut parts, body).await? {
                Disposition::Forward(body) => body,
                Disposition::Refuse(reply) => return Ok(reply),
                Disposition::Consume => return Ok(headers::accepted()),
                Disposition::Hold(hold_id) => return Ok(exchange.hold(parts, hold_id).await),
            },
            CollectedBody::TooLarge(message) => exchange.refuse(message)?,
        };
        Ok(exchange.send_to_completion(parts, body).await)
    }

    /// Builds the exchange from the request head, before the body is inspected.
    fn open(self: &Rc<Self>, parts: &Parts, path: PathAndQuery) -> ProxyExchange {
        let session = parts.headers.get(SESSION).map(|id| id.as_bytes().to_vec());
        let mut sessions = self.sessions.borrow_mut();
        let older = sessions.lane_for_endpoint(&path);
        let announced = older.is_some() || sessions.is_announced(&path);
        let route = RequestRoute::of(parts.uri.path(), self.upstream.path().path(), announced);
        let lane = match &session {
            Some(id) => Some(sessions.lane(id, || self.shared_session.open_session())),
            None => older,
        };
        let session_less = session.is_none();
        let scope = if lane.is_some() { ExchangeScope::Session } else { ExchangeScope::Alone };
        let deletes = session.filter(|_| parts.method == Method::DELETE);
        ProxyExchange {
            proxy: Rc::clone(self),
            lane,
            scope,
            path,
            route,
            announced_path: announced,
            is_get: parts.method == Method::GET,
            headers: parts.headers.clone(),
            client_message: None,
            deletes,
            answers_all: false,
            inbox: None,
            older: session_less && older.is_some(),
            has_dropped: false,
            begun: Rc::default(),
        }
    }

    /// Maps a request path to the server's: `/` and `/mcp` mean the server's own path. With a gate,
    /// the query of the server's URL is always kept; a client can only add to it.
    fn path_at_server(&self, uri: &Uri) -> PathAndQuery {
        let own = self.upstream.path();
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        let is_own = matches!(path.path(), "/" | "/mcp")
            || (self.shared_session.is_governed()
                && path.path() == own.path()
                && !self.sessions.borrow().is_known_endpoint(&path));
        // A client that repeats the server's own query has not chosen one.
        match path.query().filter(|query| !query.is_empty() && Some(*query) != own.query()) {
            _ if !is_own => path,
            None => self.moved.borrow().clone().unwrap_or_else(|| own.clone()),
            Some(query) => {
                let query =
                    own.query().map_or(query.to_owned(), |first| format!("{first}&{query}"));
                format!("{}?{query}", own.path()).parse().unwrap_or_else(|_| own.clone())
            }
        }
    }

    /// Forgets all pending requests in a lane that has ended.
    fn forget_lane(&self, lane: Lane) {
        tracing::debug!(session = lane.session, "session ended");
        for asker in [Side::Client, Side::Server] {
            // If the tape has failed, the recording ends anyway.
            self.shared_session.forget_requests((lane, asker), None).ok();
        }
    }
}

impl RequestHandler for Proxy {
    type Piece = OutboundBytes;

    fn handle(self: Rc<Self>, request: Request<Incoming>, _: &Rc<ConnectionHandle>) -> ReplyFuture {
        Box::pin(async { headers::reply_of(self.exchange(request).await) })
    }

    fn refuse(&self, text: &str) -> Response<ReplyBody> {
        self.shared_session.note_refusal(text);
        headers::refusal(403, text)
    }

    fn malformed(&self, text: &str) {
        self.shared_session.note_refusal(text);
    }

    fn shutdown<'a>(&'a self, reason: &'a str) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        self.ending.send_replace(Some(reason.to_owned()));
        Box::pin(std::future::ready(()))
    }
}

/// Whether this is an MCP message no matter where it is sent.
fn is_message(envelope: &Envelope<'_>) -> bool {
    envelope.version_ok && envelope.kind() != MessageKind::Other
}

/// Waits until the recording ends, and returns the reason.
async fn recording_ended(mut ending: watch::Receiver<Option<String>>) -> String {
    let reason = ending.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
    match reason {
        Some(reason) => reason,
        None => std::future::pending().await,
    }
}
