//! Values that a server issues and a client returns: cursors, request states, task ids.
//!
//! A live server issues its own, so wherever the recorded client returned one, the live value from
//! the corresponding answer is sent instead.

use std::collections::HashMap;

use crate::frame::Envelope;
use crate::json::{JsonEdits, member, string};

/// The key of `_meta` that names the task a message belongs to.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The kind of an issued value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MintedKind {
    /// The start of the next page of a list.
    Cursor,
    /// The state that a server wants returned with the answers it asked for.
    State,
    /// The id of a task.
    Task,
}

/// The values that a live server has issued in place of the recorded ones.
#[derive(Debug, Default)]
pub(super) struct MintedValues {
    /// By kind, method (for cursors, which differ by list) and recorded value; `None` if the live
    /// server issued none.
    live: HashMap<(MintedKind, String, String), Option<Vec<u8>>>,
}

/// The live counterpart of a recorded value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MintedLookup<'a> {
    /// The live server issued this one.
    Live(&'a [u8]),
    /// The live server issued none.
    Lost,
    /// It was not issued by a known answer.
    Unknown,
}

impl MintedValues {
    /// Learns the live values from an answer to `method`. Both texts are results; `live` is `None`
    /// if the server failed or was not asked.
    pub(super) fn learn(&mut self, method: &str, recorded: &[u8], live: Option<&[u8]>) {
        let places: [(MintedKind, &[&str]); 4] = [
            (MintedKind::Cursor, &["nextCursor"]),
            (MintedKind::State, &["requestState"]),
            (MintedKind::Task, &["task", "taskId"]),
            (MintedKind::Task, &["taskId"]),
        ];
        for (token, place) in places {
            // Recorded even if the live server has none: a later request with this value cannot be
            // sent.
            if let Some(minted_values) = value_at(recorded, place) {
                let live = live.and_then(|live| value_at(live, place));
                self.live.insert(key(token, method, minted_values), live.map(<[u8]>::to_vec));
            }
        }
    }

    /// The live counterpart of a value that was recorded in an answer to `method`.
    pub(super) fn token_state(
        &self,
        token: MintedKind,
        method: &str,
        recorded: &[u8],
    ) -> MintedLookup<'_> {
        match self.live.get(&key(token, method, recorded)) {
            Some(Some(live)) => MintedLookup::Live(live),
            Some(None) => MintedLookup::Lost,
            None => MintedLookup::Unknown,
        }
    }

    /// The live counterpart of the task that a request is about.
    pub(super) fn task_state(&self, envelope: &Envelope<'_>) -> MintedLookup<'_> {
        let task = envelope.params.and_then(|params| member(params, "taskId"));
        task.map_or(MintedLookup::Unknown, |task| self.token_state(MintedKind::Task, "", task))
    }

    /// Replaces the issued values in a recorded message by live ones; fails if the live server has
    /// not issued one.
    pub(super) fn replace_tokens(
        &self,
        method: &str,
        envelope: &Envelope<'_>,
        edits: &mut JsonEdits<'_>,
    ) -> Result<(), MintedKind> {
        let handed_back = [
            (MintedKind::Cursor, envelope.params.and_then(|params| value_at(params, &["cursor"]))),
            (
                MintedKind::State,
                envelope.params.and_then(|params| value_at(params, &["requestState"])),
            ),
            (MintedKind::Task, envelope.params.and_then(|params| value_at(params, &["taskId"]))),
            (MintedKind::Task, related_task(envelope)),
        ];
        for (token, value) in handed_back {
            let Some(value) = value else { continue };
            match self.token_state(token, method, value) {
                MintedLookup::Live(live) => edits.replace(value, live),
                MintedLookup::Lost => return Err(token),
                // The tape does not show where the value comes from, so it is sent as it is.
                MintedLookup::Unknown => {}
            }
        }
        Ok(())
    }
}

/// The task that a message belongs to.
fn related_task<'a>(envelope: &Envelope<'a>) -> Option<&'a [u8]> {
    let body = envelope.params.or(envelope.result)?;
    value_at(body, &["_meta", RELATED_TASK, "taskId"])
}

fn value_at<'a>(text: &'a [u8], place: &[&str]) -> Option<&'a [u8]> {
    place.iter().try_fold(text, |text, name| member(text, name))
}

fn key(token: MintedKind, method: &str, value: &[u8]) -> (MintedKind, String, String) {
    // A cursor of one list means nothing to another. States and task ids are not tied to a method.
    let scope = if token == MintedKind::Cursor { method } else { "" };
    // By meaning, because a client may spell the value it returns differently.
    let meaning = string(value).unwrap_or_else(|| String::from_utf8_lossy(value));
    (token, scope.to_owned(), meaning.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;

    fn sent(
        minted_values: &MintedValues,
        method: &str,
        params: &str,
    ) -> Result<String, MintedKind> {
        let text = format!(r#"{{"id":1,"params":{params}}}"#);
        let frame = Frame::read(text.as_bytes());
        let mut edits = JsonEdits::new(text.as_bytes());
        minted_values.replace_tokens(method, frame.envelope().unwrap(), &mut edits)?;
        Ok(String::from_utf8(edits.finish().into_owned()).unwrap())
    }

    #[test]
    fn what_the_live_server_has_minted_is_handed_back() {
        let mut minted_values = MintedValues::default();
        minted_values.learn("tools/list", br#"{"nextCursor":"a"}"#, Some(br#"{"nextCursor":"x"}"#));
        minted_values.learn(
            "tools/call",
            br#"{"task":{"taskId":"t"}}"#,
            Some(br#"{"task":{"taskId":"u"}}"#),
        );
        minted_values.learn(
            "tools/call",
            br#"{"requestState":"s"}"#,
            Some(br#"{"requestState":"\u0078"}"#),
        );
        let page = sent(&minted_values, "tools/list", r#"{"cursor":"\u0061"}"#);
        assert_eq!(page.unwrap(), r#"{"id":1,"params":{"cursor":"x"}}"#);
        let retry = sent(&minted_values, "tools/call", r#"{"requestState":"s","cursor":"a"}"#);
        assert_eq!(retry.unwrap(), r#"{"id":1,"params":{"requestState":"\u0078","cursor":"a"}}"#);
        let about =
            r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"taskId":"t"}"#;
        let result = sent(&minted_values, "tasks/result", about);
        assert_eq!(
            result.unwrap(),
            format!(r#"{{"id":1,"params":{about}}}"#).replace("\"t\"", "\"u\"")
        );
    }

    #[test]
    fn what_it_has_not_minted_cannot_be_handed_back() {
        let mut minted_values = MintedValues::default();
        minted_values.learn("tools/list", br#"{"nextCursor":"a"}"#, Some(b"{}"));
        minted_values.learn("tools/call", br#"{"requestState":"s"}"#, None);
        assert_eq!(
            sent(&minted_values, "tools/list", r#"{"cursor":"a"}"#),
            Err(MintedKind::Cursor)
        );
        assert_eq!(
            sent(&minted_values, "tools/call", r#"{"requestState":"s"}"#),
            Err(MintedKind::State)
        );
        // Another list has cursors of its own, and a value that no server issued is the client's.
        assert!(sent(&minted_values, "prompts/list", r#"{"cursor":"a"}"#).is_ok());
        assert!(sent(&minted_values, "tools/call", r#"{"requestState":"other"}"#).is_ok());
    }
}
