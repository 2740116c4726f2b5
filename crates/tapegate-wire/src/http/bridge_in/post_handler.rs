//! POST: messages from a client, and the answers to them.

use std::rc::Rc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use tapegate_core::frame::{Frame, FrameBody, MessageKind, find_envelope, is_long_batch};
use tapegate_core::json;
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::PermittedMessage;
use tapegate_core::side::{Lane, Side};

use super::super::body::{CollectedBody, KEEP_ALIVE};
use super::super::headers::{self, EarlyReply};
use super::super::listener::ConnectionHandle;
use super::super::request_body::{IntakeError, collect_request};
use super::super::request_headers::{RequestHeaders, SESSION};
use super::super::{ReplyBody, SessionStoppedError};
use super::InboundBridge;
use super::exchange::PostExchange;
use super::post_target::{PostTarget, is_request, target};
use super::refusals::{note_refused_body, refuse, refuse_garbage, refuse_oversize};
use super::server_connection::{ConnectionKind, SendDisposition, SendError, ServerConnection};
use crate::recorded_session::Disposition;

/// How long a streamed answer may take before the stream is opened with a priming event.
const PROMPT: Duration = Duration::from_millis(20);

/// Guards an exchange for as long as its connection is open.
pub(super) struct ExchangeGuard {
    pub(super) connection: Rc<ServerConnection>,
    pub(super) exchange: Rc<PostExchange>,
    /// Whether the exchange opens the session, which is useless if that fails.
    pub(super) opens: bool,
}

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        self.connection.connection_lost(&self.exchange);
        // The client has no session id without a successful `initialize`, so it could never end
        // this one.
        if self.opens && (self.exchange.failed.get() || !self.exchange.is_answered()) {
            self.connection.request_end("the session was not opened", Duration::ZERO);
        }
    }
}

/// Answers a POST to the MCP endpoint.
pub(super) async fn post(
    bridge: &InboundBridge,
    request: Request<Incoming>,
    client_connection: &Rc<ConnectionHandle>,
) -> Result<Response<ReplyBody>, EarlyReply> {
    let terms = RequestHeaders::read(request.headers());
    if !terms.json && !terms.events {
        let reason = "Accept must allow application/json or text/event-stream";
        return Ok(headers::refusal(406, reason));
    }
    if !headers::is_type(request.headers(), "application/json") {
        return Ok(headers::refusal(415, "the body must be application/json"));
    }
    let bytes_max = bridge.shared_session.message_bytes_max();
    let (parts, body) = request.into_parts();
    let bytes = match collect_request(body, bytes_max, bridge.shared_session.bodies()).await {
        Ok(CollectedBody::Whole(bytes)) => bytes,
        Ok(CollectedBody::TooLarge(message)) => return refuse_oversize(bridge, &terms, message),
        Err(IntakeError::Unread(unread)) => return Ok(headers::unread_body_reply(unread)),
        Err(IntakeError::Broken(_)) => return Ok(headers::refusal(400, "the body ended early")),
    };
    let text = match headers::decompress_or_reject(&parts.headers, &bytes, bytes_max) {
        Ok(text) => text,
        Err(rejection) => return Ok(refuse(bridge, &terms, &Frame::read(&bytes), &rejection)),
    };
    let frame = bridge.shared_session.read(&text);
    // Headers that describe a message must match every message of a batch.
    if let Some(rejection) = find_envelope(&frame, |envelope| terms.check_mirrors(envelope)) {
        return Ok(refuse(bridge, &terms, &frame, &rejection));
    }
    if let Some(refused) = terms.check_version(frame.envelope()) {
        note_refused_body(bridge, &terms, &frame, "it names an unknown protocol version");
        return Ok(refused);
    }
    if let FrameBody::Garbage(garbage) = frame.body() {
        return refuse_garbage(bridge, &terms, &frame, &garbage.reason());
    }
    let target = target(bridge, &terms, &frame)?;
    target.connection.hold(client_connection);
    Ok(forward_message(target, &terms, &frame, client_connection).await)
}

