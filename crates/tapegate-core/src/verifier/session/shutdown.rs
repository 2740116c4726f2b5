//! How a session ends: in order, or because the server is gone.

use std::io;

use crate::frame::MessageKind;
use crate::side::Side;

use super::super::finding::{Discrepancy, ItemChange, MessageRef, SkipReason, VerifyNoteKind};
use super::super::notice_matcher::{NoticeOutcome, NoticeOwner};
use super::{VerifyContext, VerifySession};

/// How long to wait for further messages after everything expected has arrived.
const QUIET_NS: u64 = 100_000_000;

impl VerifySession {
    /// Whether everything expected has arrived or timed out.
    pub(super) fn is_complete(&mut self, now_ns: u64) -> bool {
        if self.owed > 0 || self.own > 0 {
            return false;
        }
        // At the end, late messages are waited for as well: nothing else is held up by it.
        let notices = self.notices.wait_deadline(now_ns, self.base_ns, true);
        let questions = self.questions.wait_deadline(now_ns, self.base_ns);
        if let Some(until_ns) = [notices, questions].into_iter().flatten().min() {
            self.held_until = Some(until_ns);
            return false;
        }
        // Set once, so that a server that keeps sending cannot postpone the end.
        let until_ns = *self.quiet_until.get_or_insert(now_ns + QUIET_NS);
        now_ns >= until_ns
    }

    /// Gives up on requests that were not answered in time.
    pub(super) fn expire(&mut self, context: &mut VerifyContext<'_, '_>) -> io::Result<()> {
        while let Some((&(until_ns, _), _)) = self.deadlines.first_key_value() {
            if until_ns > context.now_ns {
                break;
            }
            let Some((_, key)) = self.deadlines.pop_first() else { break };
            self.handle_timeout(context, &key)?;
        }
        Ok(())
    }

    /// Skips the remaining messages, because the server is gone or was given up on.
    pub(super) fn handle_server_gone(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
    ) -> io::Result<()> {
        // Answers that were expected and will not come.
        let mut lost = self.owed > 0;
        lost |= self.sent_requests.values().any(|sent_request| {
            let waiting = self.waiting.get(&sent_request.key);
            !sent_request.owed && waiting.is_some_and(|waiting| waiting.deadline.is_some())
        });
        while let Some(&slot) = self.entry_numbers.get(self.at) {
            let entry = context.tape.entry(slot);
            self.at += 1;
            if entry.from != Side::Client || entry.kind != MessageKind::Request {
                continue;
            }
            // A message that would never have been sent is not lost.
            let reason = self.refusal(context, slot)?;
            lost |= reason.is_none();
            context
                .report
                .skip(context.tape.message_ref(slot)?, reason.unwrap_or(SkipReason::ServerGone));
        }
        // A server that exits when nothing more is expected of it has not exited too early.
        self.gone = self.gone.take().filter(|_| lost);
        if let Some(reason) = self.gone.clone() {
            context.report.find(self.session_subject(), Discrepancy::Ended { reason });
        }
        self.compare_at_end(context)
    }

    /// Makes the comparisons that are only possible at the end.
    pub(super) fn compare_at_end(&mut self, context: &mut VerifyContext<'_, '_>) -> io::Result<()> {
        for (first, listing) in self.listings.take_incomplete() {
            self.compare_list(context, first, listing)?;
        }
        let gone = self.gone.is_some();
        let outcomes = self.notices.finish(context.tape, context.judge, !gone)?;
        for NoticeOutcome { entry_number: slot, group, discrepancy: what } in outcomes {
            let about = match slot {
                Some(entry_number) => context.tape.message_ref(entry_number)?,
                None => MessageRef { method: group.method, ..self.session_subject() },
            };
            match (&what, &group.owner) {
                // Without a request, their order depends on timing, so it is only noted.
                (Discrepancy::Moved { .. }, NoticeOwner::Nobody) => {
                    context.report.note(about, VerifyNoteKind::Moved)
                }
                _ => context.report.find(about, what),
            }
        }
        context.report.notifications += self.notices.compared;
        // They were not kept, so they cannot be shown.
        context.report.findings_more += self.notices.dropped;
        // A server that is gone could not make them.
        for entry_number in self.questions.missing_entries().into_iter().filter(|_| !gone) {
            let text = context.tape.text(entry_number)?;
            context.report.find(
                context.tape.message_ref(entry_number)?,
                Discrepancy::Question(ItemChange::Removed(text)),
            );
        }
        Ok(())
    }
}
