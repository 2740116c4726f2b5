//! Lines for the activity log, sent by shims that cannot write it themselves.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tapegate_core::decision::LoggedDecision;
use tapegate_core::json::write_str;
use tapegate_core::time::{SubSecond, read_rfc3339, write_rfc3339};
use tapegate_store::activity;

/// Events to log, in order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EventsRequest {
    /// An id for the batch: events with a known id are not logged again when they are resent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// The log that the events come from. Each event then carries its number there in
    /// `shipped_seq`, and is logged unless that number or a higher one from the same log already
    /// was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped_from: Option<String>,
    /// The events.
    pub events: Vec<EventLine>,
}

/// The acknowledgement that events were logged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsAnswer {
    /// How many events.
    pub written: usize,
}

/// One event, with the keys of the activity log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct EventLine {
    /// When it happened, as RFC 3339.
    pub timestamp: String,
    /// `info`, `warn` or `error`.
    pub level: String,
    /// The kind of event.
    pub kind: String,
    /// The component that logged it.
    pub component: String,
    /// The server.
    #[serde(default)]
    pub server_id: String,
    /// The direction of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tool, prompt or URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The raw id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governance_decision: Option<String>,
    /// The gate that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The rule that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The Cedar policies that decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_reason: Option<String>,
    /// The version of the policy in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// The profile.
    pub profile: String,
    /// Whether the message was forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<bool>,
    /// Whether approval was skipped because the profile does not require it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_approved: bool,
    /// How long the decision took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// The caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The approval request that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// Who decided the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Identifies one connection of one shim.
    #[serde(default)]
    pub connection_id: String,
    /// Reported to the caller as `correlation_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The tape this belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape_session_id: Option<String>,
    /// The number of the message on that tape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape_seq: Option<u64>,
    /// W3C trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Its number in the log that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped_seq: Option<u64>,
    /// Anything else: an object whose members are logged as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Box<RawValue>>,
}

/// A value that the activity log does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` may not be `{word}`; expected {expected}")]
pub struct UnknownWord {
    field: &'static str,
    word: String,
    expected: String,
}

/// Appends a member to an unterminated object.
fn put_member(object: &mut Vec<u8>, key: &str, value: &[u8]) {
    object.push(if object.is_empty() { b'{' } else { b',' });
    write_str(object, key);
    object.push(b':');
    object.extend_from_slice(value);
}

/// The keys of a log line that have a field of their own.
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
const LEVELS: &[&str] = &["info", "warn", "error"];
const COMPONENTS: &[&str] = &["shim", "hub", "cli"];
const DIRECTIONS: &[&str] = &["agent_to_server", "server_to_agent"];
const GATES: &[&str] = &["framing", "visibility", "governance", "policy", "approval"];
const PROFILES: &[&str] = &["production", "development"];

/// Whether a key belongs to the log itself, so that `extra` must not contain it.
fn is_reserved(key: &str) -> bool {
    KEYS.contains(&key) || ["seq", "prev", "hash", "shipped_from", "shipped_seq"].contains(&key)
}

impl EventLine {
    /// Converts an event, to send it.
    pub fn of(event: &activity::ActivityEvent<'_>) -> Self {
        let mut timestamp = Vec::new();
        write_rfc3339(&mut timestamp, event.wall_us, SubSecond::Micros);
        let word = |word: Option<&'static str>| word.map(str::to_owned);
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        let extra = Some(&*event.extra).filter(|extra| !extra.is_empty());
        let extra = extra.and_then(|extra| RawValue::from_string(format!("{{{extra}}}")).ok());
        Self {
            timestamp: String::from_utf8_lossy(&timestamp).into_owned(),
            level: event.level.to_owned(),
            kind: event.kind.to_owned(),
            component: event.component.to_owned(),
            server_id: event.server_id.to_string(),
            direction: word(event.direction),
            method: text(&event.method),
            tool: text(&event.tool),
            message_id: text(&event.message_id),
            governance_decision: word(event.governance_decision.map(LoggedDecision::as_str)),
            gate: word(event.gate),
            rule: text(&event.rule),
            policies: event.policies.to_vec(),
            policy_reason: text(&event.policy_reason),
            policy_version: text(&event.policy_version),
            profile: event.profile.to_owned(),
            forwarded: event.forwarded,
            auto_approved: event.auto_approved,
            latency_us: event.latency_us,
            principal: text(&event.principal),
            approval_id: text(&event.approval_id),
            decided_by: text(&event.decided_by),
            connection_id: event.connection_id.to_string(),
            request_id: text(&event.request_id),
            tape_session_id: text(&event.tape_session_id),
            tape_seq: event.tape_seq,
            traceparent: text(&event.traceparent),
            shipped_seq: None,
            extra,
        }
    }

