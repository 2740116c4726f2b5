//! Handling requests from the client.

use std::borrow::Cow;
use std::rc::Rc;

use tapegate_core::frame::Envelope;
use tapegate_core::json;

use super::engine_turn::{
    CODE_INTERNAL, CODE_INVALID, CODE_NO_METHOD, CODE_PARAMS, EngineTurn, is_id,
};
use super::phase_progress::PendingAdvance;
use super::subscriptions;
use crate::model::{
    Behavior, EffectTrigger, EventKind, ItemKind, LogLevel, ScenarioItem, UnknownMethods,
};
use crate::template::{NamedValue, TemplateContext};

/// A request from the client, and everything its answer may depend on.
#[derive(Clone, Copy)]
pub(super) struct EngineRequest<'a> {
    pub(super) id: &'a [u8],
    pub(super) method: &'a str,
    pub(super) params: &'a [u8],
    /// Whether it uses the sessionless revision.
    pub(super) modern: bool,
    pub(super) token: Option<&'a [u8]>,
    pub(super) batch: Option<u32>,
    /// The number under which delivery of the answer is reported; 0 if not needed.
    pub(super) delivery_id: u64,
    /// The phase in which it was received.
    pub(super) phase: usize,
    pub(super) item: Option<&'a Rc<ScenarioItem>>,
    /// The name by which the client called the item.
    pub(super) called: Option<&'a str>,
    /// The template variables of the URI.
    pub(super) uri: &'a [NamedValue<String>],
    pub(super) call_count: u64,
    pub(super) replies: &'a [NamedValue<Vec<u8>>],
    pub(super) behavior: Option<&'a Rc<Behavior>>,
}

