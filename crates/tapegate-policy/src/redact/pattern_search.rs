//! Finds secrets in plain text by their format.
//!
//! One pass searches for the keywords of all patterns. A regular expression is compiled the first
//! time one of its keywords is found, once per process.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::packed;
use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};

use super::entropy::random_parts;
use super::masking_pass::may_hide;
use super::placeholder::unmasked_ranges;
use super::secret_patterns::PATTERNS;

/// The kind of random-looking text.
pub(super) const ENTROPY: &str = "entropy";
const REGEX_BYTES_MAX: usize = 1 << 20;

/// The format of one kind of secret.
pub(super) struct SecretPattern {
    pub(super) name: &'static str,
    words: &'static [&'static str],
    source: &'static str,
    check: Option<fn(&str) -> bool>,
    regex: OnceLock<Option<Regex>>,
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretHit {
    pub(super) span: Range<usize>,
    pub(super) name: &'static str,
}

/// The patterns that are searched for.
#[derive(Clone, Default)]
pub(super) struct SecretPatterns {
    chosen: Vec<&'static SecretPattern>,
    entropy: bool,
    words: OnceLock<WordSearch>,
}

/// A search for the keywords of the chosen patterns.
#[derive(Clone)]
struct WordSearch {
    searcher: Option<packed::Searcher>,
    words: Vec<&'static str>,
}

