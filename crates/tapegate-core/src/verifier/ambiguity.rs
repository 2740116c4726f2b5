//! Whether all readers interpret a message in the same way.
//!
//! Our reading of a message decides whether it may be sent; the server's reading decides what
//! happens. If a member is repeated, some readers use the first and some the last, and some ignore
//! case. A crafted tape could therefore ask for a list and call a tool with the same bytes.

use std::collections::HashSet;

use crate::json::{JsonFault, members};

/// The members that determine what a message is.
const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Whether readers may disagree about what a message from the client asks for.
pub(super) fn is_ambiguous(text: &[u8], params: Option<&[u8]>) -> bool {
    // A text that cannot be read counts as ambiguous: nothing is sent in doubt.
    has_ambiguous_keys(text, &KNOWN).unwrap_or(true)
        || params.is_some_and(|params| has_ambiguous_keys(params, &[]).unwrap_or(true))
}

/// Whether an object has a repeated key, ignoring case, or another spelling of a `known` one.
fn has_ambiguous_keys(text: &[u8], known: &[&str]) -> Result<bool, JsonFault> {
    let mut seen = HashSet::new();
    for member in members(text) {
        let key = member?.0.decode();
        // Fold both ways, since some letters share a capital with another letter.
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
        is_ambiguous(text.as_bytes(), frame.envelope().unwrap().params)
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
