//! Members that the sessionless revision requires in every result.

use tapegate_core::json::{self, JsonFault, JsonObject};

/// The `_meta` key for the protocol revision of a request.
pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` key for the client's capabilities.
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key for the lowest log level that the client wants.
pub(super) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `_meta` key that ties a notification to the request that subscribed to it.
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A result with the members it must have but lacks: its type, the server info and, if it is
/// cacheable, its lifetime. A result that is not an object stays as it is.
pub(super) fn complete_result(result: &[u8], cacheable: bool, info: &[u8]) -> Vec<u8> {
    match result.trim_ascii_start().starts_with(b"{") {
        true => add(result, cacheable, info).unwrap_or_else(|_| result.to_vec()),
        false => result.to_vec(),
    }
}

fn add(result: &[u8], cacheable: bool, info: &[u8]) -> Result<Vec<u8>, JsonFault> {
    let (mut ttl, mut scope, mut meta) = (false, false, false);
    // Looked up before writing, because the type goes first.
    let lacks_type = json::member(result, "resultType").is_none();
    let mut out = JsonObject::new().raw_opt("resultType", lacks_type.then_some("\"complete\""));
    for member in json::members(result) {
        let (key, value) = member?;
        ttl |= key.is("ttlMs");
        scope |= key.is("cacheScope");
        meta |= key.is("_meta");
        let lacks_info = key.is("_meta")
            && value.starts_with(b"{")
            && json::member(value, SERVER_INFO).is_none();
        out = match lacks_info {
            true => out.copy(key, &with_first_member(value, SERVER_INFO, info)),
            false => out.copy(key, value),
        };
    }
    let own_meta = || with_first_member(b"{}", SERVER_INFO, info);
    let out = out
        .raw_opt("ttlMs", (cacheable && !ttl).then_some("0"))
        .raw_opt("cacheScope", (cacheable && !scope).then_some("\"private\""))
        .raw_opt("_meta", (!meta).then(own_meta));
    Ok(out.finish())
}

/// Returns the object with one more member in its `_meta`.
pub(super) fn with_meta(object: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let meta = json::member(object, "_meta").filter(|meta| meta.starts_with(b"{"));
    match (meta, object) {
        (Some(meta), _) => {
            let new = with_first_member(meta, key, value);
            let mut edits = json::JsonEdits::new(object);
            edits.replace(meta, &new);
            edits.finish().into_owned()
        }
        (None, [b'{', ..]) => {
            with_first_member(object, "_meta", &JsonObject::new().raw(key, value).finish())
        }
        (None, object) => object.to_vec(),
    }
}

/// An object with one more member at its start.
pub(super) fn with_first_member(object: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let inner = object.get(1..).unwrap_or(b"}");
    let mut out = JsonObject::new().raw(key, value).finish();
    out.pop();
    if inner.trim_ascii_start().first() != Some(&b'}') {
        out.push(b',');
    }
    out.extend_from_slice(inner);
    out
}
