//! Runs commands, one thread and one [runner](crate::runner) for each.
//!
//! The thread waits in `poll` for output, for the runner's reports and for deadlines. It reads
//! output as it comes and keeps a bounded part of it, so neither the size of the output nor a
//! process that holds the pipes open delays or grows anything.

mod running_command;
mod stream_capture;
mod watch;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

pub use running_command::{CommandEnd, CommandOutcome, CommandState, RunningCommand};
pub use stream_capture::{StreamCapture, StreamPart};

use crate::runner::{self, ResourceLimits, RunnerJob, Sandbox};

/// The longest command: the kernel takes no longer argument.
pub const COMMAND_BYTES_MAX: usize = 128 * 1024 - 1;
/// How long a command may take to end after SIGTERM.
pub(crate) const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long to wait, after the shell has exited, for processes that it left behind.
const CHILD_GRACE: Duration = Duration::from_millis(200);
/// The capacity of a pipe, so that output takes few reads.
const PIPE_BYTES: usize = 256 * 1024;

/// A command to run.
#[derive(Debug, Clone)]
pub struct ShellCommand {
    pub shell: PathBuf,
    /// What the shell gets after `-c`.
    pub command: String,
    /// The working directory.
    pub folder: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Limits of the kernel.
    pub limits: ResourceLimits,
    /// What it may not do.
    pub sandbox: Sandbox,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// How much of the beginning of each stream is kept.
    pub head_bytes_max: usize,
}

/// Receives what happens while a command runs, on the thread that watches it.
pub trait CommandObserver: Send {
    /// It still runs; called once a second, with the last line it has written.
    fn on_progress(&mut self, elapsed: Duration, last_line: Option<&str>);
    /// It has ended, or could not be started. Other threads see that only after this.
    fn record(&mut self, command: &RunningCommand, outcome: &CommandOutcome);
    /// Other threads see now that it has ended.
    fn report(&mut self, command: &RunningCommand, outcome: &CommandOutcome);
    /// Nothing that it has started is left.
    fn on_gone(&mut self, command: &RunningCommand);
}

/// The server's ends of a command that has been started.
struct CommandIo {
    runner: Child,
    control: UnixStream,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Starts a command. The observer, which gets to know the command before it runs, is called on
/// another thread.
pub fn start<O: CommandObserver + 'static>(
    command: ShellCommand,
    observer: impl FnOnce(&Arc<RunningCommand>) -> Box<O>,
) -> io::Result<()> {
    let job = RunnerJob {
        shell: command.shell,
        command: command.command.into(),
        folder: command.folder,
        env: command.env,
        limits: command.limits,
        sandbox: command.sandbox,
    };
    let command_io = spawn_runner()?;
    // Sent before the socket is shared, so it is the first that the runner reads.
    (&command_io.control).write_all(&job.to_bytes())?;
    let control = command_io.control.try_clone()?;
    let running = Arc::new(RunningCommand::new(control, command.head_bytes_max));
    let watch = watch::CommandWatch::new(
        command_io,
        Arc::clone(&running),
        command.timeout,
        observer(&running),
    );
    // Without a thread the watch is dropped here. That closes the control socket, and the runner
    // then ends the command.
    std::thread::Builder::new().name("command".to_owned()).spawn(move || watch.run())?;
    Ok(())
}

fn spawn_runner() -> io::Result<CommandIo> {
    let (control, theirs) = UnixStream::pair()?;
    let (stdout, stdout_theirs) = pipe()?;
    let (stderr, stderr_theirs) = pipe()?;
    let mut command = runner::command();
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::from(stdout_theirs)).stderr(Stdio::from(stderr_theirs));
    let runner = command.spawn()?;
    Ok(CommandIo { runner, control, stdout, stderr })
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    // Larger pipes only improve speed; the user's limit may forbid them.
    rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES).ok();
    // Our end only: each end of a pipe has its own flags.
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader, writer))
}
