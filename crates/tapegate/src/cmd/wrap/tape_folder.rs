//! The folder that `wrap --record` names, checked before anything is started: shims would fail on it
//! one by one, in a log that the agent hides.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tapegate_store::state_dir;

use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::views::visible_text;

/// Only root and a file's owner can remove files in a folder with this bit, such as `/tmp`.
const SHARED: u32 = 0o1000;

/// Checks that tapes could be written to a folder, without writing anything.
pub(super) fn check(folder: &Path) -> Result<(), Failure> {
    check_existing(folder).map_err(|error| failure(folder, &error))
}

/// Creates the folder, and checks that tapes can be written to it.
pub(super) fn prepare(folder: &Path) -> Result<(), Failure> {
    check(folder)?;
    let changed =
        state_dir::secure(folder).map_err(|error| failure(folder, &io::Error::other(error)))?;
    changed.iter().for_each(|message| terminal_output::warn(message));
    write_probe(folder).map_err(|error| failure(folder, &error))
}

fn check_existing(folder: &Path) -> io::Result<()> {
    // A trailing slash would make the kernel follow a link.
    let folder: &Path = &folder.components().collect::<PathBuf>();
    if folder.is_symlink() {
        return Err(io::Error::other("it is a symbolic link, not a folder"));
    }
    let is_there = |path: &&Path| path.symlink_metadata().is_ok();
    let Some(existing) = folder.ancestors().find(is_there) else { return Ok(()) };
    let about = existing.metadata()?;
    if !about.is_dir() {
        let text = format!("`{}` is not a folder", visible_text::path(existing));
        return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
    }
    // The shims would make it private, and lock everyone else out.
    if existing == folder && about.permissions().mode() & SHARED != 0 {
        return Err(io::Error::other("it is shared with other users"));
    }
    Ok(access(existing, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Writes a file, since permissions alone do not tell about full and read-only disks.
fn write_probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".tapegate-{}", std::process::id()));
    let written =
        OpenOptions::new().write(true).create_new(true).open(&path).and_then(|mut file| {
            file.write_all(b"tapegate\n")?;
            file.sync_all()
        });
    fs::remove_file(&path).ok();
    written
}

fn failure(folder: &Path, reason: &io::Error) -> Failure {
    let message = format!("cannot record to `{}`: {reason}", visible_text::path(folder));
    Failure::new(Exit::Io, message).hint(
        "name a folder of your own that can be written; without =DIR, tapes go to the state folder",
    )
}
