//! Writes a tape.
//!
//! Entries are buffered until [`TapeWriter::commit`] hands them to the kernel in one call; a large
//! message is written directly from the receive buffer. If the kernel does not take everything, the
//! file is truncated to the last commit, so the tape never contains an entry of a failed commit,
//! nor a partial line that a later session would run into.
//!
//! Once a session is ending ([`Recorder::checkpoint`]), each commit also writes the footer, and the
//! next one overwrites it: the tape is complete whenever the process is killed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapegate_core::side::Side;
use tapegate_core::tape::{
    BadFrame, ByteSink, EntryTime, EntryWriter, EntryWriterOptions, Mask, RecordError, Recorder,
    TORN_TAIL, TapeEntry, TapeHeader,
};
use tapegate_core::time::Timestamp;

pub use crate::anomaly_file::anomaly_path;

use crate::anomaly_file::AnomalyFile;
use crate::flusher::Flusher;
use crate::gzip::GzipFile;
use crate::tape_file::{self, OpenError, OpenMode, OpenedTape};
use crate::tape_numbering;

/// A piece of at least this size is written directly instead of being copied to the buffer.
const DIRECT_BYTES: usize = 32 * 1024;
/// How much memory the buffer keeps between commits.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// How a tape is written.
pub struct TapeOptions {
    /// Its path; a name that ends in `.gz` makes it compressed.
    pub path: PathBuf,
    /// The format of its entries.
    pub entry_writer: EntryWriterOptions,
    /// How often it is synced to disk.
    pub flush_interval: Duration,
    /// What to do if the file exists.
    pub existing: OnExisting,
    /// Redacts secrets.
    pub mask: Option<Box<dyn Mask>>,
}

/// What to do with an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Keep it, and fail.
    Refuse,
    /// Append to it, if it is a tape of the same dialect, not compressed and not being written.
    Append,
    /// Overwrite it.
    Overwrite,
    /// Keep it, and use the next free name. The last of these names is reused if its tape holds
    /// only a probe.
    Number,
}

/// A tape that is open for writing.
pub struct TapeWriter {
    entry_writer: EntryWriter,
    tape: TapeFile,
    anomaly_file: AnomalyFile,
    /// The counts at the last commit.
    committed: FrameCounts,
    /// Commits of a compressed tape that may not be in the file yet: the length of the text and the
    /// counts at each. The first one is in the file.
    unflushed: VecDeque<(u64, FrameCounts)>,
    /// The time of the last entry.
    last: Timestamp,
    settled: bool,
    created: bool,
    closed: bool,
}

/// How many frames were written.
#[derive(Debug, Clone, Copy, Default)]
struct FrameCounts {
    client: u64,
    server: u64,
    anomalies: u64,
    batches: u64,
}

/// What a tape has no line for, or no line for a message.
#[derive(Debug, Clone, Copy)]
pub struct AnomalyCounts<'t> {
    /// Frames that are not messages.
    pub frames: u64,
    /// Batches, whose messages are on the tape, in a file beside it as they were sent.
    pub batches: u64,
    /// The file with them.
    pub path: &'t Path,
}

impl FrameCounts {
    fn total(self) -> u64 {
        self.client + self.server + self.anomalies + self.batches
    }
}

/// Why writing a tape failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{}`: {source}", path.display())]
pub struct WriteError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// The file, its buffer, and the thread that syncs it.
struct TapeFile {
    path: PathBuf,
    file: File,
    gzip: Option<GzipFile>,
    flusher: Flusher,
    buffer: Vec<u8>,
    bytes_written: u64,
    bytes_committed: u64,
    /// The footer after the committed entries, which the next commit overwrites.
    footer: Vec<u8>,
    error: Option<io::Error>,
}

impl TapeWriter {
    /// Opens the tape and writes its first line.
    pub fn open(
        options: TapeOptions,
        header: &TapeHeader<'_>,
        started: Timestamp,
    ) -> Result<Self, OpenError> {
        let TapeOptions { path, entry_writer, flush_interval, existing, mask } = options;
        let compressed = path.extension().is_some_and(|extension| extension == "gz");
        let (path, opened) = match existing {
            OnExisting::Number => tape_numbering::open(&path)?,
            OnExisting::Overwrite => open_or_number(path, OpenMode::Overwrite)?,
            OnExisting::Append if !compressed => {
                open_or_number(path, OpenMode::Append(entry_writer.dialect))?
            }
            OnExisting::Append => {
                open_or_number(path, OpenMode::New).map_err(|error| match error {
                    OpenError::Exists { path } => OpenError::Compressed { path },
                    other => other,
                })?
            }
            OnExisting::Refuse => open_or_number(path, OpenMode::New)?,
        };
        let io = |source| OpenError::Io { path: path.clone(), source };
        let mut tape = TapeFile::new(&path, opened.file, compressed, flush_interval).map_err(io)?;
        tape.bytes_written = opened.bytes;
        tape.bytes_committed = opened.bytes;
        let mut writer = Self {
            entry_writer: EntryWriter::new(entry_writer, mask, started),
            tape,
            anomaly_file: AnomalyFile::new(&path, opened.bytes == 0),
            committed: FrameCounts::default(),
            unflushed: VecDeque::from([(0, FrameCounts::default())]),
            last: started,
            settled: false,
            created: opened.created,
            closed: false,
        };
        if opened.torn {
            writer.mark_torn(started);
        }
        writer.entry_writer.open(header, &mut writer.tape);
        if let Err(error) = writer.tape.commit(1, Vec::new()) {
            writer.discard();
            return Err(io(error));
        }
        Ok(writer)
    }

