//! Patterns that texts are held against: wildcards and regular expressions.
//!
//! They are read once, with the scenario; neither takes more than time in proportion to what it is
//! held against, or for wildcards to the product of both lengths.

use regex::{Regex, RegexBuilder};

use crate::finding::Findings;
use crate::node::Node;

/// How large a regular expression may be once it is compiled.
const REGEX_BYTES_MAX: usize = 1024 * 1024;
/// What a plain text begins with that is a regular expression.
pub(crate) const REGEX: &str = "regex:";

/// Compiles the regular expression that stands at `node`.
pub(crate) fn regex(pattern: &str, node: &Node, findings: &mut Findings) -> Option<Regex> {
    let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES_MAX).build();
    built
        .map_err(|error| {
            let words = error.to_string();
            let last = words.lines().last().unwrap_or_default().trim_start_matches("error: ");
            findings.error(node.spot, format!("this is no regular expression: {last}"));
        })
        .ok()
}

/// A pattern with `*` for any text and `?` for any character.
#[derive(Debug, Clone)]
pub(crate) struct Glob {
    letters: Vec<Letter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letter {
    Is(char),
    One,
    Any,
}

impl Glob {
    /// Reads a pattern; a backslash takes the meaning of what follows.
    pub(crate) fn new(pattern: &str) -> Self {
        let mut letters = Vec::new();
        let mut chars = pattern.chars();
        while let Some(letter) = chars.next() {
            letters.push(match letter {
                '*' if letters.last() == Some(&Letter::Any) => continue,
                '*' => Letter::Any,
                '?' => Letter::One,
                '\\' => match chars.clone().next() {
                    Some(plain @ ('*' | '?' | '\\')) => {
                        chars.next();
                        Letter::Is(plain)
                    }
                    _ => Letter::Is('\\'),
                },
                letter => Letter::Is(letter),
            });
        }
        Self { letters }
    }

    /// Whether a text has this shape. It goes back to the last `*` at most, so that no pattern
    /// takes more than the product of both lengths.
    pub(crate) fn fits(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut at = 0;
        let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            let before = rest.clone();
            match (self.letters.get(at), rest.next()) {
                (None, None) => return true,
                (Some(Letter::Any), _) => {
                    rest = before;
                    at += 1;
                    retry = Some((at, rest.clone()));
                }
                (Some(Letter::One), Some(_)) => at += 1,
                (Some(Letter::Is(letter)), Some(next)) if *letter == next => at += 1,
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
