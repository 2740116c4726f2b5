//! What the headers of a request say: who asks, in which revision, and what it takes for an answer.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, Response};
use tapegate_core::frame::{Envelope, error_reply};
use tapegate_core::json::{Cursor, Str};
use tapegate_core::tape::base64_decode;

use super::super::ReplyBody;
use super::super::headers;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The revisions with sessions, and the one without.
const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const MODERN: &str = "2026-07-28";

const CODE_HEADER_MISMATCH: i32 = -32020;
const CODE_UNSUPPORTED_VERSION: i32 = -32022;

/// What the headers of a request say.
pub(super) struct Terms {
    /// Whether JSON is taken for an answer.
    pub(super) json: bool,
    /// Whether a stream of events is.
    pub(super) events: bool,
    /// The session, if one is named.
    pub(super) session: Option<String>,
    /// The revision, if one is named.
    pub(super) version: Option<String>,
    method: Option<String>,
    name: Option<String>,
}

impl Terms {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let (json, events) = accepts(headers);
        Self {
            json,
            events,
            session: text(headers, &SESSION),
            version: text(headers, &VERSION),
            method: text(headers, &METHOD),
            name: text(headers, &NAME),
        }
    }

    /// Whether the headers name the revision without sessions.
    pub(super) fn is_modern(&self) -> bool {
        self.version.as_deref() == Some(MODERN)
    }

    /// Whether a message is of the revisions without sessions.
    pub(super) fn makes_modern(&self, said: &Envelope<'_>) -> bool {
        self.session.is_none()
            && !said.is_method("initialize")
            && (self.is_modern() || said.protocol_version.is_some())
    }

    /// Refuses a revision that nobody knows.
    pub(super) fn check_version(&self, said: Option<&Envelope<'_>>) -> Option<Response<ReplyBody>> {
        let version = self.version.as_deref()?;
        if VERSIONS.contains(&version) {
            return None;
        }
        let id = said.and_then(|said| said.id).unwrap_or(b"null");
        let words = format!("unsupported protocol version `{version}`");
        if said.is_none_or(|said| said.protocol_version.is_none()) {
            return Some(headers::error(400, id, -32000, &words));
        }
        let mut data = format!("{{\"supported\":[\"{MODERN}\"],\"requested\":").into_bytes();
        tapegate_core::json::write_str(&mut data, version);
        data.push(b'}');
        let data = String::from_utf8_lossy(&data);
        Some(headers::json(400, error_reply(id, CODE_UNSUPPORTED_VERSION, &words, &data)))
    }

    /// Refuses a message that its headers describe wrongly.
    pub(super) fn check_mirrors(&self, said: &Envelope<'_>) -> Option<Response<ReplyBody>> {
        let named = match said.method.map(|method| method.decode()).as_deref() {
            Some("tools/call" | "prompts/get") => said.name,
            Some("resources/read") => said.uri,
            _ => None,
        };
        let version = said.protocol_version.and_then(string);
        let header = if differs(self.method.as_deref(), said.method) {
            "Mcp-Method"
        } else if named.is_some() && differs(self.name.as_deref(), named) {
            "Mcp-Name"
        } else if version.is_some() && differs(self.version.as_deref(), version) {
            "MCP-Protocol-Version"
        } else {
            return None;
        };
        let words = format!("the {header} header and the body disagree");
        let id = said.id.unwrap_or(b"null");
        Some(headers::error(400, id, CODE_HEADER_MISMATCH, &words))
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

/// Whether JSON and events are acceptable. Who says nothing takes both.
fn accepts(headers: &HeaderMap) -> (bool, bool) {
    let values = || headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    if values().next().is_none() {
        return (true, true);
    }
    let allows = |wanted: &str| {
        let kind = wanted.split('/').next().unwrap_or_default();
        values().flat_map(|value| value.split(',')).any(|range| {
            let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|part| matches!(part.as_str(), "q=0" | "q=0.0"));
            !refused && (name == wanted || name == "*/*" || name == format!("{kind}/*"))
        })
    };
    (allows("application/json"), allows("text/event-stream"))
}

/// Whether a header that is there says something else than the body.
fn differs(header: Option<&str>, body: Option<Str<'_>>) -> bool {
    let Some(header) = header else { return false };
    let packed = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let meant = match packed {
        Some(packed) => base64_decode(packed).and_then(|bytes| String::from_utf8(bytes).ok()),
        None => Some(header.to_owned()),
    };
    meant.is_none_or(|meant| body.is_none_or(|body| body.decode() != meant))
}

fn string(raw: &[u8]) -> Option<Str<'_>> {
    Cursor::new(raw).ok()?.string().ok()
}
