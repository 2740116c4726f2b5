//! Compares the recorded with the live notifications of a server.
//!
//! They are compared in order, separately for each method and each request that they belong to. Their
//! position among other messages does not count.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;

use crate::alignment::{AlignedRow, WEIGHT_MAX, align};

use super::answer_comparer::AnswerComparer;
use super::finding::{Discrepancy, ItemChange};
use super::tape::VerifierTape;

/// How many unmatched live notifications are kept, and their maximum total size.
const HEARD_MAX: usize = 10_000;
const HEARD_BYTES_MAX: usize = 64 << 20;
/// How many pairs are compared to find those that correspond.
const ALIGN_BUDGET: usize = 1 << 16;

/// The notifications of a session without a counterpart so far.
#[derive(Debug, Default)]
pub(super) struct NoticeMatcher {
    groups: BTreeMap<NoticeGroup, NoticeQueues>,
    heard_count: usize,
    heard_bytes: usize,
    /// Methods with a notification that did not arrive in time: they are not waited for any more.
    given_up: HashSet<String>,
    /// How many were compared.
    pub(super) compared: u64,
    /// How many were received but not kept.
    pub(super) dropped: u64,
}

/// Notifications that are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NoticeGroup {
    pub(super) method: String,
    pub(super) owner: NoticeOwner,
}

/// What a notification belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NoticeOwner {
    /// Only to the session.
    Nobody,
    /// The request at this entry.
    Request(u32),
}

/// The recorded and the received notifications of a group.
#[derive(Debug, Default)]
struct NoticeQueues {
    expected: VecDeque<ExpectedNotice>,
    received: VecDeque<Vec<u8>>,
    /// The text of the first expected one.
    front: Option<Vec<u8>>,
    /// How many of the expected ones are required.
    required: usize,
    /// Whether no more can arrive in time, because what they belong to is over.
    closed: bool,
}

/// A recorded notification.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedNotice {
    pub(super) entry_number: u32,
    /// Whether it must arrive. It need not if a message was skipped that may have caused it.
    pub(super) required: bool,
    /// How long to wait for it, in nanoseconds.
    pub(super) patience_ns: u64,
    /// Whether it is already too late, because what it belongs to is over.
    pub(super) late: bool,
}

/// A difference found in a group.
#[derive(Debug)]
pub(super) struct NoticeOutcome {
    /// The entry of the recorded notification, if there is one.
    pub(super) entry_number: Option<u32>,
    pub(super) group: NoticeGroup,
    pub(super) discrepancy: Discrepancy,
}

impl NoticeMatcher {
    /// Adds the next recorded notification of a group.
    pub(super) fn expect(
        &mut self,
        tape: &mut VerifierTape<'_>,
        judge: &AnswerComparer,
        group: NoticeGroup,
        expected: ExpectedNotice,
    ) -> io::Result<()> {
        let sides = self.groups.entry(group.clone()).or_default();
        sides.closed |= expected.late;
        sides.required += usize::from(expected.required);
        sides.expected.push_back(expected);
        self.settle(tape, judge, &group)
    }

    /// Adds a live notification, as the tape would have recorded it.
    pub(super) fn receive(
        &mut self,
        tape: &mut VerifierTape<'_>,
        judge: &AnswerComparer,
        group: NoticeGroup,
        text: &[u8],
    ) -> io::Result<()> {
        // A server can send notifications without limit, and those without a counterpart are kept.
        if self.heard_count < HEARD_MAX && self.heard_bytes + text.len() <= HEARD_BYTES_MAX {
            self.heard_count += 1;
            self.heard_bytes += text.len();
            self.groups.entry(group.clone()).or_default().received.push_back(text.to_vec());
        } else {
            self.dropped += 1;
        }
        self.settle(tape, judge, &group)
    }

    /// Removes notifications that are equal on both sides.
    fn settle(
        &mut self,
        tape: &mut VerifierTape<'_>,
        judge: &AnswerComparer,
        group: &NoticeGroup,
    ) -> io::Result<()> {
        let Some(sides) = self.groups.get_mut(group) else { return Ok(()) };
        while let (Some(expected), Some(received)) =
            (sides.expected.front(), sides.received.front())
        {
            // Kept, so that the tape is not read again for each notification that does not match.
            if sides.front.is_none() {
                sides.front = Some(tape.text(expected.entry_number)?);
            }
            let recorded = sides.front.as_deref().unwrap_or_default();
            // The rest is compared at the end, when both sides are complete and can be aligned.
            if !judge.compare_unsolicited(&group.method, recorded, received).is_empty() {
                return Ok(());
            }
            self.heard_count -= 1;
            self.heard_bytes -= received.len();
            self.compared += 1;
            sides.required -= usize::from(expected.required);
            sides.expected.pop_front();
            sides.received.pop_front();
            sides.front = None;
        }
        if sides.expected.is_empty() && sides.received.is_empty() {
            self.groups.remove(group);
        }
        Ok(())
    }

    /// Notes that the request at `entry_number` is answered, so that no more progress is expected.
    pub(super) fn close(&mut self, entry_number: u32) {
        let method = "notifications/progress".to_owned();
        let group = NoticeGroup { method, owner: NoticeOwner::Request(entry_number) };
        if let Some(sides) = self.groups.get_mut(&group) {
            sides.closed = true;
        }
    }

