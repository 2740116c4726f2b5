//! A tape that is ready to be replayed: its index, and a reader for its bodies.
//!
//! A plain file is read in place. A compressed tape or a pipe, which cannot be read at offsets, is
//! first copied to an unnamed file, if there is room. A tape that cannot be relied on is an error;
//! oddities that can be handled are findings.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use tapegate_core::signature::Signer;
use tapegate_core::tape::TapeFinding;
use tapegate_core::tape::index::{Index, TapeRejection};

use crate::body_reader::BodyReader;
use crate::chunk_reader;
use crate::gzip::UNPACKED_BYTES_MAX;
use crate::input;
use crate::tape_source::{MARK, ReadProgress, TapeText};

/// A tape that is ready to be replayed.
#[derive(Debug)]
pub struct LoadedTape {
    /// The index of the tape.
    pub index: Index,
    /// Warnings and notes about oddities that were handled.
    pub findings: Vec<TapeFinding>,
    /// Reads its bodies.
    pub body_reader: BodyReader,
}

/// The hint for a tape with an entry that is too long to be read.
pub const ENTRY_LIMIT_HINT: &str =
    "pass a higher limit, such as --max-entry-bytes 1GB; the entry is then held in memory";

/// Why a tape cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The tape.
        path: PathBuf,
        source: io::Error,
    },
    /// It must be copied first, and is too long for that.
    #[error(
        "`{}` has more than {bytes_max} bytes, the most that may be copied to `{}`",
        path.display(),
        folder.display()
    )]
    TooLong {
        /// The tape.
        path: PathBuf,
        /// The most that may be copied.
        bytes_max: u64,
        /// The folder for copies.
        folder: PathBuf,
    },
    /// It cannot be relied on.
    #[error("`{}` {refusal}", path.display())]
    Refused {
        /// The tape.
        path: PathBuf,
        /// The reason.
        refusal: TapeRejection,
    },
}

impl LoadError {
    /// A hint for the user, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Refused { refusal: TapeRejection::Damage { .. }, .. } => {
                Some("`tapegate check` lists everything that is wrong with a tape")
            }
            Self::Refused { refusal: TapeRejection::TooLong { .. }, .. } => Some(ENTRY_LIMIT_HINT),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("name one of the tapes in it; `tapegate check` shows what each contains")
            }
            Self::TooLong { .. } => {
                Some("unpack it to a file and pass that, or set TMPDIR to a folder with space")
            }
            Self::Io { .. } | Self::Refused { .. } => None,
        }
    }
}

impl LoadedTape {
    /// Loads the tape at `path`, or from standard input if that is `-`. Requests are signed with
    /// `signer`, and `watch` receives the progress.
    pub fn open(path: &Path, signer: Signer, watch: ReadProgress) -> Result<Self, LoadError> {
        Self::load(path, (&signer, false), watch)
    }

    /// Like [`Self::open`], but entries that are too long to be read are skipped, with a warning.
    pub fn open_without_too_long(
        path: &Path,
        signer: &Signer,
        watch: ReadProgress,
    ) -> Result<Self, LoadError> {
        Self::load(path, (signer, true), watch)
    }

    fn load(path: &Path, how: (&Signer, bool), mut watch: ReadProgress) -> Result<Self, LoadError> {
        let io = |source| LoadError::Io { path: path.to_owned(), source };
        let mut file = match path == Path::new("-") {
            true => input::stdin(),
            false => input::open(path),
        }
        .map_err(io)?;
        let mut oddities = Vec::new();
        if !is_plain(&mut file).map_err(io)? {
            let mut copy = anonymous_file().map_err(io)?;
            let bytes_max = room_for(&copy);
            let copied = copy_up_to(bytes_max, file, &mut copy, watch).map_err(io)?;
            let (path, folder) = (path.to_owned(), std::env::temp_dir());
            oddities = copied.ok_or(LoadError::TooLong { path, bytes_max, folder })?;
            (file, watch) = (copy, Box::new(|_, _| ()));
        }
        let body_reader = BodyReader::new(file.try_clone().map_err(io)?).map_err(io)?;
        let (index, mut findings) =
            chunk_reader::index(&file, body_reader.bytes(), how, &mut watch).map_err(
                |refusal| match refusal {
                    TapeRejection::Io { source, .. } => io(source),
                    refusal => LoadError::Refused { path: path.to_owned(), refusal },
                },
            )?;
        findings.extend(oddities);
        Ok(Self { index, findings, body_reader })
    }
}

/// Whether a file can be read in place: a regular file, not compressed, without a byte order mark.
fn is_plain(file: &mut File) -> io::Result<bool> {
    let mut start = [0; 3];
    // Standard input may be a file that a shell has already read from.
    let at_start = file.metadata()?.is_file() && file.stream_position()? == 0;
    let count = if at_start { file.read_at(&mut start, 0)? } else { 0 };
    let start = &start[..count];
    Ok(at_start && !start.starts_with(b"\x1f\x8b") && start != MARK)
}

/// The most that a copy may hold: 90 % of the free space, to leave some for other programs.
fn room_for(copy: &File) -> u64 {
    let room = rustix::fs::fstatvfs(copy).ok().filter(|disk| disk.f_blocks > 0);
    let room = room.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    room.map_or(UNPACKED_BYTES_MAX, |room| (room - room / 10).min(UNPACKED_BYTES_MAX))
}

/// Copies the unpacked text of a file to one that can be read at offsets, and returns the findings;
/// `None` if there are more than `bytes_max` bytes.
fn copy_up_to(
    bytes_max: u64,
    file: File,
    copy: &mut File,
    watch: ReadProgress,
) -> io::Result<Option<Vec<TapeFinding>>> {
    let TapeText { mut text, oddities } = TapeText::read(file, watch)?;
    io::copy(&mut text.by_ref().take(bytes_max), copy)?;
    Ok(text.fill_buf()?.is_empty().then(|| oddities.findings()))
}

/// A file that no other process can open and that vanishes with this one.
fn anonymous_file() -> io::Result<File> {
    const TRIES_MAX: u32 = 100;
    let folder = std::env::temp_dir();
    // A tape holds everything that was sent, so its copy should never have a name.
    if let Some(file) = unlinked_file(&folder) {
        return Ok(file);
    }
    for attempt in 0..TRIES_MAX {
        let path = folder.join(format!(".tapegate.{}.{attempt}.tmp", std::process::id()));
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A file that never had a name, so nothing is left of it however this process ends.
fn unlinked_file(folder: &Path) -> Option<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    // Not supported by every file system.
    Some(File::from(openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR).ok()?))
}

#[cfg(test)]
mod tests;
