//! Finds the server that a POST is for.

use std::rc::Rc;

use tapegate_core::frame::{Envelope, Frame, MessageKind, find_envelope};
use tapegate_core::side::Lane;

use super::super::headers::{self, EarlyReply};
use super::super::request_headers::RequestHeaders;
use super::InboundBridge;
use super::refusals::refuse;
use super::server_connection::{ConnectionKind, ServerConnection};

/// The destination of a POST.
pub(super) struct PostTarget {
    pub(super) connection: Rc<ServerConnection>,
    pub(super) lane: Lane,
    /// The id of the session that this POST opens.
    pub(super) opened: Option<String>,
}

/// Finds the server for a message, and starts one if necessary.
pub(super) fn target(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    frame: &Frame<'_>,
) -> Result<PostTarget, EarlyReply> {
    let envelope = frame.envelope();
    let id = envelope.and_then(|envelope| envelope.id).unwrap_or(b"null");
    if let Some(session) = &terms.session {
        return match bridge.session(session, ConnectionKind::Session) {
            Some(connection) => Ok(PostTarget { lane: connection.lane, connection, opened: None }),
            None => Err(Box::new(headers::error(404, id, -32001, "the session does not exist"))),
        };
    }
    if let Some(envelope) = envelope
        .filter(|envelope| envelope.method.is_some() && terms.is_stateless_message(envelope))
    {
        return modern_target(bridge, terms, frame, envelope);
    }
    let opens = |envelope: &Envelope<'_>| is_request(envelope) && envelope.is_method("initialize");
    // In a batch too: `initialize` may come with other messages.
    if find_envelope(frame, |envelope| opens(envelope).then_some(())).is_some() {
        let (id, connection) = bridge
            .open_session(ConnectionKind::Session)
            .map_err(|error| Box::new(error.reply(id)))?;
        return Ok(PostTarget { lane: connection.lane, connection, opened: Some(id) });
    }
    let (code, message) = match terms.is_modern() {
        true => (-32600, "the body must be one request or notification"),
        false => (-32000, "the Mcp-Session-Id header is missing"),
    };
    Err(Box::new(headers::error(400, id, code, message)))
}

/// The server for a message without a session.
fn modern_target(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    frame: &Frame<'_>,
    envelope: &Envelope<'_>,
) -> Result<PostTarget, EarlyReply> {
    let id = envelope.id.unwrap_or(b"null");
    let refused = |rejection| Box::new(refuse(bridge, terms, frame, &rejection));
    if let Some(rejection) = terms.check_modern(envelope).filter(|_| is_request(envelope)) {
        return Err(refused(rejection));
    }
    if !terms.events && envelope.is_method("subscriptions/listen") {
        let message = "a subscription needs text/event-stream";
        return Err(Box::new(headers::error(406, id, -32000, message)));
    }
    let connection = bridge.shared_server().map_err(|error| Box::new(error.reply(id)))?;
    // The server's tool list says which arguments are mirrored, so its connection comes first.
    let rejection = terms.check_params(envelope, &connection.params.borrow());
    if let Some(rejection) = rejection {
        return Err(refused(rejection));
    }
    Ok(PostTarget { connection, lane: bridge.shared_session.open_exchange(), opened: None })
}

/// The live session that a request names.
pub(super) fn session_of(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
) -> Option<Rc<ServerConnection>> {
    bridge.session(terms.session.as_deref()?, ConnectionKind::Session)
}

/// The lane in which an undelivered body is recorded.
pub(super) fn lane_of(bridge: &InboundBridge, terms: &RequestHeaders) -> Lane {
    session_of(bridge, terms)
        .map_or_else(|| bridge.shared_session.open_exchange(), |connection| connection.lane)
}

pub(super) fn is_request(envelope: &Envelope<'_>) -> bool {
    envelope.kind() == MessageKind::Request
}
