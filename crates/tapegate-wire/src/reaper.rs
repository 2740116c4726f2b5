//! A process that ends the servers we have started if we are killed.
//!
//! A process killed with kill -9 cannot clean up. The kernel then sends SIGTERM to the server's
//! first process, but one that ignores it stays, and so do its children. So each server gets a
//! reaper, which is our program started a second time: it blocks on a pipe whose other end only we
//! hold. When the pipe closes, we are gone; the group gets SIGTERM, and SIGKILL if it does not end.
//! In an ordinary shutdown the reaper is killed first and does nothing.
//!
//! A reaper keeps nothing of ours open: no client streams, environment or working directory.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tracing::debug;

/// The name under which our program runs as a reaper.
const NAME: &str = "tapegate-sentry";
/// Our own program, even if its file has been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// How long a group may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often to check whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Whether our program recognizes the name; a test binary does not.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// The job of a reaper process.
#[derive(Debug)]
pub struct ReaperJob {
    group: Pid,
}

/// A running reaper; dropping this ends it.
#[derive(Debug)]
pub(crate) struct Reaper {
    /// Started in the background; it must be running before any output of the server is passed on.
    starting: Option<JoinHandle<io::Result<Child>>>,
    process: Option<Child>,
}

/// The reaper job we were started for, if any. Reapers can be started only after this was called.
pub fn parse_job(mut arguments: impl Iterator<Item = OsString>) -> Option<ReaperJob> {
    if arguments.next().is_none_or(|name| name != NAME) {
        KNOWN.store(true, Ordering::Relaxed);
        return None;
    }
    let group: i32 = arguments.next()?.to_str()?.parse().ok()?;
    // For the kernel, signalling group 1 means every process.
    Some(ReaperJob { group: Pid::from_raw(group).filter(|_| group > 1)? })
}

impl ReaperJob {
    /// Waits until the process that started us is gone, then ends the group.
    pub fn run(self) {
        // However the read ends, that process is gone.
        io::copy(&mut io::stdin().lock(), &mut io::sink()).ok();
        // SIGTERM first: the server may have locks or files to clean up.
        kill_process_group(self.group, Signal::TERM).ok();
        let start = Instant::now();
        // The signal goes to a group, so children of a server that has ended count too.
        while test_kill_process_group(self.group).is_ok() {
            if start.elapsed() >= PATIENCE {
                kill_process_group(self.group, Signal::KILL).ok();
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Reaper {
    /// Starts a reaper for a group; without one, only the kernel's signal remains.
    pub(crate) fn spawn(group: Pid) -> Option<Self> {
        let start = move || command(group).spawn();
        // A thread starts it, because starting it inline delays the first answer by 2 ms.
        let starting = KNOWN.load(Ordering::Relaxed).then(|| thread::Builder::new().spawn(start));
        Some(Self { starting: starting?.ok(), process: None })
    }

    /// Waits until it runs. Killed earlier, we could leave a server that ignores SIGTERM.
    pub(crate) fn wait_until_ready(&mut self) {
        let started = self.starting.take().and_then(|starting| starting.join().ok());
        match started {
            Some(Ok(process)) => {
                debug!(pid = process.id(), "reaper started");
                self.process = Some(process);
            }
            Some(Err(error)) => debug!(%error, "reaper not started"),
            None => {}
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // A reaper that came up after this would outlive us and signal a group id that may be
        // reused.
        self.wait_until_ready();
        if let Some(process) = &mut self.process {
            // Killed before its pipe closes, it does nothing.
            process.kill().ok();
            process.wait().ok();
        }
    }
}

fn command(group: Pid) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg0(NAME).arg(group.as_raw_pid().to_string()).env_clear().current_dir("/");
    // Its own group, so that signals to ours or to the server's do not reach it.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
