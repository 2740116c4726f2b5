//! Bodies that are refused because of their content or headers.

use http::Response;
use tapegate_core::frame::{Body, Frame};
use tapegate_core::lines::Oversize;
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::Side;

use super::super::request_check::Rejection;
use super::super::station::Judged;
use super::super::terms::Terms;
use super::super::{ReplyBody, headers};
use super::Bridge;
use super::target::{lane_of, session_of};

/// Refuses a body because of its headers. Each request in it gets the error.
pub(super) fn refuse(
    bridge: &Bridge,
    terms: &Terms,
    frame: &Frame<'_>,
    rejection: &Rejection,
) -> Response<ReplyBody> {
    note(bridge, terms, frame, &rejection.reason);
    headers::rejected_each(rejection, frame)
}

/// Records an undelivered body, if there is a gate or the body is not a message.
pub(super) fn note(bridge: &Bridge, terms: &Terms, frame: &Frame<'_>, why: &str) {
    let is_garbage = matches!(frame.body(), Body::Garbage(_));
    if bridge.station.is_governed() || is_garbage {
        let (lane, from, bytes) = (lane_of(bridge, terms), Side::Client, frame.bytes());
        // If the tape has failed, the session ends anyway.
        bridge.station.pass(Event::Marked { lane, from, bytes, why, delivered: false }).ok();
    }
}

/// Refuses a body that is not a message. Each request that can be found in it is answered.
pub(super) fn refuse_garbage(
    bridge: &Bridge,
    terms: &Terms,
    text: &[u8],
    reason: &str,
) -> Response<ReplyBody> {
    let lane = lane_of(bridge, terms);
    let said = match bridge.station.receive(lane, Side::Client, text) {
        Ok(Judged { said, .. }) => said,
        Err(stopped) => return headers::refusal(503, &stopped.to_string()),
    };
    let answers: Vec<Permitted<'_>> = match session_of(bridge, terms) {
        Some(board) => board.say_apart(said),
        None => said.into_iter().map(|one| one.message).collect(),
    };
    match headers::one_message(answers) {
        Some(message) => headers::json(400, message),
        None => headers::error(400, b"null", -32700, reason),
    }
}

/// Records and refuses an oversized body.
pub(super) fn too_large(bridge: &Bridge, terms: &Terms, message: Oversize) -> Response<ReplyBody> {
    let bytes_max = bridge.station.message_bytes_max();
    let told = match session_of(bridge, terms) {
        Some(board) => board.refuse_from_client(message),
        None => {
            let (lane, from) = (bridge.station.open_exchange(), Side::Client);
            let passed = bridge.station.pass(Event::TooLarge { lane, from, message, bytes_max });
            passed.map(|answers| answers.into_iter().next().map(|one| one.message.into_owned()))
        }
    };
    match told {
        Ok(Some(message)) => headers::last(headers::json(413, message)),
        Ok(None) => {
            headers::last(headers::refusal(413, &format!("the limit is {bytes_max} bytes")))
        }
        Err(stopped) => headers::refusal(503, &stopped.to_string()),
    }
}
