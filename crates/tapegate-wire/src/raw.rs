//! The one place with `unsafe` code: four calls for which no safe form exists.

#![expect(unsafe_code, reason = "each block says why it is sound")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Command;

/// Has the runtime watch a descriptor; a descriptor that cannot be watched is given back.
pub(crate) fn watch(
    fd: OwnedFd,
    interest: Interest,
) -> Result<AsyncFd<OwnedFd>, (OwnedFd, io::Error)> {
    // SAFETY: an `OwnedFd` keeps its descriptor open and the same for as long as it lives, and
    // the `AsyncFd` holds it until it has been taken off the runtime's list.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(|error| error.into_parts())
}

/// Has the kernel ask the child to end when we are gone, even by kill -9.
///
/// The signal comes when the thread that spawned the child ends, so children are spawned on the
/// thread that runs the session.
pub(crate) fn end_with_us(command: &mut Command) {
    let us = rustix::process::getpid();
    let set = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // We may have died before the signal was set; then nobody would send it.
        if getppid() == Some(us) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: the closure runs in the child after `fork`, where only async-signal-safe calls are
    // allowed. It makes two raw system calls, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(set);
    }
}

/// Gives back the resident pages of a read-only mapping of a file of which nothing was ever written.
#[cfg(target_os = "linux")]
pub(crate) fn release_pages(range: std::ops::Range<usize>) {
    unsafe extern "C" {
        fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
    }
    const DONT_NEED: i32 = 4;
    let address = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the mapping is private, read-only and has no pages of its own, so the next access finds the
    // same bytes in the file. The kernel lets nobody write to the file of a program that runs.
    unsafe {
        madvise(address, range.len(), DONT_NEED);
    }
}

/// Elsewhere nothing is known of how mappings behave.
#[cfg(not(target_os = "linux"))]
pub(crate) fn release_pages(_: std::ops::Range<usize>) {}

/// How much memory holds what was written to a socket and its other end has not read.
#[cfg(target_os = "linux")]
pub(crate) fn unread_on_socket(fd: impl AsFd) -> io::Result<u64> {
    use rustix::ioctl::{Getter, Opcode, ioctl};
    const SIOCOUTQ: Opcode = 0x5411;
    // SAFETY: of a socket, this asks for one `int` and changes nothing.
    let count = unsafe { ioctl(fd, Getter::<SIOCOUTQ, std::ffi::c_int>::new()) }?;
    Ok(u64::try_from(count).unwrap_or(0))
}

/// Elsewhere sockets do not tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn unread_on_socket(_: impl AsFd) -> io::Result<u64> {
    Ok(0)
}
