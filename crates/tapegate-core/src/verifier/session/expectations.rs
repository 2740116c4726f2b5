//! Passes recorded messages of the server: from then on they are expected.

use std::io;

use crate::frame::{Frame, MessageKind};
use crate::tape::index::IndexEntry;

use super::super::notice_matcher::ExpectedNotice;
use super::token_owners::group;
use super::{VerifyContext, VerifySession};

/// How long to wait for an unprompted message of the server, in addition to twice the time it took
/// on the tape.
const GRACE_NS: u64 = 500_000_000;

impl VerifySession {
    /// Passes a recorded message of the server: from now on it is expected.
    pub(super) fn expect_recorded(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        entry_number: u32,
        entry: &IndexEntry,
    ) -> io::Result<()> {
        match entry.kind {
            MessageKind::Response | MessageKind::Error => {
                self.open_sent.remove(&entry.pair);
                if let Some(skipped_request) = self.open_skipped.remove(&entry.pair) {
                    self.note_unanswered(context, &skipped_request, entry_number)?;
                }
                if let Some(sent_request) = self.sent_requests.get_mut(&entry.pair) {
                    let waiting = self.waiting.get(&sent_request.key);
                    // A cancelled request, or one without a comparable answer, holds nothing up.
                    sent_request.owed = waiting.is_some_and(|waiting| waiting.deadline.is_some());
                    self.owed += usize::from(sent_request.owed);
                }
            }
            MessageKind::Notification if !entry.ours => {
                self.expect(context, entry_number, entry)?
            }
            // Messages of ours on the tape were not sent by the recorded server.
            MessageKind::Request if !entry.ours => {
                // It belongs to the requests that are open, if there are any.
                // With a skipped request open, it is unknown which of them caused this one.
                let of_sent = !self.open_sent.is_empty() && self.open_skipped.is_empty();
                if of_sent || !self.left_out {
                    let method = context.tape.message_ref(entry_number)?.method;
                    self.questions.expect(
                        entry_number,
                        &method,
                        self.wait_limit_ns(context, entry),
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expect(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        index_entry: u32,
        entry: &IndexEntry,
    ) -> io::Result<()> {
        let text = context.tape.text(index_entry)?;
        let frame = Frame::read(&text);
        let Some(envelope) = frame.envelope() else { return Ok(()) };
        let (group, request) = group(&self.owners.recorded, envelope);
        let progress = envelope.is_method("notifications/progress");
        let over = request.is_some_and(|request| !self.sent_requests.contains_key(&request));
        let required = match request {
            // A request that was not sent causes no notifications.
            Some(request) if !self.owners.sent.contains(&request) => return Ok(()),
            // How much a server still sends after a cancellation is arbitrary.
            Some(request) if over && context.tape.entry(request).cancelled => false,
            // Progress belongs to its request alone, so skipped messages do not excuse its absence.
            Some(_) if progress => true,
            _ => !self.left_out,
        };
        let late = progress && over;
        let expected = ExpectedNotice {
            entry_number: index_entry,
            required,
            patience_ns: self.wait_limit_ns(context, entry),
            late,
        };
        self.notices.expect(context.tape, context.judge, group, expected)
    }

    /// How long to wait for an unprompted message of the server.
    fn wait_limit_ns(&self, context: &VerifyContext<'_, '_>, entry: &IndexEntry) -> u64 {
        let took_ns = entry.at_us.saturating_sub(self.base_us).saturating_mul(1000);
        GRACE_NS.saturating_add(took_ns.saturating_mul(2)).min(context.timeout_ns)
    }
}
