//! Subscriptions of sessionless clients to change notifications.

use tapegate_core::frame::notification_text;
use tapegate_core::json::{self, JsonObject};

use super::engine_turn::{CODE_INTERNAL, CODE_PARAMS, EngineTurn};
use super::request::EngineRequest;
use super::stateless;
use crate::template::{elements, text_of};

/// How many subscriptions a client may have open at once.
const LISTENS_MAX: usize = 1024;
/// How many resources one subscription may name.
const URIS_MAX: usize = 1024;
/// How many bytes all subscriptions of a client may take.
const LISTENS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// One open subscription.
pub(super) struct ChangeSubscription {
    pub(super) id: Box<[u8]>,
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

/// A change that clients can subscribe to.
pub(super) enum ListChange {
    Tools,
    Prompts,
    Resources,
    Resource(String),
}

impl ListChange {
    /// The change that a notification announces, if it announces one.
    pub(super) fn of(method: &str, params: Option<&[u8]>) -> Option<Self> {
        match method {
            "notifications/tools/list_changed" => Some(Self::Tools),
            "notifications/prompts/list_changed" => Some(Self::Prompts),
            "notifications/resources/list_changed" => Some(Self::Resources),
            "notifications/resources/updated" => {
                let uri = params.and_then(|params| json::member(params, "uri"));
                Some(Self::Resource(uri.map(text_of).unwrap_or_default().into_owned()))
            }
            _ => None,
        }
    }
}

impl ChangeSubscription {
    fn read(id: &[u8], wanted: &[u8]) -> Self {
        let wants = |name: &str| json::member(wanted, name) == Some(b"true");
        Self {
            id: id.into(),
            tools: wants("toolsListChanged"),
            prompts: wants("promptsListChanged"),
            resources: wants("resourcesListChanged"),
            uris: uris_in(wanted),
        }
    }

    fn bytes(&self) -> usize {
        self.id.len() + self.uris.iter().map(String::len).sum::<usize>() + size_of::<Self>()
    }

    fn wants(&self, change: &ListChange) -> bool {
        match change {
            ListChange::Tools => self.tools,
            ListChange::Prompts => self.prompts,
            ListChange::Resources => self.resources,
            ListChange::Resource(uri) => self.uris.contains(uri),
        }
    }

    /// The filter that was accepted, as the client is told.
    fn accepted_filter(&self) -> Vec<u8> {
        let flags = [
            (self.tools, "toolsListChanged"),
            (self.prompts, "promptsListChanged"),
            (self.resources, "resourcesListChanged"),
        ];
        let wanted = flags.into_iter().filter(|flag| flag.0);
        let filter = wanted.fold(JsonObject::new(), |filter, (_, name)| filter.flag(name, true));
        let uris = || json::array(self.uris.iter().map(|uri| json::quoted(uri)));
        filter.raw_opt("resourceSubscriptions", (!self.uris.is_empty()).then(uris)).finish()
    }
}

/// The resources that a subscription request names.
pub(super) fn uris(params: &[u8]) -> Vec<String> {
    json::member(params, "notifications").map_or_else(Vec::new, uris_in)
}

/// The resources that a filter names.
fn uris_in(wanted: &[u8]) -> Vec<String> {
    let uris = json::member(wanted, "resourceSubscriptions").and_then(elements);
    let uris = uris.unwrap_or_default().into_iter().take(URIS_MAX);
    uris.map(|uri| text_of(uri).into_owned()).collect()
}

impl EngineTurn<'_, '_> {
    /// Opens a subscription: the request stays open, and notifications refer to it.
    pub(super) fn listen(&mut self, request: &EngineRequest<'_>) {
        let wanted = json::member(request.params, "notifications");
        let Some(wanted) = wanted.filter(|wanted| wanted.starts_with(b"{")) else {
            return self.error(
                request,
                CODE_PARAMS,
                "`notifications` is missing or not an object",
                None,
            );
        };
        let listen = ChangeSubscription::read(request.id, wanted);
        let taken = self
            .engine_session
            .listens
            .iter()
            .chain([&listen])
            .map(ChangeSubscription::bytes)
            .sum::<usize>();
        if self.engine_session.listens.len() >= LISTENS_MAX || taken > LISTENS_BYTES_MAX {
            return self.error(request, CODE_INTERNAL, "too many subscriptions are open", None);
        }
        let honoured = listen.accepted_filter();
        let params = [b"{\"notifications\":", &honoured[..], b"}"].concat();
        // Acknowledged before anything else is sent on the subscription.
        self.notify_listener(request.id, "notifications/subscriptions/acknowledged", Some(&params));
        if honoured == b"{}" {
            // No notification would ever follow, so the subscription ends at once.
            let meta = stateless::with_meta(b"{}", stateless::SUBSCRIPTION, request.id);
            return self.result(request, &meta);
        }
        self.engine_session.listens.push(listen);
        self.leave_unanswered(request);
    }

    /// Sends a change notification on every subscription that covers it.
    pub(super) fn notify_listeners(
        &mut self,
        change: &ListChange,
        method: &str,
        params: Option<&[u8]>,
    ) {
        // Taken out while sending, which needs all of `self`.
        let listens = std::mem::take(&mut self.engine_session.listens);
        for listen in listens.iter().filter(|listen| listen.wants(change)) {
            self.notify_listener(&listen.id, method, params);
        }
        self.engine_session.listens = listens;
    }

    fn notify_listener(&mut self, id: &[u8], method: &str, params: Option<&[u8]>) {
        let params = stateless::with_meta(params.unwrap_or(b"{}"), stateless::SUBSCRIPTION, id);
        let line = notification_text(method, Some(&params));
        self.engine_session.delivery.send_related(id, &[&line], self.act);
    }
}
