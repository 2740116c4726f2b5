//! The MCP headers of a request: session, protocol revision, and accepted response types.

use std::borrow::Cow;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, Response};
use tapegate_core::frame::{Envelope, unsupported_version_data};
use tapegate_core::json::{self, Cursor, JsonStr};
use tapegate_core::relay::OwnMessage;

use super::mirrored_params::MirroredParams;
use super::request_check::RequestRejection;
use super::{ReplyBody, header_value, headers};

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The revisions with sessions, and the one without.
pub(super) const VERSIONS: [&str; 5] =
    ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const MODERN: &str = "2026-07-28";
/// The revision since which a stream may begin with an event that has only an id.
const PRIMING: &str = "2025-11-25";

const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

const CODE_NO_METHOD: i32 = -32601;
const CODE_INVALID_PARAMS: i32 = -32602;
const CODE_HEADER_MISMATCH: i32 = -32020;
const CODE_UNSUPPORTED_VERSION: i32 = -32022;

/// The MCP headers of a request.
pub(super) struct RequestHeaders {
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
enum AcceptLevel {
    No,
    /// By a wildcard, or because there is no Accept header.
    WithOthers,
    ByName,
}

impl RequestHeaders {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let events = acceptance(headers, "text/event-stream");
        Self {
            json: acceptance(headers, "application/json") != AcceptLevel::No,
            events: events != AcceptLevel::No,
            streams: events == AcceptLevel::ByName,
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
    pub(super) fn is_stateless_message(&self, envelope: &Envelope<'_>) -> bool {
        self.session.is_none()
            && (self.is_modern()
                || (envelope.protocol_version.is_some() && !envelope.is_method("initialize")))
    }

    /// Whether the client understands an event that has only an id.
    pub(super) fn supports_priming(&self, envelope: Option<&Envelope<'_>>) -> bool {
        let opening = envelope.filter(|envelope| envelope.is_method("initialize"));
        let requested_version =
            opening.and_then(|envelope| json::member(envelope.params?, "protocolVersion"));
        let version =
            self.version.as_deref().map(Cow::Borrowed).or(requested_version.and_then(json::string));
        version.is_some_and(|version| {
            VERSIONS.contains(&version.as_ref()) && version.as_ref() >= PRIMING
        })
    }

    /// Refuses an unknown protocol revision.
    pub(super) fn check_version(
        &self,
        envelope: Option<&Envelope<'_>>,
    ) -> Option<Response<ReplyBody>> {
        let version = self.version.as_deref()?;
        if VERSIONS.contains(&version) {
            return None;
        }
        let id = envelope.and_then(|envelope| envelope.id).unwrap_or(b"null");
        let message = format!("unsupported protocol version `{version}`");
        if envelope.is_none_or(|envelope| envelope.protocol_version.is_none()) {
            return Some(headers::error(400, id, -32000, &message));
        }
        let data = unsupported_version_data(MODERN, version);
        let data = String::from_utf8_lossy(&data);
        Some(headers::json(
            400,
            OwnMessage::error_with(id, CODE_UNSUPPORTED_VERSION, &message, &data).into(),
        ))
    }

    /// Refuses a sessionless request that lacks required fields or headers.
    ///
    /// A server that supports both kinds of revision derives the kind of all messages from the
    /// first. A message that might be taken for the other kind must not reach a shared server.
    pub(super) fn check_modern(&self, envelope: &Envelope<'_>) -> Option<RequestRejection> {
        if envelope.is_method("initialize") {
            let message = "this revision of the protocol has no initialize";
            return Some(rejection(404, CODE_NO_METHOD, message));
        }
        let meta = envelope.params.and_then(|params| json::member(params, "_meta"));
        let capable = meta.and_then(|meta| json::member(meta, CLIENT_CAPABILITIES));
        if envelope.protocol_version.and_then(string).is_none() || capable.is_none() {
            let message =
                "params._meta must name the protocol version and the client's capabilities";
            return Some(rejection(400, CODE_INVALID_PARAMS, message));
        }
        let message = match (&self.version, &self.method, &self.name) {
            (None, _, _) => "the MCP-Protocol-Version header is missing",
            (_, None, _) => "the Mcp-Method header is missing",
            (_, _, None) if mirrored_name(envelope).is_some() => "the Mcp-Name header is missing",
            _ => return self.check_mirrors(envelope),
        };
        Some(rejection(400, CODE_HEADER_MISMATCH, message))
    }

    /// Refuses a call whose headers do not match its arguments.
    pub(super) fn check_params(
        &self,
        envelope: &Envelope<'_>,
        params: &MirroredParams,
    ) -> Option<RequestRejection> {
        let disagree =
            envelope.is_method("tools/call") && params.headers_disagree(envelope, &self.params);
        let message = "the Mcp-Param headers and the arguments disagree";
        disagree.then(|| rejection(400, CODE_HEADER_MISMATCH, message))
    }

    /// Refuses a call with a header that contradicts the argument it mirrors.
    pub(super) fn check_contradictions(
        &self,
        envelope: &Envelope<'_>,
        params: &MirroredParams,
    ) -> Option<RequestRejection> {
        let contradicts =
            envelope.is_method("tools/call") && params.headers_contradict(envelope, &self.params);
        let message = "the Mcp-Param headers and the arguments disagree";
        contradicts.then(|| rejection(400, CODE_HEADER_MISMATCH, message))
    }

    /// Refuses a message that its headers describe wrongly.
    pub(super) fn check_mirrors(&self, envelope: &Envelope<'_>) -> Option<RequestRejection> {
        let named = mirrored_name(envelope);
        let version = envelope.protocol_version.and_then(string);
        let message = if self.repeated {
            "a header that mirrors the body appears twice"
        } else if differs(self.method.as_deref(), envelope.method) {
            "the Mcp-Method header and the body disagree"
        } else if named.is_some() && differs(self.name.as_deref(), named) {
            "the Mcp-Name header and the body disagree"
        } else if version.is_some() && differs(self.version.as_deref(), version) {
            "the MCP-Protocol-Version header and the body disagree"
        } else {
            return None;
        };
        Some(rejection(400, CODE_HEADER_MISMATCH, message))
    }
}

fn rejection(status: u16, code: i32, reason: &str) -> RequestRejection {
    RequestRejection { status, code, reason: reason.to_owned(), allow: None }
}

/// The value that the `Mcp-Name` header must mirror.
pub(super) fn mirrored_name<'a>(envelope: &Envelope<'a>) -> Option<JsonStr<'a>> {
    match envelope.method.map(|method| method.decode()).as_deref() {
        Some("tools/call" | "prompts/get") => envelope.name,
        Some("resources/read") => envelope.uri,
        _ => None,
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

/// How explicitly a media type is accepted. Without an Accept header, everything is.
fn acceptance(headers: &HeaderMap, wanted: &str) -> AcceptLevel {
    let mut values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let Some(first) = values.next() else { return AcceptLevel::WithOthers };
    let (kind, _) = wanted.split_once('/').unwrap_or_default();
    let ranges = std::iter::once(first).chain(values).flat_map(|value| value.split(','));
    let taken = ranges.map(|range| {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let name = parts.next().unwrap_or_default();
        if parts.any(|part| matches!(part.as_str(), "q=0" | "q=0.0")) {
            AcceptLevel::No
        } else if name == wanted {
            AcceptLevel::ByName
        } else if name == "*/*" || name.strip_suffix("/*") == Some(kind) {
            AcceptLevel::WithOthers
        } else {
            AcceptLevel::No
        }
    });
    taken.max().unwrap_or(AcceptLevel::No)
}

/// Whether a header that is present contradicts the body.
fn differs(header: Option<&str>, body: Option<JsonStr<'_>>) -> bool {
    let Some(header) = header else { return false };
    header_value::read(header).is_none_or(|meant| body.is_none_or(|body| body.decode() != meant))
}

fn string(raw: &[u8]) -> Option<JsonStr<'_>> {
    Cursor::new(raw).ok()?.string().ok()
}
