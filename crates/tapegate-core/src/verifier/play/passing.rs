//! What a server said on the tape, once it is passed: from then on it is expected.

use std::io;

use crate::frame::{Frame, Kind};
use crate::tape::index::Slot;

use super::super::notices::Expected;
use super::owners::group;
use super::{Kit, Play};

/// How long a message that a server says of its own accord is waited for, besides twice the time
/// it took on the tape.
const GRACE_NS: u64 = 500_000_000;

impl Play {
    /// Passes what a server said on the tape: from now on it is expected.
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
                // It belongs to what was asked and not answered, if anything was.
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
            // What a request that was not sent would have caused does not come.
            Some(request) if !self.owners.sent.contains(&request) => return Ok(()),
            // How much is still said after a request was taken back is a matter of chance.
            Some(request) if over && kit.tape.slot(request).cancelled => false,
            Some(_) if progress => true,
            _ => !self.left_out,
        };
        let late = progress && over;
        let expected = Expected { slot, required, patience_ns: self.patience(kit, there), late };
        self.notices.expect(kit.tape, kit.judge, group, expected)
    }

    /// How long a message that a server says of its own accord is worth waiting for.
    fn patience(&self, kit: &Kit<'_, '_>, there: &Slot) -> u64 {
        let took_ns = there.at_us.saturating_sub(self.base_us).saturating_mul(1000);
        GRACE_NS.saturating_add(took_ns.saturating_mul(2)).min(kit.timeout_ns)
    }
}
