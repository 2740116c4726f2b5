//! Checks headers that change how a request is read.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderName, HeaderValue, TRANSFER_ENCODING,
    UPGRADE,
};

use super::{RequestRejection, printable_text};

/// Headers that make a server use a method or path other than that of the request line.
const OVERRIDES: [&str; 5] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
];
/// Headers that determine how a body is read or whose request it is. `Content-*` and `Mcp-*` do
/// too.
const DECISIVE: [&str; 6] =
    ["transfer-encoding", "host", "expect", "authorization", "last-event-id", "connection"];
/// The JSON-RPC code for headers that do not match the message.
const CODE_HEADER_MISMATCH: i32 = -32020;

/// Checks the header lines of a request.
pub(super) fn check(headers: &HeaderMap) -> Result<(), RequestRejection> {
    for name in headers.keys() {
        check_name(name.as_str())?;
        check_lines(headers, name)?;
    }
    check_connection(headers)?;
    let other = |name: HeaderName, taken: &str| {
        headers.get(name).filter(|value| !value.as_bytes().eq_ignore_ascii_case(taken.as_bytes()))
    };
    if let Some(value) = other(TRANSFER_ENCODING, "chunked") {
        let coding = printable_text(value.as_bytes());
        let reason =
            format!("Transfer-Encoding `{coding}` is not accepted; send `chunked` or none");
        return Err(RequestRejection::new(400, reason));
    }
    if let Some(value) = other(EXPECT, "100-continue") {
        let reason =
            format!("the expectation `{}` cannot be met", printable_text(value.as_bytes()));
        return Err(RequestRejection::new(417, reason));
    }
    // Clients offer HTTP/2 this way and continue without it. Other protocols would bypass the gate.
    if let Some(value) = other(UPGRADE, "h2c") {
        let reason =
            format!("an upgrade to `{}` is not possible here", printable_text(value.as_bytes()));
        return Err(RequestRejection::new(400, reason));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), RequestRejection> {
    // Gateways such as WSGI do not distinguish underscores from hyphens.
    let folded = match name.contains('_') {
        true => Cow::Owned(name.replace('_', "-")),
        false => Cow::Borrowed(name),
    };
    if OVERRIDES.contains(&&*folded) {
        let reason =
            format!("the header `{name}` is not accepted: it overrides the method or path");
        return Err(RequestRejection::new(400, reason));
    }
    if folded != name && is_decisive(&folded) {
        let reason = format!("the header `{name}` is not accepted; spell it `{folded}`");
        return Err(RequestRejection::new(400, reason));
    }
    Ok(())
}

/// Decisive headers must occur only once and be plain ASCII.
fn check_lines(headers: &HeaderMap, name: &HeaderName) -> Result<(), RequestRejection> {
    if !is_decisive(name.as_str()) || *name == CONNECTION {
        return Ok(());
    }
    let mirrors = is_mirror(name.as_str());
    if headers.get_all(name).iter().count() > 1 {
        let status = if [CONTENT_TYPE, CONTENT_ENCODING].contains(name) { 415 } else { 400 };
        let reason = format!("the header `{name}` appears more than once; send it once");
        let rejection = RequestRejection::new(status, reason);
        return Err(match mirrors {
            true => RequestRejection { code: CODE_HEADER_MISMATCH, ..rejection },
            false => rejection,
        });
    }
    let is_plain = |value: &HeaderValue| value.to_str().is_ok();
    if !headers.get(name).is_none_or(is_plain) {
        return Err(RequestRejection::new(400, format!("the header `{name}` is not plain ASCII")));
    }
    Ok(())
}

/// `Connection` lists headers that are not forwarded. It must not list a decisive one.
fn check_connection(headers: &HeaderMap) -> Result<(), RequestRejection> {
    for value in headers.get_all(CONNECTION) {
        let Ok(text) = value.to_str() else {
            return Err(RequestRejection::new(400, "the header `connection` is not plain ASCII"));
        };
        for name in text.split(',').map(|name| name.trim().to_ascii_lowercase()) {
            let sent_on = ["accept", "cookie", "origin"].contains(&name.as_str());
            if sent_on || is_decisive(&name.replace('_', "-")) {
                let reason = format!(
                    "the header `connection` must not name `{}`",
                    printable_text(name.as_bytes())
                );
                return Err(RequestRejection::new(400, reason));
            }
        }
    }
    Ok(())
}

fn is_decisive(name: &str) -> bool {
    DECISIVE.contains(&name) || name.starts_with("mcp-") || name.starts_with("content-")
}

/// Whether a header mirrors a part of the message.
fn is_mirror(name: &str) -> bool {
    name.starts_with("mcp-") && name != "mcp-session-id"
}
