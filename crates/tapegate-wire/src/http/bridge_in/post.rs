//! POST: messages from a client, and the answers to them.

use std::rc::Rc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use tapegate_core::frame::{Body, Frame, Kind as MessageKind, find_envelope, is_long_batch};
use tapegate_core::json;
use tapegate_core::lines::Oversize;
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::{Lane, Side};

use super::super::body::Collected;
use super::super::intake::{IntakeError, collect_request};
use super::super::listen::Cord;
use super::super::terms::{SESSION, Terms};
use super::super::{Outbound, ReplyBody, Stopped, headers};
use super::Bridge;
use super::board::{Board, Kind, NotSent, Sent};
use super::exchange::Exchange;
use super::refusals::{note, refuse, refuse_garbage, too_large};
use super::stream::KEEP_ALIVE;
use super::target::{Target, is_request, target};
use crate::deck::Disposition;

/// How long a streamed answer may take before the stream is opened with a priming event.
const PROMPT: Duration = Duration::from_millis(20);

/// Guards an exchange for as long as its connection is open.
pub(super) struct Watch {
    pub(super) board: Rc<Board>,
    pub(super) exchange: Rc<Exchange>,
    /// Whether the exchange opens the session, which is useless if that fails.
    pub(super) opens: bool,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.board.abandoned(&self.exchange);
        if self.opens && (self.exchange.failed.get() || !self.exchange.is_answered()) {
            self.board.end("the session was not opened", Duration::ZERO);
        }
    }
}

/// Answers a POST to the MCP endpoint.
pub(super) async fn post(
    bridge: &Bridge,
    request: Request<Incoming>,
    cord: &Rc<Cord>,
) -> Response<ReplyBody> {
    let terms = Terms::read(request.headers());
    if !terms.json && !terms.events {
        return headers::refusal(406, "Accept must allow application/json or text/event-stream");
    }
    if !headers::is_type(request.headers(), "application/json") {
        return headers::refusal(415, "the body must be application/json");
    }
    let bytes_max = bridge.station.message_bytes_max();
    let (parts, body) = request.into_parts();
    let bytes = match collect_request(body, bytes_max, bridge.station.bodies()).await {
        Ok(Collected::Whole(bytes)) => bytes,
        Ok(Collected::TooLarge(message)) => return too_large(bridge, &terms, message),
        Err(IntakeError::Unread(unread)) => return headers::unread(unread),
        Err(IntakeError::Broken(_)) => return headers::refusal(400, "the body ended early"),
    };
    let text = match headers::unpacked(&parts.headers, &bytes, bytes_max) {
        Ok(text) => text,
        Err(rejection) => return refuse(bridge, &terms, &Frame::read(&bytes), &rejection),
    };
    let frame = Frame::read(&text);
    // Headers that describe a message must match every message of a batch.
    if let Some(rejection) = find_envelope(&frame, |said| terms.check_mirrors(said)) {
        return refuse(bridge, &terms, &frame, &rejection);
    }
    if let Some(refused) = terms.check_version(frame.envelope()) {
        note(bridge, &terms, &frame, "it names an unknown protocol version");
        return refused;
    }
    if let Body::Garbage(garbage) = frame.body() {
        return refuse_garbage(bridge, &terms, &text, &garbage.reason());
    }
    match target(bridge, &terms, &frame) {
        Ok(target) => {
            target.board.hold(cord);
            pass(target, &terms, &frame, cord).await
        }
        Err(refused) => *refused,
    }
}

