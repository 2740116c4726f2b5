//! Texts that are the same to some reader, and words for true, false and nothing.

use std::collections::HashSet;

use super::numbers::{self, Readings};
use super::reading::{fold_case, path_forms};
use super::spelling::{nfkc, spellings, trimmed};

/// A text and all that readers make of it.
#[derive(Debug)]
pub struct TextForms {
    /// The text as it is written, and how else it is spelled, without its case.
    spelled: HashSet<String>,
    word: Option<bool>,
    /// The numbers it is read as, if it is nothing else.
    numbers: Readings,
}

impl TextForms {
    /// Reads a text in all ways.
    pub fn of(text: &str) -> Self {
        let mut spelled = HashSet::new();
        for form in spellings(text).iter().map(String::as_str).chain([text]) {
            spelled.insert(fold_case(form).into_owned());
            spelled.extend(path_forms(form).iter().map(|path| fold_case(path).into_owned()));
        }
        let numbers = Some(numbers::of_text(text)).filter(|readings| !readings.unclear);
        Self { spelled, word: bool_word(text), numbers: numbers.unwrap_or_default() }
    }

    /// Adds another spelling of the text.
    pub fn add(&mut self, spelling: &str) {
        self.spelled.insert(fold_case(spelling).into_owned());
    }

    /// Whether a reading of another text is one of its spellings; case does not count.
    pub fn is_spelled(&self, reading: &str) -> bool {
        self.spelled.contains(&*fold_case(reading))
    }

    /// Whether another text is the same word for true or false, or the same number.
    pub fn means_text(&self, text: &str) -> bool {
        // Words for true and false are one word each to those who read them.
        if self.word.is_some() && self.word == bool_word(text) {
            return true;
        }
        if self.numbers.numbers.is_empty() {
            return false;
        }
        let numbers = numbers::of_text(text);
        !numbers.unclear && self.numbers.numbers.iter().any(|one| numbers.any_is(one.as_bytes()))
    }
}

/// What a word says to those who read words as true and false.
pub fn bool_word(text: &str) -> Option<bool> {
    let word = nfkc(trimmed(text)).to_lowercase();
    match word.as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" | "1.0" | "enable" | "enabled" => Some(true),
        "false" | "f" | "no" | "n" | "off" | "0" | "0.0" | "" | "disable" | "disabled" => {
            Some(false)
        }
        _ => None,
    }
}

/// Whether a word says nothing to those who read words so.
pub fn is_null_word(text: &str) -> bool {
    let word = nfkc(trimmed(text)).to_lowercase();
    matches!(word.as_str(), "" | "null" | "none" | "nil" | "undefined" | "~")
}
