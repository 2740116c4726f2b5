//! HTTP+SSE of 2024-11-05: one stream from the server, which carries the answers to all POSTs.

use std::rc::Rc;

use http::{Request, Response};
use hyper::body::Incoming;
use tapegate_core::frame::FrameBody;
use tapegate_core::side::Side;

use super::super::body::CollectedBody;
use super::super::headers::{self, EarlyReply};
use super::super::listener::ConnectionHandle;
use super::super::request_body::{IntakeError, collect_request};
use super::super::request_headers::RequestHeaders;
use super::super::{OutboundBytes, ReplyBody};
use super::InboundBridge;
use super::post_handler::not_sent_reply;
use super::server_connection::{ConnectionKind, ServerConnection};
use crate::recorded_session::Disposition;

/// Ends the session when its only stream is dropped.
struct HangupGuard(Rc<ServerConnection>, std::time::Duration);

impl Drop for HangupGuard {
    fn drop(&mut self) {
        self.0.request_end("the client closed its stream", self.1);
    }
}

/// Starts a session and sends the endpoint to post to.
pub(super) fn get(
    bridge: &InboundBridge,
    request: &Request<Incoming>,
    client_connection: &Rc<ConnectionHandle>,
) -> Response<ReplyBody> {
    // A session costs a process, so none is started for a request that cannot read events.
    if !RequestHeaders::read(request.headers()).events {
        return headers::refusal(406, "Accept must allow text/event-stream");
    }
    let (id, connection) = match bridge.open_session(ConnectionKind::Old) {
        Ok(opened) => opened,
        Err(error) => return error.reply(b"null"),
    };
    connection.hold(client_connection);
    connection.main.without_ids();
    connection.main.push_first_event(OutboundBytes::endpoint(&format!("/messages?sessionId={id}")));
    let stream = Rc::clone(&connection.main);
    let hangup = HangupGuard(connection, bridge.patience.grace);
    headers::events(ReplyBody::stream(stream.attach(Some(Box::new(hangup)))))
}

/// Takes a message; its answer is sent on the stream.
pub(super) async fn post(
    bridge: &InboundBridge,
    request: Request<Incoming>,
    client_connection: &Rc<ConnectionHandle>,
) -> Result<Response<ReplyBody>, EarlyReply> {
    let id = request.uri().query().unwrap_or_default().split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        matches!(name, "sessionId" | "session_id").then(|| value.to_owned())
    });
    let Some(id) = id else { return Ok(headers::refusal(400, "the sessionId is missing")) };
    let Some(connection) = bridge.session(&id, ConnectionKind::Old) else {
        return Ok(headers::refusal(404, "the session does not exist"));
    };
    connection.hold(client_connection);
    if !headers::is_type(request.headers(), "application/json") {
        return Ok(headers::refusal(415, "the body must be application/json"));
    }
    let (lane, from) = (connection.lane, Side::Client);
    let bytes_max = bridge.shared_session.message_bytes_max();
    let (parts, body) = request.into_parts();
    let bytes = match collect_request(body, bytes_max, bridge.shared_session.bodies()).await {
        Ok(CollectedBody::Whole(bytes)) => bytes,
        Ok(CollectedBody::TooLarge(message)) => {
            if let Some(message) = connection.refuse_from_client(message)? {
                connection.push(&connection.main, message).await;
            }
            let message_text = format!("the limit is {bytes_max} bytes");
            return Ok(headers::last(headers::refusal(413, &message_text)));
        }
        Err(IntakeError::Unread(unread)) => return Ok(headers::unread_body_reply(unread)),
        Err(IntakeError::Broken(_)) => return Ok(headers::refusal(400, "the body ended early")),
    };
    let text = match headers::decompress_or_reject(&parts.headers, &bytes, bytes_max) {
        Ok(text) => text,
        Err(rejection) => {
            connection.mark_undelivered(lane, from, &bytes, &rejection.reason);
            return Ok(headers::rejection_reply(&rejection, b"null"));
        }
    };
    let frame = bridge.shared_session.read(&text);
    if let FrameBody::Garbage(garbage) = frame.body() {
        let judged = bridge.shared_session.receive(lane, from, &frame)?;
        // Each request found in the garbage is answered on the client's stream.
        for answer in connection.send_server_part(judged.outgoing) {
            connection.push(&connection.main, answer.into_owned()).await;
        }
        return Ok(headers::error(400, b"null", -32700, &garbage.reason()));
    }
    let request_id = frame.envelope().and_then(|envelope| envelope.id).unwrap_or(b"null");
    Ok(match connection.send(lane, &frame, None).await {
        Ok(Disposition::Refuse(Some(message))) => {
            connection.push(&connection.main, message).await;
            headers::accepted()
        }
        Ok(Disposition::Hold(hold_id)) => {
            connection.hold_call(lane, hold_id, None);
            headers::accepted()
        }
        Ok(Disposition::Forward(()) | Disposition::Refuse(None) | Disposition::Consume) => {
            headers::accepted()
        }
        Err(error) => not_sent_reply(error, request_id),
    })
}
