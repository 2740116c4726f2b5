//! JSON-RPC errors that Tapegate gives itself, in place of the other side.

use crate::json;

/// The `data` of our errors, unless there is more to say.
pub const OWN_DATA: &str = "{\"by\":\"tapegate\"}";

/// The `data` of an error of ours with further members, whose values are JSON text.
pub fn own_data(members: &[(&str, &[u8])]) -> String {
    let mut out = OWN_DATA.trim_end_matches('}').as_bytes().to_vec();
    for (key, value) in members {
        out.push(b',');
        json::write_str(&mut out, key);
        out.push(b':');
        out.extend_from_slice(value);
    }
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

/// The text of our error reply to the request with the raw id text `id`. It has no line ending.
pub fn own_error(id: &[u8], code: i32, message: &str) -> Vec<u8> {
    error_reply(id, code, message, OWN_DATA)
}

/// The same with other `data`, which must be JSON text.
pub fn error_reply(id: &[u8], code: i32, message: &str, data: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(96 + id.len() + message.len() + data.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.extend_from_slice(format!(",\"error\":{{\"code\":{code},\"message\":").as_bytes());
    json::write_str(&mut out, message);
    out.extend_from_slice(b",\"data\":");
    out.extend_from_slice(data.as_bytes());
    out.extend_from_slice(b"}}");
    out
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
