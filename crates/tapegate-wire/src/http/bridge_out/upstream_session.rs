//! The headers that HTTP requires for a message.
//!
//! Since 2026-07-28 every request names its own revision, and its method and subject are mirrored
//! in headers that must agree with the body. Older messages carry what `initialize` negotiated.

use std::borrow::Cow;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use tapegate_core::frame::{Envelope, Frame};
use tapegate_core::json;

use super::super::header_value;
use super::super::mirrored_params::MirroredParams;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
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

/// The headers sent with a message.
pub(super) fn headers(
    message: &Frame<'_>,
    session: &UpstreamSession,
    params: &MirroredParams,
) -> HeaderMap {
    let initialize = message.envelope().is_some_and(|envelope| envelope.is_method("initialize"));
    let revision = revision(message);
    let alone = UpstreamSession::default();
    // Neither belongs to the session: one opens a new one, the other names its own revision.
    let known = if initialize || revision.is_some() { &alone } else { session };
    let mut headers = known.headers("application/json, text/event-stream");
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let (Some(revision), Some(envelope)) = (revision, message.envelope()) {
        add(&mut headers, VERSION, revision.into_owned());
        if let Some(method) = envelope.method {
            add(&mut headers, METHOD, method.decode().into_owned());
            if let Some(name) = subject(envelope, &method.decode()) {
                add(&mut headers, NAME, header_value::write(&name));
            }
            if method.is("tools/call") {
                params.mirror(envelope, &mut headers);
            }
        }
    }
    headers
}

/// The protocol revision that a message names itself.
pub(super) fn revision<'a>(message: &Frame<'a>) -> Option<Cow<'a, str>> {
    let meta = json::member(message.envelope()?.params?, "_meta")?;
    json::string(json::member(meta, VERSION_KEY)?)
}

/// The revision negotiated by the result of `initialize`.
pub(super) fn negotiated(answer: &Frame<'_>) -> Option<HeaderValue> {
    let version = json::string(json::member(answer.envelope()?.result?, "protocolVersion")?)?;
    HeaderValue::from_str(&version).ok()
}

/// The subject of a request, if the protocol requires it to be mirrored.
fn subject<'a>(envelope: &Envelope<'a>, method: &str) -> Option<Cow<'a, str>> {
    match method {
        "tools/call" | "prompts/get" => envelope.name.map(|name| name.decode()),
        "resources/read" => envelope.uri.map(|uri| uri.decode()),
        "tasks/get" | "tasks/update" | "tasks/cancel" => {
            json::string(json::member(envelope.params?, "taskId")?)
        }
        _ => None,
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
        let headers =
            headers(&Frame::read(message.as_bytes()), &session, &MirroredParams::default());
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
