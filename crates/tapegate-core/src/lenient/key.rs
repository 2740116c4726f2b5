//! Keys of objects that some readers treat as equal.

use crate::frame;
use crate::json::{JsonStr, quoted};

use super::spelling::{is_invisible, nfkc, trimmed};

/// A form that is the same for all keys that lenient readers treat as equal: regardless of case, spaces,
/// `_`, `-` and compatibility forms of the same letters.
pub fn fold(key: JsonStr<'_>) -> String {
    fold_text(&String::from_utf8_lossy(&frame::fold(key)))
}

/// The same for a key that is not JSON text.
pub fn fold_name(name: &str) -> String {
    let raw = quoted(name);
    let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
    fold(JsonStr { raw: inner, escaped: inner.contains(&b'\\') })
}

/// The same for a part of a text.
pub fn fold_text(text: &str) -> String {
    let letters = nfkc(text).to_lowercase();
    // Forms mark the key of a list with brackets, and some readers drop invisible characters.
    let letters = trimmed(&letters).trim_end_matches("[]");
    letters
        .chars()
        .filter(|letter| !(matches!(letter, '_' | '-') || is_invisible(*letter)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fold_as_lenient_readers_fold_them() {
        let folded = |raw: &str| fold(JsonStr { raw: raw.as_bytes(), escaped: raw.contains('\\') });
        for key in [
            "file_path",
            "filePath",
            "FILE-PATH",
            " filepath ",
            "filepath[]",
            r"\u0066ilepath",
            "ｆilepath",
        ] {
            assert_eq!(folded(key), "filepath", "{key}");
        }
        assert_eq!(folded("ri\u{17f}\u{212a}"), "risk");
        assert_ne!(folded("filepaths"), "filepath");
    }
}
