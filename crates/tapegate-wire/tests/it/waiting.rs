//! Waiting for what must happen. No other file of these tests sleeps, which `tidy` checks.

use std::fs;
use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long something that must happen may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

const INTERVAL: Duration = Duration::from_millis(1);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Waits until `look` returns something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < PATIENCE, "waited for {what}");
        std::thread::sleep(INTERVAL);
    }
}

/// Waits until a process has ended. Its new parent may take a while to reap it.
#[track_caller]
pub(crate) fn wait_for_the_end_of(pid: &str) {
    let status = format!("/proc/{}/stat", pid.trim());
    wait_until("the end of a process", || {
        !fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z "))
    });
}

/// Waits until a script has written its process id to a file, and returns it.
#[track_caller]
pub(crate) fn wait_for_pid(file: &Path) -> String {
    wait_for("a process id", || fs::read_to_string(file).ok().filter(|pid| pid.ends_with('\n')))
}

/// A thread of this process, as the system knows it.
#[derive(Clone)]
pub(crate) struct ThreadStatus(PathBuf);

impl ThreadStatus {
    /// The thread that asks.
    pub(crate) fn own() -> Self {
        Self(Path::new("/proc").join(fs::read_link("/proc/thread-self").unwrap()).join("status"))
    }

    /// Whether it waits for something.
    pub(crate) fn is_idle(&self) -> bool {
        self.naps().is_some()
    }

    /// Whether it does not read, although a pipe is full.
    pub(crate) fn is_stalled(&self, pipe: &PipeWriter) -> bool {
        // Asleep all the time: otherwise it may have read what was there, and wait for more.
        let before = self.naps();
        let mut ends = [PollFd::new(pipe, PollFlags::OUT)];
        let is_full = poll(&mut ends, Some(&Timespec::default())).unwrap() == 0;
        before.is_some() && is_full && self.naps() == before
    }

    /// How often it has fallen asleep, if it sleeps.
    fn naps(&self) -> Option<u64> {
        let status = fs::read_to_string(&self.0).unwrap();
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        value("State:")?.starts_with('S').then_some(())?;
        value("voluntary_ctxt_switches:")?.parse().ok()
    }
}
