//! The upstream server as a child process, in a process group of its own.
//!
//! Whatever way a session ends, nothing of the group is left behind: its input is closed, then it
//! is asked to end, then it is killed. If we are killed ourselves, the kernel asks it to end, and a
//! [sentry](crate::sentry) sees to it that it does.

mod stderr_tail;

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::Interest;
use tokio::process::Command;

use crate::port::Port;
use crate::raw;
use crate::sentry::Sentry;
use stderr_tail::StderrTail;

/// How much a pipe to or from the server holds, so that large messages take few turns.
const PIPE_BYTES: usize = 256 * 1024;

/// A server that was started.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    group: Option<Pid>,
    sentry: Option<Sentry>,
    status: Option<ExitStatus>,
    stderr: Option<StderrTail>,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start `{program}`: {source}")]
pub struct SpawnError {
    /// What was to be started.
    pub program: String,
    /// Why it was not.
    pub source: io::Error,
}

/// The pipes to a server.
#[derive(Debug)]
pub struct Pipes {
    /// Its standard input.
    pub input: Port,
    /// Its standard output.
    pub output: Port,
}

/// How a server is started.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of ours that it does not get.
    pub without: Vec<OsString>,
    /// Whether the last lines that it writes to standard error are kept. They are passed on either way.
    pub keeps_stderr: bool,
}

/// Where a program is started, and what it finds there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place<'a> {
    /// Variables besides our own.
    pub env: &'a [(String, String)],
    /// Variables of our own that are kept from it.
    pub without: &'a [OsString],
    /// The folder, if it is not ours.
    pub folder: Option<&'a str>,
    /// Whether the last lines that it writes to standard error are kept.
    pub keeps_stderr: bool,
}

impl Child {
    /// Starts a server; its standard error is ours.
    pub fn spawn(argv: &[String]) -> Result<(Self, Pipes), SpawnError> {
        Self::spawn_in(argv, Place::default()).map(Self::watched)
    }

    /// The same, with less of our environment.
    pub fn launch(launch: &Launch) -> Result<(Self, Pipes), SpawnError> {
        let keeps_stderr = launch.keeps_stderr;
        let place = Place { without: &launch.without, keeps_stderr, ..Place::default() };
        Self::spawn_in(&launch.argv, place).map(Self::watched)
    }

    fn watched((mut child, pipes): (Self, Pipes)) -> (Self, Pipes) {
        child.sentry = child.group.and_then(Sentry::stand_by);
        (child, pipes)
    }

    /// Starts a program that is given little time, somewhere else and without a sentry.
    pub fn spawn_in(argv: &[String], place: Place<'_>) -> Result<(Self, Pipes), SpawnError> {
        let program = argv.first().cloned().unwrap_or_default();
        Self::try_spawn(argv, place).map_err(|source| SpawnError { program, source })
    }

    /// Looks whether a server could be started, so that what is misspelt is told before anybody waits.
    pub fn look_for(argv: &[String]) -> Result<(), SpawnError> {
        let program = argv.first().cloned().unwrap_or_default();
        let is_there = |path: &Path| access(path, Access::EXEC_OK).is_ok() && !path.is_dir();
        let found = if program.contains('/') {
            is_there(Path::new(&program))
        } else {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| is_there(&folder.join(&program)))
        };
        let forbidden = program.contains('/') && Path::new(&program).exists();
        let errno = if forbidden { Errno::ACCESS } else { Errno::NOENT };
        let source = io::Error::from_raw_os_error(errno.raw_os_error());
        if found { Ok(()) } else { Err(SpawnError { program, source }) }
    }

    fn try_spawn(argv: &[String], place: Place<'_>) -> io::Result<(Self, Pipes)> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (theirs_in, ours_in) = pipe()?;
        let (ours_out, theirs_out) = pipe()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::from(theirs_in)).stdout(Stdio::from(theirs_out));
        place.without.iter().for_each(|name| _ = command.env_remove(name));
        command.envs(place.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = place.folder {
            command.current_dir(folder);
        }
        let stderr = if place.keeps_stderr { StderrTail::attach(&mut command)? } else { None };
        command.process_group(0).kill_on_drop(true);
        raw::end_with_us(&mut command);
        let pipes = Pipes {
            input: port(ours_in, Interest::WRITABLE)?,
            output: port(ours_out, Interest::READABLE)?,
        };
        let process = command.spawn()?;
        let group = process.id().and_then(|id| Pid::from_raw(id as i32));
        Ok((Self { process, group, sentry: None, status: None, stderr }, pipes))
    }

    /// Makes sure that the server ends however we end. To be called before anything that the server
    /// says is passed on: who hears of it may kill us.
    pub(crate) fn guarded(&mut self) {
        if let Some(sentry) = &mut self.sentry {
            sentry.stands_by();
        }
    }

    /// Waits until the server's first process has ended.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = self.process.wait().await?;
        self.status = Some(status);
        Ok(status)
    }

    /// How the server's first process has ended, if it is known to have.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// The last lines that an ended server wrote to standard error, once all of it is passed on.
    pub(crate) async fn stderr_tail(&self) -> Vec<String> {
        match &self.stderr {
            Some(tail) => tail.lines().await,
            None => Vec::new(),
        }
    }

    /// Sends a signal to the whole group.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may be gone already, which is all that is wanted.
            kill_process_group(group, signal).ok();
        }
    }

    /// Ends the group: waits `grace`, asks, waits `patience`, kills. Its input must be closed.
    pub async fn end(&mut self, grace: Duration, patience: Duration) -> io::Result<ExitStatus> {
        let status = self.end_first(grace, patience).await;
        // Whoever the first process has left behind goes too; then the group's number is free for
        // others, whom it must not hit.
        self.signal(Signal::KILL);
        (self.group, self.sentry) = (None, None);
        status
    }

    async fn end_first(&mut self, grace: Duration, patience: Duration) -> io::Result<ExitStatus> {
        for (time, signal) in [(grace, Signal::TERM), (patience, Signal::KILL)] {
            if let Ok(status) = tokio::time::timeout(time, self.exited()).await {
                return status;
            }
            self.signal(signal);
        }
        self.exited().await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // Larger pipes are a matter of speed only; the limit of the user may forbid them.
    rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES).ok();
    Ok((reader, writer))
}

fn port(fd: OwnedFd, interest: Interest) -> io::Result<Port> {
    // Each end of a pipe has flags of its own, and this end is ours alone.
    rustix::io::ioctl_fionbio(&fd, true)?;
    Port::own(fd, interest)
}
