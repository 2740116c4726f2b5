//! Values that a server issues and a client returns: cursors, request states, task ids.
//!
//! A live server issues its own, so wherever the recorded client returned one, the live value from
//! the corresponding answer is sent instead.

use std::collections::HashMap;

use crate::frame::Envelope;
use crate::json::{Edits, member, string};

/// The key of `_meta` that names the task a message belongs to.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The kind of an issued value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Token {
    /// The start of the next page of a list.
    Cursor,
    /// The state that a server wants returned with the answers it asked for.
    State,
    /// The id of a task.
    Task,
}

/// The values that a live server has issued in place of the recorded ones.
#[derive(Debug, Default)]
pub(super) struct Minted {
    /// By kind, method (for cursors, which differ by list) and recorded value; `None` if the live
    /// server issued none.
    live: HashMap<(Token, String, String), Option<Vec<u8>>>,
}

/// The live counterpart of a recorded value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate<'a> {
    /// The live server issued this one.
    Live(&'a [u8]),
    /// The live server issued none.
    Lost,
    /// It was not issued by a known answer.
    Unknown,
}

impl Minted {
    /// Learns the live values from an answer to `method`. Both texts are results; `live` is `None`
    /// if the server failed or was not asked.
    pub(super) fn learn(&mut self, method: &str, recorded: &[u8], live: Option<&[u8]>) {
        let places: [(Token, &[&str]); 4] = [
            (Token::Cursor, &["nextCursor"]),
            (Token::State, &["requestState"]),
            (Token::Task, &["task", "taskId"]),
            (Token::Task, &["taskId"]),
        ];
        for (token, place) in places {
            if let Some(minted) = at(recorded, place) {
                let live = live.and_then(|live| at(live, place));
                self.live.insert(key(token, method, minted), live.map(<[u8]>::to_vec));
            }
        }
    }

    /// The live counterpart of a value that was recorded in an answer to `method`.
    pub(super) fn fate(&self, token: Token, method: &str, recorded: &[u8]) -> Fate<'_> {
        match self.live.get(&key(token, method, recorded)) {
            Some(Some(live)) => Fate::Live(live),
            Some(None) => Fate::Lost,
            None => Fate::Unknown,
        }
    }

    /// The live counterpart of the task that a request is about.
    pub(super) fn task(&self, said: &Envelope<'_>) -> Fate<'_> {
        let task = said.params.and_then(|params| member(params, "taskId"));
        task.map_or(Fate::Unknown, |task| self.fate(Token::Task, "", task))
    }

    /// Replaces the issued values in a recorded message by live ones; fails if the live server has
    /// not issued one.
    pub(super) fn edit(
        &self,
        method: &str,
        said: &Envelope<'_>,
        edits: &mut Edits<'_>,
    ) -> Result<(), Token> {
        let handed_back = [
            (Token::Cursor, said.params.and_then(|params| at(params, &["cursor"]))),
            (Token::State, said.params.and_then(|params| at(params, &["requestState"]))),
            (Token::Task, said.params.and_then(|params| at(params, &["taskId"]))),
            (Token::Task, related_task(said)),
        ];
        for (token, value) in handed_back {
            let Some(value) = value else { continue };
            match self.fate(token, method, value) {
                Fate::Live(live) => edits.replace(value, live),
                Fate::Lost => return Err(token),
                Fate::Unknown => {}
            }
        }
        Ok(())
    }
}

/// The task that a message belongs to.
fn related_task<'a>(said: &Envelope<'a>) -> Option<&'a [u8]> {
    let body = said.params.or(said.result)?;
    at(body, &["_meta", RELATED_TASK, "taskId"])
}

fn at<'a>(text: &'a [u8], place: &[&str]) -> Option<&'a [u8]> {
    place.iter().try_fold(text, |text, name| member(text, name))
}

fn key(token: Token, method: &str, value: &[u8]) -> (Token, String, String) {
    let scope = if token == Token::Cursor { method } else { "" };
    let meaning = string(value).unwrap_or_else(|| String::from_utf8_lossy(value));
    (token, scope.to_owned(), meaning.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;

    fn sent(minted: &Minted, method: &str, params: &str) -> Result<String, Token> {
        let text = format!(r#"{{"id":1,"params":{params}}}"#);
        let frame = Frame::read(text.as_bytes());
        let mut edits = Edits::new(text.as_bytes());
        minted.edit(method, frame.envelope().unwrap(), &mut edits)?;
        Ok(String::from_utf8(edits.finish().into_owned()).unwrap())
    }

    #[test]
    fn what_the_live_server_has_minted_is_handed_back() {
        let mut minted = Minted::default();
        minted.learn("tools/list", br#"{"nextCursor":"a"}"#, Some(br#"{"nextCursor":"x"}"#));
        minted.learn(
            "tools/call",
            br#"{"task":{"taskId":"t"}}"#,
            Some(br#"{"task":{"taskId":"u"}}"#),
        );
        minted.learn(
            "tools/call",
            br#"{"requestState":"s"}"#,
            Some(br#"{"requestState":"\u0078"}"#),
        );
        let page = sent(&minted, "tools/list", r#"{"cursor":"\u0061"}"#);
        assert_eq!(page.unwrap(), r#"{"id":1,"params":{"cursor":"x"}}"#);
        let retry = sent(&minted, "tools/call", r#"{"requestState":"s","cursor":"a"}"#);
        assert_eq!(retry.unwrap(), r#"{"id":1,"params":{"requestState":"\u0078","cursor":"a"}}"#);
        let about =
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"taskId":"t"}"#;
        let result = sent(&minted, "tasks/result", about);
        assert_eq!(
            result.unwrap(),
            format!(r#"{{"id":1,"params":{about}}}"#).replace("\"t\"", "\"u\"")
        );
    }

    #[test]
    fn what_it_has_not_minted_cannot_be_handed_back() {
        let mut minted = Minted::default();
        minted.learn("tools/list", br#"{"nextCursor":"a"}"#, Some(b"{}"));
        minted.learn("tools/call", br#"{"requestState":"s"}"#, None);
        assert_eq!(sent(&minted, "tools/list", r#"{"cursor":"a"}"#), Err(Token::Cursor));
        assert_eq!(sent(&minted, "tools/call", r#"{"requestState":"s"}"#), Err(Token::State));
        // Another list has cursors of its own, and a value that no server issued is the client's.
        assert!(sent(&minted, "prompts/list", r#"{"cursor":"a"}"#).is_ok());
        assert!(sent(&minted, "tools/call", r#"{"requestState":"other"}"#).is_ok());
    }
}