impl SecretPattern {
    /// A pattern that requires one of `words`, which no escape but `\u` and `\/` can hide.
    pub(super) const fn new(
        name: &'static str,
        words: &'static [&'static str],
        source: &'static str,
    ) -> Self {
        Self { name, words, source, check: None, regex: OnceLock::new() }
    }

    /// A pattern whose matches `check` must confirm.
    pub(super) const fn with_check(
        name: &'static str,
        words: &'static [&'static str],
        source: &'static str,
        check: fn(&str) -> bool,
    ) -> Self {
        Self { name, words, source, check: Some(check), regex: OnceLock::new() }
    }

    fn may_match(&self, text: &[u8]) -> bool {
        self.words.iter().any(|word| memmem::find(text, word.as_bytes()).is_some())
    }

    fn regex(&self) -> Option<&Regex> {
        let build = || {
            let mut builder = RegexBuilder::new(self.source);
            // Tokens are ASCII, and Unicode classes would make the tables much larger.
            builder.unicode(false).size_limit(REGEX_BYTES_MAX).dfa_size_limit(REGEX_BYTES_MAX);
            builder.build().ok()
        };
        self.regex.get_or_init(build).as_ref()
    }

    fn find(&self, text: &str, found: &mut impl FnMut(Range<usize>)) {
        // If the expression does not compile, mask every text with its keywords.
        let Some(regex) = self.regex() else { return found(0..text.len()) };
        for groups in regex.captures_iter(text.as_bytes()) {
            // A pattern with a group needs context around the secret; only the group is masked.
            let Some(secret) = groups.iter().skip(1).flatten().next().or(groups.get(0)) else {
                continue;
            };
            // Without Unicode, a match may begin or end inside a character.
            let start = text.floor_char_boundary(secret.start());
            let span = start..text.ceil_char_boundary(secret.end());
            if self.check.is_none_or(|check| check(&text[span.clone()])) {
                found(span);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn compiles(&self) -> bool {
        self.regex().is_some()
    }
}

impl SecretPatterns {
    /// All patterns, without the entropy heuristic.
    #[cfg(test)]
    pub(super) fn all() -> Self {
        Self::select(|_| true, false)
    }

    /// The patterns whose names `wanted` accepts, and the entropy heuristic if requested.
    pub(super) fn select(wanted: impl Fn(&str) -> bool, entropy: bool) -> Self {
        let chosen = PATTERNS.iter().filter(|shape| wanted(shape.name)).collect();
        Self { chosen, entropy, ..Self::default() }
    }

    /// Whether there is nothing to search for.
    pub(super) fn is_empty(&self) -> bool {
        self.chosen.is_empty() && !self.entropy
    }

    /// Whether JSON text may contain a secret; cheap, without false negatives.
    pub(super) fn may_match_json(&self, json: &[u8]) -> bool {
        !self.is_empty() && (self.entropy || self.word_search().occur_in(json) || may_hide(json))
    }

    /// The secrets in `text` that are not masked yet, in order and without overlaps.
    pub(super) fn hits(&self, text: &str) -> Vec<SecretHit> {
        let mut hits = Vec::new();
        // Placeholders are left out, so that masking twice changes nothing.
        for gap in unmasked_ranges(text) {
            self.hits_in(&text[gap.clone()], gap.start, &mut hits);
        }
        hits.sort_by_key(|hit| hit.span.start);
        // Overlapping hits are one secret; the pattern that starts first names it.
        let mut apart: Vec<SecretHit> = Vec::new();
        for hit in hits {
            match apart.last_mut() {
                Some(last) if hit.span.start < last.span.end => {
                    last.span.end = last.span.end.max(hit.span.end);
                }
                _ => apart.push(hit),
            }
        }
        apart
    }

    fn hits_in(&self, text: &str, offset: usize, hits: &mut Vec<SecretHit>) {
        let mut found = |name, span: Range<usize>| {
            let span = span.start + offset..span.end + offset;
            hits.push(SecretHit { span, name });
        };
        if !self.chosen.is_empty() && self.word_search().occur_in(text.as_bytes()) {
            for pattern in self.chosen.iter().filter(|one| one.may_match(text.as_bytes())) {
                pattern.find(text, &mut |span| found(pattern.name, span));
            }
        }
        if self.entropy {
            random_parts(text).into_iter().for_each(|span| found(ENTROPY, span));
        }
    }

    /// The end of a truncated text, if it may be the beginning of a secret: from a pattern's
    /// keyword on, if that is at the start of a word.
    pub(super) fn truncated_hit(&self, text: &str) -> Option<SecretHit> {
        let tail = unmasked_ranges(text).pop().filter(|gap| gap.end == text.len())?;
        let mut separators = text[tail.clone()].rmatch_indices(|letter: char| {
            letter.is_ascii_whitespace() || matches!(letter, '"' | '\'')
        });
        let start = separators.nth(1).map_or(tail.start, |(at, _)| tail.start + at + 1);
        let tail = &text[start..];
        let begins = |at: usize| !tail[..at].ends_with(|letter: char| letter.is_alphanumeric());
        // Every plain URL would look like the start of one with a password.
        let shapes = self.chosen.iter().filter(|shape| shape.name != "url-credentials");
        let finds = shapes.flat_map(|shape| {
            let places = shape.words.iter().filter_map(|word| tail.find(word));
            places
                .filter(|&at| begins(at))
                .map(|at| SecretHit { span: start + at..text.len(), name: shape.name })
        });
        finds.min_by_key(|hit| hit.span.start)
    }

    fn word_search(&self) -> &WordSearch {
        self.words.get_or_init(|| {
            let words: Vec<_> = self.chosen.iter().flat_map(|one| one.words).copied().collect();
            // The heuristic would refuse this many keywords, and each would then be searched by
            // itself.
            let mut builder = packed::Config::new().heuristic_pattern_limits(false).builder();
            WordSearch { searcher: builder.extend(&words).build(), words }
        })
    }
}

impl WordSearch {
    fn occur_in(&self, text: &[u8]) -> bool {
        match &self.searcher {
            Some(searcher) => searcher.find(text).is_some(),
            None => self.words.iter().any(|word| memmem::find(text, word.as_bytes()).is_some()),
        }
    }
}

impl std::fmt::Debug for SecretPatterns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.chosen.iter().map(|pattern| pattern.name);
        out.debug_list().entries(names.chain(self.entropy.then_some(ENTROPY))).finish()
    }
}
