//! Reads an event back from the text of a line.

use std::borrow::Cow;

use tapegate_core::activity::ActivityEvent;
use tapegate_core::decision::LoggedDecision;
use tapegate_core::json::{Cursor, JsonFault, JsonKind, string};
use tapegate_core::side::Side;
use tapegate_core::time::read_rfc3339;
use tapegate_core::words::WordEnum;

use super::LoggedEvent;
use super::line::{AGENT_TO_SERVER, SERVER_TO_AGENT};

/// The keys of a line that have a field of their own.
const KEYS: &[&str] = &[
    "timestamp",
    "level",
    "kind",
    "component",
    "server_id",
    "direction",
    "method",
    "tool",
    "message_id",
    "governance_decision",
    "gate",
    "rule",
    "policies",
    "policy_reason",
    "policy_version",
    "profile",
    "forwarded",
    "auto_approved",
    "latency_us",
    "principal",
    "approval_id",
    "decided_by",
    "connection_id",
    "request_id",
    "tape_session_id",
    "tape_seq",
    "traceparent",
];

/// Whether a key of a line has a field of its own in [`ActivityEvent`].
pub fn is_event_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Why an object is not an event that the log knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventReadError {
    /// A key that every event has is missing.
    #[error("missing field `{0}`")]
    Missing(&'static str),
    /// A value that the log does not know.
    #[error("`{field}` may not be `{word}`; expected {expected}")]
    Unknown {
        /// The key.
        field: &'static str,
        /// The value, cut to a length that can be logged.
        word: String,
        /// The values it may have.
        expected: String,
    },
}

impl EventReadError {
    /// The error for a value. The caller chooses it, and the message is sent back and logged.
    pub fn unknown(field: &'static str, word: &str, expected: &str) -> Self {
        let word = word.chars().take(64).collect();
        Self::Unknown { field, word, expected: expected.to_owned() }
    }
}

/// Reads the known members of a line; `extra` is left empty. Refuses values that are never logged.
pub fn read_event(line: &LoggedEvent) -> Result<ActivityEvent<'static>, EventReadError> {
    let line = EventMembers(line);
    let timestamp = line.text("timestamp")?.ok_or(EventReadError::Missing("timestamp"))?;
    let wall_us = read_rfc3339(&timestamp)
        .ok_or_else(|| EventReadError::unknown("timestamp", &timestamp, "an RFC 3339 time"))?;
    Ok(ActivityEvent {
        wall_us,
        level: line.word("level")?.ok_or(EventReadError::Missing("level"))?,
        kind: line.word("kind")?.ok_or(EventReadError::Missing("kind"))?,
        component: Some(line.word("component")?.ok_or(EventReadError::Missing("component"))?),
        server_id: line.text("server_id")?.unwrap_or_default(),
        direction: line.direction()?,
        method: line.text("method")?,
        tool: line.text("tool")?,
        message_id: line.text("message_id")?,
        governance_decision: line.decision()?,
        gate: line.word("gate")?,
        rule: line.text("rule")?,
        policies: line.policies()?,
        policy_reason: line.text("policy_reason")?,
        policy_version: line.text("policy_version")?,
        profile: Some(line.word("profile")?.ok_or(EventReadError::Missing("profile"))?),
        forwarded: line.flag("forwarded")?,
        auto_approved: line.flag("auto_approved")?.unwrap_or_default(),
        latency_us: line.number("latency_us")?,
        principal: line.text("principal")?,
        approval_id: line.text("approval_id")?,
        decided_by: line.text("decided_by")?,
        connection_id: line.text("connection_id")?.unwrap_or_default(),
        request_id: line.text("request_id")?,
        tape_session_id: line.text("tape_session_id")?,
        tape_seq: line.number("tape_seq")?,
        traceparent: line.text("traceparent")?,
        extra: Cow::Borrowed(""),
    })
}

/// The members of a line, by key. A member that is `null` counts as missing.
struct EventMembers<'a>(&'a LoggedEvent);

impl EventMembers<'_> {
    fn value<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, EventReadError> {
        let Some(raw) = self.0.raw(key).filter(|raw| *raw != b"null") else { return Ok(None) };
        let unknown = || {
            let word = string(raw).unwrap_or_else(|| String::from_utf8_lossy(raw));
            EventReadError::unknown(key, &word, expected)
        };
        read(raw).map(Some).ok_or_else(unknown)
    }

    fn text(&self, key: &'static str) -> Result<Option<Cow<'static, str>>, EventReadError> {
        self.value(key, "a string", |raw| Some(Cow::Owned(string(raw)?.into_owned())))
    }

    fn word<T: WordEnum>(&self, key: &'static str) -> Result<Option<T>, EventReadError> {
        self.value(key, &words::<T>(), |raw| T::from_word(&string(raw)?))
    }

    /// Decisions are read in any letter case, as on the command line.
    fn decision(&self) -> Result<Option<LoggedDecision>, EventReadError> {
        let expected = words::<LoggedDecision>();
        self.value("governance_decision", &expected, |raw| LoggedDecision::parse(&string(raw)?))
    }

    fn direction(&self) -> Result<Option<Side>, EventReadError> {
        let expected = format!("{AGENT_TO_SERVER}, {SERVER_TO_AGENT}");
        self.value("direction", &expected, |raw| match &*string(raw)? {
            AGENT_TO_SERVER => Some(Side::Client),
            SERVER_TO_AGENT => Some(Side::Server),
            _ => None,
        })
    }

    fn policies(&self) -> Result<Cow<'static, [String]>, EventReadError> {
        let texts = self.value("policies", "a list of strings", |raw| texts(raw).ok())?;
        Ok(texts.unwrap_or_default().into())
    }

    fn flag(&self, key: &'static str) -> Result<Option<bool>, EventReadError> {
        self.value(key, "true or false", |_| self.0.bool_value(key))
    }

    fn number(&self, key: &'static str) -> Result<Option<u64>, EventReadError> {
        self.value(key, "a whole number", |_| self.0.number(key))
    }
}

/// The strings of an array.
fn texts(array: &[u8]) -> Result<Vec<String>, JsonFault> {
    let mut cursor = Cursor::new(array)?;
    if cursor.open()? != JsonKind::Array {
        return Err(JsonFault { at: 0, what: "no array" });
    }
    let mut texts = Vec::new();
    while cursor.next_item()? {
        texts.push(cursor.string()?.decode().into_owned());
    }
    Ok(texts)
}

fn words<T: WordEnum>() -> String {
    T::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", ")
}
