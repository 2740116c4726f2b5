//! Detects whether the peer is an MCP server at all.
//!
//! Not counted as messages of a server are an HTML page, the greeting of another program, an error
//! that the bridge gives in place of an answer, and our own messages echoed back, as `cat` does. A
//! peer that sends nothing else is not an MCP server.

use std::borrow::Cow;

use tapegate_core::frame::{Body, Frame, Kind};
use tapegate_core::json;

/// How much of the output that is not a message is quoted.
const QUOTE_CHARS_MAX: usize = 80;
/// How many of the first lines sent to the server are kept, to recognize an echo.
const TOLD_MAX: usize = 64;

/// The reason given for a program that echoes like `cat`.
const ECHO: &str = "this is not an MCP server: it echoes every message, as `cat` does";

/// What was received on one connection.
#[derive(Debug, Default)]
pub(super) struct Ear {
    /// Whether a request was sent to the server.
    asked: bool,
    /// The first lines sent to it.
    told: Vec<Vec<u8>>,
    /// Whether it has echoed one of them.
    echoes: bool,
    /// Whether it has sent a message of its own.
    heard: bool,
    /// The error that the bridge gave in its place.
    refusal: Option<String>,
    /// The start of its output that is not a message.
    noise: Option<String>,
    /// Why its output ended.
    ended: Option<String>,
}

impl Ear {
    /// Notes a line sent to the server.
    pub(super) fn tell(&mut self, line: &[u8]) {
        let is_request =
            |frame: Frame<'_>| frame.envelope().is_some_and(|said| said.kind() == Kind::Request);
        self.asked = self.asked || is_request(Frame::read(line));
        if !self.heard && self.told.len() < TOLD_MAX {
            self.told.push(line.to_vec());
        }
    }

    /// Examines a line from the server.
    pub(super) fn hear(&mut self, line: &[u8]) {
        if self.heard {
            return;
        }
        if self.told.iter().any(|told| told == line.trim_ascii_end()) {
            return self.echoes = true;
        }
        let frame = Frame::read(line);
        let said = match frame.body() {
            Body::Message(said) if said.kind() != Kind::Other => said,
            Body::Batch => return self.heard = true,
            _ => return self.noise(line),
        };
        match said.error.filter(|error| is_ours(error)) {
            Some(error) => {
                let words = json::member(error, "message").and_then(json::string);
                self.refusal = self.refusal.take().or(words.map(Cow::into_owned));
            }
            None => self.heard = true,
        }
    }

    /// Notes a message that is too large to be examined.
    pub(super) fn hear_much(&mut self) {
        self.heard = true;
    }

    /// Notes the end of the server's output.
    pub(super) fn end(&mut self, why: String) {
        self.ended = Some(why);
    }

    /// Whether a server was detected.
    pub(super) fn has_heard(&self) -> bool {
        self.heard
    }

    /// Why none was detected, as far as that is known.
    pub(super) fn why_not(self) -> Option<String> {
        let Self { asked, echoes, refusal, noise, ended, .. } = self;
        if echoes {
            return Some(ECHO.to_owned());
        }
        let noise = noise.filter(|_| asked).map(|noise| {
            let why = ended.as_deref().unwrap_or("the MCP server has not answered");
            format!("{why}, and its output is not an MCP message: {noise}")
        });
        refusal.or(noise).or(ended)
    }

    fn noise(&mut self, line: &[u8]) {
        let words = String::from_utf8_lossy(line);
        let words: String = words.trim().chars().take(QUOTE_CHARS_MAX).collect();
        if self.noise.is_none() && !words.is_empty() {
            self.noise = Some(words);
        }
    }
}

/// Whether an error is one that we give in place of a server's answer.
fn is_ours(error: &[u8]) -> bool {
    let by = json::member(error, "data").and_then(|data| json::member(data, "by"));
    by == Some(b"\"tapegate\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;

    fn ear(lines: &[&str]) -> Ear {
        let mut ear = Ear::default();
        ear.tell(QUESTION);
        lines.iter().for_each(|line| ear.hear(line.as_bytes()));
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
            assert!(ear(&["starting up", line]).has_heard(), "{line}");
        }
    }

    #[test]
    fn what_we_say_in_its_place_and_what_is_no_message_is_not() {
        let ours = r#"{"id":1,"error":{"code":-32001,"message":"it answered 404","data":{"by":"tapegate"}}}"#;
        let deaf = ear(&["<html>", ours, "{}"]);
        assert!(!deaf.has_heard());
        assert_eq!(deaf.why_not().as_deref(), Some("it answered 404"));
        let mut noisy = ear(&["", "hello", "world"]);
        noisy.end("it ended".to_owned());
        let why = "it ended, and its output is not an MCP message: hello";
        assert_eq!((noisy.has_heard(), noisy.why_not().as_deref()), (false, Some(why)));
    }

    #[test]
    fn what_it_was_told_is_not_its_own() {
        let question = String::from_utf8_lossy(QUESTION).into_owned();
        let echo = ear(&["starting up", &format!("{question}\r")]);
        assert_eq!((echo.has_heard(), echo.why_not().as_deref()), (false, Some(ECHO)));
        assert!(ear(&[&question, r#"{"id":1,"result":{}}"#]).has_heard());
    }

    #[test]
    fn whoever_was_asked_nothing_owes_no_message() {
        let mut ear = Ear::default();
        ear.hear(b"starting up");
        assert_eq!((ear.has_heard(), ear.why_not()), (false, None));
    }
}
