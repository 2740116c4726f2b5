//! Answers from handlers: a program or another server.

use tapegate_core::actor::{Act, Errand, Helper};
use tapegate_core::json;

use super::request::Asked;
use super::turn::{CODE_FAILED, Turn};
use crate::model::{Handler, HandlerKind, ItemKind};

/// The largest answer a handler may give.
const ANSWER_BYTES_MAX: usize = 10 * 1024 * 1024;
/// How long to wait for the handler's result beyond its own timeout.
const SLACK_NS: u64 = 1_000_000_000;

impl Turn<'_, '_> {
    /// Passes the request to a handler.
    pub(super) fn hand_over(&mut self, asked: &Asked<'_>, handler: &Handler) {
        if !self.setup.handlers {
            let words = "this answer needs a handler, and handlers are not allowed";
            return self.error(asked, CODE_FAILED, words, None);
        }
        if !self.has_room(asked) {
            return;
        }
        *self.tickets += 1;
        let ticket = *self.tickets;
        let body = self.body(asked);
        let by = match &handler.kind {
            HandlerKind::Http { url, headers } => Helper::Http { url, headers },
            HandlerKind::Command { argv, env, folder } => {
                Helper::Command { argv, env, folder: folder.as_deref() }
            }
        };
        let timeout_ns = handler.timeout_ns;
        let errand = Errand { by, body: &body, bytes_max: ANSWER_BYTES_MAX, timeout_ns };
        let until = self.at.mono_ns.saturating_add(timeout_ns).saturating_add(SLACK_NS);
        self.await_handler(asked, ticket, until);
        (self.act)(Act::Run { ticket, errand });
    }

    /// The JSON document that a handler receives.
    fn body(&self, asked: &Asked<'_>) -> Vec<u8> {
        let context = self.context(asked);
        let kind = match asked.item.map(|item| item.kind) {
            Some(ItemKind::Tool) => "tool",
            Some(ItemKind::Resource | ItemKind::Template) => "resource",
            Some(ItemKind::Prompt) => "prompt",
            None => "method",
        };
        let mut out = format!("{{\"{kind}\":").into_bytes();
        json::write_str(&mut out, asked.called.unwrap_or(asked.method));
        out.extend_from_slice(b",\"arguments\":");
        out.extend_from_slice(context.arguments().unwrap_or(b"{}"));
        out.extend_from_slice(b",\"context\":{\"phase\":");
        json::write_str(&mut out, context.phase);
        let counts = format!(
            ",\"phase_index\":{},\"call_count\":{},\"connection_id\":{},\"request_id\":",
            context.phase_index, context.call_count, context.connection
        );
        out.extend_from_slice(counts.as_bytes());
        out.extend_from_slice(asked.id);
        out.extend_from_slice(b",\"method\":");
        json::write_str(&mut out, asked.method);
        out.extend_from_slice(b"}}");
        out
    }

    /// Forwards the answer of a handler unchanged.
    pub(super) fn pass_on(&mut self, asked: &Asked<'_>, outcome: Result<&[u8], &str>) {
        let said = match outcome {
            Ok(said) => said.trim_ascii(),
            Err(why) => return self.failed(asked, why),
        };
        match json::check(said) {
            Err(fault) => return self.failed(asked, &format!("its output is not JSON: {fault}")),
            Ok(said) if !said.starts_with(b"{") => {
                return self.failed(asked, "its output is not an object");
            }
            Ok(_) => {}
        }
        let said = &json::compact(said);
        if let Some(error) = json::member(said, "error").filter(|error| *error != b"null") {
            let message = json::member(error, "message").unwrap_or(error);
            let words = json::string(message).unwrap_or_else(|| String::from_utf8_lossy(message));
            return self.error(asked, CODE_FAILED, &words, None);
        }
        match result_of(asked, said) {
            Some(result) => self.result(asked, &result),
            None => self.failed(asked, "its output has none of `content`, `text` and `error`"),
        }
    }

    fn failed(&mut self, asked: &Asked<'_>, why: &str) {
        self.error(asked, CODE_FAILED, &format!("the handler failed: {why}"), None);
    }
}

/// The MCP result that a handler's answer stands for.
fn result_of(asked: &Asked<'_>, said: &[u8]) -> Option<Vec<u8>> {
    let kind = asked.item.map(|item| item.kind);
    let key = match kind {
        Some(ItemKind::Resource | ItemKind::Template) => "contents",
        Some(ItemKind::Prompt) => "messages",
        Some(ItemKind::Tool) | None => "content",
    };
    if json::member(said, key).is_some() {
        return Some(said.to_vec());
    }
    if let Some(content) = json::member(said, "content") {
        return Some([b"{\"", key.as_bytes(), b"\":", content, b"}"].concat());
    }
    let text = json::member(said, "text")?;
    let mut out = Vec::new();
    match kind {
        Some(ItemKind::Resource | ItemKind::Template) => {
            out.extend_from_slice(b"{\"contents\":[{\"uri\":");
            json::write_str(&mut out, asked.called.unwrap_or_default());
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
