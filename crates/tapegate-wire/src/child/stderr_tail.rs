//! A server's standard error: passed on as it arrives, with its last lines kept.
//!
//! A thread does this with blocking calls: a server whose errors are not read blocks, as if it
//! wrote to our standard error directly. On a terminal it does, so that it can detect the terminal;
//! then nothing is kept.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::process::Command;
use tokio::time::Instant;

/// How much is kept.
const TAIL_BYTES_MAX: usize = 4096;
const LINES_MAX: usize = 10;
/// How long to wait at the end for our standard error to be read.
const PATIENCE: Duration = Duration::from_secs(1);
const STACK_BYTES: usize = 128 * 1024;

/// The last part of a server's standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct StderrTail(Arc<SharedTail>);

#[derive(Debug, Default)]
struct SharedTail {
    tail: Mutex<VecDeque<u8>>,
    is_done: AtomicBool,
}

impl StderrTail {
    /// Redirects the standard error of `command` to us, unless ours is a terminal.
    pub(super) fn attach(command: &mut Command) -> io::Result<Option<Self>> {
        if io::stderr().is_terminal() {
            return Ok(None);
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        command.stderr(Stdio::from(writer));
        let kept = Self::default();
        let of_thread = kept.clone();
        std::thread::Builder::new()
            .name("server-stderr".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || of_thread.copy_lines(reader.into()))?;
        Ok(Some(kept))
    }

    fn copy_lines(&self, mut from: std::fs::File) {
        let mut piece = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            // If our standard error is closed, the server need not know.
            io::stderr().write_all(&piece[..count]).ok();
            let mut tail = self.0.tail.lock().unwrap_or_else(PoisonError::into_inner);
            // Passed on first: keeping a copy must not delay what the user sees.
            tail.extend(&piece[..count]);
            let surplus = tail.len().saturating_sub(TAIL_BYTES_MAX);
            tail.drain(..surplus);
        }
        self.0.is_done.store(true, Ordering::SeqCst);
    }

    /// The last lines, once everything has been passed on or the wait has timed out.
    pub(super) async fn lines(&self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        while !self.0.is_done.load(Ordering::SeqCst) && Instant::now() < deadline {
            // The thread blocks in `read` and cannot wake a task, so its flag is polled.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let tail: Vec<u8> = {
            let tail = self.0.tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.iter().copied().collect()
        };
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let surplus = lines.len().saturating_sub(LINES_MAX);
        lines[surplus..].iter().map(|line| (*line).to_owned()).collect()
    }
}
