//! Waits until the client has read what is to be read by itself.

use std::time::Duration;

use tokio::time::Instant;

use super::outbox::Outbox;
use crate::port::Port;

/// How long the client has to read it. Whoever reads at all has done so much sooner, but on a busy
/// machine it may take its time to come to it.
const READ_MAX: Duration = Duration::from_secs(2);
/// The same at the end, when what is left must be sent whoever reads it.
const READ_MAX_AT_END: Duration = Duration::from_millis(20);
/// How often it is looked whether it has: at first, and once it takes long. No system tells of its
/// own accord.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_LATER: Duration = Duration::from_millis(5);

/// A wait for the client to read.
#[derive(Debug, Default)]
pub(super) struct Handover {
    /// Since when the client is waited for, if it is.
    since: Option<Instant>,
    /// Whether the session is at its end.
    ends: bool,
}

impl Handover {
    /// Waits no longer than it must: the session is at its end.
    pub(super) fn hurry(&mut self) {
        self.ends = true;
    }

    /// Lets what is held be sent if the client has read what comes before it, or has had its time.
    /// False if it is to be waited for.
    pub(super) fn pass(&mut self, out: &mut Outbox, output: &Port) -> bool {
        while out.is_held() {
            if output.is_read() {
                out.pass();
                self.since = None;
                continue;
            }
            let read_max = if self.ends { READ_MAX_AT_END } else { READ_MAX };
            if self.since.get_or_insert_with(Instant::now).elapsed() < read_max {
                return false;
            }
            // Whoever does not read is not waited for again and again.
            out.pass_all();
            self.since = None;
        }
        true
    }

    /// When it is to be looked again.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let waited = self.since?.elapsed();
        let look = if waited < READ_MAX_AT_END { LOOK } else { LOOK_LATER };
        Some(Instant::now() + look)
    }
}
