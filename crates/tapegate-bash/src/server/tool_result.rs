//! Results of tools.

use serde_json::{Value, json};

/// The result of a call that did its work. The text has the same facts as the structure, because
/// some clients show only one of them.
pub(super) fn success(structured: Value) -> Value {
    let text = structured.to_string();
    json!({
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
        "isError": false,
    })
}

/// The result of a call that could not do its work.
pub(super) fn failure(message: &str) -> Value {
    json!({"content": [{"type": "text", "text": message}], "isError": true})
}
