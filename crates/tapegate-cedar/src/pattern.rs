//! Patterns of `like`, matched as Cedar does and as lenient servers would.

use cedar_policy::pst::PatternElem;
use tapegate_core::lenient::spelling::{form_decode, nfkc, percent_decoded, unicode_decode};
use tapegate_core::wildcard::{self, Wildcard};

/// A `like` pattern.
#[derive(Debug)]
pub(crate) struct LikePattern {
    wildcards: Vec<Wildcard>,
    /// The literal pieces between its wildcards; without a wildcard, one piece.
    pieces: Vec<String>,
    /// The pieces in lower case.
    folded: Vec<String>,
    /// The pieces as servers may decode them, in each way that differs, in lower case.
    decoded: Vec<Vec<String>>,
}

impl LikePattern {
    pub(crate) fn new(elements: &[PatternElem]) -> Self {
        let mut pieces = vec![String::new()];
        for element in elements {
            match (element, pieces.last_mut()) {
                (PatternElem::Char(letter), Some(piece)) => piece.push(*letter),
                _ => pieces.push(String::new()),
            }
        }
        let folded: Vec<String> = pieces.iter().map(|piece| piece.to_ascii_lowercase()).collect();
        let mut decoded: Vec<Vec<String>> = Vec::new();
        let ways: [fn(&str) -> String; 2] =
            [decode, |piece| decode(&form_decode(piece).unwrap_or_else(|| piece.to_owned()))];
        for decode in ways {
            let form: Vec<String> =
                pieces.iter().map(|piece| decode(piece).to_ascii_lowercase()).collect();
            if form != folded && !decoded.contains(&form) {
                decoded.push(form);
            }
        }
        Self { wildcards: like_wildcards(elements), pieces, folded, decoded }
    }

    /// Whether a text matches, by Cedar's rules.
    pub(crate) fn matches(&self, text: &str) -> bool {
        wildcard::matches(&self.wildcards, text)
    }

    /// A text that matches the pattern, if `text` matches it after decoding and ignoring case: the
    /// literal pieces are spelled as in the pattern, and the rest as in the text.
    pub(crate) fn respell(&self, text: &str) -> Option<String> {
        // Cedar finds this match itself; a respelled copy would only add a reading.
        if self.matches(text) {
            return None;
        }
        // ASCII only, so that byte offsets are the same in both texts.
        let folded = text.to_ascii_lowercase();
        let mut forms = self.decoded.iter().chain([&self.folded]);
        forms.find_map(|form| self.spelled_as(form, text, &folded))
    }

    /// `folded` is the text in lower case.
    fn spelled_as(&self, form: &[String], text: &str, folded: &str) -> Option<String> {
        let [first, rest @ ..] = form else { return None };
        let Some((last, middle)) = rest.split_last() else {
            return (folded == first).then(|| self.pieces.concat());
        };
        let mut at = folded.strip_prefix(first.as_str()).map(|_| first.len())?;
        let end = folded[at..].strip_suffix(last.as_str())?.len() + at;
        let mut spelled = self.pieces[0].clone();
        for (piece, own) in middle.iter().zip(&self.pieces[1..]) {
            let found = folded[at..end].find(piece.as_str())? + at;
            spelled.push_str(&text[at..found]);
            spelled.push_str(own);
            at = found + piece.len();
        }
        Some(spelled + &text[at..end] + self.pieces.last().map_or("", String::as_str))
    }
}

fn decode(piece: &str) -> String {
    let decoded = percent_decoded(piece).0.pop();
    let piece = decoded.as_deref().unwrap_or(piece);
    nfkc(unicode_decode(piece).as_deref().unwrap_or(piece)).into_owned()
}

/// A `like` pattern has no wildcard for one character.
fn like_wildcards(elements: &[PatternElem]) -> Vec<Wildcard> {
    let wildcard = |element: &PatternElem| match element {
        PatternElem::Char(letter) => Wildcard::Is(*letter),
        _ => Wildcard::Any,
    };
    elements.iter().map(wildcard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(text: &str) -> Vec<PatternElem> {
        let letter = |one| if one == '*' { PatternElem::Wildcard } else { PatternElem::Char(one) };
        text.chars().map(letter).collect()
    }

    #[test]
    fn patterns_are_compared_as_cedar_does() {
        for (text, like, holds) in [
            ("", "", true),
            ("", "*", true),
            ("a", "", false),
            ("/etc/x", "/etc/*", true),
            ("/etc", "/etc/*", false),
            ("aXbXc", "a*b*c", true),
            ("abcbc", "*bc", true),
            ("abcb", "*bc", false),
            ("ab", "a**b", true),
        ] {
            assert_eq!(
                LikePattern::new(&elements(like)).matches(text),
                holds,
                "{text} like {like}"
            );
        }
    }

    #[test]
    fn a_text_is_spelled_as_the_pattern_that_it_is_like() {
        for (like, text, spelled) in [
            ("/a%20b/*", "/a b/c d", Some("/a%20b/c d")),
            ("*/a%20b/*.txt", "x/a b/c.txt", Some("x/a%20b/c.txt")),
            ("a%20b", "a b", Some("a%20b")),
            ("a+b*", "a bc", Some("a+bc")),
            ("u\u{308}*", "\u{fc}x", Some("u\u{308}x")),
            ("*%20*%21*", "a b!c", Some("a%20b%21c")),
            ("a%20b", "a bc", None),
            ("*%20b", "a b c", None),
            ("/a b/*", "/a b/c", None),
            ("/Etc/*", "/ETC/Passwd", Some("/Etc/Passwd")),
            ("*DELETE*", "x Delete Y", Some("x DELETE Y")),
        ] {
            let pattern = LikePattern::new(&elements(like));
            assert_eq!(pattern.respell(text).as_deref(), spelled, "{text} like {like}");
            assert!(spelled.is_none_or(|spelled| pattern.matches(spelled)), "{like}");
        }
    }
}
