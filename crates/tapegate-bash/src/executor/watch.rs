//! The thread that watches a command.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::running_command::{CommandEnd, CommandOutcome, CommandState, RunningCommand};
use super::stream_capture::StreamCapture;
use super::{CHILD_GRACE, CommandIo, CommandObserver, PIPE_BYTES, TERM_GRACE};
use crate::runner::{RunnerReport, process_tree};

/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How much of the last line a report of progress holds.
const LINE_BYTES_MAX: usize = 200;
/// How much is read from a stream before other events are looked at.
const READ_BYTES: usize = 64 * 1024;
/// How long the runner may take, after SIGKILL, to report that all is over.
const KILL_PATIENCE: Duration = Duration::from_secs(1);

/// Watches one command until nothing of it is left.
pub(super) struct CommandWatch {
    runner: Child,
    control: UnixStream,
    running: Arc<RunningCommand>,
    observer: Box<dyn CommandObserver>,
    streams: Vec<StreamInput>,
    /// The unfinished last line of the runner's reports.
    report: Vec<u8>,
    /// Whether the runner has exited, so that no descendant is left.
    is_gone: bool,
    /// The shell's process, which leads the group of the command.
    shell: Option<Pid>,
    /// How the shell ended, and when.
    end: Option<(CommandEnd, Instant)>,
    deadline: Option<Instant>,
    timed_out: bool,
    /// When to stop waiting for an end that was asked for.
    give_up: Option<Instant>,
    last_output: Duration,
    next_progress: Instant,
    buffer: Vec<u8>,
}

/// Our end of a pipe from the command.
struct StreamInput {
    fd: OwnedFd,
    capture: fn(&mut CommandState) -> &mut StreamCapture,
}

impl CommandWatch {
    pub(super) fn new(
        command_io: CommandIo,
        running: Arc<RunningCommand>,
        timeout: Option<Duration>,
        observer: Box<dyn CommandObserver>,
    ) -> Self {
        let CommandIo { runner, control, stdout, stderr } = command_io;
        // The other copy of this descriptor only sends a few bytes, and may fail to.
        control.set_nonblocking(true).ok();
        let streams = vec![
            StreamInput { fd: stdout, capture: |state| &mut state.stdout },
            StreamInput { fd: stderr, capture: |state| &mut state.stderr },
        ];
        let now = Instant::now();
        Self {
            runner,
            control,
            running,
            observer,
            streams,
            report: Vec::new(),
            is_gone: false,
            shell: None,
            end: None,
            deadline: timeout.map(|timeout| now + timeout),
            timed_out: false,
            give_up: None,
            last_output: Duration::ZERO,
            next_progress: now + PROGRESS_INTERVAL,
            buffer: vec![0; READ_BYTES],
        }
    }

    /// Watches the command until its end, and then what it has left behind.
    pub(super) fn run(mut self) {
        while !self.has_ended() {
            self.wait(self.next_wakeup());
            self.check_deadlines();
        }
        self.drain();
        let outcome = self.outcome();
        // Before the result is reported, or the caller would think that a lost command is over.
        self.end_lost_shell(&outcome);
        // Recorded before anyone can learn of the end, so a result without its entry is never seen.
        self.observer.record(&self.running, &outcome);
        self.running.change(|state| state.outcome = Some(outcome.clone()));
        self.observer.report(&self.running, &outcome);
        // What it left behind must be able to write, and its output can be read.
        while !self.is_gone {
            self.wait(None);
        }
        self.drain();
        self.runner.wait().ok();
        self.running.change(|state| state.is_gone = true);
        self.observer.on_gone(&self.running);
    }

    /// Without its runner, nothing else ends the shell and what it has started.
    fn end_lost_shell(&self, outcome: &CommandOutcome) {
        if outcome.end != CommandEnd::Lost {
            return;
        }
        if let Some(shell) = self.shell {
            kill_process_group(shell, Signal::KILL).ok();
        }
        // The runner may have been killed before it told the shell's id, and a shell with job control
        // has several groups.
        process_tree::kill_session(Pid::from_child(&self.runner));
    }

    /// Whether the command is over for its caller.
    fn has_ended(&self) -> bool {
        let now = Instant::now();
        if self.is_gone || self.give_up.is_some_and(|time| now >= time) {
            return true;
        }
        match &self.end {
            Some((CommandEnd::NotStarted(_), _)) => true,
            // While everything is being ended, waiting for the rest shows the last output.
            Some((_, at)) => self.give_up.is_none() && now >= *at + CHILD_GRACE,
            None => false,
        }
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let grace = self.end.as_ref().filter(|_| self.give_up.is_none());
        let grace = grace.map(|(_, at)| *at + CHILD_GRACE);
        let deadline = self.deadline.filter(|_| self.end.is_none() && !self.timed_out);
        let all = [grace, deadline, self.give_up, Some(self.next_progress)];
        all.into_iter().flatten().min()
    }