/// Sends a body to its server and builds the reply.
async fn forward_message(
    target: PostTarget,
    terms: &RequestHeaders,
    frame: &Frame<'_>,
    client_connection: &Rc<ConnectionHandle>,
) -> Response<ReplyBody> {
    let PostTarget { connection, lane, opened } = target;
    let requests = count_requests(frame);
    let id = frame.envelope().and_then(|envelope| envelope.id).unwrap_or(b"null");
    if requests == 0 {
        let sent = match connection.kind {
            ConnectionKind::Shared => refuse_notification(&connection, lane, frame),
            ConnectionKind::Session | ConnectionKind::Old => {
                connection.send(lane, frame, None).await
            }
        };
        return match sent {
            Ok(Disposition::Forward(()))
                if connection.refuses_malformed && is_malformed_request(frame) =>
            {
                headers::error(400, id, -32600, "the body is not a valid JSON-RPC message")
            }
            Ok(Disposition::Refuse(Some(message))) => headers::json(200, message),
            // Cancelling a held call needs no answer; anything else without one was refused.
            Ok(Disposition::Refuse(None)) if !is_cancel(frame) => {
                headers::error(400, id, -32600, "the message was refused")
            }
            Ok(_) => headers::accepted(),
            Err(error) => not_sent_reply(error, id),
        };
    }
    let exchange = connection.exchange(lane, terms, frame.envelope(), requests);
    if connection.kind == ConnectionKind::Shared {
        *exchange.client_connection.borrow_mut() = Some(Rc::clone(client_connection));
    }
    let watch =
        ExchangeGuard { connection, exchange: Rc::clone(&exchange), opens: opened.is_some() };
    let mut response = match wait(watch, frame).await {
        Ok(response) => response,
        Err(error) => return not_sent_reply(error, id),
    };
    // A server that refused `initialize` has no session.
    let opened = opened.filter(|_| !exchange.failed.get());
    if let Some(id) = opened.and_then(|id| HeaderValue::try_from(id).ok()) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// Whether it has an id, so that an answer may be expected, but is not a JSON-RPC message.
fn is_malformed_request(frame: &Frame<'_>) -> bool {
    frame
        .envelope()
        .is_some_and(|envelope| envelope.kind() == MessageKind::Other && envelope.id.is_some())
}

fn count_requests(frame: &Frame<'_>) -> usize {
    let mut count = 0;
    find_envelope(frame, |envelope| {
        count += usize::from(is_request(envelope));
        None::<()>
    });
    count
}

async fn wait(watch: ExchangeGuard, frame: &Frame<'_>) -> Result<Response<ReplyBody>, SendError> {
    let (connection, exchange) = (Rc::clone(&watch.connection), Rc::clone(&watch.exchange));
    match connection.send(exchange.lane, frame, Some(&exchange)).await? {
        Disposition::Forward(()) | Disposition::Consume => {}
        // One error for the whole batch.
        Disposition::Refuse(Some(message)) if is_long_batch(frame.bytes()) => {
            return Ok(headers::json(400, message));
        }
        Disposition::Refuse(Some(message)) => exchange.answer_all(&message),
        Disposition::Refuse(None) => exchange.abandon(),
        Disposition::Hold(hold_id) => connection.hold_call(exchange.lane, hold_id, Some(&exchange)),
    }
    // Such a client waits for the head of an event stream, which need not wait for the answer.
    if !exchange.accepts_json {
        connection.stream_of(&exchange);
    }
    // The outcome of `initialize` must be known before the response head is sent.
    let by_stream = connection.by_stream && exchange.knows_streams;
    let patience = if by_stream && !watch.opens { PROMPT } else { KEEP_ALIVE };
    let late = tokio::time::timeout(patience, exchange.ready()).await.is_err();
    let has_body = exchange.stream().is_some_and(|stream| stream.is_body());
    if exchange.accepts_events && (late || by_stream) && !has_body {
        // A client may mistake a long silence for a broken connection.
        exchange.send_priming_event(&connection.stream_of(&exchange));
    }
    exchange.ready().await;
    Ok(match exchange.stream() {
        Some(body) if body.is_body() => {
            streamed_json_reply(ReplyBody::stream(body.attach(Some(Box::new(watch)))))
        }
        Some(stream) => match stream.take_if_complete() {
            Some(whole) => headers::events(ReplyBody::from_whole(whole)),
            None => headers::events(ReplyBody::stream(stream.attach(Some(Box::new(watch))))),
        },
        None if exchange.cancelled.get() && exchange.is_unanswered() => headers::accepted(),
        None => match exchange.take_all_answers() {
            Some(message) => headers::json(status_of(&connection, message.bytes()), message),
            None => headers::accepted(),
        },
    })
}

/// The HTTP status of an answer. The sessionless revision maps some errors to statuses.
fn status_of(connection: &ServerConnection, text: &[u8]) -> u16 {
    if connection.kind != ConnectionKind::Shared {
        return 200;
    }
    let frame = Frame::read(text);
    let error = frame.envelope().and_then(|envelope| envelope.error);
    match error.and_then(|error| json::member(error, "code")) {
        Some(b"-32601") => 404,
        Some(b"-32020" | b"-32021" | b"-32022") => 400,
        _ => 200,
    }
}

/// Records a notification of a client that shares its server, and withholds it from the server. The
/// sessionless revision has no client notifications over HTTP: whose request is cancelled would be
/// unclear, and a server might take one for the start of a session.
fn refuse_notification(
    connection: &ServerConnection,
    lane: Lane,
    frame: &Frame<'_>,
) -> Result<SendDisposition, SendError> {
    let judged = connection.session.receive(lane, Side::Client, frame)?;
    if let Disposition::Refuse(()) = judged.disposition {
        let to_client = connection.send_server_part(judged.outgoing).pop();
        return Ok(Disposition::Refuse(to_client.map(PermittedMessage::into_owned)));
    }
    let reason = "a notification to the server requires a session";
    connection.mark_undelivered(lane, Side::Client, frame.bytes(), reason);
    Ok(Disposition::Forward(()))
}

impl ServerConnection {
    /// Refuses an oversized client message; returns the error for its sender.
    pub(super) fn refuse_from_client(
        &self,
        message: OversizeMessage,
    ) -> Result<Option<PermittedMessage<'static>>, SessionStoppedError> {
        let refused = self.session.refuse_oversize(self.lane, Side::Client, message)?;
        // If it was an answer, the server is told why it does not arrive.
        Ok(self.send_server_part(refused).pop())
    }
}

/// A reply sent in pieces, labelled as JSON whether or not it is.
fn streamed_json_reply(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

pub(super) fn not_sent_reply(error: SendError, id: &[u8]) -> Response<ReplyBody> {
    match error {
        SendError::Ended => headers::error(404, id, -32001, "the session has ended"),
        SendError::Busy => headers::error(503, id, -32000, "too many requests are queued"),
        SendError::Stopped => headers::error(503, id, -32000, "recording has stopped"),
    }
}

fn is_cancel(frame: &Frame<'_>) -> bool {
    frame.envelope().is_some_and(|envelope| envelope.is_method("notifications/cancelled"))
}
