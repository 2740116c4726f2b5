//! Lines that wait for their seal.

use std::cmp::Ordering;

use super::super::chain::Sealing;
use super::super::events::Logged;

/// More of what is odd about the lines of one seal is not gathered.
const STEPS_MAX: usize = 1000;

/// The lines since the last seal.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// What their hash is taken of.
    pub(super) sealing: Sealing,
    /// The place and the number of the first of them.
    pub(super) first: Option<(u64, u64)>,
    /// How many there are.
    pub(super) lines: u64,
    /// The number of the last one that came in its turn.
    last: u64,
    /// Where their numbers do not follow one another.
    pub(super) steps: Vec<(u64, Step)>,
    /// Those that the log says about itself.
    pub(super) notices: Vec<Logged>,
    /// Whether there is a line among them that is no event.
    pub(super) spoiled: bool,
}

/// How the number of a line is not the one that comes next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Some are left out.
    Over {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
    },
    /// It should have come before.
    Back {
        /// Its number.
        seq: u64,
        /// The one that it stands behind.
        before: u64,
    },
}

impl Open {
    /// The line at `line` has the number `seq`. `before` is what the last seal ends in, if there is
    /// one; so many lines since the last event could not be read.
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
            Ordering::Less => Some(Step::Back { seq, before }),
            // Lines that could not be read were told of already.
            Ordering::Greater if seq - expected > unread => {
                Some(Step::Over { first: expected, last: seq - 1 })
            }
            _ => None,
        };
        self.last = if seq < expected { before } else { seq };
        if let Some(step) = step.filter(|_| self.steps.len() < STEPS_MAX) {
            self.steps.push((line, step));
        }
    }
}
