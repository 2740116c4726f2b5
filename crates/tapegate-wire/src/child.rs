//! The upstream server as a child process, in its own process group.
//!
//! However a session ends, no process of the group is left behind: the server's input is closed,
//! then the group gets SIGTERM, then SIGKILL. If we are killed ourselves, the kernel sends the
//! server SIGTERM, and a [reaper](crate::reaper) ensures that the group ends.

mod stderr_tail;

use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::Interest;
use tokio::process::Command;
use tracing::debug;

use crate::port::StreamPort;
use crate::raw;
use crate::reaper::Reaper;
use stderr_tail::StderrTail;

/// The capacity of a pipe to or from the server, so that large messages take few reads.
const PIPE_BYTES: usize = 256 * 1024;

const TERM: i32 = Signal::TERM.as_raw();
const KILL: i32 = Signal::KILL.as_raw();
/// What a server's shell or runtime exits with after our signal.
const TERMINATED_CODES: [i32; 2] = [128 + TERM, 128 + KILL];

/// A started server.
#[derive(Debug)]
pub struct ServerProcess {
    process: tokio::process::Child,
    group: Option<Pid>,
    reaper: Option<Reaper>,
    status: Option<ExitStatus>,
    /// Whether we have sent it a signal while it ran.
    signalled: Cell<bool>,
    stderr: Option<StderrTail>,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start `{program}`: {source}")]
pub struct SpawnError {
    /// The program that was to be started.
    pub program: String,
    pub source: io::Error,
}

/// The pipes to a server.
#[derive(Debug)]
pub struct ServerPipes {
    /// Its standard input.
    pub input: StreamPort,
    /// Its standard output.
    pub output: StreamPort,
}

/// How a server is started.
#[derive(Debug, Clone, Default)]
pub struct ServerLaunch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Environment variables to remove.
    pub without: Vec<OsString>,
    /// Environment variables to set.
    pub env: Vec<(String, String)>,
    /// Whether to keep its last lines on standard error. They are passed on either way.
    pub keeps_stderr: bool,
}

/// The environment in which a program is started.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessContext<'a> {
    /// Additional environment variables.
    pub env: &'a [(String, String)],
    /// Environment variables to remove.
    pub without: &'a [OsString],
    /// The working directory, if it is not ours.
    pub folder: Option<&'a str>,
    /// Whether to keep its last lines on standard error.
    pub keeps_stderr: bool,
}

impl ServerProcess {
    /// Starts a server, which inherits our standard error.
    pub fn spawn(argv: &[String]) -> Result<(Self, ServerPipes), SpawnError> {
        Self::spawn_in(argv, ProcessContext::default()).map(Self::with_reaper)
    }

    /// Starts a server as described by `launch`.
    pub fn launch(launch: &ServerLaunch) -> Result<(Self, ServerPipes), SpawnError> {
        let keeps_stderr = launch.keeps_stderr;
        let context = ProcessContext {
            env: &launch.env,
            without: &launch.without,
            keeps_stderr,
            folder: None,
        };
        Self::spawn_in(&launch.argv, context).map(Self::with_reaper)
    }

    fn with_reaper((mut child, pipes): (Self, ServerPipes)) -> (Self, ServerPipes) {
        child.reaper = child.group.and_then(Reaper::spawn);
        (child, pipes)
    }

    /// Starts a short-lived program in a given environment, without a reaper.
    pub fn spawn_in(
        argv: &[String],
        context: ProcessContext<'_>,
    ) -> Result<(Self, ServerPipes), SpawnError> {
        let program = argv.first().cloned().unwrap_or_default();
        let spawned = Self::try_spawn(argv, context);
        match &spawned {
            Ok((child, _)) => debug!(pid = child.pid(), program, "server started"),
            Err(error) => debug!(program, %error, "server not started"),
        }
        spawned.map_err(|source| SpawnError { program, source })
    }

