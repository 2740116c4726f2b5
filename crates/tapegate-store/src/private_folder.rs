//! Private folders and files.
//!
//! Folders are created with mode 0700 and files with 0600. Symbolic links are never followed,
//! neither to the folder nor in it, and only regular files are opened: opening a device can have
//! side effects, and opening a pipe may block.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

/// A folder that is held open, so that renaming it has no effect.
#[derive(Debug)]
pub(crate) struct FolderHandle {
    path: PathBuf,
    handle: OwnedFd,
}

impl FolderHandle {
    /// Opens a folder, creating it if needed.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Self::open(path)
    }

    /// Opens a folder.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = openat(CWD, path, flags, Mode::empty()).map_err(|error| match error {
            Errno::LOOP => io::Error::other("it is a symbolic link, not a folder"),
            // With O_DIRECTORY, the kernel may report a symbolic link as ENOTDIR.
            Errno::NOTDIR if path.is_symlink() => {
                io::Error::other("it is a symbolic link, not a folder")
            }
            error => error.into(),
        })?;
        Ok(Self { path: path.to_owned(), handle })
    }

    /// Makes the folder private: a user who can write to it can impersonate us.
    pub(crate) fn check_ownership(&self) -> io::Result<()> {
        let stat = rustix::fs::fstat(&self.handle)?;
        let us = rustix::process::geteuid().as_raw();
        if stat.st_uid != us && us != 0 {
            return Err(io::Error::other("it belongs to another user"));
        }
        if stat.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(&self.handle, Mode::RWXU)?;
        }
        Ok(())
    }

    /// The path of an entry of the folder, for messages.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The open folder.
    pub(crate) fn handle(&self) -> impl AsFd {
        self.handle.as_fd()
    }

    /// The metadata of an entry, if it exists; a symbolic link is not followed.
    pub(crate) fn stat(&self, name: &str) -> io::Result<Option<Stat>> {
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The identity and length of the file with this name. The times are not requested: asking for
    /// them forces a timestamp update on the next write, which costs more than the write itself.
    pub(crate) fn identity(&self, name: &str) -> io::Result<Option<FileIdentity>> {
        match identity(self.handle.as_fd(), name) {
            Ok(identity) => Ok(Some(identity)),
            Err(Errno::NOENT) => Ok(None),
            Err(_) => Ok(self.stat(name)?.map(|stat| FileIdentity::of(&stat))),
        }
    }

    /// Opens a regular file of the folder; [`OFlags::CREATE`] allows creating it.
    pub(crate) fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // Opening a device can have side effects, so the check comes first.
        self.stat(name)?.map_or(Ok(()), |stat| regular(&stat))?;
        // The name may have changed since the check. NOFOLLOW fails at a link, and NONBLOCK keeps a
        // pipe from blocking before the second check refuses it.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?);
        regular(&rustix::fs::fstat(&file)?)?;
        Ok(file)
    }

    /// The names in the folder that are valid UTF-8.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            names.extend(name.into_string().ok());
        }
        Ok(names)
    }
}

/// Refuses anything but a regular file.
fn regular(stat: &Stat) -> io::Result<()> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a folder",
        _ => "a device or a pipe",
    };
    Err(io::Error::other(format!("it is {what}, not a regular file")))
}

/// Identifies a file, and tells its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
}

impl FileIdentity {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino, bytes: stat.st_size as u64 }
    }
}

#[cfg(target_os = "linux")]
fn identity(folder: BorrowedFd<'_>, name: &str) -> Result<FileIdentity, Errno> {
    use rustix::fs::{StatxFlags, makedev, statx};
    let wanted = StatxFlags::INO | StatxFlags::SIZE;
    let found = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    Ok(FileIdentity { device, inode: found.stx_ino, bytes: found.stx_size })
}

#[cfg(not(target_os = "linux"))]
fn identity(_: BorrowedFd<'_>, _: &str) -> Result<FileIdentity, Errno> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const WRITE: OFlags = OFlags::RDWR.union(OFlags::CREATE);

    #[test]
    fn what_is_made_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let made = FolderHandle::create(&path).unwrap();
        made.file("f", WRITE).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!([mode(&path), mode(path.parent().unwrap())], [0o700; 2]);
        assert_eq!(mode(&path.join("f")), 0o600);
    }

    #[test]
    fn links_folders_and_pipes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        let made = FolderHandle::create(&real).unwrap();
        std::fs::write(folder.path().join("target"), "").unwrap();
        symlink(folder.path().join("target"), real.join("link")).unwrap();
        symlink(folder.path().join("nowhere"), real.join("dangling")).unwrap();
        std::fs::create_dir(real.join("folder")).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(real.join("fifo")).status();
        assert!(fifo.unwrap().success());
        for name in ["link", "dangling", "folder", "fifo"] {
            assert!(made.file(name, WRITE).is_err(), "{name}");
        }
        assert!(!folder.path().join("nowhere").exists());
        symlink(&real, folder.path().join("way")).unwrap();
        let error = FolderHandle::create(&folder.path().join("way")).unwrap_err();
        assert_eq!(error.to_string(), "it is a symbolic link, not a folder");
    }

    #[test]
    fn names_are_listed_and_what_is_not_there_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let made = FolderHandle::open(folder.path()).unwrap();
        made.file("f", WRITE).unwrap();
        assert!(made.names().unwrap().contains(&"f".to_owned()));
        assert!(made.stat("g").unwrap().is_none());
        assert_eq!(made.path_of("f"), made.path().join("f"));
    }
}
