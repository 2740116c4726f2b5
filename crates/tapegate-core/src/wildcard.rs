//! Matches text with wildcards, in all syntaxes that have them.
//!
//! Each syntax is parsed where it belongs. Matching is the same for all: only the last `*` is
//! retried, so the time is at most the product of both lengths.

/// An element of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wildcard {
    /// Any text, also none.
    Any,
    /// Any one character.
    One,
    /// This character.
    Is(char),
}

/// What a bracket means in a shell pattern that does not close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnclosedBracket {
    /// Itself.
    Literal,
    /// A character class up to the end of the pattern.
    Class,
}

/// The wildcards of a shell pattern. A character class counts as any character.
pub fn shell(pattern: &str, unclosed: UnclosedBracket) -> Vec<Wildcard> {
    let mut all = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        all.push(match letter {
            '*' => Wildcard::Any,
            '?' => Wildcard::One,
            '[' => match (letters.as_str().split_once(']'), unclosed) {
                (None, UnclosedBracket::Literal) => Wildcard::Is('['),
                (class, _) => {
                    letters = class.map_or("", |(_, rest)| rest).chars();
                    Wildcard::One
                }
            },
            letter => Wildcard::Is(letter),
        });
    }
    all
}

/// Whether a pattern matches a whole text.
pub fn matches(pattern: &[Wildcard], text: &str) -> bool {
    let mut rest = text.chars();
    let mut at = 0;
    // Where to continue if what follows the last `*` does not match. What earlier ones matched is
    // never revised: the shortest match leaves the most text for what follows.
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        let before = rest.clone();
        match (pattern.get(at), rest.next()) {
            (None, None) => return true,
            (Some(Wildcard::Any), _) => {
                rest = before;
                at += 1;
                retry = Some((at, rest.clone()));
            }
            (Some(Wildcard::One), Some(_)) => at += 1,
            (Some(Wildcard::Is(letter)), Some(next)) if *letter == next => at += 1,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Vec<Wildcard> {
        let letter = |letter| match letter {
            '*' => Wildcard::Any,
            '?' => Wildcard::One,
            letter => Wildcard::Is(letter),
        };
        text.chars().map(letter).collect()
    }

    #[test]
    fn an_unclosed_bracket_is_itself_or_a_class() {
        let holds = |text: &str, name: &str, unclosed| matches(&shell(text, unclosed), name);
        assert!(holds("a[b", "a[b", UnclosedBracket::Literal));
        assert!(!holds("a[b", "ax", UnclosedBracket::Literal));
        assert!(holds("a[b", "ax", UnclosedBracket::Class));
        assert!(!holds("a[b", "a[b", UnclosedBracket::Class));
        for unclosed in [UnclosedBracket::Literal, UnclosedBracket::Class] {
            assert!(holds("*[bc]?d", "axyd", unclosed));
        }
    }

    #[test]
    fn a_pattern_matches_the_whole_text() {
        for (glob, text, holds) in [
            ("", "", true),
            ("*", "", true),
            ("", "a", false),
            ("a*b*c", "aXbXc", true),
            ("*bc", "abcbc", true),
            ("a?c", "aéc", true),
            ("a?", "a", false),
            ("a**", "a", true),
            ("*a*b", "aab", true),
            ("*a*b", "aba", false),
        ] {
            assert_eq!(matches(&pattern(glob), text), holds, "{glob} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(!matches(&pattern(&"*a".repeat(100)), &"a".repeat(99)));
        assert!(!matches(&pattern(&format!("{}b", "a*".repeat(100))), &"a".repeat(10_000)));
    }
}
