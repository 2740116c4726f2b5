//! Patterns for matching text: globs and regular expressions.
//!
//! They are compiled once, with the scenario. A regular expression takes time linear in the text; a
//! glob at most the product of both lengths.

use regex::{Regex, RegexBuilder};

use crate::finding::Findings;
use crate::node::Node;

/// The size limit of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1024 * 1024;
/// The prefix of a plain text that is a regular expression.
pub(crate) const REGEX: &str = "regex:";

/// Compiles the regular expression found at `node`.
pub(crate) fn regex(pattern: &str, node: &Node, findings: &mut Findings) -> Option<Regex> {
    let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
    built
        .map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
            findings.error(node.spot, format!("not a valid regular expression: {last}"));
        })
        .ok()
}

/// A pattern with `*` for any text and `?` for any character.
#[derive(Debug, Clone)]
pub(crate) struct SimpleGlob {
    letters: Vec<PatternLetter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternLetter {
    Is(char),
    One,
    Any,
}

impl SimpleGlob {
    /// Parses a pattern; a backslash escapes `*`, `?` and itself.
    pub(crate) fn new(pattern: &str) -> Self {
        let mut letters = Vec::new();
        let mut chars = pattern.chars();
        while let Some(letter) = chars.next() {
            letters.push(match letter {
                '*' if letters.last() == Some(&PatternLetter::Any) => continue,
                '*' => PatternLetter::Any,
                '?' => PatternLetter::One,
                '\\' => match chars.clone().next() {
                    Some(plain @ ('*' | '?' | '\\')) => {
                        chars.next();
                        PatternLetter::Is(plain)
                    }
                    _ => PatternLetter::Is('\\'),
                },
                letter => PatternLetter::Is(letter),
            });
        }
        Self { letters }
    }

    /// Whether a text matches. Backtracks to the last `*` only, so that the time is bounded by the
    /// product of both lengths.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut at = 0;
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            match (self.letters.get(at), rest.next()) {
                (None, None) => return true,
                (Some(PatternLetter::Any), _) => {
                    rest = before;
                    at += 1;
                    retry = Some((at, rest.clone()));
                }
                (Some(PatternLetter::One), Some(_)) => at += 1,
                (Some(PatternLetter::Is(letter)), Some(next)) if *letter == next => at += 1,
                _ => {
                    let Some((star, from)) = &mut retry else { return false };
                    if from.next().is_none() {
                        return false;
                    }
                    at = *star;
                    rest = from.clone();
                }
            }
        }
    }
}