    /// The path of the tape, which may differ from the requested one.
    pub fn path(&self) -> &Path {
        &self.tape.path
    }

    /// How many messages are on the tape, from the client and from the server.
    pub fn messages(&self) -> (u64, u64) {
        let counts = self.written_counts();
        (counts.client, counts.server)
    }

    /// The counts of what is in the file: for a compressed tape, what was flushed before the disk
    /// filled up.
    fn written_counts(&self) -> FrameCounts {
        let Some(gzip) = &self.tape.gzip else { return self.committed };
        let (_, written) = gzip.bytes();
        let flushed = self.unflushed.iter().take_while(|(bytes, _)| *bytes <= written);
        flushed.last().map_or(self.committed, |(_, counts)| *counts)
    }

    /// Remembers the counts of a commit of a compressed tape until it is in the file.
    fn note_unflushed(&mut self) {
        let Some(gzip) = &self.tape.gzip else { return };
        let (taken, written) = gzip.bytes();
        self.unflushed.push_back((taken, self.committed));
        while self.unflushed.get(1).is_some_and(|(bytes, _)| *bytes <= written) {
            self.unflushed.pop_front();
        }
    }

    /// What was not written as a message line.
    pub fn anomalies(&self) -> AnomalyCounts<'_> {
        let is_beside = self.anomaly_file.file.is_some();
        let path = if is_beside { &self.anomaly_file.path } else { &self.tape.path };
        let FrameCounts { anomalies: frames, batches, .. } = self.committed;
        AnomalyCounts { frames, batches, path }
    }

    /// Removes the tape if this writer created it: the session never began.
    pub fn discard(mut self) {
        self.closed = true;
        if self.created {
            // Nothing was recorded; a leftover file does no harm.
            drop(std::fs::remove_file(&self.tape.path));
        }
    }

    fn mark_torn(&mut self, at: Timestamp) {
        self.tape.put(b"\n");
        let marker = BadFrame {
            ts: EntryTime::At(at.wall_us),
            from: Side::Client,
            raw: Default::default(),
            reason: TORN_TAIL.into(),
            bytes_total: None,
            session: None,
            extra: Vec::new(),
        };
        marker.write(&mut self.tape);
    }

    fn commit_all(&mut self) -> Result<(), WriteError> {
        let (client, server) = self.entry_writer.messages();
        let writer = &self.entry_writer;
        let (anomalies, batches) = (writer.anomalies(), writer.batches_beside());
        let counts = FrameCounts { client, server, anomalies, batches };
        let fresh = counts.total() - self.committed.total();
        let mut footer = Vec::new();
        if self.settled {
            // Codex kills a server 0.1 s after it asked it to end: each commit from here on leaves
            // a complete tape.
            self.entry_writer.close(self.last, &mut footer);
        }
        let (path, source) = match self.anomaly_file.write() {
            Err(source) => (&self.anomaly_file.path, source),
            Ok(()) => match self.tape.commit(fresh, footer) {
                Ok(()) => {
                    self.committed = counts;
                    self.note_unflushed();
                    self.anomaly_file.settle();
                    return Ok(());
                }
                Err(source) => (&self.tape.path, source),
            },
        };
        let failure = WriteError { path: path.clone(), source };
        // Nothing of this commit is sent, so neither file may contain it.
        self.anomaly_file.truncate_uncommitted();
        self.tape.fail(&failure.source);
        Err(failure)
    }
}

impl Recorder for TapeWriter {
    fn append(&mut self, entry: &TapeEntry<'_>) {
        self.last = entry.at;
        self.entry_writer.write(entry, &mut self.tape, &mut self.anomaly_file);
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(self.commit_all()?)
    }

    fn checkpoint(&mut self, at: Timestamp) -> Result<(), RecordError> {
        if self.closed || std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        self.last = at;
        Ok(self.commit_all()?)
    }

    fn close(&mut self, at: Timestamp) -> Result<(), RecordError> {
        if self.closed {
            return Ok(());
        }
        // If the session began to end earlier, `checkpoint` does nothing, and the commit writes
        // what came since.
        let settled = self.checkpoint(at).and_then(|()| self.commit());
        self.closed = true;
        let ended = self.tape.end();
        let ended = ended.map_err(|source| WriteError { path: self.tape.path.clone(), source });
        self.anomaly_file.sync();
        settled?;
        Ok(ended?)
    }
}

