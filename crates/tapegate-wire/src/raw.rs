//! The only module with `unsafe` code: six calls that have no safe equivalent.

#![expect(unsafe_code, reason = "each block says why it is sound")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Command;

/// Registers a descriptor with the runtime; returns it if it cannot be watched.
pub(crate) fn watch(
    fd: OwnedFd,
    interest: Interest,
) -> Result<AsyncFd<OwnedFd>, (OwnedFd, io::Error)> {
    // SAFETY: an `OwnedFd` keeps its descriptor open and unchanged for as long as it lives, and the
    // `AsyncFd` holds it until it has been deregistered from the runtime.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(|error| error.into_parts())
}

/// Makes the kernel send SIGTERM to the child when we die, even by kill -9.
///
/// The signal is sent when the thread that spawned the child ends, so children are spawned on the
/// thread that runs the session.
pub(crate) fn end_with_parent(command: &mut Command) {
    let us = rustix::process::getpid();
    let set = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // If we died before the signal was set, it will never be sent.
        if getppid() == Some(us) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: the closure runs in the child after `fork`, where only async-signal-safe calls are
    // allowed. It makes two raw system calls, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(set);
    }
}

/// Makes `is_from_process` tell whether the last signal of this number was sent by a process. The
/// terminal sends a signal to all processes in its foreground, a process to this one.
///
/// Call it before anything else handles the signal, so that it is set when the others run.
pub(crate) fn watch_origin(number: i32, is_from_process: Arc<AtomicBool>) -> io::Result<()> {
    // The code of a signal that was sent with `kill`; those of `sigqueue` and others are negative.
    const USER: i32 = if cfg!(target_os = "macos") { 0x10001 } else { 0 };
    // SAFETY: the action runs in a signal handler, where only async-signal-safe operations are
    // allowed. It reads a field and stores to an atomic.
    unsafe {
        signal_hook_registry::register_sigaction(number, move |info| {
            let is_sent = info.si_code == USER || info.si_code < 0;
            is_from_process.store(is_sent, Ordering::Relaxed);
        })
    }
    .map(|_| ())
}

/// The id of our session; 0 if it was created outside of our PID namespace, as in many containers.
/// rustix cannot express that: its `getsid` panics or returns an invalid id.
pub(crate) fn session_id() -> i32 {
    unsafe extern "C" {
        safe fn getsid(pid: i32) -> i32;
    }
    getsid(0)
}

/// Releases the resident pages of a read-only file mapping without modified pages.
#[cfg(target_os = "linux")]
pub(crate) fn release_pages(range: std::ops::Range<usize>) {
    unsafe extern "C" {
        fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
    }
    const DONT_NEED: i32 = 4;
    let address = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the mapping is private, read-only and has no modified pages, so the next access finds
    // the same bytes in the file. The kernel allows no writes to the file of a running program.
    unsafe {
        madvise(address, range.len(), DONT_NEED);
    }
}

/// Does nothing: the behaviour of mappings on other systems is not known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn release_pages(_: std::ops::Range<usize>) {}

/// How much memory holds bytes written to a socket that its peer has not read.
#[cfg(target_os = "linux")]
pub(crate) fn unread_on_socket(fd: impl AsFd) -> io::Result<u64> {
    use rustix::ioctl::{Getter, Opcode, ioctl};
    const SIOCOUTQ: Opcode = 0x5411;
    // SAFETY: for a socket, this reads one `int` and changes nothing.
    let count = unsafe { ioctl(fd, Getter::<SIOCOUTQ, std::ffi::c_int>::new()) }?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Other systems do not report this.
#[cfg(not(target_os = "linux"))]
pub(crate) fn unread_on_socket(_: impl AsFd) -> io::Result<u64> {
    Ok(0)
}
