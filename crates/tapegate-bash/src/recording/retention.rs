//! Deletes old recordings.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde_json::{Map, Value, json};
use tapegate_core::time::read_rfc3339;

use super::RecordingFolder;
use super::metadata::{ACTIVE, write_json};
use super::session_id::timestamp;
use super::session_reader::{self, SessionPath, SessionSummary};

/// A day in microseconds.
pub const DAY_US: i64 = 86_400_000_000;

/// The sessions whose last command is older than this. Active sessions are never among them.
pub fn sessions_before(
    folder: &RecordingFolder,
    before_us: i64,
) -> io::Result<Vec<SessionSummary>> {
    let mut old = Vec::new();
    for session in session_reader::sessions(folder)? {
        // The id has the time of the start, so most sessions need not be opened.
        let started = session_reader::created_from_id(&session.session_id);
        if started.is_some_and(|started| started >= before_us) {
            continue;
        }
        let summary = session_reader::summary(&session)?;
        // The end counts, since a session that began long ago may have run until today.
        if summary.metadata.updated_us < before_us && summary.metadata.status != ACTIVE {
            old.push(summary);
        }
    }
    Ok(old)
}

/// How long a session must have been known as too old before a server deletes it.
const CONFIRM_US: i64 = DAY_US;

/// Those of the old sessions that an earlier start, at least a day ago, has already found too old.
/// The others are noted for the next start.
///
/// A server that starts while the clock is far ahead finds everything too old. It must not delete
/// anything on that evidence alone.
pub(super) fn confirm(
    folder: &RecordingFolder,
    old: Vec<SessionSummary>,
    now_us: i64,
) -> io::Result<Vec<SessionSummary>> {
    let path = folder.retention();
    let before = read_notes(folder);
    let mut notes = BTreeMap::new();
    let mut due = Vec::new();
    for summary in old {
        let session_id = summary.metadata.session_id.clone();
        // A note from the future was made while the clock was wrong.
        let since_us = before.get(&session_id).copied().filter(|since_us| *since_us <= now_us);
        if since_us.is_some_and(|since_us| now_us - since_us >= CONFIRM_US) {
            due.push(summary);
        } else {
            notes.insert(session_id, since_us.unwrap_or(now_us));
        }
    }
    // Sessions that are not too old any more lose their notes here.
    if notes.is_empty() {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    } else if notes != before {
        let notes: Map<String, Value> =
            notes.into_iter().map(|(id, us)| (id, timestamp(us).into())).collect();
        write_json(&path, &json!({"version": "1.0", "too_old_since": notes}))?;
    }
    Ok(due)
}

fn read_notes(folder: &RecordingFolder) -> BTreeMap<String, i64> {
    let text = fs::read(folder.retention()).unwrap_or_default();
    // A broken file only delays a deletion.
    let value: Value = serde_json::from_slice(&text).unwrap_or_default();
    let notes = value.get("too_old_since").and_then(Value::as_object);
    let notes = notes.into_iter().flatten();
    notes.filter_map(|(id, at)| Some((id.clone(), read_rfc3339(at.as_str()?)?))).collect()
}

/// Deletes a session. Its entries go last: without them there is no session.
pub fn delete(folder: &RecordingFolder, summary: &SessionSummary) -> io::Result<()> {
    let session_id = &summary.metadata.session_id;
    let session = SessionPath { session_id: session_id.clone(), path: summary.path.clone() };
    let beside = |name: String| session.path.with_file_name(name);
    for path in [
        // Both layouts: beside the entries, and where we write.
        beside(format!("{session_id}.meta.json")),
        beside(format!("{session_id}.pending.json")),
        folder.metadata(session_id),
        session.path.clone(),
    ] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
