//! Globs with escapes and other spellings decoded.
//!
//! Readings of a name are decoded. The literal text of a glob is decoded in the same way, so that
//! `a%20b` in a policy matches `a b`; stars, `?` and classes stay.

use super::{Glob, GlobLetter, GlobPiece};
use crate::uri;
use tapegate_core::lenient::spelling::{nfkc, percent_decoded, unicode_decode};

/// The decoded forms of a glob that differ from its written form.
pub(super) fn decoded(pieces: &[GlobPiece]) -> Vec<Glob> {
    // A `+` is kept, or read as a blank like in forms, before or after escapes are decoded.
    let ways: [fn(&str) -> String; 3] = [
        decode_text,
        |text| decode_text(&uri::form_decoded(text).unwrap_or_else(|| text.to_owned())),
        |text| {
            let text = decode_text(text);
            uri::form_decoded(&text).unwrap_or(text)
        },
    ];
    let mut forms: Vec<Glob> = Vec::new();
    for decode_text in ways {
        let mut form: Vec<GlobPiece> =
            pieces.iter().map(|piece| piece.map(decode_text, GlobLetter::clone)).collect();
        if let Some(GlobPiece::Plain(text)) = form.first_mut()
            // Readings of a URI have their scheme and host normalized, so the glob must have the
            // same.
            && let Some(start) = uri::resolve_start(text)
        {
            *text = start;
        }
        if form != pieces && !forms.iter().any(|known| known.pieces == form) {
            forms.push(Glob { text: String::new(), pieces: form, decoded: Vec::new() });
        }
    }
    forms
}

fn decode_text(text: &str) -> String {
    let decoded = percent_decoded(text).0.pop();
    let text = decoded.as_deref().unwrap_or(text);
    nfkc(unicode_decode(text).as_deref().unwrap_or(text)).into_owned()
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
            ("x://a+b/*", "x://a b/c"),
            ("x://a+b%2Bc/*", "x://a b+c/d"),
            ("x://a+b%2Bc/*", "x://a b c/d"),
            ("git+ssh://a+b/*", "git+ssh://a b/c"),
            ("x://%u0061/*", "x://a/b"),
            ("https://Münche\u{ad}n.de/*", "https://xn--mnchen-3ya.de/x"),
        ] {
            let glob = Glob::parse(glob).unwrap();
            assert!(!glob.matches(name) && glob.matches_decoded(name), "{glob:?}");
        }
        assert!(!Glob::parse("a%2A").unwrap().matches_decoded("ab"));
        for plain in ["read_*", "file:///data/*", "*", "https://a.example/*", "[%2]0"] {
            assert!(Glob::parse(plain).unwrap().decoded.is_empty(), "{plain}");
        }
    }
}
