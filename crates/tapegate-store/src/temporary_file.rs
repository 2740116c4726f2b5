//! Temporary files that are renamed when they are complete, and the cleanup after killed writers.
//!
//! A writer locks its temporary file for as long as the file has its temporary name. The kernel
//! releases the lock of a killed process, so an unlocked file with such a name has no writer any
//! more, and the next process that writes to the folder removes it. This relies on neither process
//! ids nor clocks, so containers can share a folder.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, linkat,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::private_folder::FolderHandle;

/// The suffix of temporary files.
const END: &[u8] = b".tapegate.tmp";
/// How much of the target's name the temporary name contains, to limit its length.
const TARGET_BYTES_MAX: usize = 200;
/// How many names are tried.
const TRIES_MAX: usize = 100;
/// The age at which a file counts as left over on a file system without locks.
const UNLOCKED_MAX: Duration = Duration::from_secs(3600);

/// A file with a temporary name, which is removed on drop.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    folder: OwnedFd,
    name: OsString,
    /// Locked while it is open.
    pub(crate) file: File,
    is_named: bool,
}

impl TemporaryFile {
    /// Creates a file next to `target`, to replace it.
    pub(crate) fn next_to(target: &Path, mode: Mode) -> io::Result<Self> {
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        Self::create_for(folder, target.file_name().unwrap_or_default(), mode)
    }

    /// Creates a private file in `folder`, to replace the one named `target`.
    pub(crate) fn in_folder(folder: &FolderHandle, target: &str) -> io::Result<Self> {
        let handle = folder.handle().as_fd().try_clone_to_owned()?;
        Self::create_for(handle, OsStr::new(target), Mode::RUSR | Mode::WUSR)
    }

    fn create_for(folder: OwnedFd, target: &OsStr, mode: Mode) -> io::Result<Self> {
        remove_leftovers(&folder, |name| is_temporary_for(name, target));
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES_MAX {
            match create(&folder, &name_for(target), mode) {
                Ok(Some(created)) => return Ok(created),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Creates a private file in `folder` with exactly this temporary name.
    pub(crate) fn with_name(folder: &FolderHandle, name: &str) -> io::Result<Self> {
        let handle = folder.handle().as_fd().try_clone_to_owned()?;
        let created = create(&handle, OsStr::new(name), Mode::RUSR | Mode::WUSR)?;
        created.ok_or_else(|| io::ErrorKind::AlreadyExists.into())
    }

    /// Appends all of `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Renames the file to `target`, replacing an existing file.
    pub(crate) fn replace(mut self, target: impl AsRef<OsStr>) -> io::Result<()> {
        renameat(&self.folder, &self.name, &self.folder, target.as_ref())?;
        // From here on the name belongs to the target, which drop must not remove.
        self.is_named = false;
        Ok(())
    }

    /// Renames the file to `target`, which must not exist; on file systems that cannot check this
    /// atomically, an existing file is replaced.
    pub(crate) fn rename_new(mut self, target: impl AsRef<OsStr>) -> io::Result<()> {
        let (folder, target) = (&self.folder, target.as_ref());
        match renameat_with(folder, &self.name, folder, target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(io::ErrorKind::AlreadyExists.into()),
            // File systems without NOREPLACE are rare, and the name was free at the start.
            Err(_) => renameat(folder, &self.name, folder, target)?,
        }
        self.is_named = false;
        Ok(())
    }

    /// Links the file to its final name; false if the name is taken.
    pub(crate) fn link(self, target: &str) -> io::Result<bool> {
        let folder = &self.folder;
        // link(2) fails if the name exists, which rename(2) does not: the first writer wins.
        let done = match linkat(folder, &self.name, folder, target, AtFlags::empty()) {
            // File systems without hard links are rare, and most of them support this.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                renameat_with(folder, &self.name, folder, target, RenameFlags::NOREPLACE)
            }
            done => done,
        };
        match done {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.is_named {
            // A file that cannot be removed is removed by a later writer.
            unlinkat(&self.folder, &self.name, AtFlags::empty()).ok();
        }
    }
}

/// Removes files that killed writers have left in a folder, if their name is `ours`.
pub(crate) fn remove_leftovers(folder: impl AsFd, ours: impl Fn(&[u8]) -> bool) {
    let Ok(names) = Dir::read_from(&folder) else { return };
    for entry in names.flatten() {
        let name = entry.file_name().to_bytes();
        if ours(name) {
            // A file that cannot be removed is found again later.
            remove_left_over(&folder, OsStr::from_bytes(name)).ok();
        }
    }
}

/// Removes a file unless it has a writer.
fn remove_left_over(folder: impl AsFd, name: &OsStr) -> io::Result<()> {
    // Opening anything but a regular file may block.
    let there = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    // In a shared folder, another user's files are not ours to judge.
    let is_ours = there.st_uid == rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile || !is_ours {
        return Ok(());
    }
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&folder, name, flags, Mode::empty())?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(()),
        Err(_) if is_old(there.st_mtime) => {}
        Err(errno) => return Err(errno.into()),
    }
    // The writer may have finished before the lock was taken here, and started another file of this
    // name.
    if is_same(&folder, name, &file)? {
        unlinkat(&folder, name, AtFlags::empty())?;
    }
    Ok(())
}

fn is_old(mtime_secs: i64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    now.saturating_sub(u64::try_from(mtime_secs).unwrap_or(0)) > UNLOCKED_MAX.as_secs()
}

/// Creates and locks a file; `None` if another process took it for a leftover before it was locked.
fn create(folder: &OwnedFd, name: &OsStr, mode: Mode) -> io::Result<Option<TemporaryFile>> {
    let file = match create_locked(folder, name, mode)? {
        Some(file) => file,
        None => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = File::from(openat(folder, name, flags, mode)?);
            // Without locks, only old files count as left over.
            flock(&file, FlockOperation::LockExclusive).ok();
            file
        }
    };
    // Between creating and locking, a cleaner may have removed it.
    if !is_same(folder, name, &file)? {
        return Ok(None);
    }
    let (folder, name) = (folder.try_clone()?, name.to_owned());
    Ok(Some(TemporaryFile { folder, name, file, is_named: true }))
}

