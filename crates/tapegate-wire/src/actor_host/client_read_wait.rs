//! Waits until the client has read lines that must be read separately.

use std::time::Duration;

use tokio::time::Instant;

use super::outbox::LineOutbox;
use crate::port::StreamPort;

/// How long the client may take to read. Clients that read at all are usually much faster, but a
/// busy machine may delay them.
const READ_MAX: Duration = Duration::from_secs(2);
/// The same at the end, when the rest must be sent even if the client does not read.
const READ_MAX_AT_END: Duration = Duration::from_millis(20);
/// How often to check, at first and after a longer wait. No system offers a notification.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_LATER: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(super) struct ClientReadWait {
    /// When the current wait began, if there is one.
    since: Option<Instant>,
    /// Whether the session is at its end.
    ends: bool,
}

impl ClientReadWait {
    /// Shortens the waits, because the session is ending.
    pub(super) fn expedite(&mut self) {
        self.ends = true;
    }

    /// Releases held lines if the client has read everything before them, or the time is up.
    /// Returns false while the client still has to be waited for.
    pub(super) fn release_if_read(&mut self, out: &mut LineOutbox, output: &StreamPort) -> bool {
        while out.is_held() {
            if output.is_read() {
                out.release_held();
                self.since = None;
                continue;
            }
            let read_max = if self.ends { READ_MAX_AT_END } else { READ_MAX };
            if self.since.get_or_insert_with(Instant::now).elapsed() < read_max {
                return false;
            }
            // A client that does not read is not waited for repeatedly.
            out.release_all();
            self.since = None;
        }
        true
    }

    /// When to check again.
    pub(super) fn next_check(&self) -> Option<Instant> {
        let waited = self.since?.elapsed();
        let look = if waited < READ_MAX_AT_END { LOOK } else { LOOK_LATER };
        Some(Instant::now() + look)
    }
}
