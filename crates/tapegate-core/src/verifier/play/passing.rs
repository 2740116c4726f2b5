//! Passes recorded messages of the server: from then on they are expected.

use std::io;

use crate::frame::{Frame, Kind};
use crate::tape::index::Slot;

use super::super::notices::Expected;
use super::owners::group;
use super::{Kit, Play};

/// How long to wait for an unprompted message of the server, in addition to twice the time it took
/// on the tape.
const GRACE_NS: u64 = 500_000_000;

impl Play {
    /// Passes a recorded message of the server: from now on it is expected.
    pub(super) fn pass(
        &mut self,
        kit: &mut Kit<'_, '_>,
        slot: u32,
        there: &Slot,
    ) -> io::Result<()> {
        match there.kind {
            Kind::Response | Kind::Error => {
                self.open_sent.remove(&there.pair);
                if let Some(asking) = self.open_skipped.remove(&there.pair) {
                    self.unanswered(kit, &asking, slot)?;
                }
                if let Some(asked) = self.asked.get_mut(&there.pair) {
                    let waiting = self.waiting.get(&asked.key);
                    asked.owed = waiting.is_some_and(|waiting| waiting.deadline.is_some());
                    self.owed += usize::from(asked.owed);
                }
            }
            Kind::Notification if !there.ours => self.expect(kit, slot, there)?,
            Kind::Request if !there.ours => {
                // It belongs to the requests that are open, if there are any.
                let of_sent = !self.open_sent.is_empty() && self.open_skipped.is_empty();
                if of_sent || !self.left_out {
                    let method = kit.tape.about(slot)?.method;
                    self.questions.expect(slot, &method, self.patience(kit, there));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expect(&mut self, kit: &mut Kit<'_, '_>, slot: u32, there: &Slot) -> io::Result<()> {
        let text = kit.tape.text(slot)?;
        let frame = Frame::read(&text);
        let Some(said) = frame.envelope() else { return Ok(()) };
        let (group, request) = group(&self.owners.recorded, said);
        let progress = said.is_method("notifications/progress");
        let over = request.is_some_and(|request| !self.asked.contains_key(&request));
        let required = match request {
            // A request that was not sent causes no notifications.
            Some(request) if !self.owners.sent.contains(&request) => return Ok(()),
            // How much a server still sends after a cancellation is arbitrary.
            Some(request) if over && kit.tape.slot(request).cancelled => false,
            Some(_) if progress => true,
            _ => !self.left_out,
        };
        let late = progress && over;
        let expected = Expected { slot, required, patience_ns: self.patience(kit, there), late };
        self.notices.expect(kit.tape, kit.judge, group, expected)
    }

    /// How long to wait for an unprompted message of the server.
    fn patience(&self, kit: &Kit<'_, '_>, there: &Slot) -> u64 {
        let took_ns = there.at_us.saturating_sub(self.base_us).saturating_mul(1000);
        GRACE_NS.saturating_add(took_ns.saturating_mul(2)).min(kit.timeout_ns)
    }
}
