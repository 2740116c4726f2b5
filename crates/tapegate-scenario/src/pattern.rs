//! Patterns for matching text: globs and regular expressions.
//!
//! They are compiled once, with the scenario. A regular expression takes time linear in the text; a
//! glob at most the product of both lengths.

use regex::{Regex, RegexBuilder};
use tapegate_core::wildcard::{self, Wildcard};

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
    letters: Vec<Wildcard>,
}

impl SimpleGlob {
    /// Parses a pattern; a backslash escapes `*`, `?` and itself.
    pub(crate) fn new(pattern: &str) -> Self {
        let mut letters = Vec::new();
        let mut chars = pattern.chars();
        while let Some(letter) = chars.next() {
            letters.push(match letter {
                '*' if letters.last() == Some(&Wildcard::Any) => continue,
                '*' => Wildcard::Any,
                '?' => Wildcard::One,
                '\\' => match chars.clone().next() {
                    Some(plain @ ('*' | '?' | '\\')) => {
                        chars.next();
                        Wildcard::Is(plain)
                    }
                    _ => Wildcard::Is('\\'),
                },
                letter => Wildcard::Is(letter),
            });
        }
        Self { letters }
    }

    /// Whether a text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        wildcard::matches(&self.letters, text)
    }
}
