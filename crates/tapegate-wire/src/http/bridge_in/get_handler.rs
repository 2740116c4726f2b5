//! GET and DELETE: opening a session's stream, and ending the session.

use std::rc::Rc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::super::headers::{self, EarlyReply};
use super::super::listener::ConnectionHandle;
use super::super::request_headers::{LAST_EVENT_ID, RequestHeaders};
use super::super::{OutboundBytes, ReplyBody};
use super::history::EventId;
use super::post_handler::ExchangeGuard;
use super::server_connection::{ConnectionKind, ServerConnection};
use super::{InboundBridge, not_allowed};

/// Opens the stream of a session, or resumes a broken one.
pub(super) fn get(
    bridge: &InboundBridge,
    request: &Request<Incoming>,
    client_connection: &Rc<ConnectionHandle>,
) -> Result<Response<ReplyBody>, EarlyReply> {
    let (connection, terms) = session(bridge, request)?;
    if !terms.events {
        return Ok(headers::refusal(406, "Accept must allow text/event-stream"));
    }
    connection.hold(client_connection);
    tracing::debug!(session = connection.lane.session, "event stream of a client opened");
    let Some(last) = request.headers().get(LAST_EVENT_ID) else {
        if connection.main.has_reader() {
            return Ok(headers::refusal(409, "the session already has a stream"));
        }
        return Ok(headers::events(ReplyBody::stream(connection.main.attach(None))));
    };
    let Some(last) = last.to_str().ok().and_then(EventId::parse) else {
        return Ok(headers::refusal(400, "the Last-Event-ID header names an unknown event"));
    };
    let (stream, exchange) = connection.resume(last);
    let watch = exchange.map(|exchange| {
        let watch: Box<dyn std::any::Any> =
            Box::new(ExchangeGuard { connection, exchange, opens: false });
        watch
    });
    Ok(headers::events(ReplyBody::stream(stream.attach(watch))))
}

/// Ends a session and its server.
pub(super) fn delete(
    bridge: &InboundBridge,
    request: &Request<Incoming>,
) -> Result<Response<ReplyBody>, EarlyReply> {
    let (connection, _) = session(bridge, request)?;
    connection.request_end("the client ended the session", bridge.patience.grace);
    let mut response = Response::new(ReplyBody::from_whole(OutboundBytes::empty()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

fn session(
    bridge: &InboundBridge,
    request: &Request<Incoming>,
) -> Result<(Rc<ServerConnection>, RequestHeaders), EarlyReply> {
    let terms = RequestHeaders::read(request.headers());
    if terms.is_modern() {
        return Err(Box::new(not_allowed("POST")));
    }
    if let Some(refused) = terms.check_version(None) {
        return Err(Box::new(refused));
    }
    let Some(id) = &terms.session else {
        return Err(Box::new(headers::refusal(400, "the Mcp-Session-Id header is missing")));
    };
    let connection = bridge.session(id, ConnectionKind::Session);
    let connection = connection
        .ok_or_else(|| headers::error(404, b"null", -32001, "the session does not exist"))?;
    Ok((connection, terms))
}
