//! `tapegate record --upstream-http`: a client on pipes, a server over HTTP.

mod agent;
mod legacy_transport;
mod server;
mod shutdown;
mod stateless_revision;
mod streams;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use agent::{INITIALIZE, INITIALIZED, StdioAgent, call, result};
use server::{ScriptedServer, accepted, json, opens, reply};

use crate::support::{wait_until, wait_until_idle};

#[test]
fn a_session_is_opened_used_and_deleted() {
    let server = ScriptedServer::start(|asked, stream| {
        if !opens(asked, stream) {
            json(
                stream,
                &format!(
                    "{{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": {},\n  \"result\": {{ \"a\": \"x  y\" }}\n}}\n",
                    asked.id()
                ),
            );
        }
    });
    let mut agent =
        StdioAgent::open(&format!("{}/mcp?k=v", server.origin), &["--header", "X-Key: k1"]);
    agent.say(
        "  {\"id\":7,  \"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"n\":1.0}} ",
    );
    assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","id":7,"result":{"a":"x  y"}}"#);
    let ended = agent.leave();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    let asked = server.asked();
    let methods: Vec<_> = asked.iter().map(|asked| asked.method.as_str()).collect();
    assert_eq!(methods, ["POST", "POST", "GET", "POST", "DELETE"]);
    assert!(
        asked.iter().all(|asked| asked.path == "/mcp?k=v" && asked.header("x-key") == Some("k1"))
    );
    assert_eq!(asked[0].body, INITIALIZE);
    assert_eq!(asked[0].header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(asked[0].header("content-type"), Some("application/json"));
    assert_eq!(
        (asked[0].header("mcp-session-id"), asked[0].header("mcp-protocol-version")),
        (None, None)
    );
    for later in &asked[1..] {
        assert_eq!(later.header("mcp-session-id"), Some("s-1"));
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-06-18"));
    }
    assert_eq!(asked[2].header("accept"), Some("text/event-stream"));
    assert!(asked[3].body.starts_with("  {\"id\":7,  ") && asked[3].body.ends_with("}} "));
    assert_eq!(ended.tape.lines().count(), 7, "{}", ended.tape);
    assert!(ended.tape.contains(r#""total_messages":5"#), "{}", ended.tape);
}

#[test]
fn a_header_is_taken_from_a_variable_and_is_not_on_the_command_line() {
    let server = ScriptedServer::start(|asked, stream| assert!(opens(asked, stream)));
    let flags = ["--header-env", "X-Key=PATH", "--bearer-env", "PATH"];
    let agent = StdioAgent::open(&server.origin, &flags);
    let ended = agent.leave();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let path = std::env::var("PATH").unwrap();
    let bearer = format!("Bearer {path}");
    let has_both = |asked: &server::ServerRequest| {
        asked.header("x-key") == Some(&*path) && asked.header("authorization") == Some(&*bearer)
    };
    assert!(server.asked().iter().all(has_both), "{}", server.asked().len());
}

#[test]
fn every_http_error_becomes_an_answer_for_the_one_who_asked() {
    let server = ScriptedServer::start(|asked, stream| {
        if opens(asked, stream) {
            return;
        }
        let kind = "Content-Type: application/json\r\n";
        let error = |id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32099,"message":"own words","data":[1.0]}}}}"#
            )
        };
        match asked.id() {
            "1" => reply(stream, "400 Bad Request", kind, &error("null")),
            "2" => reply(stream, "400 Bad Request", kind, &error("2")),
            "3" => reply(stream, "401 Unauthorized", "", ""),
            "4" => reply(stream, "404 Not Found", kind, &error("null")),
            "5" => reply(
                stream,
                "500 Internal Server Error",
                "Content-Type: text/plain\r\n",
                "it\n broke",
            ),
            "6" => reply(stream, "200 OK", "", ""),
            "7" => json(stream, "no json"),
            "8" => json(stream, &result("99", "x")),
            _ => stream.shutdown(std::net::Shutdown::Both).unwrap(),
        }
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    let mut ask = |id: u32| {
        agent.call(id, "x");
        agent.hear()
    };
    assert_eq!(
        ask(1),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32099,"message":"own words","data":[1.0]}}"#
    );
    assert_eq!(
        ask(2),
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32099,"message":"own words","data":[1.0]}}"#
    );
    let expect = |line: String, id: u32, text: &str| {
        assert!(
            line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":")),
            "{line}"
        );
        assert!(line.contains(text), "{line}");
    };
    expect(ask(3), 3, "--header 'Authorization: Bearer TOKEN'");
    expect(ask(4), 4, "no longer knows this session (404 Not Found: own words)");
    expect(ask(5), 5, "answered 500 Internal Server Error: it broke");
    expect(ask(6), 6, "answered 200 OK and nothing else");
    expect(ask(7), 7, "reply has no answer");
    agent.call(8, "x");
    assert_eq!(agent.hear(), result("99", "x"));
    expect(agent.hear(), 8, "reply has no answer");
    agent.call(9, "x");
    expect(agent.hear(), 9, "cannot reach");
    for id in 1..=9 {
        assert_eq!(
            server.count(|asked| asked.says("tools/call") && asked.id() == id.to_string()),
            1
        );
    }
    let ended = agent.leave();
    assert_eq!(ended.code, Some(0));
    assert!(ended.rest.is_empty());
}

