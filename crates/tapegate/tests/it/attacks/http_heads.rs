//! Requests whose head makes a server read a different message than the gate does.

use super::target_server::{ACCEPT, ALL, JSON, TargetKind, TargetServer, TargetTool};
use crate::shim::setup::FORWARD;

/// One server of each kind, for attacks to which all servers of a kind react alike.
const EACH_WAY: [TargetKind; 4] =
    [TargetKind::Process, TargetKind::Express, TargetKind::ExpressSse, TargetKind::FastMcp];

#[test]
fn a_body_in_another_charset_is_refused() {
    for kind in ALL {
        let victim = TargetServer::start(kind);
        let hidden = victim.call_in_utf7();
        let denied = victim.call(TargetTool::Denied);
        for lines in [
            &["content-type: application/json; charset=utf-7"][..],
            &["Content-Type: application/json;charset=\"UTF-7\""],
            &["content-type: application/json ; a=b ; charSET=utf-7"],
            &["content-type: application/json; charset=utf-8; charset=utf-7"],
            &["content-type: application/json; charset=utf-7; charset=utf-8"],
            &["content-type: application/json; charset*=utf-8''utf-7"],
            &["content-type: application/json; x=\"charset=utf-7\""],
            &["content-type: application/json, application/json; charset=utf-7"],
            &["content-type: application/json; charset=utf-7-imap"],
            &["content-type: application/json; charset=unicode-1-1-utf-7"],
            &[JSON, "content-type: application/json; charset=utf-7"],
            &["content-type: application/json; charset=utf-7", JSON],
        ] {
            let headers = [lines, &[ACCEPT]].concat();
            for body in [&hidden, &denied] {
                victim.is_refused(415, "ontent-", |victim| victim.post(&headers, body.as_bytes()));
            }
        }
        for charset in ["utf-16le", "utf-16", "utf-32", "utf16", "iso-8859-1", "hex", "base64"] {
            let line = format!("content-type: application/json; charset={charset}");
            let wide: Vec<u8> = denied.encode_utf16().flat_map(u16::to_le_bytes).collect();
            for body in [&wide[..], denied.as_bytes()] {
                victim
                    .is_refused(415, "Content-Type", |victim| victim.post(&[&line, ACCEPT], body));
            }
        }
        let named = "content-type: application/json; charset=utf-8";
        let allowed = victim.post(&[named, ACCEPT], victim.call(TargetTool::Allowed).as_bytes());
        assert!(allowed.status < 300, "{kind:?} {allowed:?}");
        victim.is_unharmed();
    }
}

#[test]
fn another_spelling_of_the_path_or_another_endpoint_is_refused() {
    for kind in [
        TargetKind::Express,
        TargetKind::FastMcp,
        TargetKind::EverythingSse,
        TargetKind::ExpressSse,
    ] {
        let victim = TargetServer::start(kind);
        let (path, query) =
            victim.path.split_at(victim.path.find('?').unwrap_or(victim.path.len()));
        let escaped = format!("/%{:x}{}", path.as_bytes()[1], &path[2..]);
        for path in [
            format!("{path}/{query}"),
            format!("{}{query}", path.to_uppercase()),
            format!("/{path}{query}"),
            format!("/.{path}{query}"),
            format!("/x/..{path}{query}"),
            format!("{path};x=1{query}"),
            format!("{path}%2f{query}"),
            format!("{escaped}{query}"),
            format!("{path}\\{query}"),
            format!("/messages{query}"),
            format!("/.well-known/..{path}{query}"),
        ] {
            let line = format!("POST {path}");
            if path == victim.path {
                continue;
            }
            for content_type in [JSON, "content-type: application/json; charset=utf-7"] {
                for body in [victim.call_in_utf7(), victim.call(TargetTool::Denied)] {
                    victim.is_refused(404, "is not an endpoint", |victim| {
                        victim.request(&line, &[content_type, ACCEPT], body.as_bytes())
                    });
                }
            }
        }
        victim.is_unharmed();
    }
    // The same server has another endpoint, which was never announced.
    let victim = TargetServer::start(TargetKind::Express);
    for line in ["GET /sse", "GET /SSE/", "HEAD /messages", "OPTIONS *"] {
        let got = victim.ask(line, &["accept: text/event-stream"]);
        assert_eq!(got.status, 404, "{line} {got:?}");
    }
    victim.is_unharmed();
}

