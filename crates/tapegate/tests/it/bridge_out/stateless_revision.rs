//! Servers and clients of 2026-07-28, which have no sessions.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::agent::{INITIALIZE, StdioAgent, modern, result};
use super::server::{ScriptedServer, json, opens, piece, reply, stream};
use crate::support::{hang, wait_until};

const TOOLS: &str = r#"{"tools":[{"name":"q","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}]}"#;

#[test]
fn requests_are_mirrored_in_headers_and_carry_no_session() {
    let server = ScriptedServer::start(|asked, out| {
        let result = if asked.says("tools/list") { TOOLS } else { "{}" };
        json(out, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, asked.id()));
    });
    let mut agent = StdioAgent::start(&server.origin, &[]);
    for (id, (method, params)) in [
        ("server/discover", ""),
        ("tools/list", ""),
        ("tools/call", r#""name":"q","arguments":{"region":"Zürich","deep":{"n":42}},"#),
        ("resources/read", r#""uri":"file:///a b","#),
    ]
    .into_iter()
    .enumerate()
    {
        agent.say(&modern(id as u32, method, params));
        assert!(agent.hear().contains("\"result\""));
    }
    assert_eq!(agent.leave().code, Some(0));
    let asked = server.asked();
    assert_eq!(asked.len(), 4, "neither GET nor DELETE");
    for asked in &asked {
        assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(asked.header("mcp-session-id"), None);
        assert!(asked.says(asked.header("mcp-method").unwrap()));
    }
    assert_eq!(asked[2].header("mcp-name"), Some("q"));
    assert_eq!(asked[2].header("mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
    assert_eq!(asked[2].header("mcp-param-n"), Some("42"));
    assert_eq!(asked[3].header("mcp-name"), Some("file:///a b"));
}

#[test]
fn a_probe_that_is_refused_is_answered_and_initialize_follows() {
    for body in
        ["", r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"not initialized"},"id":null}"#]
    {
        let server = ScriptedServer::start(move |asked, out| {
            if asked.says("server/discover") {
                reply(out, "400 Bad Request", "Content-Type: application/json\r\n", body);
            } else if !opens(asked, out) {
                json(out, &result(asked.id(), "x"));
            }
        });
        let mut agent = StdioAgent::start(&server.origin, &[]);
        agent.say(&modern(9, "server/discover", ""));
        let line = agent.hear();
        assert!(line.starts_with(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"#), "{line}");
        agent.say(INITIALIZE);
        assert!(agent.hear().contains("2025-06-18"));
        agent.call(1, "x");
        assert_eq!(agent.hear(), result("1", "x"));
        assert_eq!(agent.leave().code, Some(0));
        let calls: Vec<_> = server.asked().into_iter().filter(|a| a.says("tools/call")).collect();
        assert_eq!(calls[0].header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(calls[0].header("mcp-method"), None);
    }
}

#[test]
fn a_cancellation_closes_the_reply_and_is_not_posted() {
    let closed = Arc::new(AtomicUsize::new(0));
    let log = Arc::clone(&closed);
    let server = ScriptedServer::start(move |asked, out| {
        if asked.id() == "2" {
            return json(out, &result("2", "x"));
        }
        stream(out);
        piece(out, b": working\n\n");
        // Nothing more is sent on this connection; closing it is the cancellation.
        if out.read(&mut [0]).is_ok_and(|count| count == 0) {
            log.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut agent = StdioAgent::start(&server.origin, &[]);
    agent.say(&modern(1, "tools/call", r#""name":"slow","#));
    wait_until("the call", || server.asked().len() == 1);
    agent.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    wait_until("the cancellation", || closed.load(Ordering::SeqCst) == 1);
    agent.say(&modern(2, "tools/call", r#""name":"quick","#));
    assert_eq!(agent.hear(), result("2", "x"));
    let ended = agent.leave();
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0));
    assert_eq!(server.asked().len(), 2);
    assert!(ended.tape.contains("notifications/cancelled"));
}

#[test]
fn a_subscription_stays_open_and_ends_with_the_client() {
    let server = ScriptedServer::start(|asked, out| {
        if !asked.says("subscriptions/listen") {
            return json(out, &result(asked.id(), "x"));
        }
        stream(out);
        for number in 0..3 {
            piece(
                out,
                format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"n{number}\"}}\n\n").as_bytes(),
            );
        }
        hang();
    });
    let mut agent = StdioAgent::start(&server.origin, &[]);
    agent.say(&modern(1, "subscriptions/listen", ""));
    for number in 0..3 {
        assert!(agent.hear().contains(&format!("n{number}")));
    }
    agent.say(&modern(2, "tools/list", ""));
    assert_eq!(agent.hear(), result("2", "x"));
    let ended = agent.leave();
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{:?}", ended.rest);
}

#[test]
fn a_probe_that_is_never_answered_does_not_keep_initialize_back() {
    let server = ScriptedServer::start(|asked, out| {
        if asked.says("server/discover") {
            hang();
        } else if !opens(asked, out) {
            json(out, &result(asked.id(), "x"));
        }
    });
    let mut agent = StdioAgent::start(&server.origin, &[]);
    agent.say(&modern(9, "server/discover", ""));
    agent.say(INITIALIZE);
    assert!(agent.hear().contains("2025-06-18"));
    agent.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#);
    agent.call(1, "x");
    assert_eq!(agent.hear(), result("1", "x"));
    assert_eq!(agent.leave().code, Some(0));
}
