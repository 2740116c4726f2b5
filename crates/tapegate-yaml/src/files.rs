//! The source of files and variables.

use std::collections::BTreeMap;

/// A file that was read.
#[derive(Debug)]
pub struct OpenedFile {
    /// Its canonical path, however it was named.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It is outside the folder that it must be in.
    #[error("it is outside the allowed folder")]
    Outside,
    /// It is larger than the limit.
    #[error("it has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}

/// Access to files and environment variables.
pub trait Files {
    /// Reads a file that the user has named.
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError>;

    /// Reads a file named by another file, by a path relative to `folder` that may not leave it.
    fn open_within(
        &self,
        folder: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<OpenedFile, FileError>;

    /// The folder that contains a file.
    fn folder_of(&self, path: &str) -> String;

    /// An environment variable.
    fn variable(&self, name: &str) -> Option<String>;
}

/// Files and variables in memory, read earlier or made up by a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryFiles {
    /// The files by path, without a leading `./`.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The variables by name.
    pub variables: BTreeMap<String, String>,
}

impl MemoryFiles {
    /// Adds a file.
    pub fn with_file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(normalized_path(path).to_owned(), content.into());
        self
    }

    /// Adds a variable.
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }
}

impl Files for MemoryFiles {
    fn open(&self, path: &str, bytes_max: usize) -> Result<OpenedFile, FileError> {
        let path = normalized_path(path);
        let bytes = self.files.get(path).ok_or(FileError::Missing)?;
        // The same limit as on disk, so that tests see the same errors.
        if bytes.len() > bytes_max {
            return Err(FileError::TooLarge { bytes_max });
        }
        Ok(OpenedFile { path: path.to_owned(), bytes: bytes.clone() })
    }

    fn open_within(
        &self,
        folder: &str,
        path: &str,
        bytes_max: usize,
    ) -> Result<OpenedFile, FileError> {
        // A scenario from elsewhere must not read files outside of its folder.
        if path.starts_with('/') || path.split('/').any(|step| step == "..") {
            return Err(FileError::Outside);
        }
        self.open(&format!("{folder}/{}", normalized_path(path)), bytes_max)
    }

    fn folder_of(&self, path: &str) -> String {
        path.rsplit_once('/').map_or(".", |(folder, _)| folder).to_owned()
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

fn normalized_path(path: &str) -> &str {
    path.trim_start_matches("./")
}
