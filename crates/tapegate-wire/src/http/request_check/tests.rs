//! Tests for which request heads a gated listener accepts.

use super::*;
use http::HeaderValue;

const JSON: (&str, &str) = ("content-type", "application/json");

fn check(
    request: &str,
    lines: &[(&'static str, &str)],
    has_body: bool,
) -> Result<(), RequestRejection> {
    let (method, target) = request.split_once(' ').unwrap();
    let target: Uri = target.parse().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let route = RequestRoute::of(target.path(), "/mcp", false);
    let method = method.parse().unwrap();
    check_head(&RequestHead {
        method: &method,
        target: &target,
        headers: &headers,
        route,
        has_body,
    })
}

fn status(request: &str, lines: &[(&'static str, &str)], has_body: bool) -> u16 {
    check(request, lines, has_body).map_or_else(|rejection| rejection.status, |()| 200)
}

#[test]
fn what_real_clients_send_is_taken() {
    let posts: &[&[(&str, &str)]] = &[
        &[JSON, ("accept", "application/json, text/event-stream"), ("host", "h")],
        &[JSON, ("mcp-session-id", "a"), ("mcp-protocol-version", "2025-11-25")],
        &[JSON, ("mcp-method", "tools/call"), ("mcp-name", "=?base64?eA==?=")],
        &[("content-type", "application/json; charset=utf-8"), ("expect", "100-continue")],
        &[JSON, ("transfer-encoding", "chunked"), ("connection", "keep-alive")],
        // Java's HTTP client offers HTTP/2 with every request.
        &[
            JSON,
            ("connection", "Upgrade, HTTP2-Settings"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAEA"),
        ],
        &[JSON, ("content-encoding", "gzip"), ("x_api_key", "k"), ("x-forwarded-for", "::1")],
    ];
    for lines in posts {
        assert_eq!(check("POST /mcp", lines, true), Ok(()), "{lines:?}");
        assert_eq!(check("POST /mcp?api_key=1&config=eyJ9", lines, true), Ok(()), "{lines:?}");
    }
    for request in [
        "GET /mcp",
        "HEAD /mcp",
        "DELETE /mcp",
        "OPTIONS /mcp",
        "GET /.well-known/oauth-protected-resource",
        "GET /.well-known/oauth-protected-resource/mcp",
        "GET /.well-known/oauth-authorization-server",
        "GET /mcp/.well-known/openid-configuration",
        "GET /authorize?response_type=code&client_id=x&resource=http%3A%2F%2Fh%2Fmcp",
        "OPTIONS /token",
    ] {
        assert_eq!(check(request, &[JSON], false), Ok(()), "{request}");
    }
    let form = ("content-type", "application/x-www-form-urlencoded");
    assert_eq!(check("POST /token", &[form], true), Ok(()));
    assert_eq!(check("POST /register", &[JSON], true), Ok(()));
}

#[test]
fn another_spelling_of_a_path_leads_nowhere() {
    for path in [
        "/mcp/",
        "/MCP",
        "/Mcp",
        "//mcp",
        "/./mcp",
        "/x/../mcp",
        "/%6dcp",
        "/mcp%2f",
        "/mcp;a=1",
        "/mcp.json",
        "/sse",
        "/messages?sessionId=1",
        "/TOKEN",
        "/token/",
        "/.well-known",
        "/.well-known/",
        "/.well-known/../mcp",
        "/.well-known/%2e%2e/mcp",
        "/.well-known//mcp",
        "/.Well-Known/x",
    ] {
        assert_eq!(status(&format!("POST {path}"), &[JSON], true), 404, "{path}");
        assert_eq!(status(&format!("GET {path}"), &[], false), 404, "{path}");
    }
}

#[test]
fn bodies_are_taken_from_post_only() {
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        assert_eq!(status(&format!("{method} /mcp"), &[JSON], true), 400, "{method}");
    }
    for method in ["PUT", "PATCH", "TRACE", "QUERY", "post", "SEARCH"] {
        let rejection = check(&format!("{method} /mcp"), &[JSON], true).unwrap_err();
        assert_eq!((rejection.status, rejection.allow), (405, Some(ENDPOINT_METHODS)), "{method}");
    }
    assert_eq!(status("POST /.well-known/x", &[JSON], true), 405);
    assert_eq!(status("POST /authorize", &[JSON], true), 405);
    assert_eq!(status("GET /token", &[], false), 405);
}

#[test]
fn only_json_in_utf8_is_taken() {
    for value in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json-rpc",
        "text/json",
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "application/json; version=1",
        "application/json; x=\"multipart/form-data; boundary=y\"",
    ] {
        let rejection = check("POST /mcp", &[("content-type", value)], true).unwrap_err();
        assert_eq!(rejection.status, 415, "{value}");
        assert!(
            rejection.reason.contains("send `Content-Type: application/json`"),
            "{rejection:?}"
        );
    }
    assert_eq!(status("POST /mcp", &[], true), 415);
    // The official TypeScript SDK searches the line for `application/json`.
    for parameter in
        ["; x=\"application/json\"", "; application/json=1", "; charset=utf-7", "; a=b"]
    {
        let value = format!("application/x-www-form-urlencoded{parameter}");
        for path in ["/token", "/revoke"] {
            let line = ("content-type", value.as_str());
            assert_eq!(status(&format!("POST {path}"), &[line], true), 415, "{value}");
        }
    }
    let lines = [JSON, ("content-type", "application/json; charset=utf-7")];
    assert_eq!(status("POST /mcp", &lines, true), 415);
    assert_eq!(status("GET /mcp", &lines[1..], false), 415);
    for coding in ["br", "zstd", "gzip, gzip", "gzip, identity", "", "compress"] {
        assert_eq!(
            status("POST /mcp", &[JSON, ("content-encoding", coding)], true),
            415,
            "{coding}"
        );
    }
}

#[test]
fn headers_that_change_the_reading_are_refused() {
    for (line, expected) in [
        (("x-http-method-override", "DELETE"), 400),
        (("x-http-method", "PUT"), 400),
        (("x-method-override", "GET"), 400),
        (("x_http_method_override", "GET"), 400),
        (("x-original-url", "/admin"), 400),
        (("x-rewrite-url", "/admin"), 400),
        (("content_type", "application/json; charset=utf-7"), 400),
        (("content_length", "3"), 400),
        (("transfer_encoding", "chunked"), 400),
        (("mcp_session_id", "a"), 400),
        (("mcp-session-id", "é"), 400),
        (("transfer-encoding", "xchunked"), 400),
        (("transfer-encoding", "gzip, chunked"), 400),
        (("connection", "close, Content-Type"), 400),
        (("connection", "mcp-session-id"), 400),
        (("connection", "content_type"), 400),
        (("connection", "accept"), 400),
        (("upgrade", "websocket"), 400),
        (("upgrade", "h2c, websocket"), 400),
        (("expect", "200-ok"), 417),
    ] {
        assert_eq!(status("POST /mcp", &[JSON, line], true), expected, "{line:?}");
    }
    for name in ["mcp-session-id", "mcp-name", "host", "last-event-id", "content-language"] {
        let lines = [JSON, (name, "x"), (name, "x")];
        assert_eq!(status("POST /mcp", &lines, true), 400, "{name}");
    }
    let lines = [JSON, ("mcp-method", "a"), ("mcp-method", "a")];
    assert_eq!(check("POST /mcp", &lines, true).unwrap_err().code, -32020);
}

#[test]
fn queries_hold_neither_methods_nor_messages() {
    for query in [
        "_method=DELETE",
        "a=1&_METHOD=PUT",
        "%5fmethod=PUT",
        "a=1;_method=PUT",
        "x-http-method-override=PUT",
        "%7B%22jsonrpc%22%3A%222.0%22%7D",
        "message=%7B%22method%22%3A%22tools%2Fcall%22%7D",
        "method=tools/call&params=e30&id=1",
        "method=tools/call&params%5Bname%5D=evil&id=1",
        "params%5Bname%5D=evil",
        "%255bparams%255d%255bname%255d=evil",
        "%5B_method%5D=DELETE",
        "_method%5B%5D=DELETE",
        "X_HTTP_Method_Override=PUT",
    ] {
        assert_eq!(status(&format!("POST /mcp?{query}"), &[JSON], true), 400, "{query}");
        assert_eq!(status(&format!("GET /mcp?{query}"), &[], false), 400, "{query}");
    }
}

#[test]
fn the_body_of_a_login_is_no_message() {
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}}"#;
    for (step, body, taken) in [
        (LoginStep::Form, &b"grant_type=authorization_code&code=a%2Fb&x=+1"[..], true),
        (LoginStep::Form, call, false),
        (LoginStep::Form, b"a=1\n", false),
        (LoginStep::Form, b"jsonrpc=2.0&id=1&method=tools%2Fcall&params%5Bname%5D=evil", false),
        (LoginStep::Form, b"\xff\xfe{\0", false),
        (LoginStep::Registration, br#"{"client_name":"x","redirect_uris":["http://h"]}"#, true),
        (LoginStep::Registration, call, false),
        (LoginStep::Registration, br#"{"METHOD":1}"#, false),
        (LoginStep::Registration, br#"{"j\u017fonrpc":"2.0"}"#, false),
        (LoginStep::Registration, br#"[{"method":"x"}]"#, false),
        (LoginStep::Registration, b"\xef\xbb\xbf{}", false),
        (LoginStep::Registration, b"{\0\"\0", false),
        (LoginStep::Authorize, b"x", false),
    ] {
        let shown = body.escape_ascii();
        assert_eq!(check_login_body(step, body).is_ok(), taken, "{step:?} {shown}");
    }
}

#[test]
fn replies_that_clients_may_read_differently_are_found() {
    let read = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_TYPE, HeaderValue::from_static(value));
        }
        read_reply(&headers)
    };
    assert_eq!(read(&["application/json"]), Ok(ReplyKind::Json));
    assert_eq!(read(&["Application/JSON; charset=UTF-8"]), Ok(ReplyKind::Json));
    assert_eq!(read(&["text/event-stream;charset=utf-8"]), Ok(ReplyKind::Events));
    assert_eq!(read(&["text/html; charset=iso-8859-1"]), Ok(ReplyKind::Other));
    assert_eq!(read(&["application/problem+json"]), Ok(ReplyKind::Other));
    assert_eq!(read(&[]), Ok(ReplyKind::Other));
    for values in [
        &["application/json; charset=utf-16"][..],
        &["text/event-stream; charset=utf-7"],
        &["application/json", "application/json"],
        &["text/plain", "text/event-stream"],
        &["application/jsonx"],
        &["text/plain; x=application/json"],
        &["text/event-stream, text/plain"],
        &["x-text/event-stream"],
    ] {
        assert!(read(values).is_err(), "{values:?}");
    }
}
