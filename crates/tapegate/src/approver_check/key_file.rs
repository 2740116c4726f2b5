//! Reads a file with a copy of a project's key, which authorizes a script in place of a person.
//!
//! Any process that can read such a file can decide, so a file that other users could have read,
//! written or placed is refused. It is checked before it is opened, since opening a device may have
//! side effects.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tapegate_store::user_state::{KEY_BYTES, ProjectKey};

use crate::exit::{Exit, Failure};
use crate::program_name;

/// Checks that a file is private and holds this key.
pub(super) fn check(path: &Path, key: &ProjectKey) -> Result<(), Failure> {
    let name = path.display();
    let given = <[u8; KEY_BYTES]>::try_from(read(path)?).ok().map(ProjectKey::new);
    match given.as_ref() == Some(key) {
        true => Ok(()),
        false => Err(Failure::new(Exit::Findings, format!("`{name}` is not this project's key"))
            .hint(format!(
                "`{}` makes a copy of it",
                program_name::command("approvals export-key FILE")
            ))),
    }
}

/// Reads one byte more than a key has, so that a longer file is not taken for a key.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let failed = |error| Failure::new(Exit::Io, format!("cannot read `{name}`: {error}"));
    let check = |found: &Metadata| match find_fault(found) {
        None => Ok(()),
        Some(fault) => {
            let message = format!("cannot trust the key file `{name}`: {fault}");
            Err(Failure::new(Exit::Findings, message).hint(format!(
                "it must be a regular file of yours with mode 0600: chmod 600 {name}"
            )))
        }
    };
    check(&path.symlink_metadata().map_err(failed)?)?;
    // It may have been replaced by a pipe or a link since.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = file.map_err(failed)?;
    check(&file.metadata().map_err(failed)?)?;
    let mut bytes = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Why a file must not be used as a key file, if so.
fn find_fault(found: &Metadata) -> Option<&'static str> {
    let us = rustix::process::geteuid().as_raw();
    if found.is_symlink() {
        Some("it is a symbolic link; name the file itself")
    } else if !found.is_file() {
        Some("it is not a regular file")
    } else if found.uid() != us {
        Some("it belongs to another user")
    } else if found.mode() & 0o077 != 0 {
        Some("other users may have access to it")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    const BYTES: [u8; KEY_BYTES] = [7; KEY_BYTES];

    fn file(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
        path
    }

    #[track_caller]
    fn refuses(path: &Path, exit: Exit, reason: &str) {
        let failure = check(path, &ProjectKey::new(BYTES)).expect_err("a refusal");
        assert_eq!(failure.exit, exit, "{}", failure.message);
        assert!(failure.message.contains(reason), "{reason}: {}", failure.message);
    }

    #[test]
    fn a_private_copy_of_the_key_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        for mode in [0o600, 0o400, 0o700] {
            let path = file(folder.path(), "key", &BYTES, mode);
            assert!(check(&path, &ProjectKey::new(BYTES)).is_ok(), "{mode:o}");
            fs::remove_file(path).expect("it is there");
        }
    }

    #[test]
    fn a_file_that_others_may_use_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            let path = file(folder.path(), &format!("{mode:o}"), &BYTES, mode);
            refuses(&path, Exit::Findings, "other users may have access");
        }
        if rustix::process::geteuid().is_root() {
            let path = file(folder.path(), "theirs", &BYTES, 0o600);
            chown(&path, Some(12_345), None).expect("root may");
            refuses(&path, Exit::Findings, "belongs to another user");
        }
    }

    #[test]
    fn pipes_devices_folders_and_links_are_refused_and_do_not_hang() {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("fifo");
        let made = Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status();
        assert!(made.expect("mkfifo").success());
        for path in [&fifo, Path::new("/dev/zero"), Path::new("/dev/tty"), folder.path()] {
            refuses(path, Exit::Findings, "not a regular file");
        }
        let (good, link) = (file(folder.path(), "key", &BYTES, 0o600), folder.path().join("link"));
        symlink(good, &link).expect("a link");
        refuses(&link, Exit::Findings, "symbolic link");
        symlink(&link, folder.path().join("again")).expect("a link");
        refuses(&folder.path().join("again"), Exit::Findings, "symbolic link");
    }

    #[test]
    fn whatever_is_not_exactly_the_key_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = [&BYTES[..], b"\n"].concat();
        for (name, bytes) in
            [("empty", &b""[..]), ("short", &BYTES[1..]), ("long", &long), ("other", &[8; 32])]
        {
            let path = file(folder.path(), name, bytes, 0o600);
            refuses(&path, Exit::Findings, "is not this project's key");
        }
        // Must not be read in full: it would not fit into memory.
        let huge = file(folder.path(), "huge", b"", 0o600);
        File::options().write(true).open(&huge).and_then(|file| file.set_len(1 << 40)).ok();
        refuses(&huge, Exit::Findings, "is not this project's key");
        refuses(&folder.path().join("none"), Exit::Io, "cannot read");
    }
}
