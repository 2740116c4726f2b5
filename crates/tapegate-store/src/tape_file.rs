//! Opens the files that tapes are written to.
//!
//! Tape files are private (0600), are never opened through a symbolic link, and are locked by the
//! process that writes them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tapegate_core::tape::{Dialect, LineProblem, TapeLine, TapeReader};

/// Why a tape cannot be written to a path.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file exists.
    #[error("`{}` exists already", path.display())]
    Exists { path: PathBuf },
    /// Another process is writing it.
    #[error("`{}` is being written by another process", path.display())]
    Busy { path: PathBuf },
    /// It is a symbolic link, a folder or a device.
    #[error("`{}` is {what}, not a regular file", path.display())]
    NotAFile {
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// It is not a complete tape of the dialect to append.
    #[error("`{}` is not a complete tape in the {dialect} dialect; nothing is appended to it", path.display())]
    NotATape { path: PathBuf, dialect: &'static str },
    /// It exists and is compressed, so nothing can be appended.
    #[error("`{}` is compressed; nothing is appended to a compressed tape", path.display())]
    Compressed { path: PathBuf },
    /// The operating system refused.
    #[error("cannot open `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl OpenError {
    /// A hint for the user, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Exists { .. } | Self::NotATape { .. } | Self::Compressed { .. } => {
                Some("choose another name, or pass --force to overwrite it")
            }
            Self::Busy { .. } => Some("give each recorder a tape of its own"),
            Self::NotAFile { .. } => Some("name a file; symbolic links are not followed"),
            Self::Io { .. } => None,
        }
    }
}

/// How a tape file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// Must not exist.
    New,
    /// May exist and is emptied.
    Overwrite,
    /// May exist and is continued, if it is a tape of this dialect.
    Append(Dialect),
}

/// A file that is open for writing and locked.
#[derive(Debug)]
pub(crate) struct OpenedTape {
    pub(crate) file: File,
    /// Whether it did not exist before.
    pub(crate) created: bool,
    /// Its length.
    pub(crate) bytes: u64,
    /// Whether it ends in the middle of a line.
    pub(crate) torn: bool,
}

pub(crate) fn open(path: &Path, opening: OpenMode) -> Result<OpenedTape, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    }
    // Create first and look later: a check before would race with another recorder.
    match options().create_new(true).open(path) {
        Ok(file) => {
            lock(path, &file)?;
            return Ok(OpenedTape { file, created: true, bytes: 0, torn: false });
        }
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io(error)),
        Err(_) => {}
    }
    let there = fs::symlink_metadata(path).map_err(io)?.file_type();
    regular(path, there)?;
    let dialect = match opening {
        OpenMode::New => return Err(OpenError::Exists { path: path.to_owned() }),
        OpenMode::Overwrite => None,
        OpenMode::Append(dialect) => Some(dialect),
    };
    let mut file = options().open(path).map_err(io)?;
    lock(path, &file)?;
    // An existing file may have been made by another program, with another mode.
    file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(io)?;
    let Some(dialect) = dialect else {
        file.set_len(0).map_err(io)?;
        return Ok(OpenedTape { file, created: false, bytes: 0, torn: false });
    };
    let bytes = file.seek(SeekFrom::End(0)).map_err(io)?;
    let torn = bytes > 0 && !ends_with_newline(&file).map_err(io)?;
    let fits = match dialect {
        Dialect::Overwatch => is_overwatch(&file).map_err(io)?,
        // This dialect has no line to mark a torn one.
        Dialect::Thoughtjack => !torn && starts_with_header(&file).map_err(io)?,
    };
    if bytes > 0 && !fits {
        return Err(OpenError::NotATape { path: path.to_owned(), dialect: dialect.name() });
    }
    file.seek(SeekFrom::End(0)).map_err(io)?;
    Ok(OpenedTape { file, created: false, bytes, torn })
}

/// The options for opening private files.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Opens and locks the file at `path`, if it exists.
pub(crate) fn lock_existing(path: &Path) -> Result<Option<File>, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Ok(existing) => regular(path, existing.file_type())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    }
    // The lock, not the content, is wanted: a recorder that still writes holds it.
    let file = File::open(path).map_err(io)?;
    lock(path, &file)?;
    Ok(Some(file))
}

/// Syncs the folder of a path, to make a new name durable.
pub(crate) fn sync_folder(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        drop(folder.sync_all());
    }
}

fn regular(path: &Path, existing: fs::FileType) -> Result<(), OpenError> {
    let what = match () {
        () if existing.is_file() => return Ok(()),
        () if existing.is_symlink() => "a symbolic link",
        () if existing.is_dir() => "a folder",
        () => "a device or a pipe",
    };
    Err(OpenError::NotAFile { path: path.to_owned(), what })
}

fn lock(path: &Path, file: &File) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::Busy { path: path.to_owned() }),
        // Recording must work on file systems without locks.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Whether the first entry of a file is of the overwatch dialect, or torn.
fn is_overwatch(mut file: &File) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = TapeReader::new(io::BufReader::new(file));
    Ok(match reader.next() {
        None => true,
        Some(Ok(first)) => match first.entry {
            TapeLine::Bad(_) => true,
            TapeLine::Message(message) => message.seq.is_none(),
            _ => false,
        },
        Some(Err(LineProblem::Torn { .. })) => starts_like_overwatch(file)?,
        Some(Err(_)) => false,
    })
}

/// Whether the first entry of a file is a header.
fn starts_with_header(mut file: &File) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = TapeReader::new(io::BufReader::new(file));
    Ok(reader
        .next()
        .is_some_and(|first| first.is_ok_and(|first| matches!(first.entry, TapeLine::Header(_)))))
}

/// Whether a file with a single, torn line starts like an overwatch line.
fn starts_like_overwatch(mut file: &File) -> io::Result<bool> {
    let expected = b"{\"ts\":\"";
    let mut start = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(expected.len() as u64).read_to_end(&mut start)?;
    Ok(expected.starts_with(&start))
}

fn ends_with_newline(mut file: &File) -> io::Result<bool> {
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
