//! Records which lines a log has taken over from remote logs, so that each of them is in it once.
//!
//! A line that was taken over names the log it comes from and its number there (`shipped_from`,
//! `shipped_seq`). These members are authoritative. A small file next to the log records how far
//! each remote log was taken over, so that only newer lines must be scanned; it may lag behind the
//! log but is never ahead. It also holds the id of the log itself.
//!
//! ```text
//! <state folder>/hub-log     id <name>
//!                            seq <the last line of the log that this file knows of>
//!                            <name of another log> <the last number that was taken over>
//! ```

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::path::Path;

use rustix::fs::OFlags;
use tapegate_core::json::JsonObject;

use super::chain::ChainedLine;
use super::events::{LogLines, LoggedEvent, RawLogLine};
use super::files::{self, LogFile, parts};
use crate::approvals::new_id;
use crate::private_folder::FolderHandle;
use crate::temporary_file::TemporaryFile;

const FILE: &str = "hub-log";
/// Larger than any valid file.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How many rotations to tolerate during a scan.
const TRIES_MAX: usize = 10;
/// The longest id of a log.
const NAME_CHARS_MAX: usize = 64;

/// How far a log has taken over remote logs.
#[derive(Debug)]
pub struct ShippedPositions {
    folder: FolderHandle,
    id: String,
    /// The last line of the log that was scanned.
    seq: u64,
    last: BTreeMap<String, u64>,
}

/// The id of the log in a folder, if it takes over others.
pub fn log_id(folder: &Path) -> Option<String> {
    read(&FolderHandle::open(folder).ok()?).ok()?.map(|(id, ..)| id)
}

/// Whether a text can be the id of a log.
pub fn is_log_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.len() <= NAME_CHARS_MAX && text.bytes().all(is_plain)
}

/// Creates an id for a log.
pub(crate) fn new_log_id() -> io::Result<String> {
    Ok(new_id()?.replacen("ap_", "log_", 1))
}

impl ShippedPositions {
    /// Reads what the log in `folder` has taken over.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let handle = FolderHandle::create(folder)?;
        let found = read(&handle)?;
        let is_new = found.is_none();
        let (id, seq, last) = match found {
            Some(found) => found,
            None => (new_log_id()?, 0, BTreeMap::new()),
        };
        let mut shipped = Self { folder: handle, id, seq, last };
        shipped.scan()?;
        match is_new {
            // The id must be stored before the first line is taken over.
            true => shipped.save()?,
            // Saves the next open from scanning these lines again; a failure only costs time.
            false if shipped.seq != seq => shipped.save().unwrap_or_default(),
            false => {}
        }
        Ok(shipped)
    }

    /// The id of the log.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The last number taken over from the log with this id; 0 if none was.
    pub fn last(&self, from: &str) -> u64 {
        self.last.get(from).copied().unwrap_or(0)
    }

    /// The members to add to a line that is taken over.
    pub fn members(from: &str, seq: u64) -> String {
        JsonObject::new().text("shipped_from", from).number("shipped_seq", seq).into_bare_members()
    }

    /// Records that lines up to `seq` were taken over and that the log now ends in line `end`. If
    /// the file cannot be written, the log is scanned the next time.
    pub fn note_imported(&mut self, from: &str, seq: u64, end: u64) {
        let last = self.last.entry(from.to_owned()).or_default();
        *last = seq.max(*last);
        // `end` only after the lines are in the log, so that the file is never ahead of it.
        self.seq = end.max(self.seq);
        self.save().ok();
    }

    fn save(&self) -> io::Result<()> {
        let mut text = format!("id {}\nseq {}\n", self.id, self.seq);
        self.last.iter().for_each(|(from, seq)| text.push_str(&format!("{from} {seq}\n")));
        let mut temporary = TemporaryFile::in_folder(&self.folder, FILE)?;
        temporary.write(text.as_bytes())?;
        temporary.replace(FILE)
    }

    /// Scans the lines that were written since the file was saved, newest files first.
    fn scan(&mut self) -> io::Result<()> {
        for _ in 0..TRIES_MAX {
            let before = parts(self.folder.path())?;
            let found = self.scan_parts(&before);
            // A file that was rotated meanwhile may have been missed or scanned twice.
            match found {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) if parts(self.folder.path())? == before => return Ok(()),
                _ => {}
            }
        }
        Err(io::Error::other("its files are rotated faster than they are read"))
    }

    fn scan_parts(&mut self, parts: &[LogFile]) -> io::Result<()> {
        let known = self.seq;
        // Newest first: usually only the last lines are not covered by the file.
        for part in parts.iter().rev() {
            let mut lines = LogLines::new(BufReader::new(files::open(&part.path)?));
            let mut first = None;
            while let Some(line) = lines.next()? {
                let RawLogLine::Whole(line) = line else { continue };
                let Some(chained) = ChainedLine::read(line) else { continue };
                first.get_or_insert(chained.seq);
                if chained.seq > known {
                    self.note_line(line);
                }
                self.seq = self.seq.max(chained.seq);
            }
            // Earlier files were scanned before.
            if first.is_some_and(|first| first <= known.saturating_add(1)) {
                break;
            }
        }
        Ok(())
    }

    fn note_line(&mut self, line: &[u8]) {
        const KEY: &[u8] = b"\"shipped_seq\":";
        // Most lines are the log's own and need not be parsed.
        if !line.windows(KEY.len()).any(|window| window == KEY) {
            return;
        }
        let Ok(logged) = LoggedEvent::read(0, line) else { return };
        // Each name becomes a line of this file, so it must not contain a blank or a line break.
        let from = logged.str("shipped_from").filter(|from| is_log_id(from));
        if let Some((from, seq)) = from.zip(logged.number("shipped_seq")) {
            let last = self.last.entry(from.into_owned()).or_default();
            *last = seq.max(*last);
        }
    }
}

