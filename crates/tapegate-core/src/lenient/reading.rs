//! All readings of a text, for the checks that block calls.
//!
//! Globs, expressions, literal texts and Cedar patterns are all matched against the readings of
//! [`any_reading`], so that they block the same texts.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::ControlFlow;

use super::folder::{ReadingsEnd, each_document_reading, each_reading, normal_path};
use super::spelling::{form_decode, nfc, nfd, nfkc, trimmed};

/// A text of several lines that is longer than this is a document and not a path.
const DOCUMENT_BYTES: usize = 4_096;
/// Any text longer than this is a document.
const PATH_BYTES_MAX: usize = 16_384;
/// A shorter text is a document if it has at least this many bytes, and this many lines of several
/// words.
const SHORT_DOCUMENT_BYTES: usize = 256;
const DOCUMENT_LINES: usize = 3;
/// The work allowed for each byte of input, and the minimum.
const WORK_FACTOR: usize = 64;
const WORK_MIN: usize = 1 << 22;
/// The cost of trying a reading besides its length, in bytes.
const READING_COST: usize = 32;

/// How many more bytes may be inspected for one test. A test that exceeds it is undecided.
#[derive(Debug)]
pub struct ScanBudget {
    left: Cell<usize>,
}

impl ScanBudget {
    /// The budget for a test that inspects `bytes` bytes of input.
    pub fn new(bytes: usize) -> Self {
        let left = WORK_MIN.saturating_add(bytes.saturating_mul(WORK_FACTOR));
        Self { left: Cell::new(left) }
    }

    /// Spends `bytes`; returns false if the budget is exhausted.
    pub fn spend(&self, bytes: usize) -> bool {
        let left = self.left.get().saturating_sub(bytes);
        self.left.set(left);
        left > 0
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.left.get()
    }
}

/// Whether `is` accepts some reading of a text. A text with too many readings, or more than the budget
/// covers, is crafted to be misread and counts as accepted.
pub fn any_reading(text: &str, budget: &ScanBudget, mut is: impl FnMut(&str) -> bool) -> bool {
    let is_empty = trimmed(text).is_empty();
    let mut seen = |reading: &str| {
        if !budget.spend(reading.len() + READING_COST) {
            return true;
        }
        // Do not read a text such as `#1` as empty.
        (is_empty || !reading.is_empty()) && is(reading)
    };
    let mut path =
        |reading: &str| seen(reading) || path_forms(reading).iter().any(|path| seen(path));
    let mut shown =
        |reading: &str| path(reading) || form_decode(reading).is_some_and(|form| path(&form));
    if !text.is_ascii() && (shown(&nfc(text)) || shown(&nfd(text))) {
        return true;
    }
    // A document naturally has many readings, so exceeding the limit does not indicate an attack.
    if is_document(text) {
        let end = each_document_reading(text, &mut shown);
        return end == ControlFlow::Break(ReadingsEnd::Stopped);
    }
    // Form decoders turn `+` into a space, before or after other decoding.
    let form = form_decode(text);
    let mut texts = [Some(text), form.as_deref()].into_iter().flatten();
    texts.any(|text| each_reading(text, &mut shown).is_break())
}

/// Whether a text is a document: too long for a path, or made of lines of prose or code.
fn is_document(text: &str) -> bool {
    let bare = trimmed(text);
    let has_words = |line: &&str| line.split_whitespace().nth(1).is_some();
    let is_short_one = || {
        bare.len() >= SHORT_DOCUMENT_BYTES
            && bare.lines().filter(has_words).nth(DOCUMENT_LINES - 1).is_some()
    };
    text.len() > PATH_BYTES_MAX
        || bare.contains('\n') && (text.len() > DOCUMENT_BYTES || is_short_one())
}

