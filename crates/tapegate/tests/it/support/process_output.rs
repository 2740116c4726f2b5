//! The output of a process, read by a thread of its own.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::GUARD;

/// The output read so far.
pub(super) struct ProcessOutput(pub(super) Arc<(Mutex<OutputState>, Condvar)>);

pub(super) struct OutputState {
    pub(super) bytes: Vec<u8>,
    pub(super) reading: bool,
    ended: bool,
}

impl ProcessOutput {
    pub(super) fn new(source: Option<OwnedFd>, reading: bool) -> Self {
        let ended = source.is_none();
        let state = OutputState { bytes: Vec::new(), reading, ended };
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        if let Some(source) = source {
            let of_thread = Arc::clone(&shared);
            thread::spawn(move || Self::listen(File::from(source), &of_thread));
        }
        Self(shared)
    }

    fn listen(mut source: File, (state, changed): &(Mutex<OutputState>, Condvar)) {
        let mut piece = vec![0; 1 << 16];
        drop(changed.wait_while(lock(state), |state| !state.reading).unwrap());
        loop {
            let count = source.read(&mut piece).unwrap_or(0);
            let mut state = lock(state);
            state.bytes.extend_from_slice(&piece[..count]);
            state.ended = count == 0;
            changed.notify_all();
            if count == 0 {
                return;
            }
        }
    }

    /// Waits until the output satisfies `enough`.
    pub(super) fn wait(&self, what: &str, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let (state, changed) = &*self.0;
        let state = lock(state);
        let pending = |state: &mut OutputState| !enough(&state.bytes) && !state.ended;
        let (state, _) = changed.wait_timeout_while(state, GUARD, pending).unwrap();
        let bytes = state.bytes.clone();
        drop(state);
        let heard = String::from_utf8_lossy(&bytes[..bytes.len().min(600)]);
        assert!(enough(&bytes), "waited for {what}, heard {heard}");
        bytes
    }

    /// The complete output, once the other end is closed.
    pub(super) fn all(&self) -> Vec<u8> {
        let (state, changed) = &*self.0;
        let state = lock(state);
        let (state, late) = changed.wait_timeout_while(state, GUARD, |s| !s.ended).unwrap();
        assert!(!late.timed_out(), "an output was never closed");
        state.bytes.clone()
    }
}

/// A lock poisoned by a test that failed elsewhere must not fail the guard too.
pub(super) fn lock(state: &Mutex<OutputState>) -> std::sync::MutexGuard<'_, OutputState> {
    state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
