//! The readings of a text that policies can distinguish.

use super::{READINGS_MAX, Wanted};

/// The readings of a text that policies can distinguish.
pub(super) struct Kept<'w> {
    wanted: &'w Wanted,
    text: &'w str,
    pub(super) found: Vec<String>,
    known: Vec<(Option<String>, Vec<bool>)>,
}

impl<'w> Kept<'w> {
    pub(super) fn new(wanted: &'w Wanted, text: &'w str) -> Self {
        Self { wanted, text, found: Vec::new(), known: vec![wanted.seen_as(text)] }
    }

    /// Adds a reading, and its spellings in patterns and texts, if policies can distinguish it from
    /// the others; false if there are too many.
    pub(super) fn add(&mut self, reading: &str) -> bool {
        let wanted = self.wanted;
        let respelled = wanted.patterns.iter().filter_map(|pattern| pattern.respell(reading));
        let same = wanted.texts.iter().filter(|(_, wanted)| wanted.forms.is_spelled(reading));
        let same = same.map(|(text, _)| text.clone());
        let all: Vec<String> = respelled.chain(same).collect();
        self.add_one(reading) && all.iter().all(|one| self.add_one(one))
    }

    fn add_one(&mut self, reading: &str) -> bool {
        if reading == self.text {
            return true;
        }
        let seen = self.wanted.seen_as(reading);
        let is_known = match self.wanted.other {
            true => self.found.iter().any(|found| found == reading),
            false => self.known.contains(&seen),
        };
        if is_known {
            return true;
        }
        self.known.push(seen);
        self.found.push(reading.to_owned());
        self.found.len() <= READINGS_MAX
    }
}
