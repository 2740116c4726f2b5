//! Paths that a governed listener knows.

use tapegate_core::frame::{Body, Frame};
use tapegate_core::json::{Cursor, Kind};

/// Where a request leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// An MCP endpoint, where messages belong.
    Endpoint,
    /// Metadata below `/.well-known/`, which is only read.
    Metadata,
    /// A step of an OAuth login at a server that is its own authorization server.
    Login(Login),
    /// Anywhere else.
    Unknown,
}

/// A step of a login, at the paths that the authorization part of MCP gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// `/authorize`, which a browser opens.
    Authorize,
    /// `/token` and `/revoke`, which take forms.
    Form,
    /// `/register`, which takes JSON.
    Registration,
}

impl Route {
    /// Where a path leads in front of a server with its endpoint at `own`. Only exact spellings are
    /// known: whatever else a server's router would fold to one of its paths leads nowhere, unless the
    /// server has `announced` it.
    pub fn of(path: &str, own: &str, announced: bool) -> Self {
        match path {
            "/" | "/mcp" => Self::Endpoint,
            _ if path == own || announced => Self::Endpoint,
            "/authorize" => Self::Login(Login::Authorize),
            "/token" | "/revoke" => Self::Login(Login::Form),
            "/register" => Self::Login(Login::Registration),
            _ if is_metadata(path) => Self::Metadata,
            _ => Self::Unknown,
        }
    }
}

/// Whether a path has a segment `.well-known` and no spelling that a router could fold.
fn is_metadata(path: &str) -> bool {
    let plain = |segment: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(plain)
    };
    let mut segments = path.strip_prefix('/').unwrap_or_default().split('/');
    let known = segments.clone().rev().skip(1).any(|segment| segment == ".well-known");
    known && segments.all(plain)
}

/// Whether a body is client metadata: one JSON object that cannot be taken for a message.
pub(super) fn is_registration(body: &[u8]) -> bool {
    let frame = Frame::read(body);
    matches!(frame.body(), Body::Message(_)) && !has_member(body, &["method", "jsonrpc", "params"])
}

/// Whether an object has one of these members, in any case. What cannot be read to its end counts.
fn has_member(object: &[u8], names: &[&str]) -> bool {
    let Ok(mut cursor) = Cursor::new(object) else { return true };
    if !matches!(cursor.kind(), Ok(Kind::Object)) || cursor.open().is_err() {
        return true;
    }
    let mut first = true;
    loop {
        match cursor.key(&mut first) {
            Ok(None) => return false,
            Ok(Some(key)) => {
                let key = key.decode();
                // The long s is an `s` to readers that fold case by Unicode.
                let key = key.replace('ſ', "s");
                if names.iter().any(|name| key.trim().eq_ignore_ascii_case(name)) {
                    return true;
                }
            }
            Err(_) => return true,
        }
        if cursor.value().is_err() {
            return true;
        }
    }
}