/// Sends a body to its server and builds the reply.
async fn pass(
    target: Target,
    terms: &Terms,
    frame: &Frame<'_>,
    cord: &Rc<Cord>,
) -> Response<ReplyBody> {
    let Target { board, lane, opened } = target;
    let requests = count_requests(frame);
    let id = frame.envelope().and_then(|said| said.id).unwrap_or(b"null");
    if requests == 0 {
        let sent = match board.kind {
            Kind::Shared => decline(&board, lane, frame),
            Kind::Session | Kind::Old => board.send(lane, frame.bytes(), None).await,
        };
        return match sent {
            // In front of an actor such a body gets an error; a process decides for itself.
            Ok(Disposition::Forward(())) if board.addressed && is_odd(frame) => {
                headers::error(400, id, -32600, "the body is not a valid JSON-RPC message")
            }
            Ok(Disposition::Refuse(Some(message))) => headers::json(200, message),
            // Cancelling a held call needs no answer; anything else without one was refused.
            Ok(Disposition::Refuse(None)) if !is_cancel(frame) => {
                headers::error(400, id, -32600, "the message was refused")
            }
            Ok(_) => accepted(),
            Err(error) => not_sent(error, id),
        };
    }
    let exchange = board.exchange(lane, terms, frame.envelope(), requests);
    if board.addressed && board.kind == Kind::Shared {
        *exchange.cord.borrow_mut() = Some(Rc::clone(cord));
    }
    let watch = Watch { board, exchange: Rc::clone(&exchange), opens: opened.is_some() };
    let mut response = match wait(watch, frame).await {
        Ok(response) => response,
        Err(error) => return not_sent(error, id),
    };
    // A server that refused `initialize` has no session.
    let opened = opened.filter(|_| !exchange.failed.get());
    if let Some(id) = opened.and_then(|id| HeaderValue::try_from(id).ok()) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// Whether it has an id, so that an answer may be expected, but is not a JSON-RPC message.
fn is_odd(frame: &Frame<'_>) -> bool {
    frame.envelope().is_some_and(|said| said.kind() == MessageKind::Other && said.id.is_some())
}

fn count_requests(frame: &Frame<'_>) -> usize {
    let mut count = 0;
    find_envelope(frame, |said| {
        count += usize::from(is_request(said));
        None::<()>
    });
    count
}

async fn wait(watch: Watch, frame: &Frame<'_>) -> Result<Response<ReplyBody>, NotSent> {
    let (board, exchange) = (Rc::clone(&watch.board), Rc::clone(&watch.exchange));
    match board.send(exchange.lane, frame.bytes(), Some(&exchange)).await? {
        Disposition::Forward(()) => {}
        // One error for the whole batch.
        Disposition::Refuse(Some(message)) if is_long_batch(frame.bytes()) => {
            return Ok(headers::json(400, message));
        }
        Disposition::Refuse(Some(message)) => exchange.answer_all(&message),
        Disposition::Refuse(None) => exchange.give_up(),
        Disposition::Hold(ticket) => board.hold_call(exchange.lane, ticket, Some(&exchange)),
    }
    if !exchange.accepts_json {
        board.stream_of(&exchange);
    }
    // The outcome of `initialize` must be known before the response head is sent.
    let by_stream = board.by_stream && exchange.knows_streams;
    let patience = if by_stream && !watch.opens { PROMPT } else { KEEP_ALIVE };
    let late = tokio::time::timeout(patience, exchange.ready()).await.is_err();
    if exchange.accepts_events && (late || by_stream) && exchange.body().is_none() {
        // A client may mistake a long silence for a broken connection.
        exchange.prime(&board.stream_of(&exchange));
    }
    exchange.ready().await;
    if let Some(body) = exchange.body() {
        return Ok(in_pieces(ReplyBody::stream(body.attach(Some(Box::new(watch))))));
    }
    Ok(match exchange.stream() {
        Some(stream) => match stream.whole() {
            Some(whole) => headers::events(ReplyBody::full(whole)),
            None => headers::events(ReplyBody::stream(stream.attach(Some(Box::new(watch))))),
        },
        None if exchange.cancelled.get() && exchange.has_nothing() => accepted(),
        None => match exchange.whole() {
            Some(message) => headers::json(status_of(&board, message.bytes()), message),
            None => accepted(),
        },
    })
}

/// The HTTP status of an answer. The sessionless revision maps some errors to statuses.
fn status_of(board: &Board, text: &[u8]) -> u16 {
    if board.kind != Kind::Shared {
        return 200;
    }
    let frame = Frame::read(text);
    let error = frame.envelope().and_then(|said| said.error);
    match error.and_then(|error| json::member(error, "code")) {
        Some(b"-32601") => 404,
        Some(b"-32020" | b"-32021" | b"-32022") => 400,
        _ => 200,
    }
}

/// Records a notification of a client that shares its server, and withholds it from the server. The
/// sessionless revision has no client notifications over HTTP: whose request is cancelled would be
/// unclear, and a server might take one for the start of a session.
fn decline(board: &Board, lane: Lane, frame: &Frame<'_>) -> Result<Sent, NotSent> {
    let judged = board.station.receive(lane, Side::Client, frame.bytes())?;
    if let Disposition::Refuse(()) = judged.disposition {
        let told = board.say_apart(judged.said).pop();
        return Ok(Disposition::Refuse(told.map(Permitted::into_owned)));
    }
    let why = "a notification to the server requires a session";
    board.mark(lane, Side::Client, frame.bytes(), why);
    Ok(Disposition::Forward(()))
}

impl Board {
    /// Refuses an oversized client message; returns the error for its sender.
    pub(super) fn refuse_from_client(
        &self,
        message: Oversize,
    ) -> Result<Option<Permitted<'static>>, Stopped> {
        let (lane, from) = (self.lane, Side::Client);
        let bytes_max = self.station.message_bytes_max();
        let mut told = None;
        for answer in self.station.pass(Event::TooLarge { lane, from, message, bytes_max })? {
            match answer.to {
                Side::Client => told = Some(answer.message.into_owned()),
                // It was an answer, so the server is told why it does not arrive.
                Side::Server => self.say(answer.message),
            }
        }
        Ok(told)
    }
}

/// A reply sent in pieces, labelled as JSON whether or not it is.
fn in_pieces(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn accepted() -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::full(Outbound::empty()));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn not_sent(error: NotSent, id: &[u8]) -> Response<ReplyBody> {
    match error {
        NotSent::Ended => headers::error(404, id, -32001, "the session has ended"),
        NotSent::Busy => headers::error(503, id, -32000, "too many requests are queued"),
        NotSent::Stopped => headers::error(503, id, -32000, "recording has stopped"),
    }
}

fn is_cancel(frame: &Frame<'_>) -> bool {
    frame.envelope().is_some_and(|said| said.is_method("notifications/cancelled"))
}
