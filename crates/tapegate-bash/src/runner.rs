//! The process that runs one command and ends everything the command has started.
//!
//! It is our own program, started under another name. It opens a session of its own, adopts the
//! orphans of the command (it is their subreaper), and reports on its control socket how the shell
//! ended. It exits once no descendant is left. When the control socket closes, the server is gone,
//! even by kill -9: then every descendant gets SIGTERM, and SIGKILL if it does not end. A process
//! that leaves its group or its session is found too.
//!
//! A runner keeps nothing of the server open, and has neither its environment nor its folder.

mod job;
pub(crate) mod process_tree;
mod sandbox;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, wait};

pub use job::{ResourceLimits, RunnerJob};
pub use sandbox::Sandbox;

/// The name under which our program runs as a runner. It must differ from what people search for
/// with `pkill -f`, and the command line holds nothing of the command for the same reason.
pub const NAME: &str = "tapegate-runner";
/// Our own program, even if its file has been replaced meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// How long descendants may take to end after SIGTERM if the server is gone.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest job description that is read.
const JOB_BYTES_MAX: u32 = 64 << 20;

/// What the server asks of a runner, as the first byte of a request.
pub(crate) mod request {
    /// End every descendant with SIGTERM, and with SIGKILL after the milliseconds that follow.
    pub(crate) const END: u8 = b'E';
    /// Send the signal whose number follows to every descendant.
    pub(crate) const SIGNAL: u8 = b'S';
}

/// What a runner reports, as a line on the control socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunnerReport {
    /// The shell runs, with this process id.
    Started(i32),
    /// The shell could not be started.
    Failed(String),
    /// The shell has exited with this code.
    Exited(i32),
    /// A signal has ended the shell.
    Signaled(i32),
}

impl RunnerReport {
    /// Reads a line.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        Some(match word {
            "started" => Self::Started(rest.parse().ok()?),
            // The reason is the rest of the line, since paths contain spaces.
            "failed" => Self::Failed(rest.to_owned()),
            "exited" => Self::Exited(rest.parse().ok()?),
            "signaled" => Self::Signaled(rest.parse().ok()?),
            _ => return None,
        })
    }

    fn line(&self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::Failed(reason) => format!("failed {}\n", reason.replace('\n', " ")),
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Signaled(signal) => format!("signaled {signal}\n"),
        }
    }
}

/// Whether we were started as a runner; if so, does its work until no descendant is left.
pub fn run_if_named(mut arguments: impl Iterator<Item = OsString>) -> bool {
    if arguments.next().is_none_or(|name| name != NAME) {
        return false;
    }
    // An error of ours could only go into the command's output; the server notices that the socket
    // is closed.
    run().ok();
    true
}

/// The command line that starts a runner. Standard input must become the control socket.
pub(crate) fn command() -> Command {
    let mut command = Command::new(PROGRAM);
    // The root, so that no runner keeps a file system from being unmounted.
    command.arg0(NAME).env_clear().current_dir("/");
    command
}

fn run() -> io::Result<()> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Our copies of the command's pipes are closed below, and with them this one must go.
    rustix::process::setsid().ok();
    #[cfg(target_os = "linux")]
    // Otherwise orphans of the command go to init, where we could not find them.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok();
    let job = read_job(&control)?;
    let mut socket = &control;
    // Before the shell is started, which inherits them; the runner itself needs less.
    job.limits.apply();
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    // Without the sandbox that was asked for, nothing is executed.
    let spawned = job.sandbox.apply().map_err(io::Error::other).and_then(|()| shell(&job).spawn());
    drop(job);
    // From here on, only the command holds its pipes.
    release_output(&nowhere)?;
    let shell = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            return socket.write_all(RunnerReport::Failed(error.to_string()).line().as_bytes());
        }
    };
    // The server may be gone; then the loop below ends the command.
    socket.write_all(RunnerReport::Started(shell.as_raw_pid()).line().as_bytes()).ok();
    let reports = control.try_clone()?;
    // On its own thread, because waiting for children and for requests both block.
    std::thread::Builder::new().spawn(move || reap(shell, &reports))?;
    serve_requests(&control, shell);
    Ok(())
}

fn read_job(mut control: &UnixStream) -> io::Result<RunnerJob> {
    let mut length = [0; 4];
    control.read_exact(&mut length)?;
    // The server is trusted, but a runner that is started by hand must not take all memory.
    let length = u32::from_le_bytes(length);
    if length > JOB_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    control.read_exact(&mut bytes)?;
    RunnerJob::read(&bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn shell(job: &RunnerJob) -> Command {
    let mut command = Command::new(&job.shell);
    command.arg("-c").arg(&job.command).env_clear().envs(job.env.iter().map(|(k, v)| (k, v)));
    // A group of its own, so that one signal reaches the whole pipeline, and not us.
    command.current_dir(&job.folder).process_group(0).stdin(Stdio::null());
    command
}

/// Replaces our standard output and error, so that the pipes close when the command closes them.
fn release_output(nowhere: &std::fs::File) -> io::Result<()> {
    // Replaced rather than closed: a file that is opened later must not become standard output.
    rustix::stdio::dup2_stdout(nowhere)?;
    rustix::stdio::dup2_stderr(nowhere)?;
    Ok(())
}

/// Waits for every descendant that becomes our child, reports how the shell ended, and ends this
/// process when none is left.
fn reap(shell: Pid, mut reports: &UnixStream) {
    loop {
        let (pid, status) = match wait(WaitOptions::empty()) {
            Ok(Some(ended)) => ended,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            // No child is left.
            Err(_) => std::process::exit(0),
        };
        if pid == shell {
            let report = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => RunnerReport::Exited(code),
                (None, Some(signal)) => RunnerReport::Signaled(signal),
                (None, None) => continue,
            };
            reports.write_all(report.line().as_bytes()).ok();
        }
    }
}

/// Does what the server asks, until it is gone.
fn serve_requests(mut control: &UnixStream, shell: Pid) {
    let mut word = [0; 1];
    while control.read_exact(&mut word).is_ok() {
        let mut number = [0; 4];
        if control.read_exact(&mut number).is_err() {
            break;
        }
        let number = u32::from_le_bytes(number);
        match word[0] {
            request::END => end_all(shell, Duration::from_millis(number.into())),
            request::SIGNAL => {
                let signal = i32::try_from(number).ok().and_then(Signal::from_named_raw);
                signal.iter().for_each(|signal| process_tree::signal_all(shell, *signal));
            }
            _ => break,
        }
    }
    // The socket is closed, so the server is gone.
    end_all(shell, PATIENCE);
}

/// Ends every descendant. Returns only by the end of this process: see [`reap`].
fn end_all(shell: Pid, grace: Duration) -> ! {
    process_tree::signal_all(shell, Signal::TERM);
    // A stopped process handles the signal only when it continues.
    process_tree::signal_all(shell, Signal::CONT);
    std::thread::sleep(grace);
    loop {
        // Again and again: a process may have forked between the listing and the signal.
        process_tree::kill_all();
        std::thread::sleep(Duration::from_millis(10));
    }
}
