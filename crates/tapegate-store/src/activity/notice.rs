//! What the log records about itself: lines of the kind `log`, chained like any other.
//!
//! They distinguish a rotated file, a torn last line and an expired file from tampering.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};

use super::rotation::LogRemoval;
use super::{extra, files, line};

/// A writer was killed in the middle of a line.
pub(super) const TORN: &str = "torn_tail";
/// The file continues a rotated one.
pub(super) const CONTINUED: &str = "continued";
/// Files were removed because their retention time was over.
pub(super) const REMOVED: &str = "retention";
/// Events could not be written.
pub(super) const LOST: &str = "lost";

/// How much of a torn line is recorded.
const TORN_BYTES_MAX: usize = 1024;

pub(super) fn torn_notice(bytes: &[u8]) -> Vec<u8> {
    let kept = String::from_utf8_lossy(&bytes[..bytes.len().min(TORN_BYTES_MAX)]);
    body(EventLevel::Warn, &json!({ "event": TORN, "torn_bytes": bytes.len(), "torn": kept }))
}

pub(super) fn continued_notice(number: u64) -> Vec<u8> {
    body(EventLevel::Info, &json!({ "event": CONTINUED, "previous_file": files::name(number) }))
}

pub(super) fn removed_notice(removal: &LogRemoval) -> Option<Vec<u8>> {
    let link = removal.link?;
    let names: Vec<String> = removal.numbers.iter().map(|number| files::name(*number)).collect();
    let members = json!({
        "event": REMOVED,
        "removed": names,
        "removed_seq": link.seq,
        "removed_hash": link.text(),
    });
    Some(body(EventLevel::Info, &members))
}

pub(super) fn lost_notice(events: u64) -> Option<Vec<u8>> {
    (events > 0).then(|| body(EventLevel::Error, &json!({ "event": LOST, "lost": events })))
}

fn body(level: EventLevel, members: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let event = ActivityEvent {
        wall_us: now_us(),
        level,
        kind: ActivityKind::Log,
        extra: extra(members),
        ..ActivityEvent::default()
    };
    line::write(&event, &mut out);
    out
}

fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
