//! Members that the sessionless revision requires in every result.

use tapegate_core::json::{self, Cursor, JsonFault, JsonKind};

/// The `_meta` key for the protocol revision of a request.
pub(super) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` key for the client's capabilities.
pub(super) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key for the lowest log level that the client wants.
pub(super) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The `_meta` key that ties a notification to the request that subscribed to it.
pub(super) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Appends a result, adding the members it must have but lacks: its type, the server info and, if
/// it is cacheable, its lifetime. A result that is not an object is copied unchanged.
pub(super) fn write_stateless_result(
    result: &[u8],
    cacheable: bool,
    info: &[u8],
    out: &mut Vec<u8>,
) {
    let start = out.len();
    if add(result, cacheable, info, out).is_err() {
        out.truncate(start);
        out.extend_from_slice(result);
    }
}

fn add(result: &[u8], cacheable: bool, info: &[u8], out: &mut Vec<u8>) -> Result<(), JsonFault> {
    let mut cursor = Cursor::new(result)?;
    if cursor.kind()? != JsonKind::Object {
        out.extend_from_slice(result);
        return Ok(());
    }
    cursor.open()?;
    let (mut typed, mut ttl, mut scope, mut meta, mut first) = (false, false, false, false, true);
    // Looked up before writing, because the type goes first.
    let typed_already = json::member(result, "resultType").is_some();
    out.push(b'{');
    if !typed_already {
        typed = true;
        out.extend_from_slice(b"\"resultType\":\"complete\"");
    }
    let mut any = typed;
    while let Some(key) = cursor.key(&mut first)? {
        let value = cursor.value()?;
        if any {
            out.push(b',');
        }
        any = true;
        out.push(b'"');
        out.extend_from_slice(key.raw);
        out.extend_from_slice(b"\":");
        ttl |= key.is("ttlMs");
        scope |= key.is("cacheScope");
        if key.is("_meta") && value.starts_with(b"{") && json::member(value, SERVER_INFO).is_none()
        {
            meta = true;
            write_member(value, SERVER_INFO, info, out);
        } else {
            meta |= key.is("_meta");
            out.extend_from_slice(value);
        }
    }
    if cacheable && !ttl {
        out.extend_from_slice(b",\"ttlMs\":0");
    }
    if cacheable && !scope {
        out.extend_from_slice(b",\"cacheScope\":\"private\"");
    }
    if !meta {
        out.extend_from_slice(b",\"_meta\":");
        write_member(b"{}", SERVER_INFO, info, out);
    }
    out.push(b'}');
    Ok(())
}

/// Returns the object with one more member in its `_meta`.
pub(super) fn with_meta(object: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + key.len() + value.len() + 16);
    let meta = json::member(object, "_meta").filter(|meta| meta.starts_with(b"{"));
    match (meta, object) {
        (Some(meta), _) => {
            let mut new = Vec::new();
            write_member(meta, key, value, &mut new);
            let mut edits = json::JsonEdits::new(object);
            edits.replace(meta, &new);
            out.extend_from_slice(&edits.finish());
        }
        (None, [b'{', inner @ ..]) => {
            out.extend_from_slice(b"{\"_meta\":");
            write_member(b"{}", key, value, &mut out);
            if inner.trim_ascii_start().first() != Some(&b'}') {
                out.push(b',');
            }
            out.extend_from_slice(inner);
        }
        (None, object) => out.extend_from_slice(object),
    }
    out
}

/// Appends an object with one more member at its start.
pub(super) fn write_member(object: &[u8], key: &str, value: &[u8], out: &mut Vec<u8>) {
    let inner = object.get(1..).unwrap_or(b"}");
    out.extend_from_slice(format!("{{\"{key}\":").as_bytes());
    out.extend_from_slice(value);
    if inner.trim_ascii_start().first() != Some(&b'}') {
        out.push(b',');
    }
    out.extend_from_slice(inner);
}
