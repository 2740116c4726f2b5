//! Whether all readers read a message alike.
//!
//! What may be sent is decided by how we read a message; what happens, by how the server does. Of
//! a member that occurs twice some take the first and some the last, and some do not look at case.
//! Whoever makes such a tape can have a list asked for and a tool called by the same bytes.

use std::collections::HashSet;

use crate::json::{Cursor, Fault, Kind};

/// The members that decide what a message is.
const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Whether readers may disagree on what a client's message asks for.
pub(super) fn is_doubtful(text: &[u8], params: Option<&[u8]>) -> bool {
    has_doubtful_keys(text, &KNOWN).unwrap_or(true)
        || params.is_some_and(|params| has_doubtful_keys(params, &[]).unwrap_or(true))
}

/// Whether an object has a key twice, case aside, or spells one of the `known` ones otherwise.
fn has_doubtful_keys(text: &[u8], known: &[&str]) -> Result<bool, Fault> {
    let mut cursor = Cursor::new(text)?;
    if cursor.kind()? != Kind::Object {
        return Ok(false);
    }
    let (mut seen, mut first) = (HashSet::new(), true);
    cursor.open()?;
    while let Some(key) = cursor.key(&mut first)? {
        cursor.value()?;
        let key = key.decode();
        // There and back, because some letters have a capital that is not theirs alone.
        let folded = key.to_uppercase().to_lowercase();
        let misspelt = known.contains(&folded.as_str()) && key != folded;
        if misspelt || !seen.insert(folded) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;

    fn doubtful(text: &str) -> bool {
        let frame = Frame::read(text.as_bytes());
        is_doubtful(text.as_bytes(), frame.envelope().unwrap().params)
    }

    #[test]
    fn what_every_reader_reads_alike_is_not_doubtful() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1,"X":2},"_meta":{}}}"#,
            r#"{"id":1,"method":"x","params":["a","a"]}"#,
            r#"{"i\u0064":1,"method":"x","extra":1}"#,
        ] {
            assert!(!doubtful(text), "{text}");
        }
    }

    #[test]
    fn what_readers_may_read_otherwise_is_doubtful() {
        for text in [
            r#"{"id":1,"method":"tools/call","params":{"name":"rm"},"method":"tools/list"}"#,
            r#"{"id":1,"method":"tools/list","params":{"name":"rm"},"Method":"tools/call"}"#,
            r#"{"id":1,"method":"tools/list","\u004dethod":"tools/call"}"#,
            "{\"id\":1,\"method\":\"tools/list\",\"param\u{17f}\":{}}",
            r#"{"id":1,"result":{},"METHOD":"tools/call"}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"ls","Name":"rm"}}"#,
            r#"{"id":1,"method":"tasks/cancel","params":{"taskId":"a","taskid":"b"}}"#,
        ] {
            assert!(doubtful(text), "{text}");
        }
    }
}
