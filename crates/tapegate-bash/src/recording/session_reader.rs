//! Reads recordings, of any size in bounded memory.
//!
//! A last line without a line feed was torn by a crash and is skipped, as are lines that are not
//! entries; both are counted.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use tapegate_core::json::{self, Number};
use tapegate_core::time::read_rfc3339;

use super::RecordingFolder;
use super::metadata::{ACTIVE, INTERRUPTED, SessionMetadata};
use super::session_file::has_writer;

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 1 << 30;

/// A session on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPath {
    pub session_id: String,
    /// Its entries.
    pub path: PathBuf,
}

/// A session, and what is known of it.
#[derive(Debug, Clone)]
pub struct SessionSummary {
    /// Its entries.
    pub path: PathBuf,
    /// How long the file is.
    pub file_bytes: u64,
    /// Its metadata, as the files show it now.
    pub metadata: SessionMetadata,
}

/// The parts of an entry that reports are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySummary<'a> {
    /// The whole line.
    pub line: &'a [u8],
    /// Its place in the session, by start.
    pub sequence_number: u64,
    /// When it was started.
    pub started_us: i64,
    /// How long it took.
    pub duration_ms: u64,
    /// The command line.
    pub command: Cow<'a, str>,
    /// Where it ran.
    pub working_directory: Cow<'a, str>,
    /// Whether it timed out.
    pub timed_out: bool,
    pub exit_code: Option<i64>,
    pub agent_id: Option<Cow<'a, str>>,
    pub conversation_id: Option<Cow<'a, str>>,
}

/// What was skipped in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedLines {
    /// Lines that are not entries.
    pub invalid: u64,
    /// Whether the last line was torn.
    pub is_torn: bool,
}

/// The sessions in a folder, oldest first. Files of both layouts of the document are found.
pub fn sessions(folder: &RecordingFolder) -> io::Result<Vec<SessionPath>> {
    let mut found = Vec::new();
    for place in [folder.sessions(), folder.path().to_owned()] {
        let entries = match fs::read_dir(&place) {
            Ok(entries) => entries,
            // A project without recordings is not an error.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            let is_session = path.extension().is_some_and(|extension| extension == "jsonl");
            let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_session);
            let Some(session_id) = stem.map(str::to_owned) else { continue };
            found.push(SessionPath { session_id, path });
        }
    }
    // Ids begin with the time, so this is the order of the sessions.
    found.sort_by(|one, two| one.session_id.cmp(&two.session_id));
    Ok(found)
}

/// What is known of a session. The file is read only if its metadata may be behind.
pub fn summary(session: &SessionPath) -> io::Result<SessionSummary> {
    let file_bytes = fs::metadata(&session.path)?.len();
    // Of an active session, the metadata may be behind the entries by the publisher's delay.
    let beside = session.path.with_file_name(format!("{}.meta.json", session.session_id));
    let known = SessionMetadata::read(&beside);
    if let Some(metadata) = known.as_ref().filter(|metadata| metadata.status != ACTIVE) {
        let (path, metadata) = (session.path.clone(), metadata.clone());
        return Ok(SessionSummary { path, file_bytes, metadata });
    }
    let mut metadata = scan(session, known)?;
    // Only shown, never written: a reader must not race with the next start, which recovers it.
    if !has_writer(&session.path) {
        metadata.status = INTERRUPTED.to_owned();
    }
    Ok(SessionSummary { path: session.path.clone(), file_bytes, metadata })
}

/// Computes the metadata of a session from its entries. Known metadata gives what they lack.
pub(super) fn scan(
    session: &SessionPath,
    known: Option<SessionMetadata>,
) -> io::Result<SessionMetadata> {
    let created_us = known.as_ref().map(|known| known.created_us);
    let created_us = created_us.or_else(|| created_from_id(&session.session_id));
    let mut metadata = SessionMetadata::new(&session.session_id, created_us.unwrap_or(i64::MAX));
    if let Some(known) = known {
        metadata.updated_us = known.updated_us;
        metadata.working_directory = known.working_directory;
        (metadata.agent_id, metadata.conversation_id) = (known.agent_id, known.conversation_id);
    }
    entries(&session.path, &mut |entry| {
        metadata.add(entry.duration_ms, entry.timed_out, entry.exit_code);
        // The file was renamed, so its first entry has the time.
        if metadata.created_us == i64::MAX {
            metadata.created_us = entry.started_us;
            metadata.updated_us = entry.started_us;
        }
        let ended_us = entry.started_us.saturating_add(entry.duration_ms as i64 * 1000);
        metadata.updated_us = metadata.updated_us.max(ended_us);
        if metadata.working_directory.is_empty() {
            metadata.working_directory = entry.working_directory.into_owned();
        }
        metadata.agent_id = metadata.agent_id.take().or(entry.agent_id.map(Cow::into_owned));
        let conversation_id = entry.conversation_id.map(Cow::into_owned);
        metadata.conversation_id = metadata.conversation_id.take().or(conversation_id);
        Ok(())
    })?;
    if metadata.created_us == i64::MAX {
        (metadata.created_us, metadata.updated_us) = (0, 0);
    }
    Ok(metadata)
}

