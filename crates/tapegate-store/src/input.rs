//! Opens what a user names as input: a file, or a pipe that is waited for.
//!
//! Devices are refused: they may never end, and merely opening one can have side effects. A pipe
//! that delivers nothing for a second is reported, so that no command hangs silently.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// Called with the name of a pipe that has delivered nothing for a second.
pub type WaitNotice = fn(&Path);

/// How long to wait for a pipe before reporting it.
const SILENCE_SECONDS: i64 = 1;

/// Called with the name of each file or pipe that is opened.
pub type OpenNotice = fn(&Path);

static WAIT_NOTICE: OnceLock<WaitNotice> = OnceLock::new();
static OPEN_NOTICE: OnceLock<OpenNotice> = OnceLock::new();

/// Sets the callback for pipes that are waited for. Only the first call has an effect.
pub fn on_wait(notice: WaitNotice) {
    WAIT_NOTICE.set(notice).ok();
}

/// Sets the callback for files that are opened. Only the first call has an effect.
pub fn on_open(notice: OpenNotice) {
    OPEN_NOTICE.set(notice).ok();
}

/// Opens a file or a pipe. Returns when a pipe is readable or its writer is gone.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device can have side effects, so the check comes first.
    refuse(fs::metadata(path)?.file_type())?;
    open_checked(path)
}

/// Opens standard input; a terminal is refused like other devices.
pub fn stdin() -> io::Result<File> {
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let metadata = file.metadata()?;
    refuse(metadata.file_type())?;
    OPEN_NOTICE.get().into_iter().for_each(|notice| notice(Path::new("standard input")));
    if !metadata.is_file() {
        wait_for_input(file.as_fd(), Path::new("standard input"))?;
    }
    Ok(file)
}

/// Reads a small file or pipe completely, such as one with arguments or a token; more than
/// `bytes_max` bytes are an error. A terminal is accepted too, for example as `/dev/stdin`.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = match is_terminal(path) {
        true => open_checked(path)?,
        false => open(path)?,
    };
    read_up_to(file, bytes_max)
}

/// Like [`read`], for UTF-8 text.
pub fn read_to_string(path: &Path, bytes_max: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path, bytes_max)?).map_err(not_text)
}

/// Reads a source to its end; more than `bytes_max` bytes are an error.
pub fn read_up_to(source: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("it is larger than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

fn open_checked(path: &Path) -> io::Result<File> {
    let at_once = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(at_once.bits() as i32).open(path)?;
    OPEN_NOTICE.get().into_iter().for_each(|notice| notice(path));
    // The path may lead to something else by now.
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() || is_terminal(path) {
        wait_for_input(file.as_fd(), path)?;
        // This description is ours alone, unlike an inherited one, so its flags may be changed.
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    } else {
        refuse(kind)?;
    }
    Ok(file)
}

/// Refuses devices and sockets.
fn refuse(kind: FileType) -> io::Result<()> {
    let what = match () {
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () if kind.is_socket() => "a socket",
        () => return Ok(()),
    };
    Err(io::Error::other(format!("it is {what}, not a file or a pipe")))
}

/// Whether a path leads to a terminal. Judged by name: opening other devices can have side effects.
fn is_terminal(path: &Path) -> bool {
    let real = fs::canonicalize(path).unwrap_or_default();
    let name = real.to_string_lossy();
    name.starts_with("/dev/pts/") || name.starts_with("/dev/tty")
}

/// Waits until there is something to read, or the writer is gone.
fn wait_for_input(file: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let silence = Timespec { tv_sec: SILENCE_SECONDS, tv_nsec: 0 };
    if !is_ready(file, Some(&silence))? {
        if let Some(notice) = WAIT_NOTICE.get() {
            notice(path);
        }
        while !is_ready(file, None)? {}
    }
    Ok(())
}

fn is_ready(file: BorrowedFd<'_>, timeout: Option<&Timespec>) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(file, PollFlags::IN)];
    match poll(&mut fds, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
