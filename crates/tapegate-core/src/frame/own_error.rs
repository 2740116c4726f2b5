//! JSON-RPC errors that Tapegate gives itself, in place of the other side.

use super::own_text::error_text;
use crate::json::{self, JsonObject};

/// The `data` of our errors, unless there is more to say.
pub const OWN_DATA: &str = "{\"by\":\"tapegate\"}";

/// The `data` of an error of ours with further members, whose values are JSON text.
pub fn own_data(members: &[(&str, &[u8])]) -> String {
    let object = JsonObject::new().text("by", "tapegate");
    let object = members.iter().fold(object, |object, (key, value)| object.raw(key, value));
    String::from_utf8_lossy(&object.finish()).into_owned()
}

/// The text of our error reply to the request with the raw id text `id`. It has no line ending.
pub fn own_error(id: &[u8], code: i32, message: &str) -> Vec<u8> {
    error_reply(id, code, message, OWN_DATA)
}

/// The same with other `data`, which must be JSON text.
pub fn error_reply(id: &[u8], code: i32, message: &str, data: &str) -> Vec<u8> {
    error_text(id, &error_object(code, message, Some(data.as_bytes())))
}

/// The text of a JSON-RPC error object; `data` must be JSON text.
pub fn error_object(code: i32, message: &str, data: Option<&[u8]>) -> Vec<u8> {
    JsonObject::new().number("code", code).text("message", message).raw_opt("data", data).finish()
}

/// The message and the data of the error for a message over the limit.
pub fn oversize_error(bytes_total: u64, bytes_max: usize) -> (String, String) {
    let message = format!(
        "message of {bytes_total} bytes refused: the limit is {bytes_max} bytes (--max-message-bytes)"
    );
    let data = JsonObject::new().number("bytes", bytes_total).number("limit", bytes_max as u64);
    (message, String::from_utf8_lossy(&data.finish()).into_owned())
}

/// The data of the error for a protocol version that is not the only one supported.
pub fn unsupported_version_data(supported: &str, requested: &str) -> Vec<u8> {
    let supported = json::array([json::quoted(supported)]);
    JsonObject::new().raw("supported", supported).text("requested", requested).finish()
}

/// The `data` of an error object, if the error is one of ours.
pub fn own_error_data(error: &[u8]) -> Option<&[u8]> {
    json::member(error, "data").filter(|data| json::member(data, "by") == Some(b"\"tapegate\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_errors_are_recognised_by_their_data() {
        let data = own_data(&[("nearest", b"7"), ("mode", b"\"strict\"")]);
        assert_eq!(data, r#"{"by":"tapegate","nearest":7,"mode":"strict"}"#);
        let reply = own_error(b"1", -32000, "gone");
        let error = json::member(&reply, "error").unwrap();
        assert_eq!(own_error_data(error), Some(OWN_DATA.as_bytes()));
        assert_eq!(own_error_data(br#"{"code":1,"message":"no","data":{"by":"me"}}"#), None);
        assert_eq!(own_error_data(br#"{"code":1,"message":"no"}"#), None);
    }
}
