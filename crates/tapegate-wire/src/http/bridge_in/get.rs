//! GET and DELETE: opening a session's stream, and ending the session.

use std::rc::Rc;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;

use super::super::listen::Cord;
use super::super::terms::{LAST_EVENT_ID, Terms};
use super::super::{Outbound, ReplyBody, headers};
use super::board::{Board, Kind};
use super::history::EventId;
use super::post::Watch;
use super::{Bridge, Refused, not_allowed};

/// Opens the stream of a session, or resumes a broken one.
pub(super) fn get(
    bridge: &Bridge,
    request: &Request<Incoming>,
    cord: &Rc<Cord>,
) -> Response<ReplyBody> {
    let (board, terms) = match session(bridge, request) {
        Ok(found) => found,
        Err(refused) => return *refused,
    };
    if !terms.events {
        return headers::refusal(406, "Accept must allow text/event-stream");
    }
    board.hold(cord);
    let Some(last) = request.headers().get(LAST_EVENT_ID) else {
        if board.main.is_attended() {
            return headers::refusal(409, "the session already has a stream");
        }
        return headers::events(ReplyBody::stream(board.main.attach(None)));
    };
    let Some(last) = last.to_str().ok().and_then(EventId::parse) else {
        return headers::refusal(400, "the Last-Event-ID header names an unknown event");
    };
    let (stream, exchange) = board.resume(last);
    let watch = exchange.map(|exchange| {
        let watch: Box<dyn std::any::Any> = Box::new(Watch { board, exchange, opens: false });
        watch
    });
    headers::events(ReplyBody::stream(stream.attach(watch)))
}

/// Ends a session and its server.
pub(super) fn delete(bridge: &Bridge, request: &Request<Incoming>) -> Response<ReplyBody> {
    match session(bridge, request) {
        Ok((board, _)) => {
            board.end("the client ended the session", bridge.patience.grace);
            let mut response = Response::new(ReplyBody::full(Outbound::empty()));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Err(refused) => *refused,
    }
}

fn session(bridge: &Bridge, request: &Request<Incoming>) -> Result<(Rc<Board>, Terms), Refused> {
    let terms = Terms::read(request.headers());
    if terms.is_modern() {
        return Err(Box::new(not_allowed("POST")));
    }
    if let Some(refused) = terms.check_version(None) {
        return Err(Box::new(refused));
    }
    let Some(id) = &terms.session else {
        return Err(Box::new(headers::refusal(400, "the Mcp-Session-Id header is missing")));
    };
    let board = bridge.session(id, Kind::Session);
    let board =
        board.ok_or_else(|| headers::error(404, b"null", -32001, "the session does not exist"))?;
    Ok((board, terms))
}
