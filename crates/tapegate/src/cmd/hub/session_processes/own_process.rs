//! Processes of our own program, as `/proc` shows them. Where there is no `/proc`, none are found:
//! shims then end by themselves, when their hub or their client is gone.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpid};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use tapegate_agents::stored_entry;

/// A process of ours, which keeps its identity.
pub(super) struct OwnProcess {
    pid: Pid,
    handle: OwnedFd,
}

impl OwnProcess {
    /// The process with this id, if it runs our program.
    fn open(pid: Pid) -> Option<Self> {
        let handle = descriptor(pid)?;
        // After the descriptor, which now is of the process that is looked at.
        let is_ours = program("self").is_some_and(|own| program(&text(pid)) == Some(own));
        is_ours.then_some(Self { pid, handle })
    }

    pub(super) fn signal(&self, signal: Signal) {
        send(&self.handle, signal);
    }

    pub(super) fn has_ended(&self) -> bool {
        // The descriptor is readable from the end of the process on.
        let mut polled = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }
}

/// Whether processes can be seen: `/proc` may be missing in a container, and an old kernel has no
/// descriptors for them.
pub(super) fn are_visible() -> bool {
    OwnProcess::open(getpid()).is_some()
}

/// The shims that have named themselves, and those whose command line names the hub.
pub(super) fn shims_of(endpoint: &str, told: &[u32]) -> Vec<OwnProcess> {
    let is_told = |process: &OwnProcess| told.contains(&process.pid.as_raw_pid().cast_unsigned());
    let processes = all_processes().into_iter().filter_map(OwnProcess::open);
    processes.filter(|one| is_told(one) || joins_hub(one.pid, endpoint)).collect()
}

fn joins_hub(pid: Pid, endpoint: &str) -> bool {
    let words = words_of(pid);
    words.get(1).is_some_and(|word| word == "shim") && stored_entry::joins_hub(&words, endpoint)
}

/// Our own processes that a shim has started: those that end its servers.
pub(super) fn reapers_of(shim: &OwnProcess) -> Vec<OwnProcess> {
    let is_child = |pid: &Pid| parent_of(*pid) == Some(shim.pid.as_raw_pid());
    all_processes().into_iter().filter(is_child).filter_map(OwnProcess::open).collect()
}

#[cfg(target_os = "linux")]
fn descriptor(pid: Pid) -> Option<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

#[cfg(target_os = "linux")]
fn send(process: &OwnedFd, signal: Signal) {
    pidfd_send_signal(process, signal).ok();
}

#[cfg(not(target_os = "linux"))]
fn descriptor(_: Pid) -> Option<OwnedFd> {
    None
}

#[cfg(not(target_os = "linux"))]
fn send(_: &OwnedFd, _: Signal) {}

fn all_processes() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Pid::from_raw).collect()
}

fn text(pid: Pid) -> String {
    pid.as_raw_pid().to_string()
}

/// The program of a process, also if its file has been replaced meanwhile.
fn program(process: &str) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    let name = path.to_str()?;
    Some(PathBuf::from(name.strip_suffix(" (deleted)").unwrap_or(name)))
}

fn words_of(pid: Pid) -> Vec<String> {
    let line = fs::read(format!("/proc/{}/cmdline", text(pid))).unwrap_or_default();
    let words = line.split(|byte| *byte == 0);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn parent_of(pid: Pid) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{}/stat", text(pid))).ok()?;
    // The name is in parentheses, and may contain any of them.
    let (_, rest) = status.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
