//! Where the parts of a text come from.

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
