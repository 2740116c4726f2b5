//! Texts that fit columns of a terminal: cut and padded by the room they take, not by their letters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text that takes at most so many columns; a `…` says that it was cut. A letter and the marks that
/// are combined with it stay together.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    for letter in text.chars() {
        out.push(letter);
        // Joined letters may take less room than they do one by one, never more.
        if width(&out) + 1 > columns && letter.width().unwrap_or(0) > 0 {
            out.pop();
            break;
        }
    }
    while width(&out) + 1 > columns && out.pop().is_some() {}
    if columns > 0 {
        out.push('…');
    }
    out
}

/// A text that takes exactly so many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let fitted = fit(text, columns);
    let blanks = columns.saturating_sub(width(&fitted));
    format!("{fitted}{}", " ".repeat(blanks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_whatever_their_letters() {
        for text in [
            "plain text",
            "日本語の文字列です",
            "e\u{301}e\u{301}e\u{301}e\u{301}",
            "👩‍👩‍👧 family",
            "a\u{300}日👍🏽b",
        ] {
            for columns in 0..12 {
                let fitted = fit(text, columns);
                assert!(width(&fitted) <= columns, "{fitted:?} {columns}");
                assert_eq!(width(&pad(text, columns)), columns, "{text} {columns}");
            }
            assert_eq!(fit(text, 40), text);
        }
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("e\u{301}e\u{301}x", 2), "e\u{301}…");
    }
}
