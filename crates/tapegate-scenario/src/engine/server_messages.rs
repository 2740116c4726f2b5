//! Messages that the server sends on its own: notifications, and requests to the client.

use tapegate_core::frame::{notification_text, request_text};
use tapegate_core::json;

use super::EngineNote;
use super::engine_turn::EngineTurn;
use super::lifecycle::log_level;
use super::request::EngineRequest;
use super::stateless;
use super::subscriptions::ListChange;
use crate::template::JsonTemplate;

impl EngineTurn<'_, '_> {
    /// Fills a template with the values of a request.
    pub(super) fn fill(&self, request: &EngineRequest<'_>, form: &JsonTemplate) -> Vec<u8> {
        let mut out = Vec::new();
        form.write(&self.context(request), &mut out);
        out
    }

    /// Whether the client wants log messages of this level.
    pub(super) fn wants_log_level(&self, request: &EngineRequest<'_>, level: &str) -> bool {
        let level = log_level(level).unwrap_or(usize::MAX);
        if request.modern {
            let meta = json::member(request.params, "_meta");
            let least = meta.and_then(|meta| json::member(meta, stateless::LOG_LEVEL));
            let least = least.and_then(json::string);
            return least
                .is_some_and(|least| log_level(&least).is_some_and(|least| level >= least));
        }
        // A sessionless client receives log messages only as part of a request.
        if request.id.is_empty()
            && self.engine_session.is_modern
            && self.engine_session.version.is_none()
        {
            return false;
        }
        self.engine_session.level.is_none_or(|least| level >= least)
    }

    /// Sends a request to the client; returns its id.
    pub(super) fn send_client_request(
        &mut self,
        request: &EngineRequest<'_>,
        method: &str,
        id: Option<&str>,
        params: Option<&[u8]>,
    ) -> Box<[u8]> {
        self.engine_session.client_request_count += 1;
        let id =
            id.map_or_else(|| self.engine_session.client_request_count.to_string(), str::to_owned);
        let line = request_text(id.as_bytes(), method, params);
        self.note(EngineNote::Asked { id: id.as_bytes(), method });
        self.send_notification_line(request, &line);
        id.into_bytes().into()
    }

    /// Sends a notification to the client and to matching subscriptions.
    pub(super) fn notify(
        &mut self,
        request: &EngineRequest<'_>,
        method: &str,
        params: Option<&[u8]>,
    ) {
        if let Some(change) = ListChange::of(method, params) {
            self.notify_listeners(&change, method, params);
            // Sessionless clients get changes only by their subscriptions.
            if self.engine_session.is_modern && self.engine_session.version.is_none() {
                return;
            }
        }
        self.send_notification_line(request, &notification_text(method, params));
    }

    fn send_notification_line(&mut self, request: &EngineRequest<'_>, line: &[u8]) {
        match request.id {
            // An empty id stands for actions that belong to no request.
            b"" => self.engine_session.delivery.send_unrelated(&[line], self.act),
            id => self.engine_session.delivery.send_related(id, &[line], self.act),
        }
    }
}
