//! Writes, reads and sets aside the files of the folder.
//!
//! A file appears complete or not at all, even if its writer is killed: it is written under a
//! temporary name and then linked to its own, which succeeds only for the first process.

use std::io::{self, Read};
use std::sync::PoisonError;

use rustix::fs::{AtFlags, OFlags, renameat, unlinkat};
use rustix::io::Errno;

use super::super::check::RejectReason;
use super::super::error::ApprovalError;
use super::super::id::new_id;
use super::{ApprovalStore, REFUSED, RefusedFile, TEMPORARY};
use crate::temporary_file::{self, TemporaryFile};

/// Larger than any valid file.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How many reports of refused files are kept until they are collected.
const REFUSED_MAX: usize = 1000;

impl ApprovalStore {
    /// Renames a file, so that it no longer counts but can still be examined. Only one of several
    /// processes succeeds, and that one reports it.
    pub(in super::super) fn set_aside(
        &self,
        id: &str,
        name: &str,
        reason: RejectReason,
    ) -> Result<(), ApprovalError> {
        let io = |source| ApprovalError::Io { path: self.folder.path_of(name), source };
        let kept = format!("{REFUSED}{}", new_id().map_err(io)?);
        let handle = self.folder.handle();
        match renameat(&handle, name, &handle, &kept) {
            Ok(()) => {}
            // Another process has set it aside, and reports it.
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(io(errno.into())),
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        // A process that writes forged files without end must not fill this one's memory.
        if refused.len() < REFUSED_MAX {
            refused.push(RefusedFile {
                id: id.to_owned(),
                name: name.to_owned(),
                kept: self.folder.path_of(&kept),
                reason: reason.to_owned(),
            });
        }
        Ok(())
    }

    /// Creates a file with these contents; false if the name exists.
    pub(in super::super) fn publish(
        &self,
        name: &str,
        contents: &[u8],
    ) -> Result<bool, ApprovalError> {
        let io = |source| ApprovalError::Io { path: self.folder.path_of(name), source };
        let temporary = self.write_temporary(contents).map_err(io)?;
        temporary.link(name).map_err(io)
    }

    pub(super) fn write_temporary(&self, contents: &[u8]) -> io::Result<TemporaryFile> {
        let mut tries = 1;
        let mut temporary = loop {
            match TemporaryFile::with_name(&self.folder, &format!("{TEMPORARY}{}", new_id()?)) {
                // Another process took it for a leftover before it was locked.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => {
                    tries += 1;
                }
                created => break created?,
            }
        };
        temporary.write(contents)?;
        Ok(temporary)
    }

    /// Removes temporary files left by killed writers.
    pub fn remove_left_over(&self) {
        temporary_file::remove_leftovers(self.folder.handle(), |name| {
            name.starts_with(TEMPORARY.as_bytes())
        });
    }

    /// The contents of a file, if it exists; the inner error says why it is not valid.
    pub(in super::super) fn read(
        &self,
        name: &str,
    ) -> Result<Option<Result<Vec<u8>, RejectReason>>, ApprovalError> {
        let mut bytes = Vec::new();
        let read = self.folder.file(name, OFlags::RDONLY);
        match read.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(Ok(bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // `FolderHandle::file` reports links, pipes and folders in this way. None of ours is
            // one, so it was placed here.
            Err(error) if error.kind() == io::ErrorKind::Other => {
                Ok(Some(Err("it is not a regular file")))
            }
            Err(source) => Err(ApprovalError::Io { path: self.folder.path_of(name), source }),
        }
    }

    pub(in super::super) fn remove(&self, name: &str) {
        // A file that cannot be removed is found again later.
        unlinkat(self.folder.handle(), name, AtFlags::empty()).ok();
    }

    pub(in super::super) fn names(&self) -> Result<Vec<String>, ApprovalError> {
        let names = self.folder.names();
        names.map_err(|source| ApprovalError::Io { path: self.folder.path().to_owned(), source })
    }
}