    /// Converts a line of one log, to write it to another.
    pub fn from_logged(seq: u64, line: &activity::LoggedEvent) -> Self {
        let (mut known, mut extra) = (Vec::new(), Vec::new());
        for (key, value) in line.members() {
            match key {
                // The chain links belong to the log that the line was written to.
                "seq" | "prev" | "hash" => {}
                key if KEYS.contains(&key) => put_member(&mut known, key, value),
                key => put_member(&mut extra, key, value),
            }
        }
        // Lines that a log writes about itself have neither.
        for (key, word) in [("component", "\"shim\""), ("profile", "\"production\"")] {
            if line.raw(key).is_none() {
                put_member(&mut known, key, word.as_bytes());
            }
        }
        known.push(b'}');
        let read = serde_json::from_slice::<Self>(&known);
        let line = read.unwrap_or_else(|_| {
            // A line that does not parse is kept as text, for people who read the log.
            let mut text = Vec::new();
            write_str(&mut text, &String::from_utf8_lossy(line.text()));
            extra.clear();
            put_member(&mut extra, "line", &text);
            Self {
                timestamp: "1970-01-01T00:00:00Z".to_owned(),
                level: "warn".to_owned(),
                kind: "log".to_owned(),
                component: "shim".to_owned(),
                profile: "production".to_owned(),
                ..Self::default()
            }
        });
        let extra = (!extra.is_empty()).then(|| {
            extra.push(b'}');
            RawValue::from_string(String::from_utf8_lossy(&extra).into_owned())
        });
        let extra = extra.and_then(Result::ok);
        Self { shipped_seq: Some(seq), extra, ..line }
    }

    /// Converts back to an event, to log it. Refuses words and keys that a shim never sends.
    pub fn read(self) -> Result<activity::ActivityEvent<'static>, UnknownWord> {
        let when = read_rfc3339(&self.timestamp);
        let strange = |field, word: &str, expected: &str| UnknownWord {
            field,
            word: word.to_owned(),
            expected: expected.to_owned(),
        };
        let extra = self.extra.as_ref().map_or("{}", |extra| extra.get()).trim();
        let members = extra.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let not_object = || strange("extra", extra, "an object");
        // `extra` is copied into the line. A key of the line's own would be a second value of it, and
        // a forged `shipped_seq` would make the hub drop the real lines of another log.
        let own: BTreeMap<String, &RawValue> =
            serde_json::from_str(extra).map_err(|_| not_object())?;
        if let Some(key) = own.keys().find(|key| is_reserved(key)) {
            return Err(strange("extra", key, "keys that an event does not have"));
        }
        Ok(activity::ActivityEvent {
            wall_us: when
                .ok_or_else(|| strange("timestamp", &self.timestamp, "an RFC 3339 time"))?,
            level: known_word("level", &self.level, LEVELS)?,
            kind: known_word("kind", &self.kind, activity::KINDS)?,
            component: known_word("component", &self.component, COMPONENTS)?,
            server_id: self.server_id.into(),
            direction: known_word_if_any("direction", self.direction.as_deref(), DIRECTIONS)?,
            method: self.method.map(Cow::Owned),
            tool: self.tool.map(Cow::Owned),
            message_id: self.message_id.map(Cow::Owned),
            governance_decision: self.governance_decision.as_deref().map(decision).transpose()?,
            gate: known_word_if_any("gate", self.gate.as_deref(), GATES)?,
            rule: self.rule.map(Cow::Owned),
            policies: self.policies.into(),
            policy_reason: self.policy_reason.map(Cow::Owned),
            policy_version: self.policy_version.map(Cow::Owned),
            profile: known_word("profile", &self.profile, PROFILES)?,
            forwarded: self.forwarded,
            auto_approved: self.auto_approved,
            latency_us: self.latency_us,
            principal: self.principal.map(Cow::Owned),
            approval_id: self.approval_id.map(Cow::Owned),
            decided_by: self.decided_by.map(Cow::Owned),
            connection_id: self.connection_id.into(),
            request_id: self.request_id.map(Cow::Owned),
            tape_session_id: self.tape_session_id.map(Cow::Owned),
            tape_seq: self.tape_seq,
            traceparent: self.traceparent.map(Cow::Owned),
            extra: members.ok_or_else(not_object)?.trim().to_owned().into(),
        })
    }
}

/// Looks up a word among the known ones.
fn known_word(
    field: &'static str,
    word: &str,
    words: &'static [&'static str],
) -> Result<&'static str, UnknownWord> {
    let found = words.iter().find(|known| **known == word).copied();
    found.ok_or_else(|| UnknownWord {
        field,
        // The caller chooses the word, and the message is sent back and logged.
        word: word.chars().take(64).collect(),
        expected: words.join(", "),
    })
}

fn decision(word: &str) -> Result<LoggedDecision, UnknownWord> {
    LoggedDecision::parse(word).ok_or_else(|| UnknownWord {
        field: "governance_decision",
        word: word.chars().take(64).collect(),
        expected: LoggedDecision::ALL.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", "),
    })
}

fn known_word_if_any(
    field: &'static str,
    word: Option<&str>,
    words: &'static [&'static str],
) -> Result<Option<&'static str>, UnknownWord> {
    word.map(|word| known_word(field, word, words)).transpose()
}
