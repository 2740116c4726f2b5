//! A tape that is being written.
//!
//! Entries gather in memory until [`TapeWriter::commit`] hands them to the kernel in one call; a
//! large message goes straight from the wire's buffer to the file. If the kernel does not take all
//! of it, the file is cut back to the last commit, so that the tape never tells of a message that
//! was not sent and never ends in half a line that a later session would stumble over.
//!
//! Once a session comes to its end ([`Recorder::settle`]), each commit writes the footer too, and the
//! next one writes over it: whenever the process is killed, the tape is whole.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapegate_core::side::Side;
use tapegate_core::tape::{
    Bad, Entry, Header, Mask, RecordError, Recorder, Scribe, ScribeOptions, Sink, Stamp, TORN_TAIL,
};
use tapegate_core::time::At;

pub use crate::beside::beside;

use crate::beside::Beside;
use crate::file::{self, OpenError, Opened, Opening};
use crate::flusher::Flusher;
use crate::gzip::GzipFile;
use crate::numbering;

/// A piece this large is not copied but written from where it lies.
const DIRECT_BYTES: usize = 32 * 1024;
/// What the buffer keeps between commits.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// What a tape is to be.
pub struct TapeOptions {
    /// Where it lies; a name that ends in `.gz` makes it compressed.
    pub path: PathBuf,
    /// How it is written.
    pub scribe: ScribeOptions,
    /// How often it is synced to the disk.
    pub flush_interval: Duration,
    /// What becomes of a file that is there already.
    pub existing: Existing,
    /// Takes secrets out.
    pub mask: Option<Box<dyn Mask>>,
}

/// What becomes of a file in a tape's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and there is no tape.
    Refuse,
    /// It is continued, if it is a tape of the same dialect, not compressed and not being written.
    Append,
    /// It is overwritten.
    Overwrite,
    /// It stays, and the tape gets the next free name. The last of these names is used again if
    /// what it holds is no more than a probe.
    Number,
}

/// A tape that is being written.
pub struct TapeWriter {
    scribe: Scribe,
    tape: TapeFile,
    beside: Beside,
    /// What was written up to the last commit.
    committed: Counts,
    /// Commits of a compressed tape that may not be in the file yet: how much text there was, and what
    /// it told of. The first one is in the file.
    unflushed: VecDeque<(u64, Counts)>,
    /// When the last thing happened that the tape tells of.
    last: At,
    settled: bool,
    created: bool,
    closed: bool,
}

/// How many frames were written.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    client: u64,
    server: u64,
    anomalies: u64,
}

impl Counts {
    fn total(self) -> u64 {
        self.client + self.server + self.anomalies
    }
}

/// Why a tape could not be written on.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{}`: {source}", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A file, what gathers for it, and the thread that syncs it.
struct TapeFile {
    path: PathBuf,
    file: File,
    gzip: Option<GzipFile>,
    flusher: Flusher,
    buffer: Vec<u8>,
    bytes_written: u64,
    bytes_committed: u64,
    /// The footer that stands behind what was committed, and that the next commit writes over.
    footer: Vec<u8>,
    error: Option<io::Error>,
}

impl TapeWriter {
    /// Opens the tape and writes its first line.
    pub fn open(options: TapeOptions, header: &Header<'_>, started: At) -> Result<Self, OpenError> {
        let TapeOptions { path, scribe, flush_interval, existing, mask } = options;
        let compressed = path.extension().is_some_and(|extension| extension == "gz");
        let (path, opened) = match existing {
            Existing::Number => numbering::open(&path)?,
            Existing::Overwrite => with(path, Opening::Overwrite)?,
            Existing::Append if !compressed => with(path, Opening::Append(scribe.dialect))?,
            Existing::Append | Existing::Refuse => with(path, Opening::New)?,
        };
        let io = |source| OpenError::Io { path: path.clone(), source };
        let mut tape = TapeFile::new(&path, opened.file, compressed, flush_interval).map_err(io)?;
        tape.bytes_written = opened.bytes;
        tape.bytes_committed = opened.bytes;
        let mut writer = Self {
            scribe: Scribe::new(scribe, mask, started),
            tape,
            beside: Beside::new(&path, opened.bytes == 0),
            committed: Counts::default(),
            unflushed: VecDeque::from([(0, Counts::default())]),
            last: started,
            settled: false,
            created: opened.created,
            closed: false,
        };
        if opened.torn {
            writer.mark_torn(started);
        }
        writer.scribe.open(header, &mut writer.tape);
        if let Err(error) = writer.tape.commit(1, Vec::new()) {
            writer.discard();
            return Err(io(error));
        }
        Ok(writer)
    }

    /// Where the tape lies, which may be another name than the one that was asked for.
    pub fn path(&self) -> &Path {
        &self.tape.path
    }

    /// How many messages are on the tape, from the client and from the server.
    pub fn messages(&self) -> (u64, u64) {
        let counts = self.in_file();
        (counts.client, counts.server)
    }

    /// What the file tells of: of a compressed tape, what was flushed before the disk was full.
    fn in_file(&self) -> Counts {
        let Some(gzip) = &self.tape.gzip else { return self.committed };
        let (_, written) = gzip.bytes();
        let flushed = self.unflushed.iter().take_while(|(bytes, _)| *bytes <= written);
        flushed.last().map_or(self.committed, |(_, counts)| *counts)
    }

