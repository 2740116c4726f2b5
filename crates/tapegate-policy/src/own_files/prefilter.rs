//! A quick check whether a text may contain one of our names.
//!
//! Every call is checked, and some are megabytes, so all names are searched for in one pass.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

/// Each of our names contains one of these, in any case.
const MARKS: [&[u8; 4]; 5] = [b"gate", b"tape", b"xdg_", b".loc", b".cuf"];
/// The bit that distinguishes lower from upper case, for four letters.
const SMALL: u32 = 0x2020_2020;
/// For texts up to this size, setting up the searcher costs more than a simple scan.
const SHORT_BYTES: usize = 128;

static SEARCHER: LazyLock<Option<Searcher>> =
    LazyLock::new(|| Searcher::new(MARKS.iter().flat_map(|mark| case_variants(*mark))));

/// Whether a text contains a mark.
pub(super) fn contains_mark(text: &[u8]) -> bool {
    match SEARCHER.as_ref().filter(|_| text.len() > SHORT_BYTES) {
        Some(searcher) => searcher.find(text).is_some(),
        None => contains_mark_by_step(text),
    }
}

/// Scans four letters at a time. Takes some symbols for letters, which can only cause false
/// positives.
fn contains_mark_by_step(text: &[u8]) -> bool {
    let letters = LetterSet::of(text);
    if !MARKS.iter().any(|mark| letters.contains_all(LetterSet::of(*mark))) {
        return false;
    }
    let small = |letters: [u8; 4]| u32::from_le_bytes(letters) | SMALL;
    text.array_windows().any(|letters| MARKS.iter().any(|mark| small(**mark) == small(*letters)))
}

/// The set of letters in a text: most short texts lack one that each mark needs.
#[derive(Clone, Copy)]
struct LetterSet(u32);

impl LetterSet {
    fn of(text: &[u8]) -> Self {
        Self(text.iter().fold(0, |seen, byte| seen | LETTER_BITS[usize::from(*byte)]))
    }

    fn contains_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A bit for each letter, ignoring case, and one for all other bytes.
static LETTER_BITS: [u32; 256] = {
    let mut bits = [1; 256];
    let mut at = 0;
    while at < 26 {
        bits[b'a' as usize + at] = 2 << at;
        bits[b'A' as usize + at] = 2 << at;
        at += 1;
    }
    bits
};

/// A word in every mix of lower and upper case.
fn case_variants(word: &[u8]) -> Vec<Vec<u8>> {
    word.iter().fold(vec![Vec::new()], |variants, letter| {
        let mut cases = vec![letter.to_ascii_lowercase(), letter.to_ascii_uppercase()];
        cases.dedup();
        let longer = |word: &Vec<u8>| {
            cases.iter().map(|case| [&word[..], &[*case]].concat()).collect::<Vec<_>>()
        };
        variants.iter().flat_map(longer).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_any_case_and_place() {
        assert!(SEARCHER.is_some(), "the quick search is there");
        assert_eq!(case_variants(b"xdg_").len(), 8);
        let long = "x".repeat(1000);
        for mark in ["gate", "TaPe", "XDG_", ".Local", "tapegate.yaml"] {
            assert!(contains_mark(mark.as_bytes()), "{mark}");
            assert!(contains_mark_by_step(format!("{long}{mark}").as_bytes()), "{mark}");
            assert!(contains_mark(format!("{long}{mark}{long}").as_bytes()), "{mark}");
        }
        for other in ["", "gat", "ga te", "xdg", "local", long.as_str()] {
            assert!(!contains_mark(other.as_bytes()), "{other}");
        }
    }
}
