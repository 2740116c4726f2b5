//! A quick look whether a text may have one of our names in it.
//!
//! Every call is looked at, and some are megabytes, so all names are searched for in one pass.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

use super::has_word;

/// What all our names have, one or the other: four letters each, in any case.
const MARKS: [&str; 4] = ["gate", "tape", "xdg_", ".loc"];

static SEARCHER: LazyLock<Option<Searcher>> =
    LazyLock::new(|| Searcher::new(MARKS.iter().flat_map(|mark| in_every_case(mark))));

/// Whether there is such a mark in a text.
pub(super) fn found(text: &[u8]) -> bool {
    match SEARCHER.as_ref() {
        Some(searcher) => searcher.find(text).is_some(),
        None => MARKS.iter().any(|mark| has_word(text, mark.as_bytes())),
    }
}

/// A word in every mix of small and capital letters.
fn in_every_case(word: &str) -> Vec<Vec<u8>> {
    word.bytes().fold(vec![Vec::new()], |words, letter| {
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
        assert_eq!(in_every_case("xdg_").len(), 8);
        let long = "x".repeat(1000);
        for mark in ["gate", "TaPe", "XDG_", ".Local", "tapegate.yaml"] {
            assert!(found(mark.as_bytes()), "{mark}");
            assert!(found(format!("{long}{mark}{long}").as_bytes()), "{mark}");
        }
        for other in ["", "gat", "ga te", "xdg", "local", long.as_str()] {
            assert!(!found(other.as_bytes()), "{other}");
        }
    }
}
