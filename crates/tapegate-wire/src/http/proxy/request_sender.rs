//! Sends permitted requests to the server.

use std::rc::Rc;
use std::time::Duration;

use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::super::headers::EarlyReply;
use super::super::request_check::{RequestRoute, without_values};
use super::super::upstream::Credentials;
use super::super::{OutboundBytes, ReplyBody, headers, redirect};
use super::{ProxyExchange, recording_ended};

/// How long a request continues after its client has left, counted from when a connection has
/// accepted it: long enough for its bytes to be sent.
const GRACE: Duration = Duration::from_secs(1);

impl ProxyExchange {
    /// Sends a permitted request and passes on the reply. A message recorded as sent is sent even
    /// if its client leaves meanwhile; the server notices the disconnect a little later.
    pub(super) async fn send_to_completion(
        self,
        parts: Parts,
        body: OutboundBytes,
    ) -> Response<ReplyBody> {
        // Nothing was recorded as sent, so the request may end with its client.
        if self.client_message.is_none() {
            return headers::reply_of(self.send(parts, body).await);
        }
        // Dropped with this future when the client leaves.
        let (_stays, left) = oneshot::channel::<()>();
        let begun = Rc::clone(&self.begun);
        let sending = tokio::task::spawn_local(async move {
            let abandoned = async {
                // If the request has not left yet, it is sent first: the tape says so.
                left.await.ok();
                begun.notified().await;
                tokio::time::sleep(GRACE).await;
            };
            tokio::select! {
                response = self.send(parts, body) => headers::reply_of(response),
                () = abandoned => headers::refusal(499, "the client has left"),
            }
        });
        let broken = |_| headers::refusal(500, "the request could not be finished");
        sending.await.unwrap_or_else(broken)
    }

    /// Sends a permitted request and passes on the reply.
    async fn send(
        mut self,
        parts: Parts,
        body: OutboundBytes,
    ) -> Result<Response<ReplyBody>, EarlyReply> {
        let seen = self.log_entry_for(&parts);
        let mut response = self.start_request(parts.clone(), body.clone()).await;
        for _ in 0..redirect::REDIRECTS_MAX {
            match &response {
                Ok(redirect) if self.redirects_to_known_path(redirect) => {
                    response = self.start_request(parts.clone(), body.clone()).await;
                }
                _ => break,
            }
        }
        if let Some(target) = seen {
            let end = match &response {
                Ok(response) => format!("was answered with {}", response.status()),
                Err(reason) => format!("was not answered: {reason}"),
            };
            let lane = self.lane.unwrap_or_else(|| self.proxy.shared_session.open_exchange());
            self.proxy.shared_session.note_plain_exchange(lane, &format!("{target} {end}"))?;
        }
        match response {
            // After a switch, bytes would pass that are not HTTP and cannot be judged.
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Ok(self.unreachable_reply("the server wants to switch to another protocol"))
            }
            Ok(response) => self.reply(response).await,
            Err(reason) => Ok(self.unreachable_reply(&reason)),
        }
    }

    async fn start_request(
        &self,
        parts: Parts,
        body: OutboundBytes,
    ) -> Result<Response<Incoming>, String> {
        let proxy = Rc::clone(&self.proxy);
        // The configured credentials are meant for the endpoint, not for a login server.
        let credentials = match self.route {
            RequestRoute::Login(_) | RequestRoute::Metadata => Credentials::LeftOut,
            RequestRoute::Endpoint | RequestRoute::Unknown => Credentials::Added,
        };
        let sending = async {
            let awaited = {
                // The messages of a session must reach the server in order: otherwise a call could
                // run before the stream is open that its server requests arrive on.
                let request_lock = proxy.sessions.borrow_mut().request_lock(self.lane);
                let _turn = request_lock.lock().await;
                let request = Request::from_parts(parts, body);
                proxy.upstream.begin_with(self.path.clone(), request, credentials).await?
            };
            // Only now: the connection has accepted the request, so its bytes will be sent.
            self.begun.notify_one();
            awaited.await
        };
        tokio::select! {
            response = sending => response.map_err(|error| error.to_string()),
            reason = recording_ended(proxy.ending.subscribe()) => Err(reason),
        }
    }

    /// Whether the server redirects its endpoint to a path that we map back to the one used, such
    /// as from `/mcp/` to `/mcp`: clients would loop. The request is then sent there directly.
    fn redirects_to_known_path(&mut self, response: &Response<Incoming>) -> bool {
        if !redirect::keeps_request(response.status()) || self.route != RequestRoute::Endpoint {
            return false;
        }
        let Some(path) = self.redirect_target(response.headers()) else { return false };
        let comes_back = self.proxy.path_at_server(&Uri::from(path.clone())) != path;
        if comes_back {
            // Only a move of the configured endpoint is remembered for other clients.
            if self.path == *self.proxy.upstream.path() {
                *self.proxy.moved.borrow_mut() = Some(path.clone());
            }
            self.path = path;
        }
        comes_back
    }

    /// The target of a redirect, if it is the only one and at the server.
    fn redirect_target(&self, headers: &HeaderMap) -> Option<http::uri::PathAndQuery> {
        let mut targets = headers.get_all(LOCATION).iter();
        let target = targets.next().filter(|_| targets.next().is_none())?;
        self.path_at_server(target.to_str().ok()?)
    }

    /// The log text for a request without a message, or with a query from the client: method and
    /// target without values that may be secret. Streams and metadata are read-only and not logged.
    fn log_entry_for(&self, parts: &Parts) -> Option<String> {
        let is_read = [Method::GET, Method::HEAD].contains(&parts.method);
        let worth = match self.route {
            RequestRoute::Login(_) => true,
            RequestRoute::Endpoint if self.announced_path => false,
            RequestRoute::Endpoint => {
                (self.client_message.is_none() && !is_read) || parts.uri.query().is_some()
            }
            RequestRoute::Metadata | RequestRoute::Unknown => false,
        };
        let worth = worth && self.proxy.shared_session.is_governed();
        worth.then(|| {
            format!("{} {}", parts.method, without_values(parts.uri.path(), parts.uri.query()))
        })
    }
}