    fn check_deadlines(&mut self) {
        let now = Instant::now();
        let is_over = self.deadline.is_some_and(|deadline| now >= deadline);
        // A shell that has exited is in time, even if its children still write.
        if is_over && self.end.is_none() && !self.timed_out {
            self.timed_out = true;
            self.running.end(TERM_GRACE);
        }
        // The runner may be stopped or stuck in the kernel, so the caller does not wait for it
        // endlessly.
        if self.give_up.is_none() && self.running.state().is_ending {
            self.give_up = Some(now + TERM_GRACE + KILL_PATIENCE);
        }
        if now >= self.next_progress {
            self.next_progress = now + PROGRESS_INTERVAL;
            let line = self.last_line();
            self.observer.on_progress(self.running.elapsed(), line.as_deref());
        }
    }

    fn last_line(&self) -> Option<String> {
        let state = self.running.state();
        let line = state.stdout.last_line(LINE_BYTES_MAX);
        let line = line.or_else(|| state.stderr.last_line(LINE_BYTES_MAX))?;
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    /// Waits for events, and handles them.
    fn wait(&mut self, until: Option<Instant>) {
        let mut polled: Vec<PollFd<'_>> =
            self.streams.iter().map(|stream| PollFd::new(&stream.fd, PollFlags::IN)).collect();
        polled.push(PollFd::new(&self.control, PollFlags::IN));
        let timeout = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            // Rounded up, or the last millisecond would be spent in a busy loop.
            let nanos = i64::from(left.subsec_nanos());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: nanos }
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // The kernel is out of memory; without the pause this would be a busy loop.
            Err(_) => std::thread::sleep(CHILD_GRACE),
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(polled);
        // In reverse, so that removing a stream does not move those that are still to be read.
        for index in (0..self.streams.len()).rev() {
            if ready[index] && !self.read_stream(index) {
                self.streams.remove(index);
            }
        }
        if ready.last() == Some(&true) {
            self.read_reports();
        }
    }

    /// Reads some of a stream; returns whether there may be more.
    fn read_stream(&mut self, index: usize) -> bool {
        let stream = &self.streams[index];
        match rustix::io::read(stream.fd.as_fd(), &mut self.buffer[..]) {
            Ok(0) => false,
            Ok(count) => {
                self.last_output = self.running.elapsed();
                let bytes = &self.buffer[..count];
                self.running.change(|state| (stream.capture)(state).push(bytes));
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => true,
            // A pipe that cannot be read is closed, or polling would report it without end.
            Err(_) => false,
        }
    }

    fn read_reports(&mut self) {
        let mut bytes = [0; 512];
        match self.control.read(&mut bytes) {
            // The runner keeps its end open until no descendant is left.
            Ok(0) => self.is_gone = true,
            Ok(count) => self.report.extend_from_slice(&bytes[..count]),
            Err(error) if is_transient(&error) => {}
            Err(_) => self.is_gone = true,
        }
        while let Some(end) = self.report.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.report.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            let ended = match RunnerReport::read(&line) {
                Some(RunnerReport::Exited(code)) => CommandEnd::Exited(code),
                Some(RunnerReport::Signaled(signal)) => CommandEnd::Signaled(signal),
                Some(RunnerReport::Failed(reason)) => CommandEnd::NotStarted(reason),
                Some(RunnerReport::Started(pid)) => {
                    self.shell = Pid::from_raw(pid);
                    continue;
                }
                None => continue,
            };
            self.end = Some((ended, Instant::now()));
        }
    }

    /// Reads what is in the pipes now. Bounded: something may go on writing.
    fn drain(&mut self) {
        for index in (0..self.streams.len()).rev() {
            // More than a pipe holds, so everything from before the end is read.
            let mut left = 2 * PIPE_BYTES;
            loop {
                let stream = &self.streams[index];
                let Ok(count) = rustix::io::read(stream.fd.as_fd(), &mut self.buffer[..]) else {
                    break;
                };
                let bytes = &self.buffer[..count];
                self.running.change(|state| (stream.capture)(state).push(bytes));
                left = left.saturating_sub(count);
                if count == 0 || left == 0 {
                    break;
                }
            }
        }
    }

    fn outcome(&self) -> CommandOutcome {
        let elapsed = self.running.elapsed();
        // The wait for what the shell left behind is not part of the command.
        let since_end = match &self.end {
            Some((_, at)) if !self.timed_out => at.elapsed(),
            _ => Duration::ZERO,
        };
        let duration = elapsed.saturating_sub(since_end);
        let state = self.running.state();
        let cancelled = state.is_cancelled && !self.timed_out;
        let interrupted = state.is_interrupted && !self.timed_out && !cancelled;
        drop(state);
        CommandOutcome {
            end: self.end.as_ref().map_or(CommandEnd::Lost, |(end, _)| end.clone()),
            timed_out: self.timed_out,
            cancelled,
            interrupted,
            duration,
            silence: duration.saturating_sub(self.last_output),
            has_children: !self.is_gone,
        }
    }
}

fn is_transient(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
