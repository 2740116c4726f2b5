//! Handling requests from the client.

use std::borrow::Cow;
use std::rc::Rc;

use tapegate_core::frame::Envelope;
use tapegate_core::json;

use super::listen;
use super::progress::Leaving;
use super::turn::{CODE_INTERNAL, CODE_INVALID, CODE_NO_METHOD, CODE_PARAMS, Turn, is_id};
use crate::form::{Context, Named};
use crate::model::{Behavior, EffectTrigger, EventKind, Item, ItemKind, LogLevel, UnknownMethods};

/// A request from the client, and everything its answer may depend on.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) id: &'a [u8],
    pub(super) method: &'a str,
    pub(super) params: &'a [u8],
    /// Whether it uses the sessionless revision.
    pub(super) modern: bool,
    pub(super) token: Option<&'a [u8]>,
    pub(super) batch: Option<u32>,
    /// The number under which delivery of the answer is reported; 0 if not needed.
    pub(super) ticket: u64,
    /// The phase in which it was received.
    pub(super) phase: usize,
    pub(super) item: Option<&'a Rc<Item>>,
    /// The name by which the client called the item.
    pub(super) called: Option<&'a str>,
    /// The template variables of the URI.
    pub(super) uri: &'a [Named<String>],
    pub(super) call_count: u64,
    pub(super) replies: &'a [Named<Vec<u8>>],
    pub(super) behavior: Option<&'a Rc<Behavior>>,
}

