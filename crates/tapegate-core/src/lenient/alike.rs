//! Texts that are the same to some reader, and words for true, false and nothing.

use crate::json;

use super::numbers::{self, Readings};
use super::spelling::{nfkc, spellings, trimmed};

/// A text and all that readers make of it.
#[derive(Debug)]
pub struct TextForms {
    /// The text as it is written, and how else it is spelled.
    spelled: Vec<String>,
    word: Option<bool>,
    /// The numbers it is read as, if it is nothing else.
    numbers: Readings,
}

impl TextForms {
    /// Reads a text in all ways.
    pub fn of(text: &str) -> Self {
        let mut spelled = spellings(text);
        spelled.push(text.to_owned());
        let numbers = Some(numbers::of_text(text)).filter(|readings| !readings.unclear);
        Self { spelled, word: bool_word(text), numbers: numbers.unwrap_or_default() }
    }

    /// Whether two texts could be read as the same.
    pub fn may_equal(&self, other: &Self) -> bool {
        // Words for true and false are one word each to those who read them.
        self.spelled.iter().any(|form| other.spelled.contains(form))
            || self.word.is_some() && self.word == other.word
            || self.numbers.numbers.iter().any(|one| other.numbers.any_is(one.as_bytes()))
    }
}

/// Whether two texts could be read as the same.
pub fn texts_may_equal(one: &str, two: &str) -> bool {
    one == two || TextForms::of(one).may_equal(&TextForms::of(two))
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

/// The JSON list, object or text that a text is, if it is one.
pub fn embedded(text: &str) -> Option<&[u8]> {
    let bare = trimmed(text);
    if !bare.starts_with(['{', '[', '"']) {
        return None;
    }
    json::check(bare.as_bytes()).ok()
}