impl TapeFile {
    fn new(path: &Path, file: File, compressed: bool, interval: Duration) -> io::Result<Self> {
        let synced = file.try_clone()?;
        let gzip = if compressed { Some(GzipFile::new(file.try_clone()?)) } else { None };
        let flushed = gzip.clone();
        let mut unnamed = Some(path.to_owned());
        let flusher = Flusher::start(interval, move || {
            flushed.iter().try_for_each(GzipFile::flush)?;
            // Once: a new name is durable only when its folder is synced.
            if let Some(path) = unnamed.take() {
                tape_file::sync_folder(&path);
            }
            synced.sync_data()?;
            check_still_linked(&synced)
        })?;
        let (buffer, error) = (Vec::new(), None);
        Ok(Self {
            path: path.to_owned(),
            file,
            gzip,
            flusher,
            buffer,
            bytes_written: 0,
            bytes_committed: 0,
            footer: Vec::new(),
            error,
        })
    }

    /// Writes the buffer, followed by `more`.
    fn write_through(&mut self, more: &[u8]) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = match &self.gzip {
            Some(gzip) => gzip.append(&buffer).and_then(|()| gzip.append(more)),
            None => write_both(&self.file, &buffer, more, &mut self.bytes_written),
        };
        self.buffer = buffer;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES_MAX);
        written
    }

    /// Hands the buffer to the kernel, followed by `footer`.
    fn commit(&mut self, messages: u64, footer: Vec<u8>) -> io::Result<()> {
        let is_new = !self.buffer.is_empty() || self.bytes_written > self.bytes_committed;
        let is_unended = self.footer.is_empty() && !footer.is_empty();
        if self.error.is_none() && (is_new || is_unended) {
            self.error = self.write_footer(footer).err();
        }
        if self.error.is_none() {
            // A failed sync means that earlier entries may be lost, so recording stops here.
            self.error = self.flusher.error();
        }
        if let Some(error) = self.error.take() {
            self.fail(&error);
            return Err(error);
        }
        self.bytes_committed = self.bytes_written;
        self.flusher.note_written(messages);
        Ok(())
    }

    /// Writes the buffer and a footer, which the next write overwrites. The footer is never longer
    /// than its replacement: another entry, and a footer with higher counts.
    fn write_footer(&mut self, footer: Vec<u8>) -> io::Result<()> {
        if footer.is_empty() {
            return self.write_through(b"");
        }
        if let Some(gzip) = self.gzip.clone() {
            self.write_through(b"")?;
            return gzip.settle(&footer);
        }
        self.write_through(&footer)?;
        self.bytes_written -= footer.len() as u64;
        self.file.seek(SeekFrom::Start(self.bytes_written))?;
        self.footer = footer;
        Ok(())
    }

    /// Truncates to the last commit; later commits fail with the same error.
    fn fail(&mut self, error: &io::Error) {
        self.error = Some(io::Error::new(error.kind(), error.to_string()));
        self.truncate_uncommitted();
    }

    fn truncate_uncommitted(&mut self) {
        self.buffer.clear();
        if self.gzip.is_none() && self.bytes_written > self.bytes_committed {
            // If this fails too, the tape ends in a torn line, which every reader handles.
            let cut = self.file.set_len(self.bytes_committed);
            let moved = self.file.seek(SeekFrom::Start(self.bytes_committed));
            if cut.is_ok() && moved.is_ok() {
                self.bytes_written = self.bytes_committed;
                // Truncating has freed the space that the footer needs.
                self.file.write_all(&self.footer).ok();
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flusher.stop();
        // The kernel reports a failed write-back only once, possibly to the flusher thread.
        if let Some(error) = self.flusher.error() {
            return Err(error);
        }
        if let Some(gzip) = &self.gzip {
            gzip.flush()?;
        }
        self.file.sync_data()?;
        check_still_linked(&self.file)
    }
}

impl ByteSink for TapeFile {
    fn put(&mut self, bytes: &[u8]) {
        // The commit reports it. Later bytes must not follow a gap.
        if self.error.is_some() {
            return;
        }
        if bytes.len() < DIRECT_BYTES {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.error = self.write_through(bytes).err();
        }
    }
}

fn open_or_number(path: PathBuf, opening: OpenMode) -> Result<(PathBuf, OpenedTape), OpenError> {
    let opened = tape_file::open(&path, opening)?;
    Ok((path, opened))
}

/// Fails if the file has been deleted: its data would be lost with the process.
fn check_still_linked(file: &File) -> io::Result<()> {
    match file.metadata()?.nlink() {
        0 => Err(io::Error::new(io::ErrorKind::NotFound, "the file was deleted")),
        _ => Ok(()),
    }
}

/// Writes two slices with as few system calls as possible, counting the bytes written.
fn write_both(mut file: &File, one: &[u8], two: &[u8], count: &mut u64) -> io::Result<()> {
    let (mut one, mut two) = (one, two);
    while !one.is_empty() || !two.is_empty() {
        let taken = match (one, two) {
            (piece, []) | ([], piece) => file.write(piece),
            _ => file.write_vectored(&[IoSlice::new(one), IoSlice::new(two)]),
        };
        let written = match taken {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        *count += written as u64;
        let of_one = written.min(one.len());
        one = &one[of_one..];
        two = &two[written - of_one..];
    }
    Ok(())
}
