//! Rotates files that have grown large, and removes rotated ones after their retention time.
//!
//! Both happen under the lock of the current file. A file is removed only after the line that
//! records its removal has been written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, OFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use tapegate_core::json::{first_member, string};
use tapegate_core::time::read_rfc3339;

use super::chain::ChainLink;
use super::files::{self, CURRENT};
use super::tail;
use crate::private_folder::FolderHandle;

/// How much of the first line is read.
const FIRST_LINE_BYTES: usize = 512;

/// Files past their retention time: the oldest ones, without a gap.
#[derive(Debug, Default)]
pub(super) struct LogRemoval {
    pub(super) numbers: Vec<u64>,
    /// The end of the last of them.
    pub(super) link: Option<ChainLink>,
}

/// Renames the current file to the next number.
pub(super) fn rotate(folder: &FolderHandle) -> io::Result<()> {
    let newest = files::numbers(folder)?.last().copied();
    // If all rotated files have expired, the first line of this one still knows the last number. A
    // number that is used twice would look like tampering.
    let number = newest.or_else(|| previous_of(folder)).unwrap_or(0) + 1;
    let name = files::name(number);
    let handle = folder.handle();
    match renameat_with(&handle, CURRENT, &handle, &name, RenameFlags::NOREPLACE) {
        // Not every file system has NOREPLACE. We hold the lock, and the name was free.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            Ok(renameat(&handle, CURRENT, &handle, &name)?)
        }
        done => Ok(done?),
    }
}

/// The last rotated file, and its end.
pub(super) fn predecessor(folder: &FolderHandle) -> Option<(u64, ChainLink)> {
    let number = files::numbers(folder).ok()?.last().copied()?;
    Some((number, end_of(folder, number)?))
}

/// The files that were last written before the retention time began.
pub(super) fn expired(folder: &FolderHandle, retention: Duration) -> LogRemoval {
    let mut removal = LogRemoval::default();
    let Ok(numbers) = files::numbers(folder) else { return removal };
    let cutoff = now().saturating_sub(retention).as_secs();
    for number in numbers {
        let stat = folder.stat(&files::name(number)).ok().flatten();
        if !stat.is_some_and(|stat| u64::try_from(stat.st_mtime).is_ok_and(|at| at < cutoff)) {
            // Stop at the first that is kept: a gap in the numbers would look like tampering.
            break;
        }
        // Without its last hash, the removal could not be explained to `check`.
        let Some(link) = end_of(folder, number) else { break };
        removal.numbers.push(number);
        removal.link = Some(link);
    }
    removal
}

/// Whether a file was started before the retention time began.
pub(super) fn is_older(file: &File, retention: Duration) -> bool {
    let began = read_beginning(file).and_then(|line| text_of(&line, "timestamp"));
    let began_us = began.and_then(|text| read_rfc3339(&text));
    let cutoff = now().saturating_sub(retention).as_micros();
    began_us.is_some_and(|at| u128::try_from(at).is_ok_and(|at| at < cutoff))
}

impl LogRemoval {
    /// Removes the files. A file that cannot be removed is found again later.
    pub(super) fn apply(&self, folder: &FolderHandle) {
        for number in &self.numbers {
            unlinkat(folder.handle(), files::name(*number), AtFlags::empty()).ok();
        }
    }
}

fn end_of(folder: &FolderHandle, number: u64) -> Option<ChainLink> {
    let file = folder.file(&files::name(number), OFlags::RDONLY).ok()?;
    let bytes = file.metadata().ok()?.len();
    tail::read(&file, bytes).ok().flatten().and_then(|tail| tail.link)
}

/// The number of the file that the current one continues.
fn previous_of(folder: &FolderHandle) -> Option<u64> {
    let line = read_beginning(&folder.file(CURRENT, OFlags::RDONLY).ok()?)?;
    files::number(&text_of(&line, "previous_file")?)
}

/// The beginning of a file's first line.
fn read_beginning(file: &File) -> Option<Vec<u8>> {
    let mut text = vec![0; FIRST_LINE_BYTES];
    let count = file.read_at(&mut text, 0).ok()?;
    text.truncate(count);
    Some(text)
}

fn text_of(line: &[u8], key: &str) -> Option<String> {
    string(first_member(line, key)?).map(|text| text.into_owned())
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
