//! Gives scenarios access to files and environment variables of this machine.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;
use tapegate_scenario::files::{FileError, Files, OpenedFile};
use tapegate_scenario::load::ScenarioLimits;
use tapegate_store::input;

use crate::exit::{Exit, Failure};

/// The file system and the environment. Remembers every file that was requested.
#[derive(Debug, Default)]
pub(crate) struct LocalFiles {
    requested: RefCell<Vec<PathBuf>>,
    /// A file held in memory, by name.
    inside: Option<(String, Cow<'static, [u8]>)>,
    /// Whether pipes and devices are refused.
    regular_only: bool,
}

impl LocalFiles {
    /// The file system plus one file in memory.
    pub(crate) fn with_file(name: String, text: &'static str) -> Self {
        Self { inside: Some((name, Cow::Borrowed(text.as_bytes()))), ..Self::default() }
    }

    /// Adds a file in memory.
    pub(crate) fn and_file(self, name: &str, text: Vec<u8>) -> Self {
        Self { inside: Some((name.to_owned(), Cow::Owned(text))), ..self }
    }

    /// Only regular files: reading a pipe or a device may never end.
    pub(crate) fn regular_only() -> Self {
        Self { regular_only: true, ..Self::default() }
    }

    /// The files that were requested, whether or not they exist.
    pub(crate) fn requested_files(self) -> Vec<PathBuf> {
        self.requested.into_inner()
    }

    fn read(&self, path: &Path, bytes_max: usize) -> Result<OpenedFile, FileError> {
        self.requested.borrow_mut().push(path.to_owned());
        let file = self.open_file(path)?;
        if file.metadata().map_err(other)?.is_dir() {
            return Err(FileError::Other("it is a folder".to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(other)?;
        if bytes.len() > bytes_max {
            return Err(FileError::TooLarge { bytes_max });
        }
        // A pipe has no canonical path.
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(OpenedFile { path: real.to_string_lossy().into_owned(), bytes })
    }

    fn open_file(&self, path: &Path) -> Result<File, FileError> {
        if !self.regular_only {
            return input::open(path).map_err(other);
        }
        let check = |file: std::fs::Metadata| match file.is_file() || file.is_dir() {
            true => Ok(()),
            false => Err(FileError::Other("it is not a regular file".to_owned())),
        };
        // Check first, since opening a device may have side effects, and open without blocking, in
        // case a pipe has replaced the file in the meantime.
        check(path.metadata().map_err(other)?)?;
        let at_once = OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut options = File::options();
        let file = options.read(true).custom_flags(at_once.bits() as i32).open(path);
        let file = file.map_err(other)?;
        check(file.metadata().map_err(other)?)?;
        Ok(file)
    }
}

/// Rejects a pipe, a socket or a device, since reading one may never end. A missing file is not an
/// error here; the reader reports it.
pub(crate) fn refuse_special_file(path: &Path) -> Result<(), Failure> {
    let Ok(kind) = path.metadata().map(|found| found.file_type()) else { return Ok(()) };
    let name = match () {
        () if kind.is_file() || kind.is_dir() => return Ok(()),
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () => "device",
    };
    let message = format!("cannot read `{}`: it is a {name}, not a regular file", path.display());
    Err(Failure::new(Exit::Io, message)
        .hint("write it to a file and name the file, or pass `-` to read standard input"))
}

/// The size limits for scenarios, as set in the environment.
pub(crate) fn limits() -> Result<ScenarioLimits, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    ScenarioLimits::from_variables(&variable).map_err(|message| Failure::new(Exit::Usage, message))
}

fn other(error: std::io::Error) -> FileError {
    match error.kind() {
        ErrorKind::NotFound => FileError::Missing,
        _ => FileError::Other(error.to_string()),
    }
}

impl Files for LocalFiles {
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        match &self.inside {
            Some((name, text)) if name == path => {
                Ok(OpenedFile { path: name.clone(), bytes: text.to_vec() })
            }
            _ => self.read(Path::new(path), bytes_max),
        }
    }

    fn open_within(
        &self,
        folder: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<OpenedFile, FileError> {
        let steps = |step: Component<'_>| matches!(step, Component::Normal(_) | Component::CurDir);
        if !Path::new(path).components().all(steps) {
            return Err(FileError::Outside);
        }
        let joined = Path::new(folder).join(path);
        // Remember the name, not only its target: the link may point elsewhere later.
        self.requested.borrow_mut().push(joined.clone());
        let (real, base) = match (joined.canonicalize(), Path::new(folder).canonicalize()) {
            (Ok(real), Ok(base)) => (real, base),
            (Err(error), _) | (_, Err(error)) => return Err(other(error)),
        };
        // A link may lead out of the folder, and reading a pipe may never end.
        if !real.starts_with(base) {
            return Err(FileError::Outside);
        }
        if !real.metadata().map_err(other)?.is_file() {
            return Err(FileError::Other("it is not a regular file".to_owned()));
        }
        self.read(&real, bytes_max)
    }

    fn folder_of(&self, path: &str) -> String {
        let folder = Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new(".")).to_string_lossy().into_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