/// Creates a file without a name, locks it, and names it then: a process that is woken by every new
/// name and looks for leftovers would otherwise remove each file before it is locked. `None` where
/// the system cannot do this.
#[cfg(target_os = "linux")]
fn create_locked(folder: &OwnedFd, name: &OsStr, mode: Mode) -> io::Result<Option<File>> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let Ok(unnamed) = openat(folder, ".", flags, mode) else { return Ok(None) };
    if flock(&unnamed, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(None);
    }
    let unnamed_path = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
    match linkat(CWD, unnamed_path, folder, name, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(Some(unnamed.into())),
        Err(Errno::EXIST) => Err(io::ErrorKind::AlreadyExists.into()),
        // Not every container has /proc.
        Err(_) => Ok(None),
    }
}

#[cfg(not(target_os = "linux"))]
fn create_locked(_: &OwnedFd, _: &OsStr, _: Mode) -> io::Result<Option<File>> {
    Ok(None)
}

/// Whether a name leads to this very file.
fn is_same(folder: impl AsFd, name: &OsStr, file: impl AsFd) -> io::Result<bool> {
    let ours = fstat(file)?;
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// A temporary name for `target`: `.NAME.PID.NUMBER.tapegate.tmp`.
fn name_for(target: &OsStr) -> OsString {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let target = target.as_bytes();
    let mut name = b".".to_vec();
    name.extend_from_slice(&target[..target.len().min(TARGET_BYTES_MAX)]);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    name.extend_from_slice(format!(".{}.{number}", std::process::id()).as_bytes());
    name.extend_from_slice(END);
    OsString::from_vec(name)
}

fn is_own_name(name: &[u8]) -> bool {
    let Some(rest) = name.strip_prefix(b".").and_then(|rest| rest.strip_suffix(END)) else {
        return false;
    };
    let mut parts = rest.rsplitn(3, |byte| *byte == b'.');
    let numbers = [parts.next(), parts.next()];
    parts.next().is_some() && numbers.into_iter().all(|part| part.is_some_and(is_number))
}

/// Whether a name is a temporary one of a writer of `target`.
pub(crate) fn is_temporary_for(name: &[u8], target: impl AsRef<OsStr>) -> bool {
    is_own_name(name) || is_of_earlier_version(name, target.as_ref().as_bytes())
}

/// Earlier versions used `.NAME.PID.tmp` or `.NAME.PID`. Other programs use such names too, so only
/// those of the same target are ours.
fn is_of_earlier_version(name: &[u8], target: &[u8]) -> bool {
    let rest = name.strip_prefix(b".").and_then(|rest| rest.strip_prefix(target));
    let Some(rest) = rest.and_then(|rest| rest.strip_prefix(b".")) else { return false };
    is_number(rest.strip_suffix(b".tmp").unwrap_or(rest))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_process_that_looks_for_leftovers_all_the_time_takes_no_file_from_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let handle = FolderHandle::open(folder.path()).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    remove_leftovers(handle.handle(), |name| name.starts_with(b".tmp-"));
                }
            });
            let created = (0..2000).try_for_each(|number| {
                TemporaryFile::with_name(&handle, &format!(".tmp-{number}")).map(drop)
            });
            is_over.store(true, Ordering::Relaxed);
            created.unwrap();
        });
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn what_has_no_writer_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let left = [".a.json.17.0.tapegate.tmp", ".t.json.99999999.tmp", ".t.json.1"];
        let others =
            [".a.json.17.tmp", ".t.json.x.tmp", "t.json.1.tmp", ".17.0.tapegate.tmp", ".t"];
        left.iter().chain(&others).for_each(|name| fs::write(at(name), "x").unwrap());
        std::os::unix::fs::symlink(at(".t"), at(".l.1.2.tapegate.tmp")).unwrap();
        fs::create_dir(at(".d.1.2.tapegate.tmp")).unwrap();
        let one = TemporaryFile::next_to(&at("t.json"), Mode::RUSR | Mode::WUSR).unwrap();
        let two = TemporaryFile::next_to(&at("t.json"), Mode::RUSR | Mode::WUSR).unwrap();
        for name in left {
            assert!(!at(name).exists(), "{name}");
        }
        for name in others.iter().chain(&[".d.1.2.tapegate.tmp"]) {
            assert!(at(name).exists(), "{name}");
        }
        assert!(at(".l.1.2.tapegate.tmp").is_symlink());
        // Both have a writer, this process, and are left alone.
        assert!([&one, &two].iter().all(|file| at(file.name.to_str().unwrap()).exists()));
        one.replace("t.json").unwrap();
        drop(two);
        assert!(
            !names(folder.path())
                .iter()
                .any(|name| name.starts_with(".t.json.") && is_own_name(name.as_bytes()))
        );
    }

    #[test]
    fn a_long_name_has_a_temporary_one_that_fits() {
        let folder = tempfile::tempdir().unwrap();
        let name = "x".repeat(255);
        let file =
            TemporaryFile::next_to(&folder.path().join(&name), Mode::RUSR | Mode::WUSR).unwrap();
        file.replace(&name).unwrap();
        assert_eq!(names(folder.path()), [name]);
    }

    #[test]
    fn writers_at_once_keep_their_files_while_others_clean() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = folder.path().join(format!("{thread}.json"));
                scope.spawn(move || {
                    for _ in 0..100 {
                        let mut file =
                            TemporaryFile::next_to(&path, Mode::RUSR | Mode::WUSR).unwrap();
                        file.write(b"x").unwrap();
                        file.replace(path.file_name().unwrap()).unwrap();
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["0.json", "1.json", "2.json", "3.json"]);
    }
}
