//! Files other than tapes, such as reports. They are replaced atomically: a reader sees the old
//! version or the new one, never a mixture.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock};

use crate::temporary_file::TemporaryFile;

/// How long to wait for other processes that update files in the same folder.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// Replaces the file at `path`. A symbolic link is followed and stays one; anything but a regular
/// file, such as a pipe, is written to directly.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // A rename would put a file in place of the pipe or device.
    if fs::metadata(&target).is_ok_and(|there| !there.is_file()) {
        return OpenOptions::new().write(true).open(&target)?.write_all(bytes);
    }
    let mut temporary = TemporaryFile::next_to(&target, Mode::from_raw_mode(0o666))?;
    if let Ok(there) = fs::metadata(&target) {
        temporary.file.set_permissions(there.permissions())?;
    }
    temporary.write(bytes)?;
    // Before the rename, or a power failure could leave an empty file under the name.
    temporary.file.sync_all()?;
    temporary.replace(target.file_name().unwrap_or_default())
}

/// Replaces what is at `path`, even a symbolic link, with a file that only this user can read.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = TemporaryFile::next_to(path, Mode::RUSR | Mode::WUSR)?;
    temporary.write(bytes)?;
    temporary.replace(path.file_name().unwrap_or_default())
}

/// Like [`write_private`], and on disk before it takes the name.
pub fn write_private_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = TemporaryFile::next_to(path, Mode::RUSR | Mode::WUSR)?;
    temporary.write(bytes)?;
    temporary.file.sync_all()?;
    temporary.replace(path.file_name().unwrap_or_default())
}

/// Replaces the file at `path` with what `next` makes of its contents; `None` leaves it. Processes that update files
/// in the same folder wait for each other, so no update is lost. Anything but a regular file counts
/// as empty.
pub fn update(
    path: &Path,
    next: impl FnOnce(Option<Vec<u8>>) -> Option<Vec<u8>>,
) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // Agents may start a server twice, and each start adds to the same report.
    let _lock = lock_folder(&target)?;
    let there = match File::open(&target) {
        Ok(mut file) if file.metadata()?.is_file() => {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Some(bytes)
        }
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    next(there).map_or(Ok(()), |bytes| write(&target, &bytes))
}

/// Locks the folder, since the file itself is replaced and a lock file would be left behind.
fn lock_folder(target: &Path) -> io::Result<Option<File>> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new(".")))?;
    let began = Instant::now();
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(folder)),
            Err(rustix::io::Errno::WOULDBLOCK) if began.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_INTERVAL);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process keeps its folder locked",
                ));
            }
            // Some network file systems cannot lock folders.
            Err(_) => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_document_is_written_and_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        write(&path, b"one").unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert!(mode() & 0o400 != 0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, b"two").unwrap();
        assert_eq!((fs::read(&path).unwrap().as_slice(), mode()), (&b"two"[..], 0o640));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("r.json"), folder.path().join("l.json"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        write(Path::new("/dev/null"), b"x").unwrap();
    }

    #[test]
    fn updates_at_once_miss_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        update(&path, |there| {
                            Some([there.unwrap_or_default(), b"x".to_vec()].concat())
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read(&path).unwrap(), b"x".repeat(80));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        update(&path, |_| None).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x".repeat(80));
        update(Path::new("/dev/null"), |there| Some(there.unwrap_or_default())).unwrap();
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(&folder.path().join("no/r.json"), b"x").is_err());
        assert!(write(folder.path(), b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
