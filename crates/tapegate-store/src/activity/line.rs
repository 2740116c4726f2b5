//! Writes an event as the text of a line.
//!
//! The keys and their order are a promise: docs/activity-log.md names them all. Keys may be added
//! but are never renamed or removed.

use tapegate_core::activity::{ActivityEvent, EventComponent, GateName, Profile};
use tapegate_core::decision::LoggedDecision;
use tapegate_core::json::{check, compact, write_str};
use tapegate_core::side::Side;
use tapegate_core::time::{SubSecond, write_rfc3339};

use super::chain::put_number;

/// Longer texts are truncated: a caller may choose any tool name, and must not inflate the log.
const TEXT_BYTES_MAX: usize = 2048;
/// The largest `extra` that is written.
pub const EXTRA_BYTES_MAX: usize = 64 * 1024;

/// A key, with the punctuation between two members.
macro_rules! key {
    ($key:literal) => {
        concat!(",\"", $key, "\":")
    };
}

/// The size to reserve for a line; most are shorter.
const LINE_BYTES: usize = 1024;
/// The text before the timestamp.
const START: &[u8] = b"{\"timestamp\":\"";
/// The position of the fraction in a timestamp.
const FRACTION: usize = "2026-01-01T00:00:00.".len();

/// Appends an event as an object without its closing brace.
pub(super) fn write(event: &ActivityEvent<'_>, out: &mut Vec<u8>) {
    write_at(event, &mut SecondCache::default(), out);
}

/// Like [`write`], but reuses the last timestamp.
pub(super) fn write_at(event: &ActivityEvent<'_>, second: &mut SecondCache, out: &mut Vec<u8>) {
    out.reserve(LINE_BYTES);
    let mut body = EventObject { out };
    body.write_time(event.wall_us, second);
    body.write_known(key!("level"), Some(event.level.as_str()));
    body.write_known(key!("kind"), Some(event.kind.as_str()));
    body.write_known(key!("component"), event.component.map(EventComponent::as_str));
    body.text(key!("server_id"), &event.server_id);
    body.write_known(key!("direction"), event.direction.map(direction));
    body.write_optional(key!("method"), event.method.as_deref());
    body.write_optional(key!("tool"), event.tool.as_deref());
    body.write_optional(key!("message_id"), event.message_id.as_deref());
    body.write_known(
        key!("governance_decision"),
        event.governance_decision.map(LoggedDecision::as_str),
    );
    body.write_known(key!("gate"), event.gate.map(GateName::as_str));
    body.write_optional(key!("rule"), event.rule.as_deref());
    body.list(key!("policies"), &event.policies);
    body.write_optional(key!("policy_reason"), event.policy_reason.as_deref());
    body.write_optional(key!("policy_version"), event.policy_version.as_deref());
    body.write_known(key!("profile"), event.profile.map(Profile::as_str));
    if let Some(forwarded) = event.forwarded {
        body.write_raw(key!("forwarded"), if forwarded { b"true" } else { b"false" });
    }
    if event.auto_approved {
        body.write_raw(key!("auto_approved"), b"true");
    }
    body.number(key!("latency_us"), event.latency_us);
    body.write_optional(key!("principal"), event.principal.as_deref());
    body.write_optional(key!("approval_id"), event.approval_id.as_deref());
    body.write_optional(key!("decided_by"), event.decided_by.as_deref());
    body.text(key!("connection_id"), &event.connection_id);
    body.write_optional(key!("request_id"), event.request_id.as_deref());
    body.write_optional(key!("tape_session_id"), event.tape_session_id.as_deref());
    body.number(key!("tape_seq"), event.tape_seq);
    body.write_optional(key!("traceparent"), event.traceparent.as_deref());
    body.write_extra(&event.extra);
}

/// The directions of a message, named by its sender.
pub(super) const AGENT_TO_SERVER: &str = "agent_to_server";
pub(super) const SERVER_TO_AGENT: &str = "server_to_agent";