    /// The earliest time until which to wait for an expected notification, counted from `base_ns`, if any; at
    /// the end of a session, also for those that seem too late.
    pub(super) fn wait_deadline(&self, now_ns: u64, base_ns: u64, at_end: bool) -> Option<u64> {
        let open = self.groups.iter().filter(|(group, sides)| {
            // Once its request is answered, progress holds nothing up; it is awaited at the end.
            let worth = sides.required > 0 && (at_end || !sides.closed);
            worth && !self.given_up.contains(&group.method)
        });
        let wanted = open.flat_map(|(_, sides)| &sides.expected).filter(|one| one.required);
        let until = wanted.map(|one| base_ns + one.patience_ns);
        // Times that have passed are left out: those notifications are overdue and hold nothing up.
        until.filter(|until_ns| *until_ns > now_ns).min()
    }

    /// Gives up on methods with a notification that has not arrived by now.
    pub(super) fn stop_waiting(&mut self, now_ns: u64, base_ns: u64) {
        for (group, sides) in self.groups.iter().filter(|(_, sides)| sides.required > 0) {
            let late = |one: &ExpectedNotice| one.required && base_ns + one.patience_ns <= now_ns;
            // A server that has stopped sending one kind would otherwise cost a wait at every
            // message.
            if !sides.closed && sides.expected.iter().any(late) {
                self.given_up.insert(group.method.clone());
            }
        }
    }

    /// The missing, new and different notifications at the end of a session. If the server is gone, none
    /// count as missing.
    pub(super) fn finish(
        &mut self,
        tape: &mut VerifierTape<'_>,
        judge: &AnswerComparer,
        was_there: bool,
    ) -> io::Result<Vec<NoticeOutcome>> {
        let mut outcomes = Vec::new();
        for (group, sides) in std::mem::take(&mut self.groups) {
            let NoticeQueues { expected, received: heard, .. } = sides;
            let recorded = expected.iter().map(|one| {
                let text = tape.text(one.entry_number)?;
                Ok(RecordedNotice {
                    entry_number: one.entry_number,
                    required: one.required && was_there,
                    text,
                })
            });
            let recorded: Vec<RecordedNotice> = recorded.collect::<io::Result<_>>()?;
            let mut found = pair(judge, &group.method, &recorded, &Vec::from(heard));
            // How much a server still sends before it sees a cancellation is arbitrary.
            if matches!(group.owner, NoticeOwner::Request(slot) if tape.entry(slot).cancelled) {
                found.retain(|(_, discrepancy)| {
                    !matches!(discrepancy, Discrepancy::Notice(ItemChange::Added(_)))
                });
            }
            self.compared +=
                found.iter().filter(|(_, discrepancy)| is_changed(discrepancy)).count() as u64;
            outcomes.extend(found.into_iter().map(|(entry_number, discrepancy)| {
                let group = group.clone();
                NoticeOutcome { entry_number, group, discrepancy }
            }));
        }
        Ok(outcomes)
    }
}

/// A recorded notification with its text.
struct RecordedNotice {
    entry_number: u32,
    required: bool,
    text: Vec<u8>,
}

/// Pairs recorded with live notifications and returns the differences.
fn pair(
    judge: &AnswerComparer,
    method: &str,
    recorded: &[RecordedNotice],
    heard: &[Vec<u8>],
) -> Vec<(Option<u32>, Discrepancy)> {
    let changes = |one: usize, two: usize| {
        judge.compare_unsolicited(method, &recorded[one].text, &heard[two])
    };
    let weight = |one: usize, two: usize| match changes(one, two).is_empty() {
        true => WEIGHT_MAX,
        // An optional notification is not paired with a different one, or its absence would look
        // like a change.
        false => u32::from(recorded[one].required),
    };
    let mut budget = ALIGN_BUDGET;
    let rows = align(recorded.len(), heard.len(), weight, &mut budget);
    let is_new = |row: &AlignedRow| if let AlignedRow::New(two) = row { Some(*two) } else { None };
    let mut new: Vec<usize> = rows.iter().filter_map(is_new).collect();
    let mut found = Vec::new();
    for row in &rows {
        let (one, discrepancy) = match *row {
            AlignedRow::Both(one, two) => {
                let changes = changes(one, two);
                (
                    one,
                    (!changes.is_empty())
                        .then_some(Discrepancy::Notice(ItemChange::Changed(changes))),
                )
            }
            AlignedRow::Old(one) => {
                // The same text elsewhere means that only the order has changed.
                match new.iter().position(|two| changes(one, *two).is_empty()) {
                    Some(at) => {
                        (one, Some(Discrepancy::Moved { live: heard[new.remove(at)].clone() }))
                    }
                    None => {
                        let RecordedNotice { text, required, .. } = &recorded[one];
                        (
                            one,
                            required
                                .then(|| Discrepancy::Notice(ItemChange::Removed(text.clone()))),
                        )
                    }
                }
            }
            AlignedRow::New(_) => continue,
        };
        found
            .extend(discrepancy.map(|discrepancy| (Some(recorded[one].entry_number), discrepancy)));
    }
    found.extend(
        new.iter().map(|two| (None, Discrepancy::Notice(ItemChange::Added(heard[*two].clone())))),
    );
    found
}

fn is_changed(discrepancy: &Discrepancy) -> bool {
    matches!(discrepancy, Discrepancy::Notice(ItemChange::Changed(_)) | Discrepancy::Moved { .. })
}
