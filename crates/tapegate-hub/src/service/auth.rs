//! Authenticates requests and dispatches them to their routes.

use std::rc::Rc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tapegate_wire::http::listener::{ConnectionHandle, ReplyFuture, RequestHandler};
use tapegate_wire::http::origin_check::OriginRefusal;

use super::attempt_limiter::DecidingRequest;
use super::push_body::parameter;
use super::response::{self, ApiBody, ApiRefusal, json};
use super::route::{self, ApiRoute, RouteMatch};
use super::tasks::WaitEnd;
use super::{Hub, OPENAPI, body, link_page};
use crate::api::{GovernanceEvaluateRequest, ShutdownResponse, Snapshot};
use crate::metrics::MetricName;
use crate::token::TokenRole;

impl Hub {
    async fn handle_request(self: Rc<Self>, request: Request<Incoming>) -> Response<ApiBody> {
        let (head, body) = request.into_parts();
        let route_match = route::find(&head.method, head.uri.path());
        let deciding = DecidingRequest::of(&route_match, head.uri.path());
        // Before the body is read: a caller without a token must not cost memory.
        if let Err(refusal) = self.authorize(&route_match, &head.headers) {
            // A client that is still sending would see a broken connection instead of the answer.
            tapegate_wire::http::drain_in_background(body);
            deciding.iter().for_each(|request| self.log_attempt(request, &refusal));
            return refusal.into();
        }
        let (route, id) = match route_match {
            RouteMatch::Route(route, id) => (route, id.to_owned()),
            RouteMatch::Method(allowed) => {
                tapegate_wire::http::drain_in_background(body);
                return response::method_not_allowed(&head.method, allowed);
            }
            RouteMatch::Nothing => {
                tapegate_wire::http::drain_in_background(body);
                return ApiRefusal::not_found(&format!("there is no `{}`", head.uri.path())).into();
            }
        };
        let query = head.uri.query().unwrap_or_default();
        let trace = head.headers.get("traceparent").and_then(|value| value.to_str().ok());
        // Callers without a token must not use up the memory for the bodies of shims.
        let budget =
            if route == ApiRoute::ChannelPost { &self.channel_bodies } else { &self.bodies };
        let within = (budget, self.options.limits.body_patience);
        let done = match body::read(route, &head.headers, body, within).await {
            Ok(body) => {
                let headers = &head.headers;
                self.dispatch_route(route, &RouteRequest { id: &id, query, trace, headers, body })
                    .await
            }
            Err(refusal) => Err(refusal),
        };
        done.unwrap_or_else(|refusal| {
            deciding.iter().for_each(|request| self.log_attempt(request, &refusal));
            let labels = [refusal.code(), head.method.as_str()];
            self.metrics.borrow_mut().count(MetricName::Errors, &labels);
            match link_page::is_for_person(route, &head.headers) {
                true => link_page::refusal_page(&refusal),
                false => refusal.into(),
            }
        })
    }

