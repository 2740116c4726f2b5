//! Prints JSON objects as one document, or one per line.

use std::io::{self, Write};

/// Takes one object per line, and prints them as a list or unchanged.
pub(crate) struct JsonList<'o> {
    out: &'o mut dyn Write,
    /// Whether the output is one document.
    is_document: bool,
    /// Whether anything has been printed.
    begun: bool,
    /// Whether the next byte starts an object.
    at_start: bool,
}

impl<'o> JsonList<'o> {
    /// One document: a list that may be empty.
    pub(crate) fn document(out: &'o mut dyn Write) -> Self {
        Self { out, is_document: true, begun: false, at_start: true }
    }

    /// One object per line, or any other text unchanged.
    pub(crate) fn lines(out: &'o mut dyn Write) -> Self {
        Self { out, is_document: false, begun: false, at_start: true }
    }

    /// Ends the document.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.is_document {
            self.out.write_all(if self.begun { b"\n]\n" } else { b"[]\n" })?;
        }
        self.out.flush()
    }
}

impl Write for JsonList<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_document {
            return self.out.write(bytes);
        }
        // A write may end anywhere in an object, so only line ends separate objects.
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            if self.at_start && !text.is_empty() {
                self.out.write_all(if self.begun { b",\n" } else { b"[\n" })?;
                self.begun = true;
            }
            self.out.write_all(text)?;
            self.at_start = line.ends_with(b"\n");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(pieces: &[&str]) -> String {
        let mut out = Vec::new();
        let mut list = JsonList::document(&mut out);
        pieces.iter().for_each(|piece| list.write_all(piece.as_bytes()).unwrap());
        list.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_become_one_document_however_they_are_written() {
        assert_eq!(printed(&[]), "[]\n");
        assert_eq!(printed(&["{}\n"]), "[\n{}\n]\n");
        assert_eq!(
            printed(&["{\"a\"", ":1}", "\n{}\n", "{}", "\n"]),
            "[\n{\"a\":1},\n{},\n{}\n]\n"
        );
    }
}
