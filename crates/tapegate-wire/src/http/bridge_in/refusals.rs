//! Bodies that are refused because of their content or headers.

use http::Response;
use tapegate_core::frame::{Frame, FrameBody};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::{PermittedMessage, RelayEvent};
use tapegate_core::side::Side;

use super::super::request_check::RequestRejection;
use super::super::request_headers::RequestHeaders;
use super::super::shared_session::GateResult;
use super::super::{ReplyBody, headers};
use super::InboundBridge;
use super::post_target::{lane_of, session_of};

/// Refuses a body because of its headers. Each request in it gets the error.
pub(super) fn refuse(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    frame: &Frame<'_>,
    rejection: &RequestRejection,
) -> Response<ReplyBody> {
    note_refused_body(bridge, terms, frame, &rejection.reason);
    headers::rejection_replies(rejection, frame)
}

/// Records an undelivered body, if there is a gate or the body is not a message.
pub(super) fn note_refused_body(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    frame: &Frame<'_>,
    cause_text: &str,
) {
    let is_garbage = matches!(frame.body(), FrameBody::Garbage(_));
    if bridge.shared_session.is_governed() || is_garbage {
        let (lane, from, bytes) = (lane_of(bridge, terms), Side::Client, frame.bytes());
        // If the tape has failed, the session ends anyway.
        bridge
            .shared_session
            .feed_and_commit(RelayEvent::Marked {
                lane,
                from,
                bytes,
                reason: cause_text,
                delivered: false,
            })
            .ok();
    }
}

/// Refuses a body that is not a message. Each request that can be found in it is answered.
pub(super) fn refuse_garbage(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    frame: &Frame<'_>,
    reason: &str,
) -> Response<ReplyBody> {
    let lane = lane_of(bridge, terms);
    let outgoing = match bridge.shared_session.receive(lane, Side::Client, frame) {
        Ok(GateResult { outgoing, .. }) => outgoing,
        Err(stopped) => return headers::refusal(503, &stopped.to_string()),
    };
    let answers: Vec<PermittedMessage<'_>> = match session_of(bridge, terms) {
        Some(connection) => connection.send_server_part(outgoing),
        None => outgoing.into_iter().map(|one| one.message).collect(),
    };
    match headers::single_or_batch(answers) {
        Some(message) => headers::json(400, message),
        None => headers::error(400, b"null", -32700, reason),
    }
}

/// Records and refuses an oversized body.
pub(super) fn refuse_oversize(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    message: OversizeMessage,
) -> Response<ReplyBody> {
    let bytes_max = bridge.shared_session.message_bytes_max();
    let to_client = match session_of(bridge, terms) {
        Some(connection) => connection.refuse_from_client(message),
        None => {
            let (lane, from) = (bridge.shared_session.open_exchange(), Side::Client);
            let passed = bridge.shared_session.feed_and_commit(RelayEvent::TooLarge {
                lane,
                from,
                message,
                bytes_max,
            });
            passed.map(|answers| answers.into_iter().next().map(|one| one.message.into_owned()))
        }
    };
    match to_client {
        Ok(Some(message)) => headers::last(headers::json(413, message)),
        Ok(None) => {
            headers::last(headers::refusal(413, &format!("the limit is {bytes_max} bytes")))
        }
        Err(stopped) => headers::refusal(503, &stopped.to_string()),
    }
}