#[test]
fn a_target_in_absolute_form_or_with_a_query_is_judged() {
    for kind in EACH_WAY {
        let victim = TargetServer::start(kind);
        let port = victim.port();
        let denied = victim.call(TargetTool::Denied);
        let and = if victim.path.contains('?') { '&' } else { '?' };
        let targets = [
            format!("http://127.0.0.1:{port}{}", victim.path),
            format!("http://LOCALHOST:{port}{}", victim.path),
        ];
        for target in targets {
            let before = victim.refusals().len();
            victim.request(&format!("POST {target}"), &[JSON, ACCEPT], denied.as_bytes());
            assert_eq!(victim.refusals().len(), before + 1, "{kind:?} {target}");
        }
        for query in [
            "_method=PUT",
            "a=b&_METHOD=DELETE",
            "%5Fmethod=PATCH",
            "message=%7B%22jsonrpc%22%3A%222.0%22%7D",
            "method=tools/call&params=e30=",
        ] {
            let line = format!("POST {}{and}{query}", victim.path);
            let before = victim.refusals().len();
            let got =
                victim.request(&line, &[JSON, ACCEPT], victim.call(TargetTool::Allowed).as_bytes());
            // Only one exact path was announced to the legacy client.
            assert!(matches!(got.status, 400 | 404), "{kind:?} {line} {got:?}");
            assert_eq!(victim.refusals().len(), before + 1, "{kind:?} {line}");
        }
        victim.is_unharmed();
    }
}

#[test]
fn a_message_comes_with_post_and_nothing_overrides_the_method() {
    for kind in EACH_WAY {
        let victim = TargetServer::start(kind);
        let denied = victim.call(TargetTool::Denied);
        let allowed = victim.call(TargetTool::Allowed);
        for body in [denied.as_bytes(), allowed.as_bytes()] {
            for (method, status) in [
                ("PUT", 405),
                ("PATCH", 405),
                ("TRACE", 405),
                ("SEARCH", 405),
                ("post", 405),
                ("GET", 400),
                ("DELETE", 400),
                ("OPTIONS", 400),
            ] {
                let line = format!("{method} {}", victim.path);
                victim
                    .is_refused(status, "", |victim| victim.request(&line, &[JSON, ACCEPT], body));
            }
            for line in [
                "x-http-method-override: PUT",
                "X-HTTP-Method: DELETE",
                "X-Method-Override: PATCH",
                "x_http_method_override: GET",
                "x-original-url: /messages",
                "x-rewrite-url: /sse",
            ] {
                victim.is_refused(400, "overrides", |victim| {
                    victim.post(&[JSON, ACCEPT, line], body)
                });
            }
        }
        victim.is_unharmed();
    }
}

#[test]
fn only_json_is_taken_whatever_the_server_would_read() {
    for kind in ALL {
        let victim = TargetServer::start(kind);
        for line in [
            "content-type: text/plain",
            "content-type: text/json",
            "content-type: application/x-www-form-urlencoded",
            "content-type: multipart/form-data; boundary=x",
            "content-type: application/vnd.api+json",
            "content-type: application/json-patch+json",
            "content-type: ",
            "x-no-content-type: 1",
        ] {
            for tool in [TargetTool::Denied, TargetTool::Allowed] {
                let body = victim.call(tool);
                victim.is_refused(415, "Content-Type", |victim| {
                    victim.post(&[line, ACCEPT], body.as_bytes())
                });
            }
        }
        victim.is_unharmed();
    }
}

#[test]
fn headers_that_conflict_or_take_others_away_are_refused() {
    for kind in EACH_WAY {
        let victim = TargetServer::start(kind);
        let body = victim.call(TargetTool::Allowed);
        for lines in [
            &["mcp-session-id: a", "mcp-session-id: b"][..],
            &["mcp-protocol-version: 2025-06-18", "mcp-protocol-version: 2026-07-28"],
            &["mcp-method: tools/call", "mcp-method: tools/list"],
            &["mcp-name: a", "Mcp-Name: b"],
            &["last-event-id: 1", "last-event-id: 2"],
            &["content_type: application/json; charset=utf-7"],
            &["mcp_session_id: b"],
            &["connection: content-type"],
            &["connection: close, Mcp-Session-Id"],
            &["connection: content-length"],
            &["upgrade: websocket", "connection: upgrade"],
        ] {
            let headers = [&[JSON, ACCEPT][..], lines].concat();
            victim.is_refused(400, "", |victim| victim.post(&headers, body.as_bytes()));
        }
        for lines in [["content-encoding: gzip", "content-encoding: gzip"], [JSON, "x: y"]] {
            let headers = [&[JSON, ACCEPT][..], &lines].concat();
            victim.is_refused(415, "content-", |victim| victim.post(&headers, body.as_bytes()));
        }
        victim.is_unharmed();
    }
}

#[test]
fn a_shim_that_only_observes_refuses_nothing_and_notes_it() {
    let development = FORWARD.replace("schema: 1\n", "schema: 1\nprofile: development\n");
    // Without a policy, nothing would be refused in production either.
    for (policy, decision) in [("", "warn"), (&*development, "WOULD_REJECT")] {
        let victim = TargetServer::start_with(TargetKind::Express, policy);
        let headers = ["content-type: application/json; charset=utf-7", ACCEPT];
        for path in ["/mcp", "/MCP", "/mcp/"] {
            let body = victim.call(TargetTool::Allowed);
            let got = victim.request(&format!("POST {path}"), &headers, body.as_bytes());
            assert!(got.body.contains("ran safe"), "{path} {got:?}");
        }
        let noted = victim.noted(decision);
        assert_eq!(noted.len(), 3, "{noted:#?}");
        assert!(noted.iter().all(|event| event["forwarded"] == true), "{noted:#?}");
    }
}