    /// Notes what a commit of a compressed tape told of, until that is in the file.
    fn note_unflushed(&mut self) {
        let Some(gzip) = &self.tape.gzip else { return };
        let (taken, written) = gzip.bytes();
        self.unflushed.push_back((taken, self.committed));
        while self.unflushed.get(1).is_some_and(|(bytes, _)| *bytes <= written) {
            self.unflushed.pop_front();
        }
    }

    /// How many frames were no messages, and where they were written.
    pub fn anomalies(&self) -> (u64, &Path) {
        let beside = self.beside.file.is_some();
        (self.committed.anomalies, if beside { &self.beside.path } else { &self.tape.path })
    }

    /// Takes the tape away again, if it was made by this writer: the session never began.
    pub fn discard(mut self) {
        self.closed = true;
        if self.created {
            // Nothing was recorded; a file that stays behind does no harm.
            drop(std::fs::remove_file(&self.tape.path));
        }
    }

    fn mark_torn(&mut self, at: At) {
        self.tape.put(b"\n");
        let marker = Bad {
            ts: Stamp::At(at.wall_us),
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
        let (client, server) = self.scribe.messages();
        let counts = Counts { client, server, anomalies: self.scribe.anomalies() };
        let fresh = counts.total() - self.committed.total();
        let mut footer = Vec::new();
        if self.settled {
            self.scribe.close(self.last, &mut footer);
        }
        let (path, source) = match self.beside.write() {
            Err(source) => (&self.beside.path, source),
            Ok(()) => match self.tape.commit(fresh, footer) {
                Ok(()) => {
                    self.committed = counts;
                    self.note_unflushed();
                    self.beside.settle();
                    return Ok(());
                }
                Err(source) => (&self.tape.path, source),
            },
        };
        let failure = WriteError { path: path.clone(), source };
        // Nothing of this commit is sent, so neither file may tell of it.
        self.beside.cut_back();
        self.tape.fail(&failure.source);
        Err(failure)
    }
}

impl Recorder for TapeWriter {
    fn append(&mut self, entry: &Entry<'_>) {
        self.last = entry.at;
        self.scribe.write(entry, &mut self.tape, &mut self.beside);
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(self.commit_all()?)
    }

    fn settle(&mut self, at: At) -> Result<(), RecordError> {
        if self.closed || std::mem::replace(&mut self.settled, true) {
            return Ok(());
        }
        self.last = at;
        Ok(self.commit_all()?)
    }

    fn close(&mut self, at: At) -> Result<(), RecordError> {
        if self.closed {
            return Ok(());
        }
        let settled = self.settle(at).and_then(|()| self.commit());
        self.closed = true;
        let ended = self.tape.end();
        let ended = ended.map_err(|source| WriteError { path: self.tape.path.clone(), source });
        self.beside.sync();
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
            if let Some(path) = unnamed.take() {
                file::sync_folder(&path);
            }
            synced.sync_data()?;
            still_there(&synced)
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

    /// Writes the buffer and `more` behind it.
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

    /// Hands what has gathered to the kernel, and `footer` behind it.
    fn commit(&mut self, messages: u64, footer: Vec<u8>) -> io::Result<()> {
        let is_new = !self.buffer.is_empty() || self.bytes_written > self.bytes_committed;
        let is_unended = self.footer.is_empty() && !footer.is_empty();
        if self.error.is_none() && (is_new || is_unended) {
            self.error = self.write_ended(footer).err();
        }
        if self.error.is_none() {
            self.error = self.flusher.error();
        }
        if let Some(error) = self.error.take() {
            self.fail(&error);
            return Err(error);
        }
        self.bytes_committed = self.bytes_written;
        self.flusher.wrote(messages);
        Ok(())
    }

    /// Writes the buffer and a footer behind it, which the next write goes over. It is never longer
    /// than what comes in its place: another entry, and a footer that counts more.
    fn write_ended(&mut self, footer: Vec<u8>) -> io::Result<()> {
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

    /// Takes back what was written since the last commit; later commits fail alike.
    fn fail(&mut self, error: &io::Error) {
        self.error = Some(io::Error::new(error.kind(), error.to_string()));
        self.cut_back();
    }

    fn cut_back(&mut self) {
        self.buffer.clear();
        if self.gzip.is_none() && self.bytes_written > self.bytes_committed {
            // If this fails too, the tape ends in a torn line, which every reader copes with.
            let cut = self.file.set_len(self.bytes_committed);
            let moved = self.file.seek(SeekFrom::Start(self.bytes_committed));
            if cut.is_ok() && moved.is_ok() {
                self.bytes_written = self.bytes_committed;
                // The room that it had is free again.
                self.file.write_all(&self.footer).ok();
            }
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.flusher.stop();
        // The kernel tells of a failed write-back once, and the thread may have been the one it told.
        if let Some(error) = self.flusher.error() {
            return Err(error);
        }
        if let Some(gzip) = &self.gzip {
            gzip.flush()?;
        }
        self.file.sync_data()?;
        still_there(&self.file)
    }
}

impl Sink for TapeFile {
    fn put(&mut self, bytes: &[u8]) {
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

fn with(path: PathBuf, opening: Opening) -> Result<(PathBuf, Opened), OpenError> {
    let opened = file::open(&path, opening)?;
    Ok((path, opened))
}

/// What is written to a file without a name is lost with the process that writes it.
fn still_there(file: &File) -> io::Result<()> {
    match file.metadata()?.nlink() {
        0 => Err(io::Error::new(io::ErrorKind::NotFound, "the file was deleted")),
        _ => Ok(()),
    }
}

/// Writes two pieces with as few calls as the kernel allows, counting what it took.
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
