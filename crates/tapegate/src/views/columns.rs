//! Fits text into terminal columns: truncates and pads by display width, not by characters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Text of at most this many columns; a `…` marks a truncation. A character and its combining marks
/// stay together.
pub(crate) fn truncate_to(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    for letter in text.chars() {
        out.push(letter);
        // Joined characters may take less room than the single ones, never more.
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

/// Text of exactly this many columns.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let fitted = truncate_to(text, columns);
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
                let fitted = truncate_to(text, columns);
                assert!(width(&fitted) <= columns, "{fitted:?} {columns}");
                assert_eq!(width(&pad(text, columns)), columns, "{text} {columns}");
            }
            assert_eq!(truncate_to(text, 40), text);
        }
        assert_eq!(truncate_to("日本語", 5), "日本…");
        assert_eq!(truncate_to("日本語", 4), "日…");
        assert_eq!(truncate_to("e\u{301}e\u{301}x", 2), "e\u{301}…");
    }
}
