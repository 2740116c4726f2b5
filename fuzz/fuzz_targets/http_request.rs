//! Whatever request reaches a governed listener: if it is sent on, no server reads a denied call from it,
//! however that server reads paths, methods, headers, charsets, queries and bodies.
//!
//! The input is a request as text: `METHOD TARGET`, header lines, an empty line, the body.
#![no_main]

#[path = "../decoders.rs"]
mod decoders;
#[path = "../gate.rs"]
mod gate;
#[path = "../../crates/tapegate-policy/tests/it/lenient_readers.rs"]
#[expect(dead_code, reason = "another target tests lines")]
mod lenient_readers;

use std::sync::{Arc, LazyLock};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use libfuzzer_sys::fuzz_target;
use tapegate_core::gate::Verdict;
use tapegate_core::side::Side;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::Policy;
use tapegate_wire::http::request_check::{RequestHead, RequestRoute, check_head, check_login_body};

const POLICY: &str = "
schema: 1
governance: {defaults: {action: forward}, rules: [{match: rm, action: deny}]}
";

static DENY_RM: LazyLock<Arc<Policy>> = LazyLock::new(|| gate::policy(POLICY));

struct Request<'a> {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: &'a [u8],
}

/// Reads a request; `None` if an HTTP library would not accept it either.
fn read(bytes: &[u8]) -> Option<Request<'_>> {
    let end = bytes.windows(2).position(|two| two == b"\n\n")?;
    let (head, body) = (&bytes[..end], &bytes[end + 2..]);
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut headers = HeaderMap::new();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?);
    }
    Some(Request { method: method.parse().ok()?, target: target.parse().ok()?, headers, body })
}

/// Whether a governed listener sends a request on.
fn is_sent_on(request: &Request<'_>) -> bool {
    let Request { method, target, headers, body } = request;
    let route = RequestRoute::of(target.path(), "/mcp", false);
    let has_body = !body.is_empty();
    if check_head(&RequestHead { method, target, headers, route, has_body }).is_err() {
        return false;
    }
    match route {
        // The listener decompresses bodies before it judges them; that is not tested here.
        _ if headers.get("content-encoding").is_some_and(|coding| coding != "identity") => false,
        RequestRoute::Login(step) => check_login_body(step, body).is_ok(),
        RequestRoute::Endpoint if has_body => {
            let mut gate = gate::policy_gate(&DENY_RM, TransportKind::Http);
            let verdict = gate::judge(&mut gate, Side::Client, body);
            matches!(verdict, Verdict::Forward)
        }
        RequestRoute::Endpoint | RequestRoute::Metadata => true,
        RequestRoute::Unknown => false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some(request) = read(bytes) else { return };
    if !is_sent_on(&request) {
        return;
    }
    let Request { target, headers, body, .. } = &request;
    let query = decoders::query_texts(target.query().unwrap_or_default());
    for text in decoders::texts(headers, body).into_iter().chain(query) {
        let calls = lenient_readers::calls_in_body(text.as_bytes());
        assert!(calls.iter().all(|call| call.tool != "rm"), "{calls:?}");
    }
    let overrides = |name: &HeaderName| {
        let name = name.as_str().replace('_', "-");
        ["x-http-method-override", "x-http-method", "x-method-override"].contains(&name.as_str())
    };
    assert!(!headers.keys().any(overrides), "{headers:?}");
});
