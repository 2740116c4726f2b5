//! A quick check whether a message is a notification.

use tapegate_core::json::{Cursor, JsonKind};

/// Whether a message is an MCP notification. Parsing stops at the first conclusive member, which is
/// nearly always at the start, because answers may be large.
pub(super) fn is_notification(line: &[u8]) -> bool {
    // How most servers begin an answer.
    let answers = [&b"{\"jsonrpc\":\"2.0\",\"id\":"[..], b"{\"result\":"];
    !answers.iter().any(|start| line.starts_with(start)) && find(line).unwrap_or(false)
}

fn find(line: &[u8]) -> Option<bool> {
    let mut cursor = Cursor::new(line).ok()?;
    if cursor.kind().ok()? != JsonKind::Object {
        return None;
    }
    cursor.open().ok()?;
    while let Some(key) = cursor.next_key().ok()? {
        match &*key.bytes() {
            b"id" | b"result" | b"error" => return Some(false),
            b"method" => return Some(cursor.value().ok()?.starts_with(b"\"notifications/")),
            _ => cursor.value().ok()?,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_told_from_requests_and_answers() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":1}}"#,
            r#"{"params":{"id":1},"method":"notifications/message"}"#,
            r#" {"method":"notifications/tools/list_changed"}"#,
        ] {
            assert!(is_notification(line.as_bytes()), "{line}");
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
            r#"{"method":"roots/list","jsonrpc":"2.0","id":1}"#,
            r#"{"result":{"method":"notifications/x"},"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","error":{},"id":null}"#,
            r#"[{"method":"notifications/x"}]"#,
            "not JSON",
            "",
            "{}",
        ] {
            assert!(!is_notification(line.as_bytes()), "{line}");
        }
    }
}