impl<'a> EngineTurn<'a, '_> {
    /// Handles a request from the client.
    pub(super) fn request(&mut self, text: &[u8], envelope: &Envelope<'_>, batch: Option<u32>) {
        let id = envelope.id.unwrap_or(b"null");
        if !is_id(id) {
            // Over HTTP the answer is routed by its id, so even an invalid id is echoed.
            return self.refuse(id, CODE_INVALID, "an id must be a string or a number", batch);
        }
        let method = envelope.method.map(|method| method.decode()).unwrap_or_default();
        let modern = envelope.protocol_version.is_some() && self.script.is_modern();
        if modern && let Err((code, message, data)) = self.check_protocol(envelope) {
            return self.refuse_with(id, code, &message, Some(&data), batch);
        }
        // An answer that ends the phase is on its way. Until it is out, neither state may answer;
        // only a `ping` is the same in both.
        if self.progress.leaving.is_some() && (modern || method != "ping") {
            if !self.engine_session.hold(id, text, batch, self.at.mono_ns) {
                self.refuse(id, CODE_INTERNAL, "too many requests wait for an answer", batch);
            }
            return;
        }
        let request = EngineRequest {
            id,
            method: &method,
            params: envelope.params.unwrap_or(b"{}"),
            modern,
            token: envelope.progress_token.filter(|token| is_id(token)),
            batch,
            behavior: self.scene().behavior.as_ref(),
            ..self.placeholder_request()
        };
        self.handle_request(request, envelope);
    }

    /// Finds the item that the request is about, counts the request and answers it.
    fn handle_request(&mut self, given: EngineRequest<'_>, envelope: &Envelope<'_>) {
        // Before counting: a retry continues an operation that was counted already.
        if given.modern && self.resume(&given) {
            return;
        }
        let event = EventKind::of_method(given.method.as_bytes());
        let name = match event {
            Some(EventKind::ToolsCall | EventKind::PromptsGet) => envelope.name,
            Some(
                EventKind::ResourcesRead
                | EventKind::ResourcesSubscribe
                | EventKind::ResourcesUnsubscribe,
            ) => envelope.uri,
            _ => None,
        };
        let name: Option<Cow<'_, str>> = name.map(|name| name.decode());
        let state = self.scene();
        let mut variables = Vec::new();
        let mut request = given;
        request.item = match (event, name.as_deref()) {
            (Some(EventKind::ToolsCall), Some(name)) => state.listing(ItemKind::Tool).get(name),
            (Some(EventKind::PromptsGet), Some(name)) => state.listing(ItemKind::Prompt).get(name),
            (Some(_), Some(uri)) => state.resource(uri).map(|(item, found)| {
                variables = found;
                item
            }),
            _ => None,
        };
        request.uri = &variables;
        request.called = name.as_deref();
        // The behavior of an item overrides that of its phase.
        if let Some(behavior) = request.item.and_then(|item| item.behavior.as_ref()) {
            request.behavior = Some(behavior);
        }
        // Before the answer, which may use the count and may end the phase.
        self.count(&mut request, event);
        let acts = request.behavior.is_some_and(|behavior| !behavior.side_effects.is_empty());
        if acts {
            self.start_request_effects(&request, false);
        }
        self.dispatch(&request, event);
        if !acts {
            return;
        }
        if let Some(trigger) = effect_trigger(&request, event) {
            self.start_effects(&request, trigger);
        }
        self.start_request_effects(&request, true);
    }

    /// Counts the request, and notes whether it ends the phase.
    fn count(&mut self, request: &mut EngineRequest<'_>, event: Option<EventKind>) {
        if request.method != "ping" {
            // A `ping` does not start the timer of the first phase.
            self.progress.entered_ns.get_or_insert(self.at.mono_ns);
        }
        // A sessionless client has no handshake, so its first request counts as one.
        // `server/discover` only probes.
        let first =
            request.modern && !self.engine_session.is_modern && request.method != "server/discover";
        let mut events = Vec::new();
        if first {
            self.engine_session.is_modern = true;
            self.progress.count(EventKind::Initialize, None, true);
            events.push((EventKind::Initialize, None));
        }
        if let Some(event) = event {
            let known = request.item.is_some();
            request.call_count = self.progress.count(event, request.called, known);
            events.push((event, request.called));
        }
        let heard = match request.modern && request.method == "subscriptions/listen" {
            true => subscriptions::uris(request.params),
            false => Vec::new(),
        };
        for uri in &heard {
            let known = self.scene().resource(uri).is_some();
            self.progress.count(EventKind::ResourcesSubscribe, Some(uri), known);
            events.push((EventKind::ResourcesSubscribe, Some(uri)));
        }
        let fired = events.into_iter().find(|(kind, key)| self.ends_phase(*kind, *key, request));
        let fires = fired.is_some();
        // Only an answer whose delivery matters has a ticket; most answers need no bookkeeping.
        if fires || first {
            *self.last_id += 1;
            request.delivery_id = *self.last_id;
        }
        if first {
            self.engine_session.starting = Some(request.delivery_id);
        }
        if let Some((kind, _)) = fired {
            let reason = kind.name();
            self.progress.leaving = Some(PendingAdvance {
                session: self.session,
                delivery_id: request.delivery_id,
                reason,
            });
        }
    }

    fn dispatch(&mut self, request: &EngineRequest<'_>, event: Option<EventKind>) {
        let script = self.script;
        // The scenario's own responses come first, so that it can misbehave in any method.
        if let Some((index, response)) = script.method(request.method) {
            return self.respond_by_method(request, index, response);
        }
        match (request.method, event) {
            (_, Some(EventKind::ToolsList)) => self.list(request, ItemKind::Tool),
            (_, Some(EventKind::ResourcesList)) => self.list(request, ItemKind::Resource),
            (_, Some(EventKind::TemplatesList)) => self.list(request, ItemKind::Template),
            (_, Some(EventKind::PromptsList)) => self.list(request, ItemKind::Prompt),
            (_, Some(EventKind::ToolsCall)) => self.use_item(request, "name", "tool"),
            (_, Some(EventKind::PromptsGet)) => self.use_item(request, "name", "prompt"),
            (_, Some(EventKind::ResourcesRead)) => self.use_item(request, "uri", "resource"),
            ("server/discover", _) if request.modern => self.handle_discover(request),
            ("subscriptions/listen", _) if request.modern => self.listen(request),
            ("completion/complete", _) => {
                self.result(
                    request,
                    b"{\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}",
                );
            }
            (_, Some(EventKind::Initialize)) if !request.modern => self.handle_initialize(request),
            (_, Some(EventKind::ResourcesSubscribe | EventKind::ResourcesUnsubscribe))
                if !request.modern =>
            {
                self.result(request, b"{}");
            }
            ("ping", _) if !request.modern => self.result(request, b"{}"),
            ("logging/setLevel", _) if !request.modern => self.set_level(request),
            // Methods of the other protocol era.
            ("initialize" | "ping" | "logging/setLevel" | "server/discover", _)
            | (_, Some(EventKind::ResourcesSubscribe | EventKind::ResourcesUnsubscribe)) => {
                self.error(request, CODE_NO_METHOD, "Method not found", None);
            }
            _ => self.refuse_unknown_method(request),
        }
    }

    fn refuse_unknown_method(&mut self, request: &EngineRequest<'_>) {
        self.log(LogLevel::Debug, &format!("unknown method `{}`", request.method));
        match self.script.scenario.unknown_methods {
            // The sessionless revision requires results to be objects.
            UnknownMethods::Ignore if request.modern => self.result(request, b"{}"),
            UnknownMethods::Ignore => self.result(request, b"null"),
            UnknownMethods::Error => self.error(request, CODE_NO_METHOD, "Method not found", None),
            UnknownMethods::Drop => self.leave_unanswered(request),
        }
    }

    fn use_item(&mut self, request: &EngineRequest<'_>, key: &str, kind: &str) {
        match (request.item, request.called) {
            (Some(item), _) => self.respond_by_item(request, item),
            (None, None) => {
                self.error(
                    request,
                    CODE_PARAMS,
                    &format!("`{key}` is missing or not a string"),
                    None,
                );
            }
            (None, Some(uri)) if kind == "resource" => {
                let mut data = b"{\"uri\":".to_vec();
                json::write_str(&mut data, uri);
                data.push(b'}');
                self.error(
                    request,
                    CODE_PARAMS,
                    &format!("Resource not found: {uri}"),
                    Some(&data),
                );
            }
            (None, Some(name)) => {
                self.error(request, CODE_PARAMS, &format!("Unknown {kind}: {name}"), None);
            }
        }
    }

    /// The values that templates and conditions can read of a request.
    pub(super) fn context<'c>(&self, request: &EngineRequest<'c>) -> TemplateContext<'c>
    where
        'a: 'c,
    {
        TemplateContext {
            params: request.params,
            item: request.item.map(|item| &**item),
            called: request.called,
            uri: request.uri,
            call_count: request.call_count,
            phase: self.script.phase_name(request.phase),
            phase_index: self.script.phase_index(request.phase),
            id: request.id,
            method: request.method,
            connection: self.engine_session.number,
            env: &*self.setup.env,
            replies: request.replies,
            at: self.at,
            dice: self.dice,
        }
    }
}

fn effect_trigger(request: &EngineRequest<'_>, event: Option<EventKind>) -> Option<EffectTrigger> {
    match event {
        Some(EventKind::ResourcesSubscribe) => Some(EffectTrigger::OnSubscribe),
        Some(EventKind::ResourcesUnsubscribe) => Some(EffectTrigger::OnUnsubscribe),
        _ if request.modern && request.method == "subscriptions/listen" => {
            (!subscriptions::uris(request.params).is_empty()).then_some(EffectTrigger::OnSubscribe)
        }
        _ => None,
    }
}
