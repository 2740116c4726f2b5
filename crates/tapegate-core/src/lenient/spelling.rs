//! Alternative spellings of a text that some reader treats as equal.
//!
//! Servers trim white space, stop at a NUL, decode escapes, normalise Unicode and resolve `..` before
//! they use a text. A rule that blocks a call is matched against each of these readings.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::folder::normal_path;

/// How many times escapes are decoded; no known server does so more often.
const DECODED_MAX: usize = 4;
/// How often all transformations are applied to their results.
const PASSES: usize = 2;

/// What a text may be read as, other than as written.
pub fn spellings(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if is_plain(text) {
        return found;
    }
    // Readers transform in any order, so apply all transformations again to their results.
    for _ in 0..PASSES {
        let before = found.len();
        WAYS.iter().for_each(|read| add(text, &mut found, *read));
        if found.len() == before {
            break;
        }
    }
    found
}

/// The transformations that readers make.
const WAYS: [fn(&str) -> Vec<String>; 7] = [
    |text| {
        let end = text.find('\0').unwrap_or(text.len());
        vec![text[..end].to_owned(), trimmed(&text[..end]).to_owned(), trimmed(text).to_owned()]
    },
    |text| unicode_decode(text).into_iter().collect(),
    |text| percent_decoded(text).0,
    |text| if is_normal(text) { Vec::new() } else { vec![nfkc(text).into_owned()] },
    |text| match text.contains(['\t', '\n', '\r']) {
        true => vec![text.replace(['\t', '\n', '\r'], "")],
        false => Vec::new(),
    },
    |text| normal_path(text).into_iter().collect(),
    // Form decoders turn `+` into a space; in other texts it is literal.
    |text| form_decode(text).filter(|_| text.contains(['%', '=', '?'])).into_iter().collect(),
];

/// Applies one transformation to a text and to all its readings so far.
fn add(text: &str, found: &mut Vec<String>, read: impl Fn(&str) -> Vec<String>) {
    let new: Vec<String> =
        read(text).into_iter().chain(found.iter().flat_map(|text| read(text))).collect();
    for reading in new {
        if reading != text && !found.contains(&reading) {
            found.push(reading);
        }
    }
}

/// Whether a text is almost certainly read as written. Fast, since most are.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let blank = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
    // A path may have other spellings too.
    let odd = |byte: &u8| {
        !byte.is_ascii() || byte.is_ascii_control() || matches!(byte, b'%' | b'/' | b'\\' | b'+')
    };
    !(blank(bytes.first()) || blank(bytes.last()) || bytes.iter().any(odd))
}

/// A text without surrounding white space, control and invisible characters.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches(|letter: char| {
        letter.is_whitespace() || letter.is_control() || is_invisible(letter)
    })
}

/// Whether a character is invisible, so that some readers drop it wherever it occurs.
pub fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text in Unicode normal form KC, which unifies compatible characters.
pub fn nfkc(text: &str) -> Cow<'_, str> {
    if is_normal(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfkc().collect()) }
}

/// A text in Unicode normal form C, with composed accents.
pub fn nfc(text: &str) -> String {
    text.nfc().collect()
}

/// A text in Unicode normal form D, with decomposed accents.
pub fn nfd(text: &str) -> String {
    text.nfd().collect()
}

fn is_normal(text: &str) -> bool {
    text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes
}

/// A text with its percent escapes decoded once, twice and so on, and whether none is left; empty if it
/// has none.
pub fn percent_decoded(text: &str) -> (Vec<String>, bool) {
    let mut found: Vec<String> = Vec::new();
    let mut next = percent_decode(text);
    while let Some(decoded) = next {
        if found.len() == DECODED_MAX {
            return (found, false);
        }
        next = percent_decode(&decoded);
        found.push(decoded);
    }
    (found, true)
}

