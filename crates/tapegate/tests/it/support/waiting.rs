//! Waiting for what must happen. No other file of these tests sleeps, which `tidy` checks.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

/// How long anything may take before the test fails.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

const INTERVAL: Duration = Duration::from_millis(5);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Waits until `look` returns something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(GUARD, look).unwrap_or_else(|| panic!("waited for {what}"))
}

/// Waits until `look` returns something, or the time limit has passed.
pub(crate) fn within<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let seen = look();
        if seen.is_some() || Instant::now() >= deadline {
            return seen;
        }
        thread::sleep(INTERVAL);
    }
}

/// Waits until a process has exited.
#[track_caller]
pub(crate) fn wait_for_exit(what: &str, child: &mut Child) -> ExitStatus {
    wait_for(&format!("the end of {what}"), || child.try_wait().unwrap())
}

/// A peer that does nothing more for as long as the test runs.
pub(crate) fn hang() -> ! {
    loop {
        thread::park();
    }
}

/// What a scripted server waits for until the test lets it go on.
#[derive(Clone, Default)]
pub(crate) struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    /// Waits until it is open.
    pub(crate) fn wait(&self) {
        let (is_open, opened) = &*self.0;
        drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    }

    pub(crate) fn open(&self) {
        let (is_open, opened) = &*self.0;
        *is_open.lock().unwrap() = true;
        opened.notify_all();
    }
}

/// Lets a random time pass, so that what follows comes at any moment of what is going on.
pub(super) fn pause(limit: Duration) {
    thread::sleep(limit);
}

/// Waits until a process has handled all its input and waits for more.
#[track_caller]
pub(crate) fn wait_until_idle(pid: u32) {
    // Not awake between two looks: it may sleep for a moment while it waits for itself.
    let mut before = None;
    wait_until("a process with nothing to do", || {
        let now = naps(pid);
        let is_idle = now.is_some() && now == before;
        before = now;
        is_idle
    });
}

/// How often each thread of a process has fallen asleep, if all of them sleep. A thread that could
/// read from a pipe, and wants to, does not.
fn naps(pid: u32) -> Option<Vec<u64>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let naps = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        value("State:")?.starts_with('S').then_some(())?;
        value("voluntary_ctxt_switches:")?.parse().ok()
    };
    threads.map(naps).collect()
}

/// Waits until a process does not read any more, although the pipe at `descriptor` is full.
#[track_caller]
pub(crate) fn wait_until_stalled(pid: u32, descriptor: &Path) {
    wait_until("a full pipe that is not read", || is_stalled(pid, descriptor));
}

/// Whether a process does not read, although the pipe at `descriptor` is full.
pub(crate) fn is_stalled(pid: u32, descriptor: &Path) -> bool {
    // Asleep all the time: otherwise it may have read what was there, and wait for more.
    let before = naps(pid);
    before.is_some() && is_full(descriptor) && naps(pid) == before
}

/// Waits until nothing is left to read in the pipe at `descriptor`.
#[track_caller]
pub(crate) fn wait_until_read(descriptor: &Path) {
    wait_until("an empty pipe", || {
        let pipe = opened(descriptor, File::options().read(true));
        pipe.is_some_and(|pipe| rustix::io::ioctl_fionread(pipe) == Ok(0))
    });
}

/// Waits until the pipe at `descriptor` is full.
#[track_caller]
pub(crate) fn wait_until_full(descriptor: &Path) {
    wait_until("a full pipe", || is_full(descriptor));
}

/// Where a descriptor of a process can be opened.
pub(crate) fn descriptor(pid: u32, number: u32) -> PathBuf {
    format!("/proc/{pid}/fd/{number}").into()
}

/// Whether a pipe accepts no more.
fn is_full(descriptor: &Path) -> bool {
    opened(descriptor, File::options().write(true)).is_some_and(|pipe| {
        let mut ends = [PollFd::new(&pipe, PollFlags::OUT)];
        poll(&mut ends, Some(&Timespec::default())) == Ok(0)
    })
}

/// Another descriptor of a pipe; none if it has no other end any more.
fn opened(path: &Path, options: &mut OpenOptions) -> Option<File> {
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path).ok()
}

/// A named pipe for which the scripted server waits at one of its steps.
pub(crate) struct StepGate(PathBuf);

impl StepGate {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Self(path)
    }

    /// The step at which the server waits.
    pub(crate) fn step(&self) -> String {
        format!("await={}", self.0.display())
    }

    /// Waits until the server has come to that step, and lets it go on.
    #[track_caller]
    pub(crate) fn open(&self) {
        self.open_after(|| ());
    }

    /// Waits until the server has come to that step, then for `more`, and lets it go on.
    #[track_caller]
    pub(crate) fn open_after(&self, more: impl FnOnce()) {
        // Without a reader it cannot be opened. Its reader goes on when it is closed.
        let _writer =
            wait_for("a server that waits", || opened(&self.0, File::options().write(true)));
        more();
    }
}
