//! Keeps redirects and legacy endpoints that a server names at our own origin.

use http::header::LOCATION;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};
use tapegate_core::sse::SsePiece;
use tokio::sync::mpsc;

use super::super::OutboundBytes;
use super::super::headers::EarlyReply;
use super::super::request_check::RequestRoute;
use super::super::shared_session::UnenforcedProof;
use super::{ExchangeScope, ProxyExchange};

/// How many of our own messages may be queued for a client that does not read its stream.
const INBOX_MAX: usize = 1024;

impl ProxyExchange {
    /// Refuses a redirect of messages or streams away from the server, and learns alternative
    /// endpoint paths at the server.
    pub(super) fn check_redirect(&mut self, headers: &HeaderMap) -> Result<(), EarlyReply> {
        if self.route != RequestRoute::Endpoint && self.client_message.is_none() {
            // A login may redirect anywhere.
            return Ok(());
        }
        let targets: Vec<&HeaderValue> = headers.get_all(LOCATION).iter().collect();
        match targets[..] {
            [] => Ok(()),
            [target] if self.is_local_redirect(target) => {
                let path = target.to_str().ok().and_then(|target| self.path_at_server(target));
                let mut sessions = self.proxy.sessions.borrow_mut();
                path.into_iter().for_each(|path| sessions.remember_redirect(path));
                Ok(())
            }
            // Clients differ in which of several targets they follow.
            _ => self.refuse_ambiguous_reply(b"", "the server redirects its client past the gate"),
        }
    }

    /// Rewrites a redirect to the server's own origin, which would bypass the recorder.
    pub(super) fn rewrite_redirect(&self, headers: &mut HeaderMap) {
        let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        // A relative target is resolved against the server's path, which may differ from ours.
        let unlike = target.filter(|target| !target.starts_with('/') || target.contains("//"));
        let path = unlike.and_then(|target| self.path_at_server(target));
        if let Some(value) = path.and_then(|path| HeaderValue::try_from(path.as_str()).ok()) {
            headers.insert(LOCATION, value);
        }
    }

    /// Whether a redirect leads to us.
    fn is_local_redirect(&self, target: &HeaderValue) -> bool {
        let target = target.to_str().ok();
        // With `//`, some clients read a path as another host.
        target.is_some_and(|target| !target.contains("//") && self.path_at_server(target).is_some())
    }

    /// The path of a URL at the server, or `None` for any other origin.
    pub(super) fn path_at_server(&self, target: &str) -> Option<PathAndQuery> {
        self.proxy.upstream.resolve(&self.path, target)
    }

    /// Learns the endpoint a legacy client is told to post to, and keeps it at our origin.
    pub(super) fn forward_endpoint_event(
        &mut self,
        piece: &SsePiece,
        data: &[u8],
        transparent: Option<UnenforcedProof>,
    ) -> OutboundBytes {
        let endpoint_text = String::from_utf8_lossy(data);
        let path = self.path_at_server(&endpoint_text);
        // A non-ASCII path may contain what some event parsers treat as a line end.
        let path = path.filter(|path| transparent.is_some() || path.as_str().is_ascii());
        let Some(path) = path else {
            // A POST to another origin would bypass the gate.
            return match transparent.filter(|_| !self.proxy.shared_session.is_governed()) {
                Some(transparent) => OutboundBytes::as_received(piece, transparent),
                None => OutboundBytes::event_without_data(piece),
            };
        };
        // The stream may have been recorded alone so far; its client now has a session.
        let lane = match (self.lane, self.scope) {
            (Some(lane), ExchangeScope::Session) => lane,
            _ => self.proxy.shared_session.open_session(),
        };
        (self.lane, self.scope, self.answers_all) = (Some(lane), ExchangeScope::Session, true);
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        self.inbox = Some(inbox);
        self.proxy.inboxes.borrow_mut().insert(lane, sender);
        self.proxy.sessions.borrow_mut().bind_endpoint(path.clone(), lane);
        match transparent.filter(|_| endpoint_text == path.as_str()) {
            Some(transparent) => OutboundBytes::as_received(piece, transparent),
            None => OutboundBytes::endpoint(path.as_str()),
        }
    }
}
