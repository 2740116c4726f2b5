//! How a session ends: in order, or because the server is gone.

use std::io;

use crate::frame::Kind;
use crate::side::Side;

use super::super::finding::{About, Became, NoteSort, What, Why};
use super::super::notices::{Outcome, Owner};
use super::{Kit, Play};

/// How long to wait for further messages after everything expected has arrived.
const QUIET_NS: u64 = 100_000_000;

impl Play {
    /// Whether everything expected has arrived or timed out.
    pub(super) fn winds_up(&mut self, now_ns: u64) -> bool {
        if self.owed > 0 || self.own > 0 {
            return false;
        }
        let notices = self.notices.wanted_until(now_ns, self.base_ns, true);
        let questions = self.questions.wanted_until(now_ns, self.base_ns);
        if let Some(until_ns) = [notices, questions].into_iter().flatten().min() {
            self.held_until = Some(until_ns);
            return false;
        }
        let until_ns = *self.quiet_until.get_or_insert(now_ns + QUIET_NS);
        now_ns >= until_ns
    }

    /// Gives up on requests that were not answered in time.
    pub(super) fn expire(&mut self, kit: &mut Kit<'_, '_>) -> io::Result<()> {
        while let Some((&(until_ns, _), _)) = self.deadlines.first_key_value() {
            if until_ns > kit.now_ns {
                break;
            }
            let Some((_, key)) = self.deadlines.pop_first() else { break };
            self.silent(kit, &key)?;
        }
        Ok(())
    }

    /// Skips the remaining messages, because the server is gone or was given up on.
    pub(super) fn leave(&mut self, kit: &mut Kit<'_, '_>) -> io::Result<()> {
        let mut lost = self.owed > 0;
        lost |= self.asked.values().any(|asked| {
            let waiting = self.waiting.get(&asked.key);
            !asked.owed && waiting.is_some_and(|waiting| waiting.deadline.is_some())
        });
        while let Some(&slot) = self.slots.get(self.at) {
            let there = kit.tape.slot(slot);
            self.at += 1;
            if there.from != Side::Client || there.kind != Kind::Request {
                continue;
            }
            let why = self.refusal(kit, slot)?;
            lost |= why.is_none();
            kit.report.skip(kit.tape.about(slot)?, why.unwrap_or(Why::ServerGone));
        }
        // A server that exits when nothing more is expected of it has not exited too early.
        self.gone = self.gone.take().filter(|_| lost);
        if let Some(why) = self.gone.clone() {
            kit.report.find(self.about(), What::Ended { why });
        }
        self.conclude(kit)
    }

    /// Makes the comparisons that are only possible at the end.
    pub(super) fn conclude(&mut self, kit: &mut Kit<'_, '_>) -> io::Result<()> {
        for (first, listing) in self.listings.rest() {
            self.compare_list(kit, first, listing)?;
        }
        let gone = self.gone.is_some();
        let outcomes = self.notices.finish(kit.tape, kit.judge, !gone)?;
        for Outcome { slot, group, what } in outcomes {
            let about = match slot {
                Some(slot) => kit.tape.about(slot)?,
                None => About { method: group.method, ..self.about() },
            };
            match (&what, &group.owner) {
                (What::Moved { .. }, Owner::Nobody) => kit.report.note(about, NoteSort::Moved),
                _ => kit.report.find(about, what),
            }
        }
        kit.report.notifications += self.notices.compared;
        kit.report.findings_more += self.notices.dropped;
        for slot in self.questions.missing().into_iter().filter(|_| !gone) {
            let text = kit.tape.text(slot)?;
            kit.report.find(kit.tape.about(slot)?, What::Question(Became::Removed(text)));
        }
        Ok(())
    }
}
