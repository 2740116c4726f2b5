//! Decides whether a gated listener accepts an HTTP request, by its head and body alone.
//!
//! The gate reads a body as one UTF-8 JSON text at an MCP endpoint. A server may read the same
//! bytes differently: in the charset named by `Content-Type`, at a path that its router normalizes,
//! or with the method named by an override header. Ambiguous requests are rejected here, before
//! their messages are evaluated.
//!
//! Everything here is pure, so that it can be tested and fuzzed without I/O.

mod content_type;
mod fields;
mod query;
mod reply;
mod target;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Uri};

use content_type::ContentType;

pub use query::check_own_query;
pub(super) use query::without_values;
pub use reply::{ReplyKind, read_reply};
pub use target::{LoginStep, RequestRoute};

/// The methods that an MCP endpoint accepts.
const ENDPOINT_METHODS: &str = "GET, HEAD, POST, DELETE, OPTIONS";
/// The JSON-RPC code for an invalid request.
const CODE_INVALID: i32 = -32600;
/// How much of a header or path is quoted in a reason.
const SHOWN_BYTES_MAX: usize = 80;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRejection {
    /// The HTTP status.
    pub status: u16,
    /// The code of the JSON-RPC error.
    pub code: i32,
    /// What is wrong and what to send instead.
    pub reason: String,
    /// The allowed methods, if another one was used.
    pub allow: Option<&'static str>,
}

impl RequestRejection {
    /// A rejection as an invalid request.
    pub(super) fn new(status: u16, reason: impl Into<String>) -> Self {
        Self { status, code: CODE_INVALID, reason: reason.into(), allow: None }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    pub method: &'a Method,
    /// The request target as received.
    pub target: &'a Uri,
    /// Every header line.
    pub headers: &'a HeaderMap,
    /// What the target leads to.
    pub route: RequestRoute,
    /// Whether there is a body.
    pub has_body: bool,
}

/// Checks the head of a request: its target, its method, and how its body is to be read.
pub fn check_head(head: &RequestHead<'_>) -> Result<(), RequestRejection> {
    if head.route == RequestRoute::Unknown {
        let path = printable_text(head.target.path().as_bytes());
        let reason =
            format!("`{path}` is not an endpoint of this listener; send MCP messages to `/mcp`");
        return Err(RequestRejection::new(404, reason));
    }
    check_method(head)?;
    query::check_query(head.target.query().unwrap_or_default())?;
    fields::check(head.headers)?;
    check_media_type(head)
}

/// Checks a decompressed body that is sent to a login step: it must not be a message.
pub fn check_login_body(step: LoginStep, body: &[u8]) -> Result<(), RequestRejection> {
    let fits = match step {
        LoginStep::Authorize => body.is_empty(),
        LoginStep::Form => query::is_login_form(body),
        LoginStep::Registration => target::is_registration(body),
    };
    if fits {
        return Ok(());
    }
    Err(RequestRejection::new(400, "the body is not valid for this step of the login"))
}

fn check_method(head: &RequestHead<'_>) -> Result<(), RequestRejection> {
    let (allowed, posts) = match head.route {
        RequestRoute::Endpoint => (ENDPOINT_METHODS, true),
        RequestRoute::Metadata | RequestRoute::Login(LoginStep::Authorize) => {
            ("GET, HEAD, OPTIONS", false)
        }
        RequestRoute::Login(_) | RequestRoute::Unknown => ("POST, OPTIONS", true),
    };
    let method = head.method.as_str();
    if !allowed.split(", ").any(|allowed| allowed == method) {
        let reason = format!(
            "method {} is not allowed here; use {allowed}",
            printable_text(method.as_bytes())
        );
        return Err(RequestRejection {
            allow: Some(allowed),
            ..RequestRejection::new(405, reason)
        });
    }
    // Some servers read the body of any method.
    if head.has_body && !(posts && *head.method == Method::POST) {
        let reason = format!("a {method} request must not have a body; send messages with POST");
        return Err(RequestRejection::new(400, reason));
    }
    Ok(())
}

/// Checks that every `Content-Type` is UTF-8 without parameters other than `charset`, since some
/// servers search the whole line for a media type. The body of a POST must be JSON, or a form where
/// a login step takes one.
fn check_media_type(head: &RequestHead<'_>) -> Result<(), RequestRejection> {
    let wanted = match head.route {
        RequestRoute::Login(LoginStep::Form) => "application/x-www-form-urlencoded",
        _ => "application/json",
    };
    let reject = |value: &[u8]| {
        let reason = format!(
            "Content-Type `{}` is not accepted; send `Content-Type: {wanted}` once, in UTF-8",
            printable_text(value)
        );
        Err(RequestRejection::new(415, reason))
    };
    let mut media_type = None;
    for value in head.headers.get_all(CONTENT_TYPE) {
        match ContentType::parse(value.as_bytes()) {
            Some(parsed) if parsed.is_utf8() && !parsed.has_others => {
                media_type = Some(parsed.essence)
            }
            _ => return reject(value.as_bytes()),
        }
    }
    let is_wanted = media_type.as_deref() == Some(wanted);
    if *head.method == Method::POST && head.has_body && !is_wanted {
        return reject(head.headers.get(CONTENT_TYPE).map_or(b"", |value| value.as_bytes()));
    }
    match head.headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase()) {
        None => Ok(()),
        Some(coding) if [&b"identity"[..], b"gzip", b"x-gzip", b"deflate"].contains(&&*coding) => {
            Ok(())
        }
        Some(coding) => {
            let coding = printable_text(&coding);
            let reason =
                format!("Content-Encoding `{coding}` is not accepted; send the body uncompressed");
            Err(RequestRejection::new(415, reason))
        }
    }
}

/// Escapes and shortens a header value or path for a reason.
fn printable_text(bytes: &[u8]) -> String {
    let end = bytes.len().min(SHOWN_BYTES_MAX);
    let more = if end < bytes.len() { "…" } else { "" };
    format!("{}{more}", bytes[..end].escape_ascii())
}

#[cfg(test)]
mod tests;
