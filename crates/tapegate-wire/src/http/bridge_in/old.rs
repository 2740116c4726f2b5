//! HTTP+SSE of 2024-11-05: one stream from the server, which carries the answers to all POSTs.

use std::rc::Rc;

use http::{Request, Response};
use hyper::body::Incoming;
use tapegate_core::frame::{Body, Frame};
use tapegate_core::side::Side;

use super::super::body::Collected;
use super::super::intake::{IntakeError, collect_request};
use super::super::listen::Cord;
use super::super::terms::Terms;
use super::super::{Outbound, ReplyBody, Stopped, headers};
use super::Bridge;
use super::board::{Board, Kind};
use super::post::{accepted, not_sent};
use crate::deck::Disposition;

/// Ends the session when its only stream is dropped.
struct Hangup(Rc<Board>, std::time::Duration);

impl Drop for Hangup {
    fn drop(&mut self) {
        self.0.end("the client closed its stream", self.1);
    }
}

/// Starts a session and sends the endpoint to post to.
pub(super) fn get(
    bridge: &Bridge,
    request: &Request<Incoming>,
    cord: &Rc<Cord>,
) -> Response<ReplyBody> {
    // A session costs a process, so none is started for a request that cannot read events.
    if !Terms::read(request.headers()).events {
        return headers::refusal(406, "Accept must allow text/event-stream");
    }
    let (id, board) = match bridge.open_session(Kind::Old) {
        Ok(opened) => opened,
        Err(error) => return error.reply(b"null"),
    };
    board.hold(cord);
    board.main.without_ids();
    board.main.begin_with(Outbound::endpoint(&format!("/messages?sessionId={id}")));
    let stream = Rc::clone(&board.main);
    let hangup = Hangup(board, bridge.patience.grace);
    headers::events(ReplyBody::stream(stream.attach(Some(Box::new(hangup)))))
}

/// Takes a message; its answer is sent on the stream.
pub(super) async fn post(
    bridge: &Bridge,
    request: Request<Incoming>,
    cord: &Rc<Cord>,
) -> Response<ReplyBody> {
    let id = request.uri().query().unwrap_or_default().split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        matches!(name, "sessionId" | "session_id").then(|| value.to_owned())
    });
    let Some(id) = id else { return headers::refusal(400, "the sessionId is missing") };
    let Some(board) = bridge.session(&id, Kind::Old) else {
        return headers::refusal(404, "the session does not exist");
    };
    board.hold(cord);
    if !headers::is_type(request.headers(), "application/json") {
        return headers::refusal(415, "the body must be application/json");
    }
    let (lane, from) = (board.lane, Side::Client);
    let bytes_max = bridge.station.message_bytes_max();
    let (parts, body) = request.into_parts();
    let bytes = match collect_request(body, bytes_max, bridge.station.bodies()).await {
        Ok(Collected::Whole(bytes)) => bytes,
        Ok(Collected::TooLarge(message)) => {
            let Ok(told) = board.refuse_from_client(message) else {
                return headers::refusal(503, &Stopped.to_string());
            };
            if let Some(message) = told {
                board.push(&board.main, message).await;
            }
            let words = format!("the limit is {bytes_max} bytes");
            return headers::last(headers::refusal(413, &words));
        }
        Err(IntakeError::Unread(unread)) => return headers::unread(unread),
        Err(IntakeError::Broken(_)) => return headers::refusal(400, "the body ended early"),
    };
    let text = match headers::unpacked(&parts.headers, &bytes, bytes_max) {
        Ok(text) => text,
        Err(rejection) => {
            board.mark(lane, from, &bytes, &rejection.reason);
            return headers::rejected(&rejection, b"null");
        }
    };
    let frame = Frame::read(&text);
    if let Body::Garbage(garbage) = frame.body() {
        let Ok(judged) = bridge.station.receive(lane, from, &text) else {
            return headers::refusal(503, &Stopped.to_string());
        };
        // Each request found in the garbage is answered on the client's stream.
        for answer in board.say_apart(judged.said) {
            board.push(&board.main, answer.into_owned()).await;
        }
        return headers::error(400, b"null", -32700, &garbage.reason());
    }
    let asked = frame.envelope().and_then(|said| said.id).unwrap_or(b"null");
    match board.send(lane, &text, None).await {
        Ok(Disposition::Refuse(Some(message))) => {
            board.push(&board.main, message).await;
            accepted()
        }
        Ok(Disposition::Hold(ticket)) => {
            board.hold_call(lane, ticket, None);
            accepted()
        }
        Ok(Disposition::Forward(()) | Disposition::Refuse(None)) => accepted(),
        Err(error) => not_sent(error, asked),
    }
}
