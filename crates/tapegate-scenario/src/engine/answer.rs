//! Picks the content of an answer and writes it.

use std::rc::Rc;

use tapegate_core::frame::error_object;
use tapegate_core::json;

use super::EngineNote;
use super::answer_origin::{AnswerOrigin, ReplyLookup, pick};
use super::engine_turn::{CODE_FAILED, EngineTurn};
use super::request::EngineRequest;
use super::stateless;
use crate::delivery_queue::EffectStart;
use crate::model::{
    Delivery, EffectTrigger, ItemKind, ItemResponse, OnCancel, ReplyOutcome, ScenarioItem,
    ScenarioReply, ServerEffect, SideEffect,
};
use crate::template::JsonTemplate;

static NORMAL: Delivery = Delivery::Normal;

impl EngineTurn<'_, '_> {
    /// Answers with the response of an item.
    pub(super) fn respond_by_item(&mut self, request: &EngineRequest<'_>, item: &Rc<ScenarioItem>) {
        self.respond(request, &item.response, || AnswerOrigin::Item(Rc::clone(item)));
    }

    /// Answers with the scenario's response to the method.
    pub(super) fn respond_by_method(
        &mut self,
        request: &EngineRequest<'_>,
        index: usize,
        response: &ItemResponse,
    ) {
        let script = self.script;
        self.respond(request, response, || AnswerOrigin::Method(Rc::clone(script), index));
    }

    fn respond(
        &mut self,
        request: &EngineRequest<'_>,
        response: &ItemResponse,
        source: impl FnOnce() -> AnswerOrigin,
    ) {
        let context = self.context(request);
        match pick(response, &context, self.progress) {
            ReplyLookup::Empty => self.send_default_reply(request),
            ReplyLookup::Exhausted => {
                self.error(request, CODE_FAILED, "the scenario has no answers left", None);
            }
            ReplyLookup::Handler(handler) => self.call_handler(request, handler),
            ReplyLookup::Reply(reply, _) if reply.before.is_empty() => {
                self.send_reply(request, reply)
            }
            ReplyLookup::Reply(_, pick) => self.start_actions(request, source(), pick),
        }
    }

    /// Sends the reply that was picked, after all its actions have run.
    pub(super) fn send_reply(&mut self, request: &EngineRequest<'_>, reply: &ScenarioReply) {
        match &reply.outcome {
            ReplyOutcome::Result(form) => match form.as_plain() {
                Some(result) => self.result(request, result),
                None => self.filled(request, form, Self::result),
            },
            ReplyOutcome::Error(form) => self.filled(request, form, |turn, request, error| {
                turn.send(request, b",\"error\":", error);
            }),
            ReplyOutcome::Silence => self.leave_unanswered(request),
        }
    }

    /// Fills a template and passes the bytes to `done`.
    fn filled<'c>(
        &mut self,
        request: &EngineRequest<'c>,
        form: &JsonTemplate,
        done: impl FnOnce(&mut Self, &EngineRequest<'c>, &[u8]),
    ) {
        // One buffer for all answers. It is taken out, because `done` needs all of `self`.
        let mut out = std::mem::take(&mut self.engine_session.scratch);
        out.clear();
        form.write(&self.context(request), &mut out);
        done(self, request, &out);
        self.engine_session.scratch = out;
    }

    /// Answers with the default result of an item that has no response.
    fn send_default_reply(&mut self, request: &EngineRequest<'_>) {
        match request.item.map(|item| item.kind) {
            Some(ItemKind::Tool) => self.result(request, b"{\"content\":[]}"),
            Some(ItemKind::Prompt) => self.result(request, b"{\"messages\":[]}"),
            Some(ItemKind::Resource | ItemKind::Template) => {
                let mut out = b"{\"contents\":[{\"uri\":".to_vec();
                json::write_str(&mut out, request.called.unwrap_or_default());
                out.extend_from_slice(b",\"text\":\"\"}]}");
                self.result(request, &out);
            }
            None => self.result(request, b"{}"),
        }
    }

    /// Answers with a result, adding the members that the sessionless revision requires.
    pub(super) fn result(&mut self, request: &EngineRequest<'_>, result: &[u8]) {
        if !request.modern {
            return self.send_result(request, result);
        }
        let cacheable = is_cacheable(request.method);
        self.send_result(
            request,
            &stateless::complete_result(result, cacheable, &self.script.info),
        );
    }

    /// Answers with a result that is already complete.
    pub(super) fn send_result(&mut self, request: &EngineRequest<'_>, result: &[u8]) {
        self.send(request, b",\"result\":", result);
    }

    /// Answers with an error.
    pub(super) fn error(
        &mut self,
        request: &EngineRequest<'_>,
        code: i32,
        message: &str,
        data: Option<&[u8]>,
    ) {
        self.send(request, b",\"error\":", &error_object(code, message, data));
    }

