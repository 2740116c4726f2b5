//! Bodies that are refused because of their content or headers.

use http::Response;
use tapegate_core::frame::{Frame, FrameBody};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::PermittedMessage;
use tapegate_core::side::Side;

use super::super::ReplyBody;
use super::super::headers::{self, EarlyReply};
use super::super::request_check::RequestRejection;
use super::super::request_headers::RequestHeaders;
use super::super::shared_session::GateResult;
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
        let from = (lane_of(bridge, terms), Side::Client);
        // If the tape has failed, the session ends anyway.
        bridge.shared_session.mark(from, (frame.bytes(), false), cause_text).ok();
    }
}

/// Refuses a body that is not a message. Each request that can be found in it is answered.
pub(super) fn refuse_garbage(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    frame: &Frame<'_>,
    reason: &str,
) -> Result<Response<ReplyBody>, EarlyReply> {
    let lane = lane_of(bridge, terms);
    let GateResult { outgoing, .. } = bridge.shared_session.receive(lane, Side::Client, frame)?;
    let answers: Vec<PermittedMessage<'_>> = match session_of(bridge, terms) {
        Some(connection) => connection.send_server_part(outgoing),
        None => outgoing.into_iter().map(|one| one.message).collect(),
    };
    Ok(match headers::single_or_batch(answers) {
        Some(message) => headers::json(400, message),
        None => headers::error(400, b"null", -32700, reason),
    })
}

/// Records and refuses an oversized body.
pub(super) fn refuse_oversize(
    bridge: &InboundBridge,
    terms: &RequestHeaders,
    message: OversizeMessage,
) -> Result<Response<ReplyBody>, EarlyReply> {
    let bytes_max = bridge.shared_session.message_bytes_max();
    let to_client = match session_of(bridge, terms) {
        Some(connection) => connection.refuse_from_client(message)?,
        None => {
            let lane = bridge.shared_session.open_exchange();
            let answers = bridge.shared_session.refuse_oversize(lane, Side::Client, message)?;
            answers.into_iter().next().map(|one| one.message)
        }
    };
    Ok(headers::last(match to_client {
        Some(message) => headers::json(413, message),
        None => headers::refusal(413, &format!("the limit is {bytes_max} bytes")),
    }))
}
