//! The texts of JSON-RPC messages that Tapegate writes itself. They have no line ending.

use crate::json::JsonObject;

/// A request with the raw id text `id`; `params` must be JSON text.
pub fn request_text(id: &[u8], method: &str, params: Option<&[u8]>) -> Vec<u8> {
    headed(Some(id)).text("method", method).raw_opt("params", params).finish()
}

/// A notification; `params` must be JSON text.
pub fn notification_text(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    headed(None).text("method", method).raw_opt("params", params).finish()
}

/// The answer to the request with the raw id text `id`; `result` must be JSON text.
pub fn result_text(id: &[u8], result: &[u8]) -> Vec<u8> {
    headed(Some(id)).raw("result", result).finish()
}

/// An error in answer to the request with the raw id text `id`; `error` must be JSON text.
pub(crate) fn error_text(id: &[u8], error: &[u8]) -> Vec<u8> {
    headed(Some(id)).raw("error", error).finish()
}

fn headed(id: Option<&[u8]>) -> JsonObject {
    JsonObject::new().text("jsonrpc", "2.0").raw_opt("id", id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_texts_are_copied() {
        let request = request_text(b"\"\\u0061\"", "m", Some(b"{ }"));
        assert_eq!(request, br#"{"jsonrpc":"2.0","id":"\u0061","method":"m","params":{ }}"#);
        assert_eq!(notification_text("m\"", None), br#"{"jsonrpc":"2.0","method":"m\""}"#);
        assert_eq!(result_text(b"1", b"null"), br#"{"jsonrpc":"2.0","id":1,"result":null}"#);
    }
}
