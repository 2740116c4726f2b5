//! The envelope of a message that is too large to keep, and those in a text that is not a message.
//!
//! An oversize message is drained piece by piece. To answer it, its id and method must be found
//! wherever they are (some SDKs write the id last), so a byte-wise state machine skims the pieces.
//! It remembers a bounded number of bytes and knows just enough JSON: strings and depth. It also
//! finds the ids in a text that is not JSON as a whole, such as two messages on one line.

/// The longest id, method or key that is remembered.
const KEPT_BYTES_MAX: usize = 512;
/// The maximum number of messages to look for in one text. Only a hostile text has more, and each
/// would get an answer many times its size.
const MESSAGES_MAX: usize = 1000;

/// Reads an envelope from pieces of a message in bounded memory.
#[derive(Debug, Default)]
pub struct EnvelopeSkimmer {
    depth: u32,
    string: bool,
    escape: bool,
    after_colon: bool,
    token: Vec<u8>,
    key: Vec<u8>,
    found: PartialEnvelope,
}

/// What was found in the pieces so far. Texts are raw JSON.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PartialEnvelope {
    /// The id as written.
    pub id: Option<Vec<u8>>,
    /// The method as written, with quotes; truncated if it is very long.
    pub method: Option<Vec<u8>>,
    /// Whether `result` or `error` occurs, so that the message is an answer.
    pub answer: bool,
}

impl EnvelopeSkimmer {
    /// Takes the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            self.byte(byte);
        }
    }

    /// The envelope found in the pieces.
    pub fn finish(mut self) -> PartialEnvelope {
        // The text may be cut off inside the last member.
        self.member();
        self.found
    }

    fn byte(&mut self, byte: u8) {
        if self.string {
            self.push_byte(byte);
            self.string = self.escape || byte != b'"';
            self.escape = !self.escape && byte == b'\\';
            return;
        }
        match byte {
            b'"' => {
                self.string = true;
                self.push_byte(byte);
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
            _ => self.push_byte(byte),
        }
    }

    fn push_byte(&mut self, byte: u8) {
        // Nested values are not needed, and may be megabytes.
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
            // A truncated method still shows that it is a request.
            b"\"method\"" if usable || value.len() == KEPT_BYTES_MAX => {
                self.found.method = Some(value);
            }
            b"\"result\"" | b"\"error\"" => self.found.answer = true,
            _ => {}
        }
    }
}

/// The envelopes of the messages in a text that is not itself a message: concatenated, in an
/// unclosed batch, or next to something else.
pub fn scan_messages(text: &[u8]) -> Vec<PartialEnvelope> {
    let skimmed = |object: &&[u8]| {
        let mut skim = EnvelopeSkimmer::default();
        skim.feed(object);
        skim.finish()
    };
    find_objects(text).iter().map(skimmed).collect()
}

/// The objects at the top level of a text or directly in a top-level array. The last one may be
/// incomplete.
fn find_objects(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0usize, None);
    // The depth at which objects count: 1 inside an array.
    let mut outer = 0;
    let (mut string, mut escape) = (false, false);
    for (at, &byte) in text.iter().enumerate() {
        if string {
            string = escape || byte != b'"';
            escape = !escape && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => string = true,
            b'{' | b'[' => {
                match (byte, depth) {
                    (b'[', 0) => outer = 1,
                    (b'{', depth) if depth == outer => start = Some(at),
                    _ => {}
                }
                depth += 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth <= outer {
                    found.extend(start.take().map(|start| &text[start..=at]));
                }
                // After the array, objects count at the top level again.
                outer = outer.min(depth);
            }
            _ => {}
        }
        if found.len() == MESSAGES_MAX {
            return found;
        }
    }
    // A message that was cut off may still be taken for one, so it is answered too.
    found.extend(start.map(|start| &text[start..]));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skim(text: &str, step: usize) -> PartialEnvelope {
        let mut skim = EnvelopeSkimmer::default();
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
    fn every_message_of_a_text_is_found_that_is_none_as_a_whole() {
        let ids = |text: &str| -> Vec<String> {
            let found = scan_messages(text.as_bytes()).into_iter();
            found.filter_map(|one| one.id).map(|id| String::from_utf8(id).unwrap()).collect()
        };
        for (text, expected) in [
            (r#"{"id":1,"method":"a"}{"id":"b","method":"c"}"#, &["1", "\"b\""][..]),
            (r#"{"id":1,"params":{"id":9}} junk {"id":2,"x":[{"id":8}]} ]"#, &["1", "2"]),
            ("{\"id\":1}\0{\"id\":2}", &["1", "2"]),
            (r#"[{"id":1},{"id":2}] x {"id":3}"#, &["1", "2", "3"]),
            (r#"[{"id":1},[{"id":9}],{"id":2,"method":"cut"#, &["1", "2"]),
            (r#"{"id":1,"s":"}{\"id\":9}"}}{"id":2}"#, &["1", "2"]),
            (r#""{\"id\":9}" {"id":1}"#, &["1"]),
            (r#"{"id":1"#, &["1"]),
            ("]}", &[]),
            ("", &[]),
        ] {
            assert_eq!(ids(text), expected, "{text}");
        }
        assert_eq!(ids(&r#"{"id":1}"#.repeat(MESSAGES_MAX + 5)).len(), MESSAGES_MAX);
    }

    #[test]
    fn an_object_for_an_id_is_no_id() {
        assert_eq!(skim(r#"{"id":{"a":1},"method":"x"}"#, 4).id, None);
    }
}
