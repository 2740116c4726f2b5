//! Events for the activity log, sent by shims that cannot write it themselves.
//!
//! On the wire an event is an object with the keys of its line in the log. Members without a field
//! of their own are in `extra`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tapegate_core::activity::ActivityEvent;
use tapegate_core::json::write_str;
use tapegate_store::activity::{EventReadError, LoggedEvent, is_event_key, read_event};

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
    /// The events, as [`UploadedEvent`] reads them.
    pub events: Vec<Box<RawValue>>,
}

/// The acknowledgement that events were logged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsAnswer {
    /// How many events.
    pub written: usize,
}

/// An event that a shim has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedEvent {
    pub event: ActivityEvent<'static>,
    /// Its number in the log that it comes from.
    pub shipped_seq: Option<u64>,
}

impl UploadedEvent {
    /// Reads an event. Refuses words and keys that a shim never sends.
    pub fn read(object: &RawValue) -> Result<Self, EventReadError> {
        let not_object = |text: &str| EventReadError::unknown("event", text, "an object");
        let line = LoggedEvent::read(0, object.get().as_bytes());
        let line = line.map_err(|_| not_object(object.get()))?;
        let extra = line.raw("extra").filter(|raw| *raw != b"null").unwrap_or(b"{}");
        let extra = std::str::from_utf8(extra).unwrap_or_default();
        let not_object = || EventReadError::unknown("extra", extra, "an object");
        // `extra` is copied into the line. A key of the line's own would be a second value of it, and
        // a forged `shipped_seq` would make the hub drop the real lines of another log.
        let own: BTreeMap<String, &RawValue> =
            serde_json::from_str(extra).map_err(|_| not_object())?;
        if let Some(key) = own.keys().find(|key| is_reserved(key)) {
            let expected = "keys that an event does not have";
            return Err(EventReadError::unknown("extra", key, expected));
        }
        let members = extra.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let extra = members.ok_or_else(not_object)?.trim().to_owned().into();
        let event = ActivityEvent { extra, ..read_event(&line)? };
        Ok(Self { event, shipped_seq: line.number("shipped_seq") })
    }
}

/// A line of a log as the object to send, with its number there.
pub fn upload_object(line: &LoggedEvent, shipped_seq: Option<u64>) -> Box<RawValue> {
    let (mut known, mut extra) = (Vec::new(), Vec::new());
    for (key, value) in line.members() {
        match key {
            // The chain links belong to the log that the line was written to.
            "seq" | "prev" | "hash" => {}
            key if is_event_key(key) => put_member(&mut known, key, value),
            key => put_member(&mut extra, key, value),
        }
    }
    // Lines that a log writes about itself have neither.
    for (key, word) in [("component", "\"shim\""), ("profile", "\"production\"")] {
        if line.raw(key).is_none() {
            put_member(&mut known, key, word.as_bytes());
        }
    }
    if ["timestamp", "level", "kind"].iter().any(|key| line.str(key).is_none()) {
        // A line that is not an event is kept as text, for people who read the log.
        let mut text = Vec::new();
        write_str(&mut text, &String::from_utf8_lossy(line.text()));
        known = UNREADABLE.to_vec();
        extra.clear();
        put_member(&mut extra, "line", &text);
    }
    if let Some(seq) = shipped_seq {
        put_member(&mut known, "shipped_seq", seq.to_string().as_bytes());
    }
    if !extra.is_empty() {
        extra.push(b'}');
        put_member(&mut known, "extra", &extra);
    }
    known.push(b'}');
    let object = RawValue::from_string(String::from_utf8_lossy(&known).into_owned());
    object.unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The members of an event whose line cannot be read.
const UNREADABLE: &[u8] = br#"{"timestamp":"1970-01-01T00:00:00Z","level":"warn","kind":"log","component":"shim","profile":"production""#;

/// Appends a member to an unterminated object.
fn put_member(object: &mut Vec<u8>, key: &str, value: &[u8]) {
    object.push(if object.is_empty() { b'{' } else { b',' });
    write_str(object, key);
    object.push(b':');
    object.extend_from_slice(value);
}

/// Whether a key belongs to the log itself, so that `extra` must not contain it.
fn is_reserved(key: &str) -> bool {
    is_event_key(key) || ["seq", "prev", "hash", "shipped_from", "shipped_seq"].contains(&key)
}