/// The time in a session id.
pub fn created_from_id(session_id: &str) -> Option<i64> {
    let digits = session_id.get(..15)?;
    let (date, time) = digits.split_once('_')?;
    let part = |text: &str, from: usize, to: usize| text.get(from..to).map(str::to_owned);
    let (year, month, day) = (part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?);
    let (hour, minute, second) = (part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, 6)?);
    read_rfc3339(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

/// Calls `each` with every entry of a file, in the order of the file.
pub fn entries(
    path: &Path,
    each: &mut dyn FnMut(EntrySummary<'_>) -> io::Result<()>,
) -> io::Result<SkippedLines> {
    let mut reader = BufReader::with_capacity(256 * 1024, File::open(path)?);
    let mut skipped = SkippedLines::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read =
            io::Read::take(&mut reader, LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(skipped);
        }
        if line.last() != Some(&b'\n') {
            // A line that is being appended right now looks the same; it is complete at the next
            // reading.
            skipped.is_torn = true;
            return Ok(skipped);
        }
        match read_entry(&line[..line.len() - 1]) {
            Some(entry) => each(entry)?,
            None if line.trim_ascii().is_empty() => {}
            None => skipped.invalid += 1,
        }
    }
}

/// Reads the parts of an entry.
fn read_entry(line: &[u8]) -> Option<EntrySummary<'_>> {
    let (mut command, mut started_us, mut entry_id) = (None, None, false);
    let mut entry = EntrySummary {
        line,
        sequence_number: 0,
        started_us: 0,
        duration_ms: 0,
        command: Cow::Borrowed(""),
        working_directory: Cow::Borrowed(""),
        timed_out: false,
        exit_code: None,
        agent_id: None,
        conversation_id: None,
    };
    for member in json::members(line) {
        let (key, value) = member.ok()?;
        match key.text() {
            "entry_id" => entry_id = json::string(value).is_some(),
            "sequence_number" => entry.sequence_number = Number::read(value).as_u64().unwrap_or(0),
            "timestamp" => started_us = json::string(value).and_then(|text| read_rfc3339(&text)),
            "duration_ms" => entry.duration_ms = Number::read(value).as_u64().unwrap_or(0),
            "command" => command = json::string(value),
            "working_directory" => entry.working_directory = json::string(value)?,
            "timed_out" => entry.timed_out = value == b"true",
            "exit_code" => {
                entry.exit_code = std::str::from_utf8(value).ok().and_then(|it| it.parse().ok());
            }
            "agent_id" => entry.agent_id = json::string(value),
            "conversation_id" => entry.conversation_id = json::string(value),
            _ => {}
        }
    }
    (entry.command, entry.started_us) = (command?, started_us?);
    entry_id.then_some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::entry::RecordingEntry;

    #[test]
    fn torn_and_foreign_lines_are_skipped_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("20260118_143052_a7b3c9d2-e4f5.jsonl");
        let entry = RecordingEntry {
            entry_id: "e_1".to_owned(),
            sequence_number: 2,
            command: "echo \"ü\"".to_owned(),
            exit_code: Some(3),
            duration_ms: 1500,
            working_directory: "/w".to_owned(),
            started_us: 5_000_000,
            ..RecordingEntry::default()
        };
        let line = entry.to_json().to_string();
        std::fs::write(&path, format!("{line}\n{{\"a\":1}}\n\n{line}\n{{\"entry_id\":\"e_3\""))
            .unwrap();
        let mut found = Vec::new();
        let skipped = entries(&path, &mut |entry| {
            found.push((entry.sequence_number, entry.command.into_owned(), entry.exit_code));
            Ok(())
        });
        assert_eq!(skipped.unwrap(), SkippedLines { invalid: 1, is_torn: true });
        assert_eq!(found, vec![(2, "echo \"ü\"".to_owned(), Some(3)); 2]);
        let folder = RecordingFolder::new(folder.path());
        let session = &sessions(&folder).unwrap()[0];
        let metadata = summary(session).unwrap().metadata;
        assert_eq!(
            (metadata.entry_count, metadata.failed, metadata.total_duration_ms),
            (2, 2, 3000)
        );
        assert_eq!(metadata.status, INTERRUPTED);
        assert_eq!(metadata.created_us, read_rfc3339("2026-01-18T14:30:52Z").unwrap());
    }
}