type ShippedState = (String, u64, BTreeMap<String, u64>);

fn read(folder: &FolderHandle) -> io::Result<Option<ShippedState>> {
    let file = match folder.file(FILE, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let id = lines.next().filter(|(key, id)| *key == "id" && is_log_id(id));
    let seq = lines.next().filter(|(key, _)| *key == "seq").and_then(|(_, seq)| seq.parse().ok());
    // A malformed file is ignored; the log is scanned instead.
    let Some(((_, id), seq)) = id.zip(seq) else { return Ok(None) };
    let last = lines.filter_map(|(from, seq)| Some((from.to_owned(), seq.parse().ok()?)));
    Ok(Some((id.to_owned(), seq, last.collect())))
}

#[cfg(test)]
mod tests {
    use tapegate_core::activity::{ActivityEvent, ActivityKind};

    use super::*;
    use crate::activity::{ActivityLog, ActivityLogOptions};

    fn take_over(log: &mut ActivityLog, from: &str, seq: u64) {
        let extra = ShippedPositions::members(from, seq).into();
        log.append(&ActivityEvent {
            kind: ActivityKind::Decision,
            extra,
            ..ActivityEvent::default()
        });
        log.commit().unwrap();
    }

    #[test]
    fn what_was_taken_over_is_found_in_the_log_even_if_it_was_not_noted() {
        let folder = tempfile::tempdir().unwrap();
        let options = ActivityLogOptions { rotate_bytes: 700, retention: None };
        let mut log = ActivityLog::open(folder.path(), options).unwrap();
        let mut shipped = ShippedPositions::open(folder.path()).unwrap();
        let id = shipped.id().to_owned();
        (1..10).for_each(|seq| take_over(&mut log, "log_a", seq));
        shipped.note_imported("log_a", 5, log.head().seq - 4);
        (1..=3).for_each(|seq| take_over(&mut log, "log_b", seq));
        let again = ShippedPositions::open(folder.path()).unwrap();
        assert_eq!((again.last("log_a"), again.last("log_b"), again.last("log_c")), (9, 3, 0));
        assert_eq!((again.id(), log_id(folder.path()).as_deref()), (&*id, Some(&*id)));
        // Without the file, the whole log is scanned.
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        let again = ShippedPositions::open(folder.path()).unwrap();
        assert_eq!((again.last("log_a"), again.last("log_b")), (9, 3));
        assert_ne!(again.id(), id);
    }

    #[test]
    fn files_whose_lines_were_removed_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
        let mut shipped = ShippedPositions::open(folder.path()).unwrap();
        take_over(&mut log, "log_a", 7);
        shipped.note_imported("log_a", 7, log.head().seq);
        std::fs::remove_file(log.path()).unwrap();
        assert_eq!(ShippedPositions::open(folder.path()).unwrap().last("log_a"), 7);
    }
}
