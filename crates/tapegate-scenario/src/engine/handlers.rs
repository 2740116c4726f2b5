//! Answers from handlers: a program or another server.

use tapegate_core::actor::{ActorAction, HandlerCall, HandlerTarget};
use tapegate_core::json::{self, JsonObject};

use super::engine_turn::{CODE_FAILED, EngineTurn};
use super::request::EngineRequest;
use crate::model::{HandlerKind, ItemKind, ResponseHandler};

/// The largest answer a handler may give.
const ANSWER_BYTES_MAX: usize = 10 * 1024 * 1024;
/// How long to wait for the handler's result beyond its own timeout.
const SLACK_NS: u64 = 1_000_000_000;

impl EngineTurn<'_, '_> {
    /// Passes the request to a handler.
    pub(super) fn call_handler(&mut self, request: &EngineRequest<'_>, handler: &ResponseHandler) {
        // Scenarios are shared files, and a handler runs a program that their author chose.
        if !self.setup.handlers {
            let message = "this answer needs a handler, and handlers are not allowed";
            return self.error(request, CODE_FAILED, message, None);
        }
        if !self.has_room(request) {
            return;
        }
        *self.last_id += 1;
        let call_id = *self.last_id;
        let body = self.body(request);
        let by = match &handler.kind {
            HandlerKind::Http { url, headers } => HandlerTarget::Http { url, headers },
            HandlerKind::Command { argv, env, folder } => {
                HandlerTarget::Command { argv, env, folder: folder.as_deref() }
            }
        };
        let timeout_ns = handler.timeout_ns;
        let handler_call = HandlerCall { by, body: &body, bytes_max: ANSWER_BYTES_MAX, timeout_ns };
        // The host enforces the handler's timeout. This one only ends a wait that the host never
        // reports on.
        let until = self.at.mono_ns.saturating_add(timeout_ns).saturating_add(SLACK_NS);
        // Stored before the handler runs, since its result may arrive at once.
        self.await_handler(request, call_id, until);
        (self.act)(ActorAction::Run { call_id, handler_call });
    }

    /// The JSON document that a handler receives.
    fn body(&self, request: &EngineRequest<'_>) -> Vec<u8> {
        let context = self.context(request);
        let kind = match request.item.map(|item| item.kind) {
            Some(ItemKind::Tool) => "tool",
            Some(ItemKind::Resource | ItemKind::Template) => "resource",
            Some(ItemKind::Prompt) => "prompt",
            None => "method",
        };
        let place = JsonObject::new()
            .text("phase", context.phase)
            .number("phase_index", context.phase_index)
            .number("call_count", context.call_count)
            .number("connection_id", context.connection)
            .raw("request_id", request.id)
            .text("method", request.method);
        JsonObject::new()
            .text(kind, request.called.unwrap_or(request.method))
            .raw("arguments", context.arguments().unwrap_or(b"{}"))
            .object("context", place)
            .finish()
    }

    /// Forwards the answer of a handler unchanged.
    pub(super) fn send_handler_reply(
        &mut self,
        request: &EngineRequest<'_>,
        outcome: Result<&[u8], &str>,
    ) {
        let output = match outcome {
            Ok(output) => output.trim_ascii(),
            Err(reason) => return self.send_handler_failure(request, reason),
        };
        match json::check(output) {
            Err(fault) => {
                return self
                    .send_handler_failure(request, &format!("its output is not JSON: {fault}"));
            }
            Ok(output) if !output.starts_with(b"{") => {
                return self.send_handler_failure(request, "its output is not an object");
            }
            Ok(_) => {}
        }
        let output = &json::compact(output);
        if let Some(error) = json::member(output, "error").filter(|error| *error != b"null") {
            let message = json::member(error, "message").unwrap_or(error);
            let text = json::string(message).unwrap_or_else(|| String::from_utf8_lossy(message));
            return self.error(request, CODE_FAILED, &text, None);
        }
        match result_of(request, output) {
            Some(result) => self.result(request, &result),
            None => self.send_handler_failure(
                request,
                "its output has none of `content`, `text` and `error`",
            ),
        }
    }

    fn send_handler_failure(&mut self, request: &EngineRequest<'_>, reason: &str) {
        self.error(request, CODE_FAILED, &format!("the handler failed: {reason}"), None);
    }
}

/// The MCP result that a handler's answer stands for.
fn result_of(request: &EngineRequest<'_>, output: &[u8]) -> Option<Vec<u8>> {
    let kind = request.item.map(|item| item.kind);
    let key = match kind {
        Some(ItemKind::Resource | ItemKind::Template) => "contents",
        Some(ItemKind::Prompt) => "messages",
        Some(ItemKind::Tool) | None => "content",
    };
    if json::member(output, key).is_some() {
        return Some(output.to_vec());
    }
    if let Some(content) = json::member(output, "content") {
        return Some([b"{\"", key.as_bytes(), b"\":", content, b"}"].concat());
    }
    let text = json::member(output, "text")?;
    let mut out = Vec::new();
    match kind {
        Some(ItemKind::Resource | ItemKind::Template) => {
            out.extend_from_slice(b"{\"contents\":[{\"uri\":");
            json::write_str(&mut out, request.called.unwrap_or_default());
            out.extend_from_slice(b",\"text\":");
            out.extend_from_slice(text);
            out.extend_from_slice(b"}]}");
        }
        Some(ItemKind::Prompt) => {
            let start =
                b"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":";
            out = [&start[..], text, b"}}]}"].concat();
        }
        _ => out = [b"{\"content\":[{\"type\":\"text\",\"text\":", text, b"}]}"].concat(),
    }
    Some(out)
}