    /// Checks that a server could be started, so that a misspelt command is reported early.
    pub fn check_executable(argv: &[String]) -> Result<(), SpawnError> {
        let program = argv.first().cloned().unwrap_or_default();
        // A folder may be executable too, and cannot be started.
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

    fn try_spawn(argv: &[String], context: ProcessContext<'_>) -> io::Result<(Self, ServerPipes)> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (theirs_in, ours_in) = pipe()?;
        let (ours_out, theirs_out) = pipe()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::from(theirs_in)).stdout(Stdio::from(theirs_out));
        context.without.iter().for_each(|name| _ = command.env_remove(name));
        // After the removals, so that a variable which is set explicitly wins.
        command.envs(context.env.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = context.folder {
            command.current_dir(folder);
        }
        let stderr = if context.keeps_stderr { StderrTail::attach(&mut command)? } else { None };
        // Its own group, so that its children can be signalled with it.
        command.process_group(0).kill_on_drop(true);
        raw::end_with_parent(&mut command);
        // Before the start: if this fails, there is no process to end.
        let pipes = ServerPipes {
            input: port(ours_in, Interest::WRITABLE)?,
            output: port(ours_out, Interest::READABLE)?,
        };
        let process = command.spawn()?;
        let group = process.id().and_then(|id| Pid::from_raw(id as i32));
        let signalled = Cell::new(false);
        Ok((Self { process, group, reaper: None, status: None, signalled, stderr }, pipes))
    }

    fn pid(&self) -> Option<i32> {
        self.group.map(Pid::as_raw_pid)
    }

    /// Ensures that the server ends however we end. Call it before passing on any output of the
    /// server, because a client that has seen output may kill us.
    pub(crate) fn wait_for_reaper(&mut self) {
        if let Some(reaper) = &mut self.reaper {
            reaper.wait_until_ready();
        }
    }

    /// Waits until the server's first process has exited.
    pub async fn exited(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = self.process.wait().await?;
        debug!(pid = self.pid(), %status, "server exited");
        self.status = Some(status);
        Ok(status)
    }

    /// The exit status of the server's first process, if it is known.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Whether it ended because of our signal: by the signal, or with the code that a shell gives
    /// for it.
    pub(crate) fn was_terminated(&self) -> bool {
        let Some(status) = self.status.filter(|_| self.signalled.get()) else { return false };
        let code = TERMINATED_CODES.contains(&status.code().unwrap_or_default());
        code || matches!(status.signal(), Some(TERM | KILL))
    }

    /// The last lines an ended server wrote to standard error, once all of it has been passed on.
    pub(crate) async fn stderr_tail(&self) -> Vec<String> {
        match &self.stderr {
            Some(tail) => tail.lines().await,
            None => Vec::new(),
        }
    }

    /// Sends a signal to the whole group.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // What it leaves behind is signalled too, after it has exited by itself.
            self.signalled.set(self.signalled.get() || self.status.is_none());
            // An error means that the group has ended already.
            kill_process_group(group, signal).ok();
        }
    }

    /// Ends the group: waits `grace`, sends SIGTERM, waits `patience`, kills. Close its input
    /// first.
    pub async fn shutdown(
        &mut self,
        grace: Duration,
        patience: Duration,
    ) -> io::Result<ExitStatus> {
        let status = self.shutdown_process(grace, patience).await;
        // Also kill the processes that the first one left behind. Afterwards the group id may be
        // reused, and must not be signalled again.
        self.signal(Signal::KILL);
        // The reaper goes last: until the group is killed, it must act if we are killed.
        (self.group, self.reaper) = (None, None);
        status
    }

    async fn shutdown_process(
        &mut self,
        grace: Duration,
        patience: Duration,
    ) -> io::Result<ExitStatus> {
        for (time, signal) in [(grace, Signal::TERM), (patience, Signal::KILL)] {
            let (pid, deadline_ms) = (self.pid(), time.as_millis() as u64);
            debug!(
                pid,
                deadline_ms,
                then_signal = signal.as_raw(),
                "waiting for the server to exit"
            );
            if let Ok(status) = tokio::time::timeout(time, self.exited()).await {
                return status;
            }
            self.signal(signal);
        }
        self.exited().await
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // On any path that skips `shutdown`, such as a panic or an aborted task.
        self.signal(Signal::KILL);
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // Larger pipes only improve speed; the user's limit may forbid them.
    rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES).ok();
    Ok((reader, writer))
}

fn port(fd: OwnedFd, interest: Interest) -> io::Result<StreamPort> {
    // Each end of a pipe has its own flags, and this end is ours alone.
    rustix::io::ioctl_fionbio(&fd, true)?;
    StreamPort::from_own_descriptor(fd, interest)
}