/// The other forms of a text as a path: normalised, without a trailing slash, and from the root if it
/// climbs out of an unknown folder.
pub fn path_forms(text: &str) -> Vec<String> {
    let mut all: Vec<String> = normal_path(text).into_iter().collect();
    let open = all.first().map_or(text, String::as_str);
    let closed = open.trim_end_matches(['/', '\\']);
    if closed.len() < open.len() {
        let closed = closed.to_owned();
        all.push(closed);
    }
    let up = all.first().map_or(text, String::as_str);
    if up.starts_with("../") {
        let rest = up.trim_start_matches("../").trim_end_matches('/');
        let rest = format!("/{rest}");
        all.push(rest);
    }
    all
}

/// A text with its case folded, in one normal form.
pub fn fold_case(text: &str) -> Cow<'_, str> {
    let is_lower = |byte: &u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    match text.as_bytes().iter().all(is_lower) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(nfkc(&nfkc(text).to_lowercase()).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(text: &str, wanted: &str) -> bool {
        any_reading(text, &ScanBudget::new(text.len()), |reading| reading == wanted)
    }

    #[test]
    fn a_text_is_read_as_every_path_that_it_may_be() {
        for (text, path) in [
            ("/etc/passwd", "/etc/passwd"),
            ("file:///etc/passwd", "/etc/passwd"),
            ("/s/k/", "/s/k"),
            ("/s/k//", "/s/k"),
            ("/s/k/./", "/s/k"),
            ("/s/./k", "/s/k"),
            ("k/", "k"),
            ("~/../../../../s/k", "/s/k"),
            ("../../s/k/", "/s/k"),
            ("%2Fs%2Fk%2F", "/s/k"),
            ("/s/k#x", "/s/k"),
            ("fu\u{308}r", "für"),
            ("drop+table", "drop table"),
            ("/s/a+b/", "/s/a b"),
            ("+k+", "k"),
        ] {
            assert!(reads(text, path), "{text}");
        }
        assert!(!reads("#1", "") && reads(" ", ""));
        assert!(!reads("/a", "/"));
    }

    #[test]
    fn a_document_is_read_as_what_it_says_however_many_readings_it_has() {
        // Every character of a source file that adds a reading, at several lengths.
        let line = "let path = r\"C:\\dir;\" % 2; // https://a/b?c#d %41 + \u{fc}?\n";
        for count in [5, 60, 600, 6_000] {
            let text = format!("//! A file.\n{}", line.repeat(count));
            let asks = |wanted: &str| {
                let budget = ScanBudget::new(text.len());
                any_reading(&text, &budget, |reading| reading.contains(wanted))
            };
            assert!(!asks("DROP TABLE"), "{count}");
            assert!(asks("let path") && asks("b?c#d A"), "{count}");
        }
    }

    #[test]
    fn a_document_that_a_reader_makes_a_path_of_is_that_path() {
        let lines = "one two three; 50% of it\n".repeat(20);
        for (start, end) in [
            ("/etc/passwd#", ""),
            ("\n/etc/passwd?", ""),
            ("/et\nc/pas\nswd#", ""),
            ("%2Fetc%2Fpasswd%23", ""),
            ("%252Fetc%252Fpasswd%2523", ""),
            ("\\etc\\passwd#", ""),
            ("file:///et\nc/%70asswd#", ""),
            ("file://%2Fetc/passwd\0", ""),
            ("/srv/", "/../../etc/passwd"),
            ("/srv/\\", "\\..\\../../etc/passwd"),
            ("/srv/", "%2f..%2F..%2fetc/passwd"),
            ("/etc;a/passwd;", ""),
        ] {
            let text = format!("{start}{lines}{end}");
            assert!(is_document(&text) && reads(&text, "/etc/passwd"), "{start:?} {end:?}");
        }
    }

    #[test]
    fn what_costs_too_much_counts_as_read() {
        let budget = ScanBudget::new(0);
        assert!(!any_reading("a", &budget, |_| false));
        budget.spend(WORK_MIN);
        assert!(any_reading("a", &budget, |_| false) && budget.remaining() == 0);
    }

    #[test]
    fn case_and_normal_forms_are_folded() {
        assert_eq!(fold_case("DELETE"), "delete");
        assert_eq!(fold_case("FU\u{308}R"), "für");
        assert_eq!(fold_case("a b"), "a b");
    }
}
