//! Finds the server that a POST is for.

use std::rc::Rc;

use tapegate_core::frame::{Envelope, Frame, Kind as MessageKind, find_envelope};
use tapegate_core::side::Lane;

use super::super::headers;
use super::super::terms::Terms;
use super::board::{Board, Kind};
use super::refusals::refuse;
use super::{Bridge, Refused};

/// The destination of a POST.
pub(super) struct Target {
    pub(super) board: Rc<Board>,
    pub(super) lane: Lane,
    /// The id of the session that this POST opens.
    pub(super) opened: Option<String>,
}

/// Finds the server for a message, and starts one if necessary.
pub(super) fn target(bridge: &Bridge, terms: &Terms, frame: &Frame<'_>) -> Result<Target, Refused> {
    let said = frame.envelope();
    let id = said.and_then(|said| said.id).unwrap_or(b"null");
    if let Some(session) = &terms.session {
        return match bridge.session(session, Kind::Session) {
            Some(board) => Ok(Target { lane: board.lane, board, opened: None }),
            None => Err(Box::new(headers::error(404, id, -32001, "the session does not exist"))),
        };
    }
    if let Some(said) = said.filter(|said| said.method.is_some() && terms.makes_modern(said)) {
        return modern_target(bridge, terms, frame, said);
    }
    let opens = |said: &Envelope<'_>| is_request(said) && said.is_method("initialize");
    if find_envelope(frame, |said| opens(said).then_some(())).is_some() {
        let (id, board) =
            bridge.open_session(Kind::Session).map_err(|error| Box::new(error.reply(id)))?;
        return Ok(Target { lane: board.lane, board, opened: Some(id) });
    }
    let (code, words) = match terms.is_modern() {
        true => (-32600, "the body must be one request or notification"),
        false => (-32000, "the Mcp-Session-Id header is missing"),
    };
    Err(Box::new(headers::error(400, id, code, words)))
}

/// The server for a message without a session.
fn modern_target(
    bridge: &Bridge,
    terms: &Terms,
    frame: &Frame<'_>,
    said: &Envelope<'_>,
) -> Result<Target, Refused> {
    let id = said.id.unwrap_or(b"null");
    let refused = |rejection| Box::new(refuse(bridge, terms, frame, &rejection));
    if let Some(rejection) = terms.check_modern(said).filter(|_| is_request(said)) {
        return Err(refused(rejection));
    }
    if !terms.events && said.is_method("subscriptions/listen") {
        let words = "a subscription needs text/event-stream";
        return Err(Box::new(headers::error(406, id, -32000, words)));
    }
    let board = bridge.shared().map_err(|error| Box::new(error.reply(id)))?;
    let rejection = terms.check_params(said, &board.params.borrow());
    if let Some(rejection) = rejection {
        return Err(refused(rejection));
    }
    Ok(Target { board, lane: bridge.station.open_exchange(), opened: None })
}

/// The live session that a request names.
pub(super) fn session_of(bridge: &Bridge, terms: &Terms) -> Option<Rc<Board>> {
    bridge.session(terms.session.as_deref()?, Kind::Session)
}

/// The lane in which an undelivered body is recorded.
pub(super) fn lane_of(bridge: &Bridge, terms: &Terms) -> Lane {
    session_of(bridge, terms).map_or_else(|| bridge.station.open_exchange(), |board| board.lane)
}

pub(super) fn is_request(said: &Envelope<'_>) -> bool {
    said.kind() == MessageKind::Request
}
