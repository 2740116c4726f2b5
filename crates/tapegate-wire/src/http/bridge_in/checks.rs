//! The header checks of a gated listener, applied to a bridge as the proxy applies them.

use http::{Method, Request};
use hyper::body::{Body as _, Incoming};
use tapegate_core::side::Side;

use super::super::headers::{self, EarlyReply};
use super::super::request_body::drain_in_background;
use super::super::request_check::{RequestHead, RequestRejection, RequestRoute, check_head};
use super::InboundBridge;

impl InboundBridge {
    /// Returns the request if it may be answered, or the reply that refuses it. A gate in observe
    /// mode records what it would have refused.
    pub(super) fn check(
        &self,
        request: Request<Incoming>,
    ) -> Result<Request<Incoming>, EarlyReply> {
        let rejection = match check(&request) {
            Err(rejection) if self.shared_session.is_governed() => rejection,
            _ => return Ok(request),
        };
        let lane = self.shared_session.open_exchange();
        if !self.shared_session.check_ambiguous(lane, Side::Client, b"", &rejection.reason)? {
            return Ok(request);
        }
        drain_in_background(request.into_body());
        Err(Box::new(headers::last(headers::rejection_reply(&rejection, b"null"))))
    }
}

fn check(request: &Request<Incoming>) -> Result<(), RequestRejection> {
    let (method, target, headers) = (request.method(), request.uri(), request.headers());
    let has_body = !request.body().is_end_stream();
    let route = match target.path().trim_end_matches('/') {
        "" | "/mcp" | "/message" | "/sse" | "/messages" => RequestRoute::Endpoint,
        // Clients probe for metadata that a bridge does not have; that is not worth recording.
        _ if !has_body && *method != Method::POST => return Ok(()),
        _ => RequestRoute::Unknown,
    };
    check_head(&RequestHead { method, target, headers, route, has_body })
}
