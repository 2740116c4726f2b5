//! A program that has our terminal: it gets our standard streams and stays in our process group.
//!
//! The terminal therefore treats it as if we were not there: Ctrl-C, Ctrl-Z and changes of the
//! window size reach it from the terminal itself. We never pass these on a second time. If it
//! stops, we stop too, so that the shell takes the terminal back; if we are killed, the kernel
//! sends it SIGTERM.

mod signals;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, waitid, waitpid,
};
use tokio::process::Command;
use tokio::sync::mpsc;
use tracing::debug;

use crate::child::SpawnError;
use crate::raw;
pub use signals::{ForegroundSignals, ReceivedSignal};

/// A started program.
#[derive(Debug)]
pub struct ForegroundProcess {
    pid: Pid,
    changes: mpsc::UnboundedReceiver<StateChange>,
    status: Option<ExitStatus>,
}

/// What the watching thread has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StateChange {
    Stop,
    Exit,
}

impl ForegroundProcess {
    /// Starts a program. Call it on the thread that runs the session: the kernel ends the program
    /// with the thread that started it.
    pub fn spawn(argv: &[OsString], variables: &[(&str, &str)]) -> Result<Self, SpawnError> {
        let name = argv.first().map(|name| name.to_string_lossy().into_owned());
        let cannot = |source| SpawnError { program: name.clone().unwrap_or_default(), source };
        let (program, arguments) =
            argv.split_first().ok_or_else(|| cannot(io::ErrorKind::InvalidInput.into()))?;
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().copied());
        raw::end_with_parent(&mut command);
        // Not tokio's child: that one does not report when the program stops.
        let child = command.as_std_mut().spawn().map_err(cannot)?;
        let pid = Pid::from_child(&child);
        let (sender, changes) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("foreground".to_owned())
            .spawn(move || watch(pid, &sender))
            .map_err(cannot)?;
        debug!(pid = pid.as_raw_pid(), "foreground program started");
        Ok(Self { pid, changes, status: None })
    }

    /// Waits until it exits. Whenever it stops, so do we, until someone continues us.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.status {
                return Ok(status);
            }
            match self.changes.recv().await {
                Some(StateChange::Stop) => self.stop_with_it(),
                // The thread does not collect the status, so that the id stays valid until here.
                Some(StateChange::Exit) | None => self.status = Some(self.collect()?),
            }
        }
    }

    /// Sends it a signal, unless it has ended.
    pub fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            kill_process(self.pid, signal).ok();
        }
    }

    fn collect(&self) -> io::Result<ExitStatus> {
        loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => return Ok(ExitStatus::from_raw(status.as_raw())),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Stops this process, as a shell expects of a job, and continues the program with it.
    fn stop_with_it(&self) {
        kill_process(getpid(), Signal::STOP).ok();
        // A shell continues the whole group. Another process may have continued only us.
        let options = WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        let is_continued = matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)));
        if !is_continued {
            self.signal(Signal::CONT);
        }
    }
}

/// Whether we lead our session. If its terminal is closed, the kernel signals only its leader.
pub fn is_session_leader() -> bool {
    raw::session_id() == getpid().as_raw_pid()
}

/// Reports each stop, and the exit.
fn watch(pid: Pid, changes: &mpsc::UnboundedSender<StateChange>) {
    let all = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        let change = match waitid(WaitId::Pid(pid), all) {
            Ok(Some(status)) if status.stopped() => {
                // Consumed, or it would be reported again and again.
                let stop = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                match waitid(WaitId::Pid(pid), stop) {
                    Ok(Some(_)) => StateChange::Stop,
                    // It was continued in between.
                    _ => continue,
                }
            }
            Err(rustix::io::Errno::INTR) | Ok(None) => continue,
            Ok(Some(_)) | Err(_) => StateChange::Exit,
        };
        if changes.send(change).is_err() || change == StateChange::Exit {
            return;
        }
    }
}
