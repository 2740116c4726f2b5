//! Lines that are not sealed yet.

use std::cmp::Ordering;

use super::super::chain::SealHasher;
use super::super::events::LoggedEvent;

/// How many irregularities are collected per seal.
const STEPS_MAX: usize = 1000;

/// The lines since the last seal.
#[derive(Debug, Default)]
pub(super) struct UnsealedLines {
    /// The hash of their text.
    pub(super) sealing: SealHasher,
    /// The line and the number of the first of them.
    pub(super) first: Option<(u64, u64)>,
    /// How many there are.
    pub(super) lines: u64,
    /// The number of the last one in sequence.
    last: u64,
    /// Where their numbers are not consecutive.
    pub(super) steps: Vec<(u64, SequenceGap)>,
    /// The notices among them.
    pub(super) notices: Vec<LoggedEvent>,
    /// Whether one of them is not an event.
    pub(super) spoiled: bool,
}

/// How the number of a line deviates from the next one.
#[derive(Debug, Clone, Copy)]
pub(super) enum SequenceGap {
    /// Numbers are skipped.
    Over {
        /// The first one skipped.
        first: u64,
        /// The last one skipped.
        last: u64,
    },
    /// The line should have come earlier.
    Back {
        /// Its number.
        seq: u64,
        /// The number of the line before.
        before: u64,
    },
}

impl UnsealedLines {
    /// Records that the line at `line` has the number `seq`. `before` is the number at the last
    /// seal, if there is one; `unread` lines since the last event could not be parsed.
    pub(super) fn step(&mut self, line: u64, seq: u64, before: Option<u64>, unread: u64) {
        self.lines += 1;
        let last = match self.first {
            Some(_) => Some(self.last),
            None => before,
        };
        self.first.get_or_insert((line, seq));
        let Some(before) = last else {
            self.last = seq;
            return;
        };
        let expected = before.wrapping_add(1);
        let step = match seq.cmp(&expected) {
            Ordering::Less => Some(SequenceGap::Back { seq, before }),
            // Lines that could not be parsed were already reported.
            Ordering::Greater if seq - expected > unread => {
                Some(SequenceGap::Over { first: expected, last: seq - 1 })
            }
            _ => None,
        };
        // A line that was moved here must not make every later line look misplaced.
        self.last = if seq < expected { before } else { seq };
        if let Some(step) = step.filter(|_| self.steps.len() < STEPS_MAX) {
            self.steps.push((line, step));
        }
    }
}