    async fn dispatch_route(
        self: &Rc<Self>,
        route: ApiRoute,
        hub_request: &RouteRequest<'_>,
    ) -> Result<Response<ApiBody>, ApiRefusal> {
        let RouteRequest { id, query, trace, headers, body } = hub_request;
        match route {
            ApiRoute::Evaluate => {
                let mut request: GovernanceEvaluateRequest = parse(body)?;
                if request.traceparent.is_none() {
                    request.traceparent = trace.map(str::to_owned);
                }
                self.evaluate(&request).map(|answer| json(&answer))
            }
            ApiRoute::Task => {
                let wait = parameter(query, "wait_ms").unwrap_or("0").parse();
                let wait_ms =
                    wait.map_err(|_| ApiRefusal::bad_request("`wait_ms` must be a number"))?;
                Ok(json(&self.task(id, wait_ms).await?))
            }
            ApiRoute::Revalidate => Ok(json(&self.revalidate(id, &parse(body)?)?)),
            ApiRoute::Cancel => {
                let is_set = |name: &str| parameter(query, name) == Some("true");
                let end = match (is_set("abandoned"), is_set("timed_out")) {
                    (true, _) => WaitEnd::Abandoned,
                    (false, true) => WaitEnd::TimedOut,
                    (false, false) => WaitEnd::Withdrawn,
                };
                Ok(json(&self.cancel(id, end)?))
            }
            ApiRoute::Answer => Ok(json(&self.settle_as_user(id, &parse(body)?)?)),
            ApiRoute::Events => Ok(json(&self.events(parse(body)?)?)),
            ApiRoute::Approvals => Ok(json(&self.pending_approvals()?)),
            ApiRoute::Approval => Ok(json(&self.approval(id)?)),
            ApiRoute::Grants => Ok(json(&self.grants()?)),
            ApiRoute::RevokeGrant => Ok(json(&self.revoke_grant(id, &parse(body)?)?)),
            ApiRoute::Approve => Ok(json(&self.approve(id, parse(body)?)?)),
            ApiRoute::Deny => Ok(json(&self.settle(id, false, parse(body)?)?)),
            ApiRoute::Channels => Ok(json(&self.channel_states(id)?)),
            ApiRoute::Link => {
                let settled = self.settle_by_link(id)?;
                Ok(match link_page::is_for_person(route, headers) {
                    true => link_page::settled_page(&settled),
                    false => json(&settled),
                })
            }
            ApiRoute::LinkPage => self.link_page(id),
            ApiRoute::ChannelPost => self.settle_by_post(id, headers, body),
            ApiRoute::Metrics => Ok(self.metrics_text()),
            ApiRoute::OpenApi => {
                Ok(response::text_reply("application/json", OPENAPI.as_bytes().to_vec()))
            }
            ApiRoute::Heartbeat => Ok(json(&self.heartbeat(parse(body)?))),
            ApiRoute::Snapshot => {
                let folder = self.options.state_folder.to_string_lossy().into_owned();
                let snapshot = self.active_policy().snapshot(folder, &self.options.own_files);
                let log_id = Some(self.shipped.borrow().id().to_owned());
                let session = self.options.session.clone();
                Ok(json(&Snapshot { log_id, session, ..snapshot }))
            }
            ApiRoute::Stream => Ok(self.stream(query)),
            ApiRoute::Shutdown => {
                self.stop();
                let (active_servers, _) = self.shims.borrow_mut().count_active(self.clock.now());
                Ok(json(&ShutdownResponse { shutdown: true, active_servers }))
            }
            ApiRoute::Healthz => Ok(self.healthz(headers)),
            ApiRoute::Readyz => Ok(self.readyz()),
        }
    }

    /// Whether a request presents a token that allows its route.
    fn authorize(
        &self,
        route_match: &RouteMatch<'_>,
        headers: &HeaderMap,
    ) -> Result<(), ApiRefusal> {
        match (route_match, self.caller(headers)) {
            (RouteMatch::Route(route, _), _) if route.needs_no_token() => Ok(()),
            (_, Some(TokenRole::Approver)) => Ok(()),
            // Also for paths that do not exist, so that only token holders can tell them apart.
            (_, None) => Err(ApiRefusal::unauthorized()),
            (RouteMatch::Route(route, _), Some(TokenRole::Shim)) if route.is_for_approvers() => {
                Err(ApiRefusal::not_an_approver())
            }
            (_, Some(TokenRole::Shim)) => Ok(()),
        }
    }

    /// Whose token a request presents.
    fn caller(&self, headers: &HeaderMap) -> Option<TokenRole> {
        // A proxy in front may have checked only one of two headers, so two count as none.
        let value = single_header(headers, AUTHORIZATION)?;
        let (scheme, secret) = value.split_first_chunk::<7>()?;
        let secret = scheme.eq_ignore_ascii_case(b"bearer ").then_some(secret)?;
        self.options.tokens.caller(secret.trim_ascii())
    }
}

impl RequestHandler for Hub {
    type Piece = Bytes;

    fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        _: &Rc<ConnectionHandle>,
    ) -> ReplyFuture<Bytes> {
        Box::pin(async move {
            let _busy = BusyGuard::new(&self);
            Rc::clone(&self).handle_request(request).await
        })
    }

    fn admits(&self, request: &Request<Incoming>, refusal: &OriginRefusal) -> bool {
        link_page::is_from_link(request, refusal)
    }

    fn refuse(&self, message: &str) -> Response<ApiBody> {
        ApiRefusal::new(StatusCode::FORBIDDEN, "forbidden", message).into()
    }
}

/// The parts of a request that routes use.
struct RouteRequest<'a> {
    /// The value of `{id}` in its path.
    id: &'a str,
    query: &'a str,
    /// W3C trace context, from its header.
    trace: Option<&'a str>,
    headers: &'a HeaderMap,
    body: Bytes,
}

/// Counts a request as being answered until it is dropped.
struct BusyGuard<'a>(&'a Hub);

impl<'a> BusyGuard<'a> {
    fn new(hub: &'a Hub) -> Self {
        hub.busy.set(hub.busy.get() + 1);
        Self(hub)
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}

/// The value of a header that must occur exactly once.
pub(super) fn single_header(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(value.as_bytes())
}

/// Parses a body, or names what is wrong with it.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiRefusal> {
    serde_json::from_slice(body)
        .map_err(|error| ApiRefusal::bad_request(&format!("the body is invalid: {error}")))
}
