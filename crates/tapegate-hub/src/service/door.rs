//! Authenticates requests and dispatches them to their routes.

use std::rc::Rc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tapegate_wire::http::listen::{Cord, Handler, Reply};

use super::answer::{self, ApiBody, Refusal, json};
use super::attempts::DecidingRequest;
use super::route::{self, Found, Route};
use super::stream::parameter;
use super::{Hub, OPENAPI, body};
use crate::api::{GovernanceEvaluateRequest, ShutdownResponse, Snapshot};
use crate::token::Caller;

impl Hub {
    async fn answer(self: Rc<Self>, request: Request<Incoming>) -> Response<ApiBody> {
        let (head, body) = request.into_parts();
        let found = route::find(&head.method, head.uri.path());
        let deciding = DecidingRequest::of(&found, head.uri.path());
        if let Err(refusal) = self.admit(&found, &head.headers) {
            tapegate_wire::http::linger(body);
            deciding.iter().for_each(|request| self.log_attempt(request, &refusal));
            return refusal.into();
        }
        let (route, id) = match found {
            Found::Route(route, id) => (route, id.to_owned()),
            Found::Method(allowed) => {
                tapegate_wire::http::linger(body);
                return answer::not_allowed(&head.method, allowed);
            }
            Found::Nothing => {
                tapegate_wire::http::linger(body);
                return Refusal::not_found(&format!("there is no `{}`", head.uri.path())).into();
            }
        };
        let query = head.uri.query().unwrap_or_default();
        let trace = head.headers.get("traceparent").and_then(|value| value.to_str().ok());
        let within = (&self.bodies, self.options.limits.body_patience);
        let done = match body::read(route, &head.headers, body, within).await {
            Ok(body) => {
                let headers = &head.headers;
                self.act(route, &Asked { id: &id, query, trace, headers, body }).await
            }
            Err(refusal) => Err(refusal),
        };
        done.unwrap_or_else(|refusal| {
            deciding.iter().for_each(|request| self.log_attempt(request, &refusal));
            let labels = [refusal.code(), head.method.as_str()];
            self.metrics.borrow_mut().count("thoughtgate_errors_total", &labels);
            refusal.into()
        })
    }

    async fn act(
        self: &Rc<Self>,
        route: Route,
        asked: &Asked<'_>,
    ) -> Result<Response<ApiBody>, Refusal> {
        let Asked { id, query, trace, headers, body } = asked;
        match route {
            Route::Evaluate => {
                let mut request: GovernanceEvaluateRequest = parse(body)?;
                if request.traceparent.is_none() {
                    request.traceparent = trace.map(str::to_owned);
                }
                self.evaluate(&request).map(|answer| json(&answer))
            }
            Route::Task => {
                let wait = parameter(query, "wait_ms").unwrap_or("0").parse();
                let wait_ms =
                    wait.map_err(|_| Refusal::bad_request("`wait_ms` must be a number"))?;
                Ok(json(&self.task(id, wait_ms).await?))
            }
            Route::Revalidate => Ok(json(&self.revalidate(id, &parse(body)?)?)),
            Route::Cancel => {
                let abandoned = parameter(query, "abandoned") == Some("true");
                Ok(json(&self.cancel(id, abandoned)?))
            }
            Route::Events => Ok(json(&self.events(parse(body)?)?)),
            Route::Approvals => Ok(json(&self.pending_approvals()?)),
            Route::Approve => Ok(json(&self.settle(id, true, parse(body)?)?)),
            Route::Deny => Ok(json(&self.settle(id, false, parse(body)?)?)),
            Route::Metrics => Ok(self.metrics_text()),
            Route::OpenApi => {
                Ok(answer::text_reply("application/json", OPENAPI.as_bytes().to_vec()))
            }
            Route::Heartbeat => Ok(json(&self.heartbeat(parse(body)?))),
            Route::Snapshot => {
                let folder = self.options.state_folder.to_string_lossy().into_owned();
                let snapshot = self.governed().snapshot(folder, &self.options.own_files);
                let log_id = Some(self.shipped.borrow().id().to_owned());
                Ok(json(&Snapshot { log_id, ..snapshot }))
            }
            Route::Stream => Ok(self.stream(query)),
            Route::Shutdown => {
                self.stop();
                let (active_servers, _) = self.shims.borrow_mut().active(self.clock.now());
                Ok(json(&ShutdownResponse { shutdown: true, active_servers }))
            }
            Route::Healthz => Ok(self.healthz(headers)),
            Route::Readyz => Ok(self.readyz()),
        }
    }

    /// Whether a request presents a token that allows its route.
    fn admit(&self, found: &Found<'_>, headers: &HeaderMap) -> Result<(), Refusal> {
        match (found, self.caller(headers)) {
            (Found::Route(Route::Healthz, _), _) | (_, Some(Caller::Approver)) => Ok(()),
            (_, None) => Err(Refusal::unauthorized()),
            (Found::Route(route, _), Some(Caller::Shim)) if route.is_for_approvers() => {
                Err(Refusal::not_an_approver())
            }
            (_, Some(Caller::Shim)) => Ok(()),
        }
    }

    /// Whose token a request presents.
    fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        let value = single(headers, AUTHORIZATION)?;
        let (scheme, secret) = value.split_first_chunk::<7>()?;
        let secret = scheme.eq_ignore_ascii_case(b"bearer ").then_some(secret)?;
        self.options.tokens.caller(secret.trim_ascii())
    }
}

impl Handler for Hub {
    type Piece = Bytes;

    fn handle(self: Rc<Self>, request: Request<Incoming>, _: &Rc<Cord>) -> Reply<Bytes> {
        Box::pin(async move {
            let _busy = Busy::new(&self);
            Rc::clone(&self).answer(request).await
        })
    }

    fn refuse(&self, words: &str) -> Response<ApiBody> {
        Refusal::new(StatusCode::FORBIDDEN, "forbidden", words).into()
    }
}

/// The parts of a request that routes use.
struct Asked<'a> {
    /// The value of `{id}` in its path.
    id: &'a str,
    query: &'a str,
    /// W3C trace context, from its header.
    trace: Option<&'a str>,
    headers: &'a HeaderMap,
    body: Bytes,
}

/// Counts a request as being answered until it is dropped.
struct Busy<'a>(&'a Hub);

impl<'a> Busy<'a> {
    fn new(hub: &'a Hub) -> Self {
        hub.busy.set(hub.busy.get() + 1);
        Self(hub)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}

/// The value of a header that must occur exactly once.
pub(super) fn single(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(value.as_bytes())
}

/// Parses a body, or names what is wrong with it.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(&format!("the body is invalid: {error}")))
}
