//! The MCP headers of a request: session, protocol revision, and accepted response types.

use std::borrow::Cow;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, Response};
use tapegate_core::frame::Envelope;
use tapegate_core::json::{self, Cursor, Str};
use tapegate_core::relay::OwnMessage;

use super::params::Params;
use super::request_check::Rejection;
use super::{ReplyBody, field, headers};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The revisions with sessions, and the one without.
const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const MODERN: &str = "2026-07-28";
/// The revision since which a stream may begin with an event that has only an id.
const PRIMING: &str = "2025-11-25";

const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

const CODE_NO_METHOD: i32 = -32601;
const CODE_INVALID_PARAMS: i32 = -32602;
const CODE_HEADER_MISMATCH: i32 = -32020;
const CODE_UNSUPPORTED_VERSION: i32 = -32022;

/// The MCP headers of a request.
pub(super) struct Terms {
    /// Whether a JSON response is accepted.
    pub(super) json: bool,
    /// Whether an event stream is accepted.
    pub(super) events: bool,
    /// Whether event streams are accepted by name, so that the client certainly supports them.
    pub(super) streams: bool,
    /// The session, if one is named.
    pub(super) session: Option<String>,
    /// The revision, if one is named.
    pub(super) version: Option<String>,
    method: Option<String>,
    name: Option<String>,
    /// Whether a header that mirrors the body is repeated, so that parsers may disagree.
    repeated: bool,
    /// The headers that mirror arguments.
    params: HeaderMap,
}

/// How explicitly a media type is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    No,
    /// By a wildcard, or because there is no Accept header.
    WithOthers,
    ByName,
}

impl Terms {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let events = taken(headers, "text/event-stream");
        Self {
            json: taken(headers, "application/json") != Taken::No,
            events: events != Taken::No,
            streams: events == Taken::ByName,
            session: text(headers, &SESSION),
            version: text(headers, &VERSION),
            method: text(headers, &METHOD),
            name: text(headers, &NAME),
            repeated: [VERSION, METHOD, NAME]
                .iter()
                .any(|name| headers.get_all(name).iter().count() > 1),
            params: headers
                .iter()
                .filter(|(name, _)| name.as_str().starts_with("mcp-param-"))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }

    /// Whether the headers name the sessionless revision.
    pub(super) fn is_modern(&self) -> bool {
        self.version.as_deref() == Some(MODERN)
    }

    /// Whether a message belongs to the sessionless revision.
    pub(super) fn makes_modern(&self, said: &Envelope<'_>) -> bool {
        self.session.is_none()
            && (self.is_modern()
                || (said.protocol_version.is_some() && !said.is_method("initialize")))
    }

    /// Whether the client understands an event that has only an id.
    pub(super) fn knows_priming(&self, said: Option<&Envelope<'_>>) -> bool {
        let opening = said.filter(|said| said.is_method("initialize"));
        let asked = opening.and_then(|said| json::member(said.params?, "protocolVersion"));
        let version = self.version.as_deref().map(Cow::Borrowed).or(asked.and_then(json::string));
        version.is_some_and(|version| {
            VERSIONS.contains(&version.as_ref()) && version.as_ref() >= PRIMING
        })
    }

