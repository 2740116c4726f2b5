//! Replaces a few values in a text and leaves every other byte alone.

use std::borrow::Cow;
use std::ops::Range;

/// The range of `part` in `text`, if it is a slice of it.
pub fn place_of(part: &[u8], text: &[u8]) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= text.len()).then_some(start..end)
}

/// A text and the replacements to make in it.
pub struct JsonEdits<'a> {
    text: &'a [u8],
    parts: Vec<(usize, usize, Vec<u8>)>,
}

impl<'a> JsonEdits<'a> {
    /// A text without replacements.
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, parts: Vec::new() }
    }

    /// Replaces `part`, which must be a slice of the text, with `with`.
    pub fn replace(&mut self, part: &[u8], with: &[u8]) {
        if let Some(Range { start, end }) = place_of(part, self.text) {
            self.parts.push((start, end, with.to_vec()));
        }
    }

    /// The text with all replacements made.
    pub fn finish(mut self) -> Cow<'a, [u8]> {
        if self.parts.is_empty() {
            return Cow::Borrowed(self.text);
        }
        self.parts.sort_by_key(|part| part.0);
        let mut out = Vec::with_capacity(self.text.len() + 32);
        let mut at = 0;
        for (start, end, with) in self.parts {
            out.extend_from_slice(self.text.get(at..start).unwrap_or_default());
            out.extend_from_slice(&with);
            at = end;
        }
        out.extend_from_slice(&self.text[at..]);
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_changes() {
        let text = br#"{"id": 1,"x":[1, 1],"t":"a"}"#;
        let mut edits = JsonEdits::new(text);
        edits.replace(&text[24..27], b"22");
        edits.replace(&text[7..8], b"\"new\"");
        assert_eq!(edits.finish().as_ref(), br#"{"id": "new","x":[1, 1],"t":22}"#);
        assert!(matches!(JsonEdits::new(text).finish(), Cow::Borrowed(_)));
    }

    #[test]
    fn a_slice_of_something_else_is_left_alone() {
        let text = b"abc".to_vec();
        let mut edits = JsonEdits::new(&text);
        edits.replace(&[1, 2, 3, 4], b"x");
        assert_eq!(edits.finish().as_ref(), b"abc");
    }
}
