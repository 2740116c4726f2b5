//! The headers that HTTP requires for a message.
//!
//! Since 2026-07-28 every request names its own revision, and its method and subject are mirrored
//! in headers that must agree with the body. Older messages carry what `initialize` negotiated.

use std::borrow::Cow;
use std::ops::Range;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use tapegate_core::frame::{Envelope, Frame};
use tapegate_core::json;

use super::super::header_value;
use super::super::mirrored_params::MirroredParams;
use super::super::request_headers::{METHOD, NAME, SESSION, VERSION, mirrored_name};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const OUR_NAME: &str = concat!("tapegate/", env!("CARGO_PKG_VERSION"));

/// What `initialize` negotiated.
#[derive(Debug, Default, Clone)]
pub(super) struct UpstreamSession {
    /// The session id assigned by the server.
    pub(super) id: Option<HeaderValue>,
    /// The negotiated protocol revision.
    pub(super) version: Option<HeaderValue>,
}

impl UpstreamSession {
    /// The headers of a request without a message.
    pub(super) fn headers(&self, accept: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
        headers.extend(self.id.clone().map(|id| (SESSION, id)));
        headers.extend(self.version.clone().map(|version| (VERSION, version)));
        headers
    }
}

/// What the headers of a message are made of. It is read when the message is, because the session
/// that the headers also describe is known only when the message is sent.
#[derive(Debug, Default)]
pub(super) struct MessageHead {
    /// Whether it opens a session.
    initialize: bool,
    /// Whether it names its own protocol revision.
    pub(super) modern: bool,
    /// The headers that mirror it.
    mirrors: HeaderMap,
    /// Of a tool call that names its revision: the tool, and where its params are in the message.
    tool_call: Option<(String, Range<usize>)>,
}

impl MessageHead {
    pub(super) fn of(message: &Frame<'_>) -> Self {
        let mut head = Self::default();
        let Some(envelope) = message.envelope() else { return head };
        head.initialize = envelope.is_method("initialize");
        let Some(revision) = revision(envelope) else { return head };
        head.modern = true;
        add(&mut head.mirrors, VERSION, revision.into_owned());
        let Some(method) = envelope.method else { return head };
        add(&mut head.mirrors, METHOD, method.decode().into_owned());
        if let Some(name) = subject(envelope, &method.decode()) {
            add(&mut head.mirrors, NAME, header_value::write(&name));
        }
        if let (true, Some(tool), Some(params)) =
            (method.is("tools/call"), envelope.name, envelope.params)
        {
            let place = json::place_of(params, message.bytes());
            head.tool_call = place.map(|place| (tool.decode().into_owned(), place));
        }
        head
    }

    /// The headers sent with the message, whose bytes are `message`.
    pub(super) fn headers(
        &self,
        session: &UpstreamSession,
        params: &MirroredParams,
        message: &[u8],
    ) -> HeaderMap {
        let alone = UpstreamSession::default();
        // Neither belongs to the session: one opens a new one, the other names its own revision.
        let known = if self.initialize || self.modern { &alone } else { session };
        let mut headers = known.headers("application/json, text/event-stream");
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.extend(self.mirrors.clone());
        if let Some((tool, place)) = &self.tool_call
            && let Some(tool_params) = message.get(place.clone())
        {
            params.mirror(tool, tool_params, &mut headers);
        }
        headers
    }
}

/// The protocol revision that a message names itself.
fn revision<'a>(envelope: &Envelope<'a>) -> Option<Cow<'a, str>> {
    let meta = json::member(envelope.params?, "_meta")?;
    json::string(json::member(meta, VERSION_KEY)?)
}

/// The revision negotiated by the result of `initialize`.
pub(super) fn negotiated(result: &[u8]) -> Option<HeaderValue> {
    let version = json::string(json::member(result, "protocolVersion")?)?;
    HeaderValue::from_str(&version).ok()
}

/// The subject of a request, if the protocol requires it to be mirrored.
fn subject<'a>(envelope: &Envelope<'a>, method: &str) -> Option<Cow<'a, str>> {
    match method {
        "tasks/get" | "tasks/update" | "tasks/cancel" => {
            json::string(json::member(envelope.params?, "taskId")?)
        }
        _ => mirrored_name(envelope).map(|name| name.decode()),
    }
}

fn add(headers: &mut HeaderMap, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(message: &str) -> Vec<String> {
        let session = UpstreamSession {
            id: Some(HeaderValue::from_static("s1")),
            version: Some(HeaderValue::from_static("2025-06-18")),
        };
        let head = MessageHead::of(&Frame::read(message.as_bytes()));
        let headers = head.headers(&session, &MirroredParams::default(), message.as_bytes());
        let wanted = [SESSION, VERSION, METHOD, NAME];
        let show = |name| Some(format!("{name}={}", headers.get(&name)?.to_str().ok()?));
        wanted.into_iter().filter_map(show).collect()
    }

    #[test]
    fn a_message_of_a_session_carries_what_was_settled() {
        assert_eq!(
            show(r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#),
            ["mcp-session-id=s1", "mcp-protocol-version=2025-06-18"]
        );
        assert!(show(r#"{"id":1,"method":"initialize","params":{}}"#).is_empty());
    }

    #[test]
    fn a_message_that_names_its_revision_is_mirrored() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        for (method, params, name) in [
            ("tools/call", r#""name":"x","#, Some("x")),
            ("prompts/get", r#""name":"é","#, Some("=?base64?w6k=?=")),
            ("resources/read", r#""uri":"a://b c","#, Some("a://b c")),
            ("tasks/get", r#""taskId":"t","#, Some("t")),
            ("tools/list", r#""name":"x","#, None),
        ] {
            let text = format!(r#"{{"id":1,"method":"{method}","params":{{{params}{meta}}}}}"#);
            let mut expected =
                vec!["mcp-protocol-version=2026-07-28".to_owned(), format!("mcp-method={method}")];
            expected.extend(name.map(|name| format!("mcp-name={name}")));
            assert_eq!(show(&text), expected);
        }
    }
}