    /// Refuses an unknown protocol revision.
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
        json::write_str(&mut data, version);
        data.push(b'}');
        let data = String::from_utf8_lossy(&data);
        Some(headers::json(
            400,
            OwnMessage::error_with(id, CODE_UNSUPPORTED_VERSION, &words, &data).into(),
        ))
    }

    /// Refuses a sessionless request that lacks required fields or headers.
    ///
    /// A server that supports both kinds of revision derives the kind of all messages from the
    /// first. A message that might be taken for the other kind must not reach a shared server.
    pub(super) fn check_modern(&self, said: &Envelope<'_>) -> Option<Rejection> {
        if said.is_method("initialize") {
            let words = "this revision of the protocol has no initialize";
            return Some(rejection(404, CODE_NO_METHOD, words));
        }
        let meta = said.params.and_then(|params| json::member(params, "_meta"));
        let capable = meta.and_then(|meta| json::member(meta, CLIENT_CAPABILITIES));
        if said.protocol_version.and_then(string).is_none() || capable.is_none() {
            let words = "params._meta must name the protocol version and the client's capabilities";
            return Some(rejection(400, CODE_INVALID_PARAMS, words));
        }
        let words = match (&self.version, &self.method, &self.name) {
            (None, _, _) => "the MCP-Protocol-Version header is missing",
            (_, None, _) => "the Mcp-Method header is missing",
            (_, _, None) if named(said).is_some() => "the Mcp-Name header is missing",
            _ => return self.check_mirrors(said),
        };
        Some(rejection(400, CODE_HEADER_MISMATCH, words))
    }

    /// Refuses a call whose headers do not match its arguments.
    pub(super) fn check_params(&self, said: &Envelope<'_>, params: &Params) -> Option<Rejection> {
        let disagree = said.is_method("tools/call") && params.disagree(said, &self.params);
        let words = "the Mcp-Param headers and the arguments disagree";
        disagree.then(|| rejection(400, CODE_HEADER_MISMATCH, words))
    }

    /// Refuses a call with a header that contradicts the argument it mirrors.
    pub(super) fn check_contradictions(
        &self,
        said: &Envelope<'_>,
        params: &Params,
    ) -> Option<Rejection> {
        let contradicts = said.is_method("tools/call") && params.contradict(said, &self.params);
        let words = "the Mcp-Param headers and the arguments disagree";
        contradicts.then(|| rejection(400, CODE_HEADER_MISMATCH, words))
    }

    /// Refuses a message that its headers describe wrongly.
    pub(super) fn check_mirrors(&self, said: &Envelope<'_>) -> Option<Rejection> {
        let named = named(said);
        let version = said.protocol_version.and_then(string);
        let words = if self.repeated {
            "a header that mirrors the body appears twice"
        } else if differs(self.method.as_deref(), said.method) {
            "the Mcp-Method header and the body disagree"
        } else if named.is_some() && differs(self.name.as_deref(), named) {
            "the Mcp-Name header and the body disagree"
        } else if version.is_some() && differs(self.version.as_deref(), version) {
            "the MCP-Protocol-Version header and the body disagree"
        } else {
            return None;
        };
        Some(rejection(400, CODE_HEADER_MISMATCH, words))
    }
}

fn rejection(status: u16, code: i32, reason: &str) -> Rejection {
    Rejection { status, code, reason: reason.to_owned(), allow: None }
}

/// The value that the `Mcp-Name` header must mirror.
fn named<'a>(said: &Envelope<'a>) -> Option<Str<'a>> {
    match said.method.map(|method| method.decode()).as_deref() {
        Some("tools/call" | "prompts/get") => said.name,
        Some("resources/read") => said.uri,
        _ => None,
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

/// How explicitly a media type is accepted. Without an Accept header, everything is.
fn taken(headers: &HeaderMap, wanted: &str) -> Taken {
    let mut values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let Some(first) = values.next() else { return Taken::WithOthers };
    let (kind, _) = wanted.split_once('/').unwrap_or_default();
    let ranges = std::iter::once(first).chain(values).flat_map(|value| value.split(','));
    let taken = ranges.map(|range| {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let name = parts.next().unwrap_or_default();
        if parts.any(|part| matches!(part.as_str(), "q=0" | "q=0.0")) {
            Taken::No
        } else if name == wanted {
            Taken::ByName
        } else if name == "*/*" || name.strip_suffix("/*") == Some(kind) {
            Taken::WithOthers
        } else {
            Taken::No
        }
    });
    taken.max().unwrap_or(Taken::No)
}

/// Whether a header that is present contradicts the body.
fn differs(header: Option<&str>, body: Option<Str<'_>>) -> bool {
    let Some(header) = header else { return false };
    field::read(header).is_none_or(|meant| body.is_none_or(|body| body.decode() != meant))
}

fn string(raw: &[u8]) -> Option<Str<'_>> {
    Cursor::new(raw).ok()?.string().ok()
}
