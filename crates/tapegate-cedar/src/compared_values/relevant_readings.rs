//! The readings of a text that policies can distinguish.

use super::{ComparedValues, READINGS_MAX};

/// The readings of a text that policies can distinguish.
pub(super) struct RelevantReadings<'w> {
    wanted: &'w ComparedValues,
    text: &'w str,
    pub(super) found: Vec<String>,
    known: Vec<(Option<String>, Vec<bool>)>,
}

impl<'w> RelevantReadings<'w> {
    pub(super) fn new(wanted: &'w ComparedValues, text: &'w str) -> Self {
        Self { wanted, text, found: Vec::new(), known: vec![wanted.observable_form(text)] }
    }

    /// Adds a reading, and its spellings in patterns and texts, if policies can distinguish it from
    /// the others; false if there are too many.
    pub(super) fn add(&mut self, reading: &str) -> bool {
        let wanted = self.wanted;
        let respelled = wanted.patterns.iter().filter_map(|pattern| pattern.respell(reading));
        let same = wanted.texts.iter().filter(|(_, wanted)| wanted.forms.has_spelling(reading));
        let same = same.map(|(text, _)| text.clone());
        let all: Vec<String> = respelled.chain(same).collect();
        self.add_one(reading) && all.iter().all(|one| self.add_one(one))
    }

    fn add_one(&mut self, reading: &str) -> bool {
        if reading == self.text {
            return true;
        }
        // Readings that no test can tell apart give the same decision, so one of them is enough.
        // This keeps the number of combinations small.
        let seen = self.wanted.observable_form(reading);
        let is_known = match self.wanted.other {
            // Something unknown is compared, so only equal texts are certain to be alike.
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