#[test]
fn what_must_not_be_overtaken_is_waited_for_and_requests_are_not() {
    let busy = Arc::new(Mutex::new(Vec::new()));
    let (most, now) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let (log, peak) = (Arc::clone(&busy), Arc::clone(&most));
    let recorder = Arc::<OnceLock<u32>>::default();
    let pid = Arc::clone(&recorder);
    let server = ScriptedServer::start(move |asked, stream| {
        let slow = !asked.says("tools/call") && asked.method == "POST";
        if slow {
            log.lock().unwrap().push(format!("begin {}", asked.id()));
            // Whatever it sends without an answer, it has sent by then.
            wait_until_idle(*pid.wait());
            log.lock().unwrap().push(format!("end {}", asked.id()));
        } else if asked.method == "POST" {
            log.lock().unwrap().push(format!("call {}", asked.id()));
        }
        if opens(asked, stream) {
            return;
        }
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Calls that run one after another would never reach this concurrency.
        wait_until("more calls at once", || peak.load(Ordering::SeqCst) > 4);
        now.fetch_sub(1, Ordering::SeqCst);
        json(stream, &result(asked.id(), "done"));
    });
    let mut agent = StdioAgent::start(&server.origin, &[]);
    agent.say(INITIALIZE);
    agent.say(INITIALIZED);
    for id in 1..=20 {
        agent.call(id, "x");
    }
    recorder.set(agent.pid()).unwrap();
    let answers: Vec<_> = (0..21).map(|_| agent.hear()).collect();
    assert!(answers[0].contains("2025-06-18"));
    assert_eq!(agent.leave().code, Some(0));
    let busy = busy.lock().unwrap();
    assert_eq!(busy[..4], ["begin 0", "end 0", "begin null", "end null"]);
    assert!(most.load(Ordering::SeqCst) > 4, "calls ran one after another");
}

#[test]
fn thousands_of_requests_at_once_are_all_answered() {
    let server = ScriptedServer::start(|asked, stream| {
        if !opens(asked, stream) {
            json(stream, &result(asked.id(), &"w".repeat(1000)));
        }
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    let many = 3000;
    for id in 1..=many {
        agent.call(id, "x");
    }
    let mut ids: Vec<u32> = (0..many)
        .map(|_| agent.hear().split([':', ',']).nth(3).unwrap().parse().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=many).collect::<Vec<_>>());
    assert_eq!(agent.leave().code, Some(0));
    assert_eq!(server.count(|asked| asked.says("tools/call")), many as usize);
}

#[test]
fn a_redirect_at_home_is_followed_and_one_abroad_is_not() {
    let server = ScriptedServer::start(|asked, stream| match asked.path.as_str() {
        "/mcp/" if opens(asked, stream) => {}
        "/mcp/" => json(stream, &result(asked.id(), "done")),
        "/abroad" => reply(stream, "307 Temporary Redirect", "Location: http://evil.test/\r\n", ""),
        _ => reply(stream, "307 Temporary Redirect", "Location: /mcp/\r\n", ""),
    });
    let mut agent = StdioAgent::open(&format!("{}/mcp", server.origin), &[]);
    agent.call(1, "x");
    assert_eq!(agent.hear(), result("1", "done"));
    assert_eq!(agent.leave().code, Some(0));
    assert_eq!(server.count(|asked| asked.path == "/mcp"), 1);

    let mut agent = StdioAgent::start(&format!("{}/abroad", server.origin), &[]);
    agent.say(INITIALIZE);
    assert!(agent.hear().contains("307 Temporary Redirect"));
    agent.leave();
}

#[test]
fn messages_over_the_limit_are_refused_and_the_session_goes_on() {
    let server = ScriptedServer::start(|asked, stream| {
        if opens(asked, stream) {
            return;
        }
        let large = result(asked.id(), &"x".repeat(200_000));
        if asked.id() == "1" {
            return json(stream, &large);
        }
        if asked.id() == "4" {
            return json(stream, &result("4", "small"));
        }
        server::stream(stream);
        for part in format!(
            "id: 1\ndata: {large}\n\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"after\"}}\n\n"
        )
        .as_bytes()
        .chunks(5000)
        {
            server::piece(stream, part);
        }
        server::end(stream);
    });
    let mut agent = StdioAgent::open(&server.origin, &["--max-message-bytes", "64KB"]);
    for id in [1, 2] {
        agent.call(id, "x");
        let line = agent.hear();
        assert!(line.contains(&format!("\"id\":{id},\"error\":{{\"code\":-32010")), "{line}");
    }
    assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","method":"after"}"#);
    agent.say(&call(3, &"y".repeat(100_000)));
    let line = agent.hear();
    assert!(line.contains("\"id\":3,\"error\":{\"code\":-32010"), "{line}");
    agent.call(4, "x");
    assert_eq!(agent.hear(), result("4", "small"));
    let ended = agent.leave();
    assert_eq!(ended.code, Some(0));
    assert!(ended.rest.is_empty(), "{:?}", ended.rest);
    assert_eq!(server.count(|asked| asked.body.contains("yyy")), 0);
}

#[test]
fn a_batch_goes_out_and_comes_back_as_one_line() {
    let server = ScriptedServer::start(|asked, stream| {
        if asked.body.starts_with('[') && !asked.body.contains("\"id\"") {
            accepted(stream);
        } else if asked.body.starts_with('[') {
            json(stream, &format!("[{},\n{}]", result("1", "a"), result("2", "b")));
        } else {
            opens(asked, stream);
        }
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    let batch = format!("[{},{}]", call(1, "a"), call(2, "b"));
    agent.say(&format!("[{INITIALIZED}]"));
    agent.say(&batch);
    assert_eq!(agent.hear(), format!("[{},{}]", result("1", "a"), result("2", "b")));
    let ended = agent.leave();
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0));
    assert_eq!(server.count(|asked| asked.body == batch), 1);
}