fn direction(sender: Side) -> &'static str {
    match sender {
        Side::Client => AGENT_TO_SERVER,
        Side::Server => SERVER_TO_AGENT,
    }
}

/// The formatted second of the last event, which most events share with the one before.
#[derive(Debug, Default)]
pub(super) struct SecondCache {
    number: Option<i64>,
    text: Vec<u8>,
}

impl SecondCache {
    /// Appends a timestamp in RFC 3339 with microseconds.
    fn write(&mut self, wall_us: i64, out: &mut Vec<u8>) {
        let (number, micros) = (wall_us.div_euclid(1_000_000), wall_us.rem_euclid(1_000_000));
        if self.number != Some(number) {
            self.text.clear();
            write_rfc3339(&mut self.text, number.saturating_mul(1_000_000), SubSecond::Micros);
            self.number = Some(number);
        }
        let start = out.len();
        out.extend_from_slice(&self.text);
        let digits = &mut out[start + FRACTION..start + FRACTION + 6];
        digits.iter_mut().rev().fold(micros, |rest, digit| {
            *digit = b'0' + (rest % 10) as u8;
            rest / 10
        });
    }
}

/// An object that is being written.
struct EventObject<'a> {
    out: &'a mut Vec<u8>,
}

impl EventObject<'_> {
    /// Writes the timestamp, which is always the first member.
    fn write_time(&mut self, wall_us: i64, second: &mut SecondCache) {
        self.out.extend_from_slice(START);
        second.write(wall_us, self.out);
        self.out.push(b'"');
    }

    fn key(&mut self, key: &'static str) {
        self.out.extend_from_slice(key.as_bytes());
    }

    /// Writes one of our own words, which need no escaping.
    fn write_known(&mut self, key: &'static str, word: Option<&'static str>) {
        if let Some(word) = word {
            self.key(key);
            self.out.push(b'"');
            self.out.extend_from_slice(word.as_bytes());
            self.out.push(b'"');
        }
    }

    fn write_raw(&mut self, key: &'static str, json: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(json);
    }

    /// Writes a string member.
    fn write_text(&mut self, key: &'static str, word: &str) {
        self.key(key);
        put_text(self.out, word);
    }

    /// Writes a string member unless it is empty.
    fn text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            self.write_text(key, text);
        }
    }

    fn write_optional(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.write_text(key, text);
        }
    }

    fn number(&mut self, key: &'static str, number: Option<u64>) {
        if let Some(number) = number {
            self.key(key);
            put_number(self.out, number);
        }
    }

    fn list(&mut self, key: &'static str, texts: &[String]) {
        let Some((first, rest)) = texts.split_first() else { return };
        self.key(key);
        self.out.push(b'[');
        put_text(self.out, first);
        for text in rest {
            self.out.push(b',');
            put_text(self.out, text);
        }
        self.out.push(b']');
    }

    /// Writes the caller's own members. If they are not valid JSON, they are written as a string.
    fn write_extra(&mut self, members: &str) {
        if members.trim().is_empty() {
            return;
        }
        // Cutting JSON would break the line, so only its size is kept.
        if members.len() > EXTRA_BYTES_MAX {
            self.number(key!("extra_bytes"), Some(members.len() as u64));
            return;
        }
        // Parts of it come from peers. A quote or brace must not add members to the line.
        match check(format!("{{{members}}}").as_bytes()) {
            Ok(object) => {
                // A line break inside would end the line.
                let object = compact(object);
                self.out.push(b',');
                self.out.extend_from_slice(&object[1..object.len() - 1]);
            }
            Err(_) => self.write_text(key!("extra"), members),
        }
    }
}

/// Appends a JSON string, truncated if it is too long.
fn put_text(out: &mut Vec<u8>, text: &str) {
    if text.len() <= TEXT_BYTES_MAX {
        return write_str(out, text);
    }
    write_str(out, &format!("{}…", &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]));
}
