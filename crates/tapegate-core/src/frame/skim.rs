//! The envelope of a message that is too large to keep.
//!
//! An oversize message is drained piece by piece. To answer it, its id and method must be found
//! wherever they stand (some SDKs write the id last), so the pieces are skimmed by a byte machine
//! that remembers a bounded number of bytes and knows just enough JSON: strings, and depth.

/// The longest id, method or key that is remembered.
const KEPT_BYTES_MAX: usize = 512;

/// Reads an envelope from pieces of a message in bounded memory.
#[derive(Debug, Default)]
pub struct Skim {
    depth: u32,
    string: bool,
    escape: bool,
    after_colon: bool,
    token: Vec<u8>,
    key: Vec<u8>,
    found: Skimmed,
}

/// What was found in the pieces so far. Texts are raw JSON.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Skimmed {
    /// The id as written.
    pub id: Option<Vec<u8>>,
    /// The method as written, quotes included; of a very long one, the start.
    pub method: Option<Vec<u8>>,
    /// Whether `result` or `error` occurs: the message is an answer.
    pub answer: bool,
}

impl Skim {
    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            self.byte(byte);
        }
    }

    /// What the message says about itself.
    pub fn finish(mut self) -> Skimmed {
        self.member();
        self.found
    }

    fn byte(&mut self, byte: u8) {
        if self.string {
            self.keep(byte);
            self.string = self.escape || byte != b'"';
            self.escape = !self.escape && byte == b'\\';
            return;
        }
        match byte {
            b'"' => {
                self.string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.member();
                }
            }
            b':' if self.depth == 1 => {
                self.key = std::mem::take(&mut self.token);
                self.after_colon = true;
            }
            b',' if self.depth == 1 => self.member(),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < KEPT_BYTES_MAX {
            self.token.push(byte);
        }
    }

    fn member(&mut self) {
        let value = std::mem::take(&mut self.token);
        let key = std::mem::take(&mut self.key);
        if !std::mem::take(&mut self.after_colon) {
            return;
        }
        let usable = value.len() < KEPT_BYTES_MAX && crate::json::check(&value).is_ok();
        match key.as_slice() {
            b"\"id\"" if usable => self.found.id = Some(value),
            b"\"method\"" if usable || value.len() == KEPT_BYTES_MAX => {
                self.found.method = Some(value);
            }
            b"\"result\"" | b"\"error\"" => self.found.answer = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skim(text: &str, step: usize) -> Skimmed {
        let mut skim = Skim::default();
        text.as_bytes().chunks(step).for_each(|piece| skim.feed(piece));
        skim.finish()
    }

    #[test]
    fn the_id_is_found_first_or_last_in_any_chunking() {
        let first = r#"{"jsonrpc":"2.0","id":"a,\"}","method":"tools/call","params":{"id":9,"x":[{"method":"no"}]}}"#;
        let last = r#"{"method":"tools/call","params":{"id":9,"s":"}]\\"},"jsonrpc":"2.0","id": "a,\"}" }"#;
        for step in [1, 2, 7, 1000] {
            for text in [first, last] {
                let found = skim(text, step);
                assert_eq!(found.id.as_deref(), Some(&br#""a,\"}""#[..]));
                assert_eq!(found.method.as_deref(), Some(&br#""tools/call""#[..]));
                assert!(!found.answer);
            }
        }
    }

    #[test]
    fn an_answer_is_told_from_a_request() {
        let found = skim(r#"{"result":{"content":[]},"id":18446744073709551616}"#, 3);
        assert_eq!(found.id.as_deref(), Some(&b"18446744073709551616"[..]));
        assert!(found.answer && found.method.is_none());
    }

    #[test]
    fn a_request_is_one_however_long_its_method_is() {
        let text = format!(r#"{{"id":1,"method":"{}"}}"#, "m".repeat(KEPT_BYTES_MAX));
        let found = skim(&text, 100);
        assert!(found.id.as_deref() == Some(b"1") && found.method.is_some());
    }

    #[test]
    fn an_object_for_an_id_is_no_id() {
        assert_eq!(skim(r#"{"id":{"a":1},"method":"x"}"#, 4).id, None);
    }
}