    fn send(&mut self, request: &EngineRequest<'_>, member: &[u8], body: &[u8]) {
        let parts: [&[u8]; 5] = [b"{\"jsonrpc\":\"2.0\",\"id\":", request.id, member, body, b"}"];
        let gone = match request.batch {
            Some(batch) => {
                self.add_to_batch(batch, &parts);
                true
            }
            None => {
                let given = request.behavior.map(|behavior| &behavior.delivery);
                // The command line has priority: it is there to try other deliveries.
                let delivery = self.setup.delivery.as_ref().or(given).unwrap_or(&NORMAL);
                let delivery_queue = &mut self.engine_session.delivery;
                delivery_queue.send_answer(
                    self.at,
                    request.id,
                    &parts,
                    delivery,
                    request.delivery_id,
                    self.act,
                )
            }
        };
        if gone && request.delivery_id > 0 {
            self.engine_session.settled.push_back(request.delivery_id);
        } else if !gone && request.behavior.is_some_and(|it| it.on_cancel == OnCancel::Ignore) {
            // Remembered here, because a cancellation may come while the answer is sent piece by
            // piece.
            self.engine_session.mark_uncancellable(request.id);
        }
    }

    /// Leaves the request unanswered.
    pub(super) fn leave_unanswered(&mut self, request: &EngineRequest<'_>) {
        if let Some(batch) = request.batch {
            self.add_to_batch(batch, &[]);
        }
        if request.delivery_id > 0 {
            self.engine_session.settled.push_back(request.delivery_id);
        }
    }

    /// Refuses a message without processing it further.
    pub(super) fn refuse(&mut self, id: &[u8], code: i32, message: &str, batch: Option<u32>) {
        self.refuse_with(id, code, message, None, batch);
    }

    /// Like `refuse`, with the error's `data`.
    pub(super) fn refuse_with(
        &mut self,
        id: &[u8],
        code: i32,
        message: &str,
        data: Option<&[u8]>,
        batch: Option<u32>,
    ) {
        let body = error_object(code, message, data.filter(|data| *data != b"null"));
        let parts: [&[u8]; 5] = [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"error\":", &body, b"}"];
        match batch {
            Some(batch) => self.add_to_batch(batch, &parts),
            None => self.engine_session.delivery.send_unrelated(&parts, self.act),
        }
    }

    /// Starts the side effects of a request. With streams they start before the answer, which ends
    /// the stream. On a pipe the answer goes first so that no effect can delay it. Closing the
    /// connection always comes last.
    pub(super) fn start_request_effects(&mut self, request: &EngineRequest<'_>, answered: bool) {
        let streams = self.engine_session.streams;
        self.start_effects_where(request, EffectTrigger::OnRequest, |effect| {
            let ends = matches!(effect, ServerEffect::CloseConnection { .. });
            answered == (ends || !streams)
        });
        if !answered && streams {
            // What is due now goes out before the answer, which ends the stream.
            let gone = self.engine_session.delivery.run(self.at, self.act);
            self.engine_session.settled.extend(gone);
        }
    }

    /// Starts the side effects of the request's behaviour that have this trigger.
    pub(super) fn start_effects(&mut self, request: &EngineRequest<'_>, trigger: EffectTrigger) {
        self.start_effects_where(request, trigger, |_| true);
    }

    fn start_effects_where(
        &mut self,
        request: &EngineRequest<'_>,
        trigger: EffectTrigger,
        wanted: impl Fn(&ServerEffect) -> bool,
    ) {
        let Some(behavior) = request.behavior.filter(|behavior| !behavior.side_effects.is_empty())
        else {
            return;
        };
        let is_meant = |it: &&SideEffect| it.trigger == trigger && wanted(&it.effect);
        for effect in behavior.side_effects.iter().filter(is_meant) {
            let (name, form) = describe(&effect.effect);
            let mut params = Vec::new();
            if let Some(form) = form {
                form.write(&self.context(request), &mut params);
            }
            let how = EffectStart {
                params: form.map(|_| &params[..]),
                about: Some(request.id).filter(|id| !id.is_empty()),
                endless: trigger == EffectTrigger::Continuous,
            };
            let left_out = self.engine_session.delivery.start(self.at, &effect.effect, how).err();
            self.note(EngineNote::Effect { name, left_out });
        }
    }
}

fn describe(effect: &ServerEffect) -> (&'static str, Option<&JsonTemplate>) {
    match effect {
        ServerEffect::NotificationFlood { params, .. } => ("notification_flood", params.as_ref()),
        ServerEffect::BatchAmplify { params, .. } => ("batch_amplify", params.as_ref()),
        ServerEffect::PipeDeadlock { .. } => ("pipe_deadlock", None),
        ServerEffect::CloseConnection { .. } => ("close_connection", None),
        ServerEffect::DuplicateRequestIds { params, .. } => {
            ("duplicate_request_ids", params.as_ref())
        }
    }
}

/// Whether results of a method carry a cache lifetime.
fn is_cacheable(method: &str) -> bool {
    matches!(method, "resources/read" | "server/discover")
        || ItemKind::of_list_method(method).is_some()
}
