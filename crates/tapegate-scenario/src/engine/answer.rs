//! Picks the content of an answer and writes it.

use std::rc::Rc;

use tapegate_core::json;

use super::Note;
use super::modern;
use super::request::Asked;
use super::source::{Picked, Source, pick};
use super::turn::{CODE_FAILED, Turn};
use crate::courier::Start;
use crate::form::Form;
use crate::model::{
    Delivery, Effect, EffectTrigger, Item, ItemKind, OnCancel, Outcome, Reply, Response, SideEffect,
};

static NORMAL: Delivery = Delivery::Normal;

impl Turn<'_, '_> {
    /// Answers with the response of an item.
    pub(super) fn respond_by_item(&mut self, asked: &Asked<'_>, item: &Rc<Item>) {
        self.respond(asked, &item.response, || Source::Item(Rc::clone(item)));
    }

    /// Answers with the scenario's response to the method.
    pub(super) fn respond_by_method(
        &mut self,
        asked: &Asked<'_>,
        index: usize,
        response: &Response,
    ) {
        let script = self.script;
        self.respond(asked, response, || Source::Method(Rc::clone(script), index));
    }

    fn respond(&mut self, asked: &Asked<'_>, response: &Response, source: impl FnOnce() -> Source) {
        let context = self.context(asked);
        match pick(response, &context, self.progress) {
            Picked::Empty => self.nothing(asked),
            Picked::Exhausted => {
                self.error(asked, CODE_FAILED, "the scenario has no answers left", None);
            }
            Picked::Handler(handler) => self.hand_over(asked, handler),
            Picked::Reply(reply, _) if reply.before.is_empty() => self.conclude(asked, reply),
            Picked::Reply(_, pick) => self.begin_play(asked, source(), pick),
        }
    }

    /// Sends the reply that was picked, after all its actions have run.
    pub(super) fn conclude(&mut self, asked: &Asked<'_>, reply: &Reply) {
        match &reply.outcome {
            Outcome::Result(form) => match form.as_plain() {
                Some(result) => self.result(asked, result),
                None => self.filled(asked, form, Self::result),
            },
            Outcome::Error(form) => self.filled(asked, form, |turn, asked, error| {
                turn.send(asked, b",\"error\":", error);
            }),
            Outcome::Silence => self.silence(asked),
        }
    }

    /// Fills a template and passes the bytes to `done`.
    fn filled<'c>(
        &mut self,
        asked: &Asked<'c>,
        form: &Form,
        done: impl FnOnce(&mut Self, &Asked<'c>, &[u8]),
    ) {
        let mut out = std::mem::take(&mut self.visit.scratch);
        out.clear();
        form.write(&self.context(asked), &mut out);
        done(self, asked, &out);
        self.visit.scratch = out;
    }

    /// Answers with the default result of an item that has no response.
    fn nothing(&mut self, asked: &Asked<'_>) {
        match asked.item.map(|item| item.kind) {
            Some(ItemKind::Tool) => self.result(asked, b"{\"content\":[]}"),
            Some(ItemKind::Prompt) => self.result(asked, b"{\"messages\":[]}"),
            Some(ItemKind::Resource | ItemKind::Template) => {
                let mut out = b"{\"contents\":[{\"uri\":".to_vec();
                json::write_str(&mut out, asked.called.unwrap_or_default());
                out.extend_from_slice(b",\"text\":\"\"}]}");
                self.result(asked, &out);
            }
            None => self.result(asked, b"{}"),
        }
    }

    /// Answers with a result, adding the members that the sessionless revision requires.
    pub(super) fn result(&mut self, asked: &Asked<'_>, result: &[u8]) {
        if !asked.modern {
            return self.finished(asked, result);
        }
        let mut out = Vec::with_capacity(result.len() + 256);
        modern::finish(result, is_cacheable(asked.method), &self.script.info, &mut out);
        self.finished(asked, &out);
    }

    /// Answers with a result that is already complete.
    pub(super) fn finished(&mut self, asked: &Asked<'_>, result: &[u8]) {
        self.send(asked, b",\"result\":", result);
    }

    /// Answers with an error.
    pub(super) fn error(&mut self, asked: &Asked<'_>, code: i32, words: &str, data: Option<&[u8]>) {
        self.send(asked, b",\"error\":", &error(code, words, data));
    }

