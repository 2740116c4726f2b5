//! The places that a server names: redirects, and endpoints of legacy sessions. Clients are kept at ours.

use http::header::LOCATION;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Response};
use tapegate_core::sse::Piece;
use tokio::sync::mpsc;

use super::super::request_check::Route;
use super::super::station::Transparent;
use super::super::{Outbound, ReplyBody, redirect};
use super::{Exchange, Scope};

/// How many answers of our own may wait for a client that does not read its stream.
const INBOX_MAX: usize = 1024;

impl Exchange {
    /// Refuses a redirect of messages or of a stream to another place than the server, and learns where
    /// else at the server its endpoint is.
    pub(super) fn check_redirect(&mut self, headers: &HeaderMap) -> Option<Response<ReplyBody>> {
        if self.route != Route::Endpoint && self.asked.is_none() {
            // A login may lead anywhere.
            return None;
        }
        let targets: Vec<&HeaderValue> = headers.get_all(LOCATION).iter().collect();
        match targets[..] {
            [] => None,
            [target] if self.is_here(target) => {
                let path = target.to_str().ok().and_then(|target| self.path_at_server(target));
                self.proxy.sessions.borrow_mut().announce(path?);
                None
            }
            _ => self.rejects_reply(b"", "the server sends its client past the gate"),
        }
    }

    /// A redirect to the server's own origin would lead past the recorder.
    pub(super) fn keep_redirect_here(&self, headers: &mut HeaderMap) {
        let target = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        // A relative one is seen from the server's path, which need not be ours.
        let unlike = target.filter(|target| !target.starts_with('/') || target.contains("//"));
        let path = unlike.and_then(|target| self.path_at_server(target));
        if let Some(value) = path.and_then(|path| HeaderValue::try_from(path.as_str()).ok()) {
            headers.insert(LOCATION, value);
        }
    }

    /// Whether a redirect stays with us.
    fn is_here(&self, target: &HeaderValue) -> bool {
        let target = target.to_str().ok();
        target.is_some_and(|target| !target.contains("//") && self.path_at_server(target).is_some())
    }

    /// The path of a place at the server, or `None` for any other place.
    pub(super) fn path_at_server(&self, target: &str) -> Option<PathAndQuery> {
        redirect::resolve(&self.proxy.upstream.origin(), &self.path, target)
    }

    /// Learns where a legacy client is told to post, and keeps that place at our origin.
    pub(super) fn pass_endpoint(
        &mut self,
        piece: &Piece,
        data: &[u8],
        transparent: Option<Transparent>,
    ) -> Outbound {
        let told = String::from_utf8_lossy(data);
        let path = self.path_at_server(&told);
        // A path may hold what some readers of events take for a line end.
        let path = path.filter(|path| transparent.is_some() || path.as_str().is_ascii());
        let Some(path) = path else {
            // Whoever posts elsewhere posts past the gate.
            return match transparent.filter(|_| !self.proxy.station.is_governed()) {
                Some(transparent) => Outbound::as_received(piece, transparent),
                None => Outbound::event_without_data(piece),
            };
        };
        let lane = match (self.lane, self.scope) {
            (Some(lane), Scope::Session) => lane,
            _ => self.proxy.station.open_session(),
        };
        (self.lane, self.scope, self.answers_all) = (Some(lane), Scope::Session, true);
        let (sender, inbox) = mpsc::channel(INBOX_MAX);
        self.inbox = Some(inbox);
        self.proxy.inboxes.borrow_mut().insert(lane, sender);
        self.proxy.sessions.borrow_mut().bind_endpoint(path.clone(), lane);
        match transparent.filter(|_| told == path.as_str()) {
            Some(transparent) => Outbound::as_received(piece, transparent),
            None => Outbound::endpoint(path.as_str()),
        }
    }
}
