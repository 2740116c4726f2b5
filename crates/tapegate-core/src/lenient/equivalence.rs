//! Strings that some reader treats as equal, and words for true, false and null.

use std::collections::HashSet;

use super::numbers::{self, NumberReadings};
use super::reading::{fold_case, path_forms};
use super::spelling::{nfkc, spellings, trimmed};

/// A text and all its readings.
#[derive(Debug)]
pub struct TextForms {
    /// The text and its alternative spellings, case-folded.
    spelled: HashSet<String>,
    word: Option<bool>,
    /// The numbers it can be read as, if it is clearly a number.
    numbers: NumberReadings,
}

impl TextForms {
    /// Computes all readings of a text.
    pub fn of(text: &str) -> Self {
        let mut spelled = HashSet::new();
        for form in spellings(text).iter().map(String::as_str).chain([text]) {
            spelled.insert(fold_case(form).into_owned());
            spelled.extend(path_forms(form).iter().map(|path| fold_case(path).into_owned()));
        }
        let numbers = Some(numbers::of_text(text)).filter(|readings| !readings.unclear);
        Self { spelled, word: parse_bool_word(text), numbers: numbers.unwrap_or_default() }
    }

    /// Adds another spelling of the text.
    pub fn add(&mut self, spelling: &str) {
        self.spelled.insert(fold_case(spelling).into_owned());
    }

    /// Whether a reading of another text is one of its spellings, ignoring case.
    pub fn has_spelling(&self, reading: &str) -> bool {
        self.spelled.contains(&*fold_case(reading))
    }

    /// Whether another text is a word for the same boolean, or the same number.
    pub fn has_same_meaning(&self, text: &str) -> bool {
        // Readers that accept words as booleans treat all words for true, or for false, as equal.
        if self.word.is_some() && self.word == parse_bool_word(text) {
            return true;
        }
        if self.numbers.numbers.is_empty() {
            return false;
        }
        let numbers = numbers::of_text(text);
        !numbers.unclear && self.numbers.numbers.iter().any(|one| numbers.contains(one.as_bytes()))
    }
}

/// The boolean that a word stands for, to readers that accept words as booleans.
pub fn parse_bool_word(text: &str) -> Option<bool> {
    let word = nfkc(trimmed(text)).to_lowercase();
    match word.as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" | "1.0" | "enable" | "enabled" => Some(true),
        "false" | "f" | "no" | "n" | "off" | "0" | "0.0" | "" | "disable" | "disabled" => {
            Some(false)
        }
        _ => None,
    }
}

/// Whether a word stands for null, to readers that accept words for it.
pub fn is_null_word(text: &str) -> bool {
    let word = nfkc(trimmed(text)).to_lowercase();
    matches!(word.as_str(), "" | "null" | "none" | "nil" | "undefined" | "~")
}
