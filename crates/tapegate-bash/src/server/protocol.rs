//! The messages of the protocol that have nothing to do with commands.

use serde_json::{Value, json};
use tapegate_core::lines::OversizeMessage;

use crate::recording::entry::VERSION;

/// The revisions with `initialize`, newest first.
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revision without it.
const MODERN: &str = "2026-07-28";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
const INSTRUCTIONS: &str = "Runs shell commands and records them. Each command gets a fresh shell \
    without standard input; pass working_directory instead of `cd`.";

/// Why a request gets an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestError {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl RequestError {
    fn new(code: i32, message: &str) -> Self {
        Self { code, message: message.to_owned(), data: None }
    }

    /// The text is not JSON.
    pub(super) fn parse(message: &str) -> Self {
        Self::new(-32700, message)
    }

    /// The message is not a request that can be served.
    pub(super) fn invalid(message: &str) -> Self {
        Self::new(-32600, message)
    }

    /// There is no such method.
    pub(super) fn method(method: &str) -> Self {
        Self::new(-32601, &format!("Method not found: {method}"))
    }

    /// The params are wrong.
    pub(super) fn params(message: &str) -> Self {
        Self::new(-32602, message)
    }

    fn version(requested: &str) -> Self {
        let data = json!({"supported": [MODERN], "requested": requested});
        Self { data: Some(data), ..Self::new(-32022, "Unsupported protocol version") }
    }
}

/// A response, as one line.
pub(super) fn response(id: &[u8], outcome: Result<Value, RequestError>) -> Vec<u8> {
    let (key, value) = match outcome {
        Ok(result) => ("result", result),
        Err(RequestError { code, message, data }) => {
            let mut error = json!({"code": code, "message": message});
            data.into_iter().for_each(|data| error["data"] = data);
            ("error", error)
        }
    };
    // The id goes back exactly as it was written.
    [b"{\"jsonrpc\":\"2.0\",\"id\":", id, format!(",\"{key}\":{value}}}").as_bytes()].concat()
}

fn server_info() -> Value {
    json!({"name": "tapegate-bash", "title": "Tapegate bash", "version": VERSION})
}

/// The result of `initialize`.
pub(super) fn initialize_result(params: &Value) -> Result<Value, RequestError> {
    let requested = params.get("protocolVersion").and_then(Value::as_str);
    let requested =
        requested.ok_or_else(|| RequestError::params("`protocolVersion` is missing"))?;
    // A version that is not known here gets the newest one that is; the client then decides.
    let version = LEGACY.iter().find(|known| **known == requested).unwrap_or(&LEGACY[0]);
    Ok(json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }))
}

/// The result of `server/discover`.
pub(super) fn discover_result() -> Value {
    json!({
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "instructions": INSTRUCTIONS,
    })
}

/// Checks the metadata that each request of 2026-07-28 carries.
pub(super) fn check_modern(params: &Value) -> Result<(), RequestError> {
    let meta = params.get("_meta");
    let version = meta.and_then(|meta| meta.get(VERSION_KEY)).and_then(Value::as_str);
    match version {
        None => Err(RequestError::params(&format!("`{VERSION_KEY}` is not a string"))),
        Some(version) if version != MODERN => Err(RequestError::version(version)),
        Some(_) if meta.is_none_or(|meta| meta.get(CAPABILITIES_KEY).is_none()) => {
            Err(RequestError::params(&format!("`{CAPABILITIES_KEY}` is missing in `_meta`")))
        }
        Some(_) => Ok(()),
    }
}

/// A result with what 2026-07-28 adds.
pub(super) fn modern_result(method: &str, result: Value) -> Value {
    let Value::Object(members) = result else { return result };
    let mut modern = json!({"resultType": "complete"});
    for (name, value) in members {
        modern[name] = value;
    }
    if matches!(method, "tools/list" | "server/discover") {
        modern["ttlMs"] = 0.into();
        modern["cacheScope"] = "private".into();
    }
    modern["_meta"][SERVER_KEY] = server_info();
    modern
}

/// The id of a request that was too long to be kept. A reply must not be answered.
pub(super) fn id_of_oversize(message: &OversizeMessage) -> Option<Vec<u8>> {
    let envelope = &message.envelope;
    let is_request = !envelope.answer && envelope.method.is_some();
    is_request.then(|| envelope.id.clone().unwrap_or_else(|| b"null".to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_goes_back_as_it_was_written() {
        for id in ["1", "1.0", "\"a\\u0062\"", "123456789012345678901234567890"] {
            let text = String::from_utf8(response(id.as_bytes(), Ok(json!({})))).unwrap();
            assert_eq!(text, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"));
        }
    }

    #[test]
    fn versions_are_negotiated_in_both_eras() {
        for (requested, expected) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("1999-01-01", "2025-11-25"),
        ] {
            let result = initialize_result(&json!({"protocolVersion": requested})).unwrap();
            assert_eq!(result["protocolVersion"], expected);
        }
        assert!(initialize_result(&json!({})).is_err());
        let meta = |version: &str| json!({"_meta": {VERSION_KEY: version, CAPABILITIES_KEY: {}}});
        assert_eq!(check_modern(&meta(MODERN)), Ok(()));
        let error = check_modern(&meta("2027-01-01")).unwrap_err();
        assert_eq!(
            (error.code, error.data.unwrap()["requested"].as_str()),
            (-32022, Some("2027-01-01"))
        );
        assert!(check_modern(&json!({"_meta": {VERSION_KEY: MODERN}})).is_err());
        let result = modern_result("tools/list", json!({"tools": [], "_meta": {"x": 1}}));
        assert_eq!(result["resultType"], "complete");
        assert_eq!(
            (&result["_meta"]["x"], &result["_meta"][SERVER_KEY]["name"]),
            (&json!(1), &json!("tapegate-bash"))
        );
    }
}
