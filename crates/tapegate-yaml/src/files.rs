//! Where the parts of a text come from.

use std::collections::BTreeMap;

/// A file that was read.
#[derive(Debug)]
pub struct Opened {
    /// The one path it is known by, whatever it was called.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Why a file cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It lies outside of the folder that it must lie in.
    #[error("it lies outside of its folder")]
    Outside,
    /// It is larger than it may be.
    #[error("it has more than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// Files and variables, as whoever has an operating system sees them.
pub trait Files {
    /// Reads the file that a person has named.
    fn open(&self, path: &str, bytes_max: usize) -> Result<Opened, FileError>;

    /// Reads a file that another one names, by a path from `folder` that may not lead out of it.
    fn open_within(&self, folder: &str, path: &str, bytes_max: usize) -> Result<Opened, FileError>;

    /// The folder that a file lies in.
    fn folder_of(&self, path: &str) -> String;

    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;
}

/// Files and variables that are only remembered: what somebody else has read, or a test has made up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Held {
    /// The files by their paths, without `./` before them.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The variables by their names.
    pub variables: BTreeMap<String, String>,
}

impl Held {
    /// The same with one more file.
    pub fn with(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(plain(path).to_owned(), content.into());
        self
    }

    /// The same with one more variable.
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }
}

impl Files for Held {
    fn open(&self, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
        let path = plain(path);
        let bytes = self.files.get(path).ok_or(FileError::Missing)?;
        if bytes.len() > bytes_max {
            return Err(FileError::TooLarge { bytes_max });
        }
        Ok(Opened { path: path.to_owned(), bytes: bytes.clone() })
    }

    fn open_within(&self, folder: &str, path: &str, bytes_max: usize) -> Result<Opened, FileError> {
        if path.starts_with('/') || path.split('/').any(|step| step == "..") {
            return Err(FileError::Outside);
        }
        self.open(&format!("{folder}/{}", plain(path)), bytes_max)
    }

    fn folder_of(&self, path: &str) -> String {
        path.rsplit_once('/').map_or(".", |(folder, _)| folder).to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}
