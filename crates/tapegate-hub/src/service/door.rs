//! The door: who is let in, what they want, and who answers it.

use std::rc::Rc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tapegate_wire::http::listen::{Cord, Handler, Reply};

use super::answer::{self, ApiBody, Refusal, json};
use super::route::{self, Found, Route};
use super::stream::parameter;
use super::{Hub, OPENAPI, body};
use crate::api::{GovernanceEvaluateRequest, ShutdownResponse};

impl Hub {
    async fn answer(self: Rc<Self>, request: Request<Incoming>) -> Response<ApiBody> {
        let (head, body) = request.into_parts();
        let found = route::find(&head.method, head.uri.path());
        let open = matches!(found, Found::Route(Route::Healthz, _));
        if !open && !self.knows(&head.headers) {
            tapegate_wire::http::linger(body);
            return Refusal::unauthorized().into();
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
        let done =
            match body::read(route, &head.headers, body, self.options.limits.body_patience).await {
                Ok(body) => self.act(route, &Asked { id: &id, query, trace, body }).await,
                Err(refusal) => Err(refusal),
            };
        done.unwrap_or_else(|refusal| {
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
        let Asked { id, query, trace, body } = asked;
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
                let wait_ms = wait.map_err(|_| Refusal::bad_request("`wait_ms` is a number"))?;
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
                Ok(json(&self.governed().snapshot(folder)))
            }
            Route::Stream => Ok(self.stream(query)),
            Route::Shutdown => {
                self.stop();
                let (active_servers, _) = self.shims.borrow_mut().active(self.clock.now());
                Ok(json(&ShutdownResponse { shutdown: true, active_servers }))
            }
            Route::Healthz => Ok(self.healthz()),
            Route::Readyz => Ok(self.readyz()),
        }
    }

    /// Whether a request shows the token.
    fn knows(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (shown.next(), shown.next()) else { return false };
        let Some((scheme, secret)) = value.as_bytes().split_first_chunk::<7>() else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer ") && self.options.token.is(secret.trim_ascii())
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

/// What is asked of a route.
struct Asked<'a> {
    /// What stands for `{id}` in its path.
    id: &'a str,
    query: &'a str,
    /// W3C trace context, from its header.
    trace: Option<&'a str>,
    body: Bytes,
}

/// A request that is being answered, until it is or its caller has gone.
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

/// Reads a body, or says what is missing.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(&format!("the body does not fit: {error}")))
}
