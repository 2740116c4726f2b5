//! Detects whether the peer is an MCP server at all.
//!
//! Not counted as messages of a server are an HTML page, the greeting of another program, an error
//! that the bridge gives in place of an answer, and our own messages echoed back, as `cat` does. A
//! peer that sends nothing else is not an MCP server.

use std::borrow::Cow;

use tapegate_core::frame::{Frame, FrameBody, MessageKind, own_error_data};
use tapegate_core::json;

/// How much of the output that is not a message is quoted.
const QUOTE_CHARS_MAX: usize = 80;
/// How many of the first lines sent to the server are kept, to recognize an echo.
const TOLD_MAX: usize = 64;

/// The reason given for a program that echoes like `cat`.
const ECHO: &str = "this is not an MCP server: it echoes every message, as `cat` does";

/// What was received on one connection.
#[derive(Debug, Default)]
pub(super) struct McpDetector {
    /// Whether a request was sent to the server.
    has_sent_request: bool,
    /// The first lines sent to it.
    sent_lines: Vec<Vec<u8>>,
    /// Whether it has echoed one of them.
    echoes: bool,
    /// Whether it has sent a message of its own.
    is_detected: bool,
    /// The error that the bridge gave in its place.
    refusal: Option<String>,
    /// The start of its output that is not a message.
    noise: Option<String>,
    /// Why its output ended.
    ended: Option<String>,
}

impl McpDetector {
    /// Notes a line sent to the server.
    pub(super) fn note_sent(&mut self, line: &[u8]) {
        let is_request = |frame: Frame<'_>| {
            frame.envelope().is_some_and(|is_message| is_message.kind() == MessageKind::Request)
        };
        self.has_sent_request = self.has_sent_request || is_request(Frame::read(line));
        // A server that was detected needs no further check, so nothing more is kept.
        if !self.is_detected && self.sent_lines.len() < TOLD_MAX {
            self.sent_lines.push(line.to_vec());
        }
    }

    /// Examines a line from the server.
    pub(super) fn note_received(&mut self, line: &[u8]) {
        if self.is_detected {
            return;
        }
        if self.sent_lines.iter().any(|told| told == line.trim_ascii_end()) {
            return self.echoes = true;
        }
        let frame = Frame::read(line);
        let is_message = match frame.body() {
            FrameBody::Message(is_message) if is_message.kind() != MessageKind::Other => is_message,
            // Programs that are not MCP servers hardly send a JSON array.
            FrameBody::Batch => return self.is_detected = true,
            _ => return self.note_non_message(line),
        };
        // An error of the bridge does not show that a server is there.
        match is_message.error.filter(|error| own_error_data(error).is_some()) {
            Some(error) => {
                let message = json::member(error, "message").and_then(json::string);
                self.refusal = self.refusal.take().or(message.map(Cow::into_owned));
            }
            None => self.is_detected = true,
        }
    }

    /// Notes a message that is too large to be examined.
    pub(super) fn note_oversize(&mut self) {
        self.is_detected = true;
    }

    /// Notes the end of the server's output.
    pub(super) fn note_end(&mut self, reason: String) {
        self.ended = Some(reason);
    }

    /// Whether a server was detected.
    pub(super) fn is_mcp_server(&self) -> bool {
        self.is_detected
    }

    /// Why none was detected, as far as that is known.
    pub(super) fn failure_reason(self) -> Option<String> {
        let Self { has_sent_request: asked, echoes, refusal, noise, ended, .. } = self;
        // The clearest sign: an echo may look like a request or an error.
        if echoes {
            return Some(ECHO.to_owned());
        }
        // Before anything was asked, output may be a banner.
        let noise = noise.filter(|_| asked).map(|noise| {
            let reason = ended.as_deref().unwrap_or("the MCP server has not answered");
            format!("{reason}, and its output is not an MCP message: {noise}")
        });
        refusal.or(noise).or(ended)
    }

    fn note_non_message(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text: String = text.trim().chars().take(QUOTE_CHARS_MAX).collect();
        if self.noise.is_none() && !text.is_empty() {
            self.noise = Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;

    fn ear(lines: &[&str]) -> McpDetector {
        let mut ear = McpDetector::default();
        ear.note_sent(QUESTION);
        lines.iter().for_each(|line| ear.note_received(line.as_bytes()));
        ear
    }

    #[test]
    fn a_message_of_any_kind_is_heard() {
        for line in [
            r#"{"id":1,"result":{}}"#,
            r#"{"id":1,"error":{"code":1,"message":"no","data":{"by":"me"}}}"#,
            r#"{"method":"notifications/message"}"#,
            "[]",
        ] {
            assert!(ear(&["starting up", line]).is_mcp_server(), "{line}");
        }
    }

    #[test]
    fn what_we_say_in_its_place_and_what_is_no_message_is_not() {
        let ours = r#"{"id":1,"error":{"code":-32001,"message":"it answered 404","data":{"by":"tapegate"}}}"#;
        let deaf = ear(&["<html>", ours, "{}"]);
        assert!(!deaf.is_mcp_server());
        assert_eq!(deaf.failure_reason().as_deref(), Some("it answered 404"));
        let mut noisy = ear(&["", "hello", "world"]);
        noisy.note_end("it ended".to_owned());
        let reason = "it ended, and its output is not an MCP message: hello";
        assert_eq!(
            (noisy.is_mcp_server(), noisy.failure_reason().as_deref()),
            (false, Some(reason))
        );
    }

    #[test]
    fn what_it_was_told_is_not_its_own() {
        let question = String::from_utf8_lossy(QUESTION).into_owned();
        let echo = ear(&["starting up", &format!("{question}\r")]);
        assert_eq!((echo.is_mcp_server(), echo.failure_reason().as_deref()), (false, Some(ECHO)));
        assert!(ear(&[&question, r#"{"id":1,"result":{}}"#]).is_mcp_server());
    }

    #[test]
    fn whoever_was_asked_nothing_owes_no_message() {
        let mut ear = McpDetector::default();
        ear.note_received(b"starting up");
        assert_eq!((ear.is_mcp_server(), ear.failure_reason()), (false, None));
    }
}
