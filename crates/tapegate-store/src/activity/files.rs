//! The files of one log: the rotated ones by their numbers, then the current one.

use std::fs::File;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::chain::ChainedLine;
use super::tail::BEGINNING;
use crate::private_folder::FolderHandle;
use crate::{input, tape_source};

/// The current file.
pub const CURRENT: &str = "activity.jsonl";

/// One file of a log. Parts sort in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogFile {
    /// The number of a rotated file; the current one has the highest.
    pub number: u64,
    pub path: PathBuf,
}

impl LogFile {
    /// The part that a path denotes by its file name, if any.
    pub fn of(path: &Path) -> Option<Self> {
        let number = match path.file_name()?.to_str()? {
            // Sorts behind every rotated file, since it holds the newest lines.
            CURRENT => u64::MAX,
            name => number(name)?,
        };
        Some(Self { number, path: path.to_owned() })
    }

    /// Whether it is the current file.
    pub fn is_current(&self) -> bool {
        self.number == u64::MAX
    }
}

/// The files of the log in a folder, oldest first.
pub fn parts(folder: &Path) -> io::Result<Vec<LogFile>> {
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        parts.extend(LogFile::of(&folder.join(entry?.file_name())));
    }
    parts.sort();
    Ok(parts)
}

/// Whether a line, given without its line end, has the form of a log line.
pub fn is_line(line: &[u8]) -> bool {
    line.starts_with(BEGINNING) && ChainedLine::read(line).is_some()
}

/// Opens a file of a log. A path named like one must be a regular file: a pipe may never end.
pub(super) fn open(path: &Path) -> io::Result<File> {
    if LogFile::of(path).is_some() && !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    input::open(path)
}

/// Opens a file of a log for reading, compressed or not.
pub fn open_file(path: &Path) -> io::Result<Box<dyn BufRead>> {
    tape_source::text(open(path)?)
}

/// The numbers of the rotated files, oldest first.
pub(super) fn numbers(folder: &FolderHandle) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<u64> = folder.names()?.iter().filter_map(|name| number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The name of a rotated file.
pub(super) fn name(number: u64) -> String {
    format!("activity-{number}.jsonl")
}

/// The number of a rotated file.
pub(super) fn number(file: &str) -> Option<u64> {
    let number = file.strip_prefix("activity-")?.strip_suffix(".jsonl")?.parse().ok()?;
    // `activity-01.jsonl` and `activity-+1.jsonl` are not valid names.
    (name(number) == file && number < u64::MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["activity-10.jsonl", "activity.jsonl", "activity-9.jsonl"];
        let others = ["activity-01.jsonl", "activity-x.jsonl", "activity-+1.jsonl", "a.jsonl"];
        for name in names.iter().chain(&others) {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = parts(folder.path()).unwrap();
        let found: Vec<&str> =
            found.iter().map(|part| part.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(found, ["activity-9.jsonl", "activity-10.jsonl", "activity.jsonl"]);
    }
}
