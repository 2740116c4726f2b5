//! Request bodies: of one type, of limited size, within a time limit.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use hyper::body::{Body, Incoming};
use tapegate_wire::http::{
    BodyBudget, CollectedBody, IntakeError, collect_request, drain_in_background,
};

use super::response::ApiRefusal;
use super::route::ApiRoute;

/// The largest body: three times the largest message, to leave room for escapes.
pub(super) const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The largest body from a caller that has no token: a message of a channel, with escapes.
const POST_BYTES_MAX: usize = 256 * 1024;

/// Reads the body of a request, if the route uses one.
pub(super) async fn read(
    route: ApiRoute,
    headers: &HeaderMap,
    body: Incoming,
    (budget, patience): (&BodyBudget, Duration),
) -> Result<Bytes, ApiRefusal> {
    let empty = body.is_end_stream();
    if !route.has_body() || (empty && route.needs_no_body()) {
        drain_in_background(body);
        return Ok(Bytes::new());
    }
    let (wanted, bytes_max) = match route {
        // Authenticated by its signature, which no web page has.
        ApiRoute::ChannelPost => ("application/x-www-form-urlencoded", POST_BYTES_MAX),
        // A web page can send other types across origins without asking; not this one.
        _ => ("application/json", BODY_BYTES_MAX),
    };
    if let Err(refusal) = check_type(headers, wanted) {
        drain_in_background(body);
        return Err(refusal);
    }
    let collected = collect_request(body, bytes_max, budget);
    let collected = tokio::time::timeout(patience, collected).await;
    match collected {
        Ok(Ok(CollectedBody::Whole(bytes))) => Ok(bytes),
        Ok(Ok(CollectedBody::TooLarge(over))) => {
            let message =
                format!("the body has {} bytes; the limit is {bytes_max}", over.bytes_total);
            Err(ApiRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", &message))
        }
        Ok(Err(IntakeError::Unread(unread))) => {
            let status = StatusCode::from_u16(unread.status());
            let status = status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            Err(ApiRefusal::new(status, "busy", unread.message()))
        }
        Ok(Err(IntakeError::Broken(error))) => {
            Err(ApiRefusal::bad_request(&format!("the body ended early: {error}")))
        }
        Err(_) => {
            let message = format!("the body did not arrive within {patience:?}");
            Err(ApiRefusal::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", &message))
        }
    }
}

fn check_type(headers: &HeaderMap, wanted: &str) -> Result<(), ApiRefusal> {
    let unsupported = |message: &str| {
        ApiRefusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_type", message)
    };
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let media_type = text(CONTENT_TYPE).unwrap_or_default().split(';').next().unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case(wanted) {
        return Err(unsupported(&format!("the Content-Type must be {wanted}")));
    }
    match text(CONTENT_ENCODING) {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            Err(unsupported("the body may not be compressed"))
        }
        _ => Ok(()),
    }
}
