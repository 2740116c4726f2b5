//! Writes configs and backups so that a crash leaves the old file or the new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::with_suffix;

/// What is added to the name of a config for its new text.
pub(crate) const NEW: &str = ".tapegate-new";

/// Replaces a config; its mode and owner stay.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = free_name(&with_suffix(path, NEW));
    let written = write_new(&temporary, path, bytes).and_then(|()| fs::rename(&temporary, path));
    match written {
        // The rename itself is only durable once the folder is.
        Ok(()) => sync_folder(path),
        Err(error) => {
            // A full disk is a common cause, and the file would add to it.
            fs::remove_file(&temporary).ok();
            match error.kind() {
                // A file that is mounted by itself, as containers do, cannot be replaced.
                io::ErrorKind::ResourceBusy | io::ErrorKind::CrossesDevices => {
                    write_in_place(path, bytes)
                }
                _ => Err(error),
            }
        }
    }
}

/// Whether the file's mode has no write bit. Root could still write to it.
pub(crate) fn is_read_only(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.mode() & 0o222 == 0)
}

/// Writes the backup of a config, and reads it back.
pub(super) fn write_backup(backup: &Path, config: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = free_name(&with_suffix(backup, "-new"));
    let written =
        write_new(&temporary, config, bytes).and_then(|()| fs::rename(&temporary, backup));
    if let Err(error) = written {
        fs::remove_file(&temporary).ok();
        return Err(error);
    }
    // The one copy that a crash must not damage, so a broken disk shows before the config is
    // changed.
    if fs::read(backup)? != bytes {
        return Err(io::Error::other("it does not read back as it was written"));
    }
    sync_folder(backup)
}

/// Gives a file the mode and owner of another one.
pub(super) fn copy_permissions(from: &Path, to: &Path) -> io::Result<()> {
    let from = fs::metadata(from)?;
    let there = fs::metadata(to)?;
    fs::set_permissions(to, from.permissions())?;
    if (there.uid(), there.gid()) != (from.uid(), from.gid()) {
        std::os::unix::fs::chown(to, Some(from.uid()), Some(from.gid()))?;
    }
    Ok(())
}

/// A path at which there is nothing: this one, or with a number.
pub(super) fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..1000).map(|number| with_suffix(path, &format!("-{number}")));
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
    // If all are taken, creating the file fails and nothing is overwritten.
    std::iter::once(path.to_owned()).chain(numbered).find(is_free).unwrap_or(path.to_owned())
}

/// Writes a new file with the mode and owner of `like`.
fn write_new(path: &Path, like: &Path, bytes: &[u8]) -> io::Result<()> {
    // Closed to others from the start, since configs contain tokens; wider modes are set below.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    match fs::metadata(like) {
        Ok(there) => {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (there.uid(), there.gid()) {
                std::os::unix::fs::fchown(&file, Some(there.uid()), Some(there.gid()))?;
            }
            // After the owner, whose change clears some bits.
            file.set_permissions(fs::Permissions::from_mode(there.mode() & 0o7777))?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Before the rename, or a power failure could leave an empty file under the name.
    file.sync_all()
}

fn write_in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
