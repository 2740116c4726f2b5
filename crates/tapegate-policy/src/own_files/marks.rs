//! A quick look whether a text may have one of our names in it.
//!
//! Every call is looked at, and some are megabytes, so all names are searched for in one pass.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

/// What all our names have, one or the other: four letters each, in any case.
const MARKS: [&[u8; 4]; 4] = [b"gate", b"tape", b"xdg_", b".loc"];
/// The bit by which small letters differ from capital ones, in four of them.
const SMALL: u32 = 0x2020_2020;
/// A searcher for long texts takes longer to set out than this many bytes take one by one.
const SHORT_BYTES: usize = 128;

static SEARCHER: LazyLock<Option<Searcher>> =
    LazyLock::new(|| Searcher::new(MARKS.iter().flat_map(|mark| in_every_case(*mark))));

/// Whether there is such a mark in a text.
pub(super) fn found(text: &[u8]) -> bool {
    match SEARCHER.as_ref().filter(|_| text.len() > SHORT_BYTES) {
        Some(searcher) => searcher.find(text).is_some(),
        None => found_by_step(text),
    }
}

/// The same, four letters at a time. Takes some signs for letters, which only makes it more careful.
fn found_by_step(text: &[u8]) -> bool {
    let small = |letters: [u8; 4]| u32::from_le_bytes(letters) | SMALL;
    let is_mark = |letters: [u8; 4]| MARKS.iter().any(|mark| small(**mark) == small(letters));
    text.array_windows().any(|letters| BEGINS_MARK[usize::from(letters[0])] && is_mark(*letters))
}

/// Whether a mark may begin with a byte: one look rules out most of a text.
static BEGINS_MARK: [bool; 256] = {
    let mut begins = [false; 256];
    let mut at = 0;
    while at < MARKS.len() {
        let letter = MARKS[at][0] as usize;
        begins[letter] = true;
        begins[letter & !0x20] = true;
        at += 1;
    }
    begins
};

/// A word in every mix of small and capital letters.
fn in_every_case(word: &[u8]) -> Vec<Vec<u8>> {
    word.iter().fold(vec![Vec::new()], |words, letter| {
        let mut cases = vec![letter.to_ascii_lowercase(), letter.to_ascii_uppercase()];
        cases.dedup();
        let longer = |word: &Vec<u8>| {
            cases.iter().map(|case| [&word[..], &[*case]].concat()).collect::<Vec<_>>()
        };
        words.iter().flat_map(longer).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_in_any_case_and_place() {
        assert!(SEARCHER.is_some(), "the quick search is there");
        assert_eq!(in_every_case(b"xdg_").len(), 8);
        let long = "x".repeat(1000);
        for mark in ["gate", "TaPe", "XDG_", ".Local", "tapegate.yaml"] {
            assert!(found(mark.as_bytes()), "{mark}");
            assert!(found_by_step(format!("{long}{mark}").as_bytes()), "{mark}");
            assert!(found(format!("{long}{mark}{long}").as_bytes()), "{mark}");
        }
        for other in ["", "gat", "ga te", "xdg", "local", long.as_str()] {
            assert!(!found(other.as_bytes()), "{other}");
        }
    }
}
