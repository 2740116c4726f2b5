//! The thread that makes a tape durable against power failure.
//!
//! It flushes once per interval while there is something to flush, and at once after enough
//! messages. The writing thread pays one atomic increment per message; it wakes this thread only
//! after an idle period or when the count is reached.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many messages trigger a flush before the interval is over.
const MESSAGES_MAX: u64 = 100;
/// Enough for a compressor, which unoptimised builds move over the stack. Untouched pages cost
/// nothing.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// The pause after a flush, so that a burst does not sync once per hundred messages.
const PAUSE: Duration = Duration::from_millis(20);

/// Flushes from another thread.
#[derive(Debug)]
pub(crate) struct Flusher {
    shared: Arc<SharedFlusher>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct SharedFlusher {
    /// Messages written since the last flush began.
    unflushed: AtomicU64,
    /// Whether the thread waits without a time limit.
    idle: AtomicBool,
    failed: AtomicBool,
    state: Mutex<FlusherState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct FlusherState {
    stop: bool,
    due: bool,
    error: Option<io::Error>,
}

impl Flusher {
    /// Starts a thread that calls `flush` when something was written.
    pub(crate) fn start(
        interval: Duration,
        flush: impl FnMut() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(SharedFlusher::default());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("tape-flush".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || of_thread.run(interval, flush))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Records that messages were written.
    pub(crate) fn note_written(&self, messages: u64) {
        let before = self.shared.unflushed.fetch_add(messages, Ordering::SeqCst);
        // Only the message that reaches the limit wakes the thread, not each one after it.
        let full = before < MESSAGES_MAX && before + messages >= MESSAGES_MAX;
        if full || self.shared.idle.load(Ordering::SeqCst) {
            self.shared.lock().due |= full;
            self.shared.wake.notify_one();
        }
    }

    /// The error of a failed flush; returned once.
    pub(crate) fn error(&self) -> Option<io::Error> {
        if !self.shared.failed.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.lock().error.take()
    }

    /// Ends the thread; the caller must flush what was written since its last flush.
    pub(crate) fn stop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, that is a bug in `flush`; the caller flushes once more
            // anyway.
            drop(thread.join());
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SharedFlusher {
    fn run(&self, interval: Duration, mut flush: impl FnMut() -> io::Result<()>) {
        while self.wait(interval) {
            if self.unflushed.swap(0, Ordering::SeqCst) == 0 {
                continue;
            }
            if let Err(error) = flush() {
                self.lock().error = Some(error);
                self.failed.store(true, Ordering::Relaxed);
                return;
            }
            std::thread::sleep(PAUSE.min(interval));
        }
    }

    /// Waits until a flush may be due; false if the thread must end.
    fn wait(&self, interval: Duration) -> bool {
        let mut state = self.lock();
        if self.unflushed.load(Ordering::SeqCst) == 0 {
            self.idle.store(true, Ordering::SeqCst);
            // Check the count again after `idle` is visible, or a message could be missed.
            while self.unflushed.load(Ordering::SeqCst) == 0 && !state.stop {
                state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            self.idle.store(false, Ordering::SeqCst);
        }
        if !state.stop && !state.due && self.unflushed.load(Ordering::SeqCst) < MESSAGES_MAX {
            let waited = self.wake.wait_timeout_while(state, interval, |s| !s.stop && !s.due);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.due = false;
        !state.stop
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FlusherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
