//! The thread that writes metadata and index of sessions that have changed.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use super::{SessionRecorder, now_us};
use crate::recording::index;

/// How long to collect changes before they are written.
const DEBOUNCE: Duration = Duration::from_millis(200);

/// Starts the thread. It ends with the recorder.
pub(super) fn spawn(recorder: &Arc<SessionRecorder>) {
    // A strong reference would keep the recorder alive by its own thread.
    let weak = Arc::downgrade(recorder);
    // Without the thread, metadata is written when a session is closed.
    std::thread::Builder::new().name("recordings".to_owned()).spawn(move || run(&weak)).ok();
}

fn run(weak: &Weak<SessionRecorder>) {
    while let Some(recorder) = weak.upgrade() {
        let mut state = recorder.state();
        if state.is_closed {
            return;
        }
        if !state.is_dirty {
            // Bounded, because the last owner drops the recorder without a notification.
            let waited = recorder.changed.wait_timeout(state, Duration::from_secs(1));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_dirty = state.is_dirty;
        drop(state);
        if is_dirty {
            std::thread::sleep(DEBOUNCE);
            recorder.publish();
        }
    }
}

impl SessionRecorder {
    /// Writes metadata and index of sessions that have changed.
    fn publish(&self) {
        let mut state = self.state();
        // Before the snapshot: a change after it must start another round.
        state.is_dirty = false;
        let changed = state.sessions.iter_mut().filter(|session| session.is_dirty);
        let snapshots: Vec<_> = changed
            .map(|session| {
                session.is_dirty = false;
                session.snapshot()
            })
            .collect();
        // Taken before the state is free, so that no thread can write newer metadata in between.
        let _order = self.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        drop(state);
        for (folder, metadata, indexed) in snapshots {
            let id = metadata.session_id.clone();
            // An error shows up again with the next entry, where it disables recording.
            metadata.write(&folder.metadata(&id)).ok();
            index::update(&folder, now_us(), |index| drop(index.insert(id, indexed))).ok();
        }
    }
}