    fn send(&mut self, asked: &Asked<'_>, member: &[u8], body: &[u8]) {
        let parts: [&[u8]; 5] = [b"{\"jsonrpc\":\"2.0\",\"id\":", asked.id, member, body, b"}"];
        let gone = match asked.batch {
            Some(batch) => {
                self.gather(batch, &parts);
                true
            }
            None => {
                let given = asked.behavior.map(|behavior| &behavior.delivery);
                let delivery = self.setup.delivery.as_ref().or(given).unwrap_or(&NORMAL);
                let courier = &mut self.visit.courier;
                courier.answer(self.at, asked.id, &parts, delivery, asked.ticket, self.act)
            }
        };
        if gone && asked.ticket > 0 {
            self.visit.settled.push_back(asked.ticket);
        } else if !gone && asked.behavior.is_some_and(|it| it.on_cancel == OnCancel::Ignore) {
            self.visit.insist(asked.id);
        }
    }

    /// Leaves the request unanswered.
    pub(super) fn silence(&mut self, asked: &Asked<'_>) {
        if let Some(batch) = asked.batch {
            self.gather(batch, &[]);
        }
        if asked.ticket > 0 {
            self.visit.settled.push_back(asked.ticket);
        }
    }

    /// Refuses a message without processing it further.
    pub(super) fn refuse(&mut self, id: &[u8], code: i32, words: &str, batch: Option<u32>) {
        self.refuse_with(id, code, words, None, batch);
    }

    /// Like `refuse`, with the error's `data`.
    pub(super) fn refuse_with(
        &mut self,
        id: &[u8],
        code: i32,
        words: &str,
        data: Option<&[u8]>,
        batch: Option<u32>,
    ) {
        let body = error(code, words, data.filter(|data| *data != b"null"));
        let parts: [&[u8]; 5] = [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"error\":", &body, b"}"];
        match batch {
            Some(batch) => self.gather(batch, &parts),
            None => self.visit.courier.say(&parts, self.act),
        }
    }

    /// Starts the side effects of a request. With streams they start before the answer, which ends
    /// the stream. On a pipe the answer goes first so that no effect can delay it. Closing the
    /// connection always comes last.
    pub(super) fn start_with_request(&mut self, asked: &Asked<'_>, answered: bool) {
        let streams = self.visit.streams;
        self.start_where(asked, EffectTrigger::OnRequest, |effect| {
            let ends = matches!(effect, Effect::CloseConnection { .. });
            answered == (ends || !streams)
        });
        if !answered && streams {
            let gone = self.visit.courier.run(self.at, self.act);
            self.visit.settled.extend(gone);
        }
    }

    /// Starts the side effects of the request's behaviour that have this trigger.
    pub(super) fn start_effects(&mut self, asked: &Asked<'_>, trigger: EffectTrigger) {
        self.start_where(asked, trigger, |_| true);
    }

    fn start_where(
        &mut self,
        asked: &Asked<'_>,
        trigger: EffectTrigger,
        wanted: impl Fn(&Effect) -> bool,
    ) {
        let Some(behavior) = asked.behavior.filter(|behavior| !behavior.side_effects.is_empty())
        else {
            return;
        };
        let is_meant = |it: &&SideEffect| it.trigger == trigger && wanted(&it.effect);
        for effect in behavior.side_effects.iter().filter(is_meant) {
            let (name, form) = describe(&effect.effect);
            let mut params = Vec::new();
            if let Some(form) = form {
                form.write(&self.context(asked), &mut params);
            }
            let how = Start {
                params: form.map(|_| &params[..]),
                about: Some(asked.id).filter(|id| !id.is_empty()),
                endless: trigger == EffectTrigger::Continuous,
            };
            let left_out = self.visit.courier.start(self.at, &effect.effect, how).err();
            self.note(Note::Effect { name, left_out });
        }
    }
}

fn describe(effect: &Effect) -> (&'static str, Option<&Form>) {
    match effect {
        Effect::NotificationFlood { params, .. } => ("notification_flood", params.as_ref()),
        Effect::BatchAmplify { params, .. } => ("batch_amplify", params.as_ref()),
        Effect::PipeDeadlock { .. } => ("pipe_deadlock", None),
        Effect::CloseConnection { .. } => ("close_connection", None),
        Effect::DuplicateRequestIds { params, .. } => ("duplicate_request_ids", params.as_ref()),
    }
}

/// Whether results of a method carry a cache lifetime.
fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "server/discover"
    )
}

/// Writes a JSON-RPC error object.
pub(super) fn error(code: i32, words: &str, data: Option<&[u8]>) -> Vec<u8> {
    let mut out = format!("{{\"code\":{code},\"message\":").into_bytes();
    json::write_str(&mut out, words);
    if let Some(data) = data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data);
    }
    out.push(b'}');
    out
}
