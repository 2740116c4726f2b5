//! The demo's MCP server: two tools, progress, and a request to the agent's model.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};

use tapegate_core::frame::{Envelope, Frame, MessageKind, error_reply};
use tapegate_core::json::{self, write_str};

const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tapegate-demo","version":"1"}}"#;

const TOOLS: &str = r#"{"tools":[{"name":"count_words","description":"Counts the words of a text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"summarise","description":"Has the agent's model sum up a text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;

/// The id of the only request this server sends.
const QUESTION: &str = "\"ask-1\"";

/// Serves until the input ends.
pub(super) fn run(input: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<()> {
    let mut waiting: Option<Vec<u8>> = None;
    for line in input.lines() {
        let line = line?;
        let frame = Frame::read(line.as_bytes());
        let Some(envelope) = frame.envelope() else { continue };
        match (envelope.kind(), envelope.id) {
            (MessageKind::Request, Some(id)) => answer(id, envelope, &mut waiting, out)?,
            (MessageKind::Response, Some(id)) if id == QUESTION.as_bytes() => {
                if let Some(call) = waiting.take() {
                    let sample =
                        envelope.result.and_then(|result| string_at(result, &["content", "text"]));
                    reply(&call, &text_result(&sample.unwrap_or_default()), out)?;
                }
            }
            _ => {}
        }
        out.flush()?;
    }
    Ok(())
}

fn answer(
    id: &[u8],
    envelope: &Envelope<'_>,
    waiting: &mut Option<Vec<u8>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if envelope.is_method("initialize") {
        return reply(id, INITIALIZED, out);
    }
    if envelope.is_method("tools/list") {
        return reply(id, TOOLS, out);
    }
    if envelope.is_method("ping") {
        return reply(id, "{}", out);
    }
    let text = envelope
        .params
        .and_then(|params| string_at(params, &["arguments", "text"]))
        .unwrap_or_default();
    match envelope.name.map(|name| name.decode()).as_deref() {
        Some("count_words") if envelope.is_method("tools/call") => {
            if let Some(token) = envelope.progress_token.map(String::from_utf8_lossy) {
                let params = format!("{{\"progressToken\":{token},\"progress\":1,\"total\":1}}");
                writeln!(
                    out,
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{params}}}"
                )?;
            }
            let count = text.split_whitespace().count();
            reply(id, &text_result(&format!("{count} words")), out)
        }
        Some("summarise") if envelope.is_method("tools/call") => {
            *waiting = Some(id.to_vec());
            let content = format!("{{\"type\":\"text\",\"text\":{}}}", quoted(&text));
            let params = format!(
                "{{\"messages\":[{{\"role\":\"user\",\"content\":{content}}}],\"maxTokens\":50}}"
            );
            writeln!(
                out,
                "{{\"jsonrpc\":\"2.0\",\"id\":{QUESTION},\"method\":\"sampling/createMessage\",\"params\":{params}}}"
            )
        }
        _ => {
            out.write_all(&error_reply(id, -32601, "no such method or tool", "null"))?;
            writeln!(out)
        }
    }
}

fn reply(id: &[u8], result: &str, out: &mut dyn Write) -> io::Result<()> {
    let id = String::from_utf8_lossy(id);
    writeln!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
}

fn text_result(text: &str) -> String {
    format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", quoted(text))
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_str(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// The string at a path of keys.
fn string_at(object: &[u8], path: &[&str]) -> Option<String> {
    let found = path.iter().try_fold(object, |at, key| json::member(at, key))?;
    json::string(found).map(Cow::into_owned)
}
