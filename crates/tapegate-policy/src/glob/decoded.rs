//! A glob as it would be written without escapes and other spellings.
//!
//! Readings of a name are decoded. So that `a%20b` in a policy fits `a b`, what a glob says to the
//! letter is decoded in the same way; stars, `?` and classes stay.

use super::{Glob, Letter, Piece};
use crate::uri;
use tapegate_core::lenient::spelling::{nfkc, percent_decoded};

/// The decoded form of a glob; `None` if it is written so.
pub(super) fn decoded(pieces: &[Piece]) -> Option<Box<Glob>> {
    let mut forms: Vec<Piece> = pieces.iter().map(decode).collect();
    if let Some(Piece::Plain(text)) = forms.first_mut()
        && let Some(start) = uri::resolved_start(text)
    {
        *text = start;
    }
    (forms != pieces).then(|| Box::new(Glob { text: String::new(), pieces: forms, decoded: None }))
}

fn decode(piece: &Piece) -> Piece {
    match piece {
        Piece::Plain(text) => Piece::Plain(decode_text(text)),
        Piece::Open(letters) => {
            let (mut out, mut run) = (Vec::new(), String::new());
            for letter in letters {
                match letter {
                    Letter::Is(letter) => run.push(*letter),
                    open => {
                        out.extend(decode_text(&run).chars().map(Letter::Is));
                        out.push(open.clone());
                        run.clear();
                    }
                }
            }
            out.extend(decode_text(&run).chars().map(Letter::Is));
            Piece::Open(out)
        }
    }
}

fn decode_text(text: &str) -> String {
    let decoded = percent_decoded(text).0.pop();
    nfkc(decoded.as_deref().unwrap_or(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_fits_what_it_says_in_another_spelling() {
        for (glob, name) in [
            ("file:///a%20b/*", "file:///a b/c"),
            ("*/a%2520b", "x/a b"),
            ("*%C3%BC?", "a\u{fc}b"),
            ("u\u{308}*", "\u{fc}x"),
            ("FILE://localhost/etc/*", "file:///etc/x"),
            ("file:/etc/*", "file:///etc/x"),
            ("https://A.Example:443/*", "https://a.example/x"),
            ("https://A.Ex*", "https://a.example/x"),
            ("a%2A", "a*"),
        ] {
            let glob = Glob::parse(glob).unwrap();
            assert!(!glob.matches(name) && glob.matches_decoded(name), "{glob:?}");
        }
        assert!(!Glob::parse("a%2A").unwrap().matches_decoded("ab"));
        for plain in ["read_*", "file:///data/*", "*", "https://a.example/*", "[%2]0"] {
            assert!(Glob::parse(plain).unwrap().decoded.is_none(), "{plain}");
        }
    }
}
