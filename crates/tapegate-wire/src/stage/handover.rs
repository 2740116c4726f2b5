//! Waits until the client has read what is to be read by itself.

use std::time::Duration;

use tokio::time::Instant;

use super::outbox::Outbox;
use crate::port::Port;

/// How long the client has to read it.
const READ_MAX: Duration = Duration::from_millis(20);
/// How often it is looked whether it has. No system tells of its own accord.
const LOOK: Duration = Duration::from_millis(1);

/// A wait for the client to read.
#[derive(Debug, Default)]
pub(super) struct Handover {
    /// When the client's time is up, while it is waited for.
    deadline: Option<Instant>,
}

impl Handover {
    /// Lets what is held be sent if the client has read what comes before it, or has had its time.
    /// False if it is to be waited for.
    pub(super) fn pass(&mut self, out: &mut Outbox, output: &Port) -> bool {
        while out.is_held() {
            if output.is_read() {
                out.pass();
                self.deadline = None;
                continue;
            }
            let now = Instant::now();
            if *self.deadline.get_or_insert(now + READ_MAX) > now {
                return false;
            }
            // Whoever does not read is not waited for again and again.
            out.pass_all();
            self.deadline = None;
        }
        true
    }

    /// When it is to be looked again.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.deadline.map(|_| Instant::now() + LOOK)
    }
}
