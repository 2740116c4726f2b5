//! A process that outlives us by moments and ends what we have started, for when we are killed.
//!
//! Whoever is killed by kill -9 can do nothing any more. The kernel then asks the server's first process
//! to end, but one that ignores this stays, and so does whatever it has started. So our program
//! stands by each server a second time: it sleeps in a read of a pipe whose other end only we hold. The
//! pipe's end means that we are gone; the group is asked to end, and killed when it has not. In an
//! ordinary end the sentry is killed first and does nothing.
//!
//! A sentry keeps nothing open of ours: neither the client's streams nor our environment or folder.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The name that our program goes by when it is a sentry.
const NAME: &str = "tapegate-sentry";
/// Our own program, even if its file was replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// How long a group that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Whether our program knows the name; a test's program does not.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// What a sentry was started for.
#[derive(Debug)]
pub struct Duty {
    group: Pid,
}

/// A sentry that stands by; it is let go by dropping this.
#[derive(Debug)]
pub(crate) struct Sentry {
    /// It is started beside the session, which waits for it only before anybody hears of the server.
    starting: Option<JoinHandle<io::Result<Child>>>,
    process: Option<Child>,
}

/// What we were started for, if it is to be a sentry. A program that asks this first may have sentries.
pub fn duty(mut arguments: impl Iterator<Item = OsString>) -> Option<Duty> {
    if arguments.next().is_none_or(|name| name != NAME) {
        KNOWN.store(true, Ordering::Relaxed);
        return None;
    }
    let group: i32 = arguments.next()?.to_str()?.parse().ok()?;
    // To the kernel, group 1 is everybody.
    Some(Duty { group: Pid::from_raw(group).filter(|_| group > 1)? })
}

impl Duty {
    /// Waits until who started us is gone, then ends the group.
    pub fn keep(self) {
        // Whatever ends the read, nobody is there any more.
        io::copy(&mut io::stdin().lock(), &mut io::sink()).ok();
        kill_process_group(self.group, Signal::TERM).ok();
        let start = Instant::now();
        while test_kill_process_group(self.group).is_ok() {
            if start.elapsed() >= PATIENCE {
                kill_process_group(self.group, Signal::KILL).ok();
                return;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Sentry {
    /// Has a sentry stand by a group; without one, the kernel's request is all there is.
    pub(crate) fn stand_by(group: Pid) -> Option<Self> {
        let start = move || command(group).spawn();
        let starting = KNOWN.load(Ordering::Relaxed).then(|| thread::Builder::new().spawn(start));
        Some(Self { starting: starting?.ok(), process: None })
    }

    /// Waits until it stands by. Killed before that, we would leave a server that ignores the kernel.
    pub(crate) fn stands_by(&mut self) {
        let started = self.starting.take().and_then(|starting| starting.join().ok());
        if let Some(Ok(process)) = started {
            self.process = Some(process);
        }
    }
}

impl Drop for Sentry {
    fn drop(&mut self) {
        self.stands_by();
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
    // A group of its own, so that what is sent to ours or to the server's does not reach it.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