/// A text with every percent escape decoded once; `None` if it has none. Invalid UTF-8 is replaced.
pub fn percent_decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut at = memchr::memchr(b'%', bytes)?;
    let mut out: Vec<u8> = Vec::new();
    let mut copied = 0;
    loop {
        if let Some(byte) = escape(&bytes[at..]) {
            out.extend_from_slice(&bytes[copied..at]);
            out.push(byte);
            at += 3;
            copied = at;
        } else {
            at += 1;
        }
        match memchr::memchr(b'%', &bytes[at..]) {
            Some(next) => at += next,
            None => break,
        }
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&bytes[copied..]);
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// A text decoded as a form: every `+` becomes a space, then every percent escape is decoded once. `None`
/// if it has no `+`.
pub fn form_decode(text: &str) -> Option<String> {
    if !text.contains('+') {
        return None;
    }
    let blanks = text.replace('+', " ");
    Some(percent_decode(&blanks).unwrap_or(blanks))
}

/// A text with every escape like `%u00fc` decoded, as JavaScript's `unescape` and some servers do; `None`
/// if it has none. Unpaired surrogates are replaced.
pub fn unicode_decode(text: &str) -> Option<String> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(['%'])?.strip_prefix(['u', 'U'])?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let (mut out, mut copied) = (String::new(), 0);
    for (at, _) in text.match_indices('%').filter(|(at, _)| text[*at..].len() >= 6) {
        if at < copied || unit(at).is_none() {
            continue;
        }
        out.push_str(&text[copied..at]);
        copied = at;
        let units = std::iter::from_fn(|| {
            let unit = unit(copied)?;
            copied += 6;
            Some(unit)
        });
        let units: Vec<u16> = units.collect();
        out.push_str(&String::from_utf16_lossy(&units));
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// The byte that the escape at the start of a text stands for.
fn escape(text: &[u8]) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (high, low) = (digit(text.get(1)?)?, digit(text.get(2)?)?);
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_text_has_one_spelling() {
        for text in [
            "",
            "main",
            "a b",
            "c++",
            "1+1",
            "5,000",
            "x@y.example",
            "a-b_c",
            "/data/a.txt",
            "é",
            "100%",
        ] {
            assert_eq!(spellings(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_text_is_spelled_as_readers_take_it() {
        for (text, reading) in [
            (" a ", "a"),
            ("a\0b", "a"),
            ("\u{feff}a", "a"),
            ("%61", "a"),
            ("%2561", "a"),
            ("%20%2561", "a"),
            ("%C3%BC", "ü"),
            ("u\u{308}", "ü"),
            ("u%CC%88", "ü"),
            ("ｆｏｒｃｅ", "force"),
            ("/a/../b", "/b"),
            ("/a/%2e%2e/b", "/b"),
            ("/a//b", "/a/b"),
            ("\\a\\b", "/a/b"),
            ("htt\nps://x", "https:/x"),
            ("%u0061%U0062", "ab"),
            ("%25u0061", "a"),
            ("%u002561", "a"),
            ("%uD83D%uDE00", "\u{1f600}"),
            ("q=a+b", "q=a b"),
            ("+q=a%2Bb+", "q=a b"),
            ("a%00b", "a"),
            ("a%u0000b", "a"),
            ("%20\u{ff05}61", "a"),
            ("a+b%2Bc", "a b+c"),
            ("/s?a+b", "/s?a b"),
        ] {
            assert!(
                spellings(text).iter().any(|one| one == reading),
                "{text}: {:?}",
                spellings(text)
            );
        }
    }

    #[test]
    fn escapes_are_decoded_to_the_end_or_not_at_all() {
        assert_eq!(percent_decode("100%"), None);
        assert_eq!(percent_decode("%zz%4"), None);
        assert_eq!(percent_decode("a%41%").as_deref(), Some("aA%"));
        assert_eq!(percent_decoded("a"), (Vec::new(), true));
        for plain in ["%u", "%u00", "%u00g0", "%u+061", "%u00é1", "u0061"] {
            assert_eq!(unicode_decode(plain), None, "{plain}");
        }
        assert_eq!(unicode_decode("x%u0041é%u00e9%uD83Dy").as_deref(), Some("xAéé\u{fffd}y"));
        assert_eq!(form_decode("a b"), None);
        assert_eq!(percent_decoded("%2541"), (vec!["%41".to_owned(), "A".to_owned()], true));
        let deep = format!("%{}41", "25".repeat(DECODED_MAX));
        assert!(!percent_decoded(&deep).1);
    }
}
