//! The paths that a gated listener knows.

use tapegate_core::frame::{Frame, FrameBody};
use tapegate_core::json::{self, JsonKind, JsonStr};

/// What a request's path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRoute {
    /// An MCP endpoint, which accepts messages.
    Endpoint,
    /// Read-only metadata below `/.well-known/`.
    Metadata,
    /// A step of an OAuth login at a server that is its own authorization server.
    Login(LoginStep),
    /// Any other path.
    Unknown,
}

/// A login step, at the paths that MCP's authorization specification defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginStep {
    /// `/authorize`, which a browser opens.
    Authorize,
    /// `/token` and `/revoke`, which take forms.
    Form,
    /// `/register`, which takes JSON.
    Registration,
}

impl RequestRoute {
    /// The route of a path at a server whose endpoint is `own`. Only exact spellings match: other
    /// paths that the server's router might normalize are unknown, unless the server has
    /// `announced` them.
    pub fn of(path: &str, own: &str, announced: bool) -> Self {
        match path {
            "/" | "/mcp" => Self::Endpoint,
            _ if path == own || announced => Self::Endpoint,
            "/authorize" => Self::Login(LoginStep::Authorize),
            "/token" | "/revoke" => Self::Login(LoginStep::Form),
            "/register" => Self::Login(LoginStep::Registration),
            _ if is_metadata(path) => Self::Metadata,
            _ => Self::Unknown,
        }
    }
}

/// Whether a path has a segment `.well-known` and nothing that a router could normalize.
fn is_metadata(path: &str) -> bool {
    let plain = |segment: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(plain)
    };
    let mut segments = path.strip_prefix('/').unwrap_or_default().split('/');
    let known = segments.clone().rev().skip(1).any(|segment| segment == ".well-known");
    known && segments.all(plain)
}

/// Whether a body is client metadata: one JSON object that cannot be mistaken for a message.
pub(super) fn is_registration(body: &[u8]) -> bool {
    let frame = Frame::read(body);
    matches!(frame.body(), FrameBody::Message(_))
        && !has_member(body, &["method", "jsonrpc", "params"])
}

/// Whether an object has one of these members, in any case. Malformed objects count as having one.
fn has_member(object: &[u8], names: &[&str]) -> bool {
    let is_named = |key: JsonStr<'_>| {
        // Parsers that fold case by Unicode read the long s as `s`.
        let key = key.decode().replace('ſ', "s");
        names.iter().any(|name| key.trim().eq_ignore_ascii_case(name))
    };
    JsonKind::of(object) != Ok(JsonKind::Object)
        || json::members(object).any(|member| member.map_or(true, |(key, _)| is_named(key)))
}
