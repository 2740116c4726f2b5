//! The older HTTP+SSE transport.

use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use super::agent::{INITIALIZE, StdioAgent, result};
use super::server::{ScriptedServer, ServerRequest, accepted, piece, reply, stream};

/// A server of the older transport that announces `endpoint`, and answers posts elsewhere with
/// `refusal`.
fn older(endpoint: &'static str, refusal: &'static str) -> ScriptedServer {
    let events: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    ScriptedServer::start(move |asked: &ServerRequest, out| {
        if asked.method == "GET" && asked.path == "/sse" {
            stream(out);
            // The client may post as soon as it knows the endpoint.
            *events.lock().unwrap() = Some(out.try_clone().unwrap());
            let host = asked.header("host").unwrap();
            piece(
                out,
                format!("event: endpoint\ndata: {}\n\n", endpoint.replace("HOST", host)).as_bytes(),
            );
            return;
        }
        if !asked.path.starts_with("/message") {
            return reply(out, refusal, "", "Cannot POST");
        }
        accepted(out);
        let mut events = events.lock().unwrap();
        let events = events.as_mut().unwrap();
        if asked.says("initialize") {
            let text = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}"#;
            piece(events, format!("event: message\ndata: {text}\n\n").as_bytes());
        } else if asked.body.contains("\"close\"") {
            events.shutdown(std::net::Shutdown::Both).unwrap();
        } else if asked.body.contains("\"id\"") {
            piece(
                events,
                format!("event: message\ndata: {}\n\n", result(asked.id(), "x")).as_bytes(),
            );
        }
    })
}

#[test]
fn an_older_server_is_found_out_and_spoken_to_in_its_way() {
    for (endpoint, refusal) in [
        ("/message?s=1", "404 Not Found"),
        ("message?s=1", "405 Method Not Allowed"),
        ("http://HOST/message?s=1", "400 Bad Request"),
    ] {
        let server = older(endpoint, refusal);
        let mut agent = StdioAgent::start(&format!("{}/sse", server.origin), &[]);
        agent.say(INITIALIZE);
        assert!(agent.hear().contains("2024-11-05"));
        agent.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        agent.call(1, "x");
        assert_eq!(agent.hear(), result("1", "x"));
        agent.call(2, "x");
        assert_eq!(agent.hear(), result("2", "x"));
        let ended = agent.leave();
        assert_eq!((ended.code, ended.rest.len()), (Some(0), 0), "{}", ended.stderr);
        let lines: Vec<_> =
            server.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect();
        assert_eq!(lines[..3], ["POST /sse", "GET /sse", "POST /message?s=1"]);
        assert!(lines[3..].iter().all(|line| line == "POST /message?s=1"), "{lines:?}");
        assert_eq!(server.count(|asked| asked.says("tools/call")), 2);
        // The refused attempt is not a message on the tape.
        assert!(ended.tape.contains(r#""client_messages":4"#), "{}", ended.tape);
    }
}

#[test]
fn an_endpoint_at_another_origin_is_not_used() {
    let server = older("http://evil.test/message", "404 Not Found");
    let mut agent = StdioAgent::start(&format!("{}/sse", server.origin), &[]);
    agent.say(INITIALIZE);
    let line = agent.hear();
    assert!(line.contains("\"id\":0,\"error\"") && line.contains("404"), "{line}");
    let ended = agent.leave();
    assert!(ended.stderr.contains("names a POST endpoint on another origin"));
}

#[test]
fn a_stream_that_ends_answers_what_waits_and_the_session_may_begin_again() {
    let server = older("/message", "404 Not Found");
    let mut agent = StdioAgent::start(&format!("{}/sse", server.origin), &[]);
    agent.say(INITIALIZE);
    agent.hear();
    agent.call(1, "close");
    let line = agent.hear();
    assert!(line.contains("\"id\":1,\"error\"") && line.contains("closed its stream"), "{line}");
    agent.say(INITIALIZE);
    assert!(agent.hear().contains("2024-11-05"));
    agent.call(2, "x");
    assert_eq!(agent.hear(), result("2", "x"));
    assert_eq!(agent.leave().code, Some(0));
}