impl<'a> Turn<'a, '_> {
    /// Handles a request from the client.
    pub(super) fn request(&mut self, text: &[u8], said: &Envelope<'_>, batch: Option<u32>) {
        let id = said.id.unwrap_or(b"null");
        if !is_id(id) {
            // Over HTTP the answer is routed by its id, so even an invalid id is echoed.
            return self.refuse(id, CODE_INVALID, "an id must be a string or a number", batch);
        }
        let method = said.method.map(|method| method.decode()).unwrap_or_default();
        let modern = said.protocol_version.is_some() && self.script.is_modern();
        if modern && let Err((code, words, data)) = self.terms(said) {
            return self.refuse_with(id, code, &words, Some(&data), batch);
        }
        if self.progress.leaving.is_some() && (modern || method != "ping") {
            if !self.visit.hold(id, text, batch, self.at.mono_ns) {
                self.refuse(id, CODE_INTERNAL, "too many requests wait for an answer", batch);
            }
            return;
        }
        let asked = Asked {
            id,
            method: &method,
            params: said.params.unwrap_or(b"{}"),
            modern,
            token: said.progress_token.filter(|token| is_id(token)),
            batch,
            behavior: self.scene().behavior.as_ref(),
            ..self.unasked()
        };
        self.ask(asked, said);
    }

    /// Finds the item that the request is about, counts the request and answers it.
    fn ask(&mut self, given: Asked<'_>, said: &Envelope<'_>) {
        if given.modern && self.resume(&given) {
            return;
        }
        let event = EventKind::of_method(given.method.as_bytes());
        let name = match event {
            Some(EventKind::ToolsCall | EventKind::PromptsGet) => said.name,
            Some(
                EventKind::ResourcesRead
                | EventKind::ResourcesSubscribe
                | EventKind::ResourcesUnsubscribe,
            ) => said.uri,
            _ => None,
        };
        let name: Option<Cow<'_, str>> = name.map(|name| name.decode());
        let scene = self.scene();
        let mut variables = Vec::new();
        let mut asked = given;
        asked.item = match (event, name.as_deref()) {
            (Some(EventKind::ToolsCall), Some(name)) => scene.tools.get(name),
            (Some(EventKind::PromptsGet), Some(name)) => scene.prompts.get(name),
            (Some(_), Some(uri)) => scene.resource(uri).map(|(item, found)| {
                variables = found;
                item
            }),
            _ => None,
        };
        asked.uri = &variables;
        asked.called = name.as_deref();
        if let Some(behavior) = asked.item.and_then(|item| item.behavior.as_ref()) {
            asked.behavior = Some(behavior);
        }
        self.count(&mut asked, event);
        let acts = asked.behavior.is_some_and(|behavior| !behavior.side_effects.is_empty());
        if acts {
            self.start_with_request(&asked, false);
        }
        self.dispatch(&asked, event);
        if !acts {
            return;
        }
        if let Some(trigger) = effect_trigger(&asked, event) {
            self.start_effects(&asked, trigger);
        }
        self.start_with_request(&asked, true);
    }

    /// Counts the request, and notes whether it ends the phase.
    fn count(&mut self, asked: &mut Asked<'_>, event: Option<EventKind>) {
        if asked.method != "ping" {
            self.progress.entered_ns.get_or_insert(self.at.mono_ns);
        }
        let first = asked.modern && !self.visit.is_modern && asked.method != "server/discover";
        let mut events = Vec::new();
        if first {
            self.visit.is_modern = true;
            self.progress.count(EventKind::Initialize, None, true);
            events.push((EventKind::Initialize, None));
        }
        if let Some(event) = event {
            let known = asked.item.is_some();
            asked.call_count = self.progress.count(event, asked.called, known);
            events.push((event, asked.called));
        }
        let heard = match asked.modern && asked.method == "subscriptions/listen" {
            true => listen::uris(asked.params),
            false => Vec::new(),
        };
        for uri in &heard {
            let known = self.scene().resource(uri).is_some();
            self.progress.count(EventKind::ResourcesSubscribe, Some(uri), known);
            events.push((EventKind::ResourcesSubscribe, Some(uri)));
        }
        let fired = events.into_iter().find(|(kind, key)| self.fires(*kind, *key, asked));
        let fires = fired.is_some();
        if fires || first {
            *self.tickets += 1;
            asked.ticket = *self.tickets;
        }
        if first {
            self.visit.starting = Some(asked.ticket);
        }
        if let Some((kind, _)) = fired {
            let why = kind.name();
            self.progress.leaving = Some(Leaving { seat: self.seat, ticket: asked.ticket, why });
        }
    }

    fn dispatch(&mut self, asked: &Asked<'_>, event: Option<EventKind>) {
        let script = self.script;
        if let Some((index, response)) = script.method(asked.method) {
            return self.respond_by_method(asked, index, response);
        }
        match (asked.method, event) {
            (_, Some(EventKind::ToolsList)) => self.list(asked, ItemKind::Tool),
            (_, Some(EventKind::ResourcesList)) => self.list(asked, ItemKind::Resource),
            (_, Some(EventKind::TemplatesList)) => self.list(asked, ItemKind::Template),
            (_, Some(EventKind::PromptsList)) => self.list(asked, ItemKind::Prompt),
            (_, Some(EventKind::ToolsCall)) => self.use_item(asked, "name", "tool"),
            (_, Some(EventKind::PromptsGet)) => self.use_item(asked, "name", "prompt"),
            (_, Some(EventKind::ResourcesRead)) => self.use_item(asked, "uri", "resource"),
            ("server/discover", _) if asked.modern => self.discover(asked),
            ("subscriptions/listen", _) if asked.modern => self.listen(asked),
            ("completion/complete", _) => {
                self.result(
                    asked,
                    b"{\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}}",
                );
            }
            (_, Some(EventKind::Initialize)) if !asked.modern => self.initialize(asked),
            (_, Some(EventKind::ResourcesSubscribe | EventKind::ResourcesUnsubscribe))
                if !asked.modern =>
            {
                self.result(asked, b"{}");
            }
            ("ping", _) if !asked.modern => self.result(asked, b"{}"),
            ("logging/setLevel", _) if !asked.modern => self.set_level(asked),
            ("initialize" | "ping" | "logging/setLevel" | "server/discover", _)
            | (_, Some(EventKind::ResourcesSubscribe | EventKind::ResourcesUnsubscribe)) => {
                self.error(asked, CODE_NO_METHOD, "Method not found", None);
            }
            _ => self.unknown(asked),
        }
    }

    fn unknown(&mut self, asked: &Asked<'_>) {
        self.log(LogLevel::Debug, &format!("unknown method `{}`", asked.method));
        match self.script.scenario.unknown_methods {
            // The sessionless revision requires results to be objects.
            UnknownMethods::Ignore if asked.modern => self.result(asked, b"{}"),
            UnknownMethods::Ignore => self.result(asked, b"null"),
            UnknownMethods::Error => self.error(asked, CODE_NO_METHOD, "Method not found", None),
            UnknownMethods::Drop => self.silence(asked),
        }
    }

    fn use_item(&mut self, asked: &Asked<'_>, key: &str, kind: &str) {
        match (asked.item, asked.called) {
            (Some(item), _) => self.respond_by_item(asked, item),
            (None, None) => {
                self.error(
                    asked,
                    CODE_PARAMS,
                    &format!("`{key}` is missing or not a string"),
                    None,
                );
            }
            (None, Some(uri)) if kind == "resource" => {
                let mut data = b"{\"uri\":".to_vec();
                json::write_str(&mut data, uri);
                data.push(b'}');
                self.error(asked, CODE_PARAMS, &format!("Resource not found: {uri}"), Some(&data));
            }
            (None, Some(name)) => {
                self.error(asked, CODE_PARAMS, &format!("Unknown {kind}: {name}"), None);
            }
        }
    }

    /// The values that templates and conditions can read of a request.
    pub(super) fn context<'c>(&self, asked: &Asked<'c>) -> Context<'c>
    where
        'a: 'c,
    {
        Context {
            params: asked.params,
            item: asked.item.map(|item| &**item),
            called: asked.called,
            uri: asked.uri,
            call_count: asked.call_count,
            phase: self.script.phase_name(asked.phase),
            phase_index: self.script.phase_index(asked.phase),
            id: asked.id,
            method: asked.method,
            connection: self.visit.number,
            env: &*self.setup.env,
            replies: asked.replies,
            at: self.at,
            dice: self.dice,
        }
    }
}

fn effect_trigger(asked: &Asked<'_>, event: Option<EventKind>) -> Option<EffectTrigger> {
    match event {
        Some(EventKind::ResourcesSubscribe) => Some(EffectTrigger::OnSubscribe),
        Some(EventKind::ResourcesUnsubscribe) => Some(EffectTrigger::OnUnsubscribe),
        _ if asked.modern && asked.method == "subscriptions/listen" => {
            (!listen::uris(asked.params).is_empty()).then_some(EffectTrigger::OnSubscribe)
        }
        _ => None,
    }
}
