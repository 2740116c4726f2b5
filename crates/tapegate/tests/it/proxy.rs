//! `tapegate record` between HTTP clients and an HTTP server.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::mpsc;

use crate::http_peers::{STREAM, WebRecorder, WebServer, ask, json, send};
use crate::support::{GUARD, Latch, hang};

pub(crate) const JSON: &str = "Content-Type: application/json";
pub(crate) const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
pub(crate) const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"n":1.0,"a":12345678901234567890}}"#;

pub(crate) fn in_front_of(server: &WebServer, path: &str, more: &[&str]) -> WebRecorder {
    let url = server.url(path);
    let arguments: Vec<&str> =
        ["--upstream-http", &url].into_iter().chain(more.iter().copied()).collect();
    WebRecorder::start(&arguments)
}

#[test]
fn status_headers_and_bytes_pass_unchanged_both_ways() {
    let server = WebServer::start(|_, out| {
        let reply = "HTTP/1.1 418 I'm a teapot\r\nX-Odd: Yes\r\nX-Odd: Twice\r\nMcp-Session-Id: s-1\r\n\
                     Content-Type: application/json\r\nContent-Length: 68\r\n\r\n";
        out.write_all(format!("{reply}{ANSWER}").as_bytes()).is_ok()
    });
    let recorder = in_front_of(&server, "/deep/mcp?key=v", &["--header", "X-Ours: 1"]);
    let headers = [
        JSON,
        "Authorization: Bearer t",
        "MCP-Protocol-Version: 2025-06-18",
        "Mcp-Session-Id: abc",
        "Last-Event-ID: 7",
        "X-Client: 1",
        "Accept-Encoding: gzip, br",
        "Origin: http://localhost:5",
    ];
    let got = ask(recorder.port, "POST /mcp", &headers, CALL);
    assert_eq!((got.status, got.body.as_str()), (418, ANSWER));
    assert!(got.head.contains("X-Odd: Yes\r\nX-Odd: Twice\r\nMcp-Session-Id: s-1"), "{}", got.head);
    let seen = &server.seen()[0];
    assert!(seen.head.starts_with("POST /deep/mcp?key=v HTTP/1.1"), "{}", seen.head);
    assert_eq!(seen.body, CALL.as_bytes());
    for (name, value) in [
        ("authorization", "Bearer t"),
        ("mcp-protocol-version", "2025-06-18"),
        ("mcp-session-id", "abc"),
        ("last-event-id", "7"),
        ("x-client", "1"),
        ("x-ours", "1"),
        ("origin", "http://localhost:5"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert!(seen.head.contains("\r\nMCP-Protocol-Version: 2025-06-18\r\n"), "{}", seen.head);
    assert_eq!(seen.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    let (status, tape) = recorder.end();
    assert_eq!(status.code(), Some(143));
    assert!(
        tape.contains(&format!("\"msg\":{CALL}")) && tape.contains(&format!("\"msg\":{ANSWER}")),
        "{tape}"
    );
    assert!(!tape.contains("Bearer") && !tape.contains("abc"), "{tape}");
}

#[test]
fn a_call_answered_by_events_runs_once_and_the_first_event_is_not_its_answer() {
    let server = WebServer::start(|_, out| {
        out.write_all(STREAM).unwrap();
        let progress =
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
        let text = format!(
            ": hi\n\nid: e1\ndata: {progress}\n\nevent: message\r\nid: e2\r\ndata: {ANSWER}\r\n\r\n"
        );
        // One byte at a time: events are reassembled whatever the chunks are.
        for byte in text.as_bytes() {
            out.write_all(&[*byte]).unwrap();
            out.flush().unwrap();
        }
        false
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    let got = ask(recorder.port, "POST /mcp", &[JSON], CALL);
    assert!(got.body.starts_with(": hi\n\nid: e1\ndata: {") && got.body.ends_with("id: e2\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":1.0,\"a\":12345678901234567890}}\r\n\r\n"), "{}", got.body);
    assert_eq!(server.seen().len(), 1);
    let (_, tape) = recorder.end();
    let lines: Vec<_> = tape.lines().collect();
    assert_eq!(lines.len(), 5, "{tape}");
    assert!(lines[2].contains("notifications/progress") && !lines[2].contains("latency_ms"));
    assert!(
        lines[3].contains(ANSWER)
            && lines[3].contains("\"latency_ms\":")
            && lines[3].contains("\"req\":1")
    );
}

#[test]
fn an_event_is_on_the_tape_before_the_client_sees_it() {
    let (go, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let server = WebServer::start(move |_, out| {
        out.write_all(STREAM).unwrap();
        for n in 1..=3 {
            write!(out, "data: {{\"jsonrpc\":\"2.0\",\"method\":\"n{n}\"}}\n\n").unwrap();
            gate.lock().unwrap().recv().ok();
        }
        false
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    let mut stream =
        send(recorder.port, "GET /mcp", &["Accept: text/event-stream", "Mcp-Session-Id: a"], "");
    let mut text = String::new();
    for n in 1..=3 {
        let mut byte = [0];
        while !text.ends_with(&format!("\"n{n}\"}}\n\n")) {
            stream.read_exact(&mut byte).unwrap();
            text.push(char::from(byte[0]));
        }
        assert!(
            recorder.tape().contains(&format!("\"method\":\"n{n}\"")),
            "event {n} is not on the tape"
        );
        go.send(()).unwrap();
    }
}

#[test]
fn what_comes_on_a_stream_that_was_gone_on_with_is_marked() {
    let server = WebServer::start(|seen, out| {
        out.write_all(STREAM).unwrap();
        let text = match (seen.head.starts_with("POST"), seen.header("last-event-id")) {
            (true, _) => "id: e1\nretry: 5\ndata:\n\n".to_owned(),
            (false, None) => "data: {\"jsonrpc\":\"2.0\",\"method\":\"news\"}\n\n".to_owned(),
            (false, Some(_)) => format!("id: e2\ndata: {ANSWER}\n\n"),
        };
        out.write_all(text.as_bytes()).unwrap();
        false
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    let session = "Mcp-Session-Id: a";
    // Only the stream of a GET can be resumed.
    ask(recorder.port, "POST /mcp", &[JSON, session, "Last-Event-ID: x"], CALL);
    ask(recorder.port, "GET /mcp", &["Accept: text/event-stream", session], "");
    let last = "Last-Event-ID: e1";
    ask(recorder.port, "GET /mcp", &["Accept: text/event-stream", session, last], "");
    let (_, tape) = recorder.end();
    let lines: Vec<_> = tape.lines().collect();
    assert!(lines[2].ends_with("\"msg\":{\"jsonrpc\":\"2.0\",\"method\":\"news\"}}"), "{tape}");
    assert!(lines[3].contains(ANSWER), "{tape}");
    assert!(lines[3].ends_with(",\"req\":1,\"resumed\":true}"), "{tape}");
}

#[test]
fn sessions_are_told_apart_on_the_tape() {
    let server = WebServer::start(|seen, out| {
        if seen.head.starts_with("DELETE") {
            return out.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_ok();
        }
        let body = String::from_utf8_lossy(&seen.body);
        let session = if body.contains("\"one\"") {
            "Mcp-Session-Id: S1\r\n"
        } else {
            "Mcp-Session-Id: S2\r\n"
        };
        let extra = if body.contains("initialize") { session } else { "" };
        out.write_all(&json(extra, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)).is_ok()
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    for name in ["one", "two"] {
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"clientInfo":{{"name":"{name}"}}}}}}"#
        );
        assert_eq!(ask(recorder.port, "POST /mcp", &[JSON], &hello).status, 200);
    }
    for session in ["S2", "S1"] {
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        ask(recorder.port, "POST /mcp", &[JSON, &format!("Mcp-Session-Id: {session}")], list);
    }
    assert_eq!(ask(recorder.port, "DELETE /mcp", &["Mcp-Session-Id: S1"], "").status, 200);
    assert!(server.seen()[4].head.starts_with("DELETE /mcp"));
    let (_, tape) = recorder.end();
    let sessions: Vec<_> =
        tape.lines().skip(1).map(|line| line.contains("\"session\":\"s2\"")).collect();
    assert_eq!(sessions, [false, false, true, true, true, true, false, false, false], "{tape}");
}

#[test]
fn clients_without_a_session_may_use_the_same_id_at_once() {
    let overtaken = Latch::default();
    let turn = overtaken.clone();
    let server = WebServer::start(move |seen, out| {
        let slow = String::from_utf8_lossy(&seen.body).contains("slow");
        if slow {
            turn.wait();
        }
        let word = if slow { "slow" } else { "quick" };
        out.write_all(&json("", &format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{word}"}}"#)))
            .is_ok()
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    let port = recorder.port;
    let call = |word: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{word}"}}}}"#)
    };
    let slow = std::thread::spawn({
        let text = call("slow");
        move || ask(port, "POST /mcp", &[JSON], &text)
    });
    server.wait(1);
    assert!(ask(port, "POST /mcp", &[JSON], &call("quick")).body.contains("quick"));
    overtaken.open();
    assert!(slow.join().unwrap().body.contains("slow"));
    let (_, tape) = recorder.end();
    let line = |word: &str| tape.lines().find(|line| line.contains(word)).unwrap().to_owned();
    assert!(line("\"result\":\"quick\"").contains("\"req\":2"), "{tape}");
    assert!(line("\"result\":\"slow\"").contains("\"req\":1"), "{tape}");
}

#[test]
fn a_client_that_leaves_is_felt_by_the_server() {
    let (left, felt) = mpsc::channel();
    let left = std::sync::Mutex::new(left);
    let server = WebServer::start(move |_, out| {
        // Nothing more arrives on this connection unless it is closed.
        let gone = out.read(&mut [0]).map_or(true, |count| count == 0);
        left.lock().unwrap().send(gone).unwrap();
        false
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    let stream = send(recorder.port, "POST /mcp", &[JSON], CALL);
    server.wait(1);
    drop(stream);
    assert!(felt.recv_timeout(GUARD).unwrap());
}

#[test]
fn an_endpoint_or_redirect_to_the_servers_own_origin_stays_at_the_recorder() {
    let server = WebServer::start(|seen, out| {
        let host = seen.header("host").unwrap_or_default().to_owned();
        if seen.head.starts_with("GET /a/sse") {
            out.write_all(STREAM).unwrap();
            write!(out, "event: endpoint\ndata: http://{host}/a/messages?sessionId=1\n\n").unwrap();
            write!(out, "event: message\ndata: {ANSWER}\n\n").unwrap();
            return false;
        }
        if seen.head.starts_with("POST /a/messages?sessionId=1") {
            return out
                .write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 8\r\n\r\nAccepted")
                .is_ok();
        }
        let reply = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{host}/b?c=d\r\ncontent-length: 0\r\n\r\n"
        );
        out.write_all(reply.as_bytes()).is_ok()
    });
    let recorder = in_front_of(&server, "/a/sse", &[]);
    let events = ask(recorder.port, "GET /mcp", &["Accept: text/event-stream"], "");
    assert!(
        events.body.starts_with("event: endpoint\ndata: /a/messages?sessionId=1\n\n"),
        "{}",
        events.body
    );
    let accepted = ask(recorder.port, "POST /a/messages?sessionId=1", &[JSON], CALL);
    assert_eq!((accepted.status, accepted.body.as_str()), (202, "Accepted"));
    assert_eq!(ask(recorder.port, "GET /x", &[], "").header("location"), Some("/b?c=d"));
    let (_, tape) = recorder.end();
    assert!(tape.contains(CALL) && tape.contains(ANSWER) && !tape.contains("Accepted"), "{tape}");
}

#[test]
fn other_hosts_and_other_pages_are_refused() {
    let server = WebServer::start(|_, out| out.write_all(&json("", ANSWER)).is_ok());
    let recorder = in_front_of(&server, "/mcp", &[]);
    for header in ["Host: evil.test", "Origin: http://evil.test", "Origin: null"] {
        assert_eq!(ask(recorder.port, "POST /mcp", &[JSON, header], CALL).status, 403, "{header}");
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_server_that_is_not_there_gives_an_error_for_the_request() {
    let recorder = WebRecorder::start(&["--upstream-http", "http://127.0.0.1:1/mcp"]);
    let got = ask(recorder.port, "POST /mcp", &[JSON], CALL);
    assert_eq!(got.status, 502);
    assert!(
        got.body.contains(r#""id":1,"error":{"code":-32000,"message":"cannot reach 127.0.0.1:1"#),
        "{}",
        got.body
    );
    let (_, tape) = recorder.end();
    assert!(tape.contains("\"by\":\"tapegate\""), "{tape}");
}

#[test]
fn what_is_no_message_passes_but_is_not_on_the_tape() {
    let server = WebServer::start(|_, out| {
        out.write_all(&json("", r#"{"client_secret":"s3cret"}"#)).is_ok()
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    assert!(
        ask(recorder.port, "GET /.well-known/oauth-protected-resource", &[], "")
            .body
            .contains("s3cret")
    );
    assert!(
        ask(recorder.port, "POST /register", &[JSON], r#"{"client_name":"x"}"#)
            .body
            .contains("s3cret")
    );
    let (_, tape) = recorder.end();
    assert_eq!(tape.lines().count(), 2, "{tape}");
}

#[test]
fn a_pretty_printed_body_passes_as_it_is_and_takes_one_line_on_the_tape() {
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": \"a\\n b\"\n}\n";
    let server = WebServer::start(move |_, out| out.write_all(&json("", pretty)).is_ok());
    let recorder = in_front_of(&server, "/mcp", &[]);
    assert_eq!(ask(recorder.port, "POST /mcp", &[JSON], CALL).body, pretty);
    let (_, tape) = recorder.end();
    assert!(tape.contains(r#""msg":{"jsonrpc":"2.0","id":1,"result":"a\n b"}"#), "{tape}");
}

#[test]
fn a_server_behind_tls_is_trusted_by_the_systems_roots_only() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("bash")
        .current_dir(folder.path())
        .args(["-ec", MAKE_CERTIFICATES])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut server = Command::new("openssl")
        .current_dir(folder.path())
        .args([
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-cert",
            "leaf.pem",
            "-key",
            "leaf.key",
            "-www",
        ])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("ACCEPT") {
        line.clear();
        assert_ne!(
            std::io::BufRead::read_line(&mut out, &mut line).unwrap(),
            0,
            "openssl did not start"
        );
    }
    let url = format!("https://localhost:{}/", line.trim().rsplit(':').next().unwrap());
    let roots = folder.path().join("ca.pem");
    let trusting = WebRecorder::start_with(&["--upstream-http", &url], |command| {
        command.env("SSL_CERT_FILE", &roots);
    });
    assert!(ask(trusting.port, "GET /", &[], "").body.contains("s_server"));
    let doubting = WebRecorder::start(&["--upstream-http", &url]);
    let refused = ask(doubting.port, "GET /", &[], "");
    assert_eq!(refused.status, 502);
    assert!(refused.body.contains("certificate"), "{}", refused.body);
    server.kill().unwrap();
    server.wait().unwrap();
}

const MAKE_CERTIFICATES: &str = "
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca
openssl req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=localhost
printf 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE' > ext
openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 2 -extfile ext
";

#[test]
fn no_event_passes_unrecorded_however_its_stream_begins_and_ends() {
    let stream = [
        "\u{feff}data: {\"jsonrpc\":\"2.0\",\"method\":\"marked\"}\n\n",
        "event:\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"nameless\"}\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"torn\"}\n",
    ]
    .concat();
    let sent = stream.clone();
    let server = WebServer::start(move |_, out| {
        out.write_all(&[STREAM, sent.as_bytes()].concat()).unwrap();
        false
    });
    let recorder = in_front_of(&server, "/mcp", &[]);
    let got = ask(recorder.port, "POST /mcp", &[JSON], CALL);
    assert_eq!(got.body, stream);
    let (_, tape) = recorder.end();
    for method in ["marked", "nameless", "torn"] {
        assert!(tape.contains(&format!("\"method\":\"{method}\"")), "{method}: {tape}");
    }
    assert_eq!(tape.matches("\"unterminated\":true").count(), 1, "{tape}");
}

#[test]
fn whoever_waits_for_an_answer_is_told_when_a_signal_ends_the_recorder() {
    for begins in [&b""[..], STREAM] {
        let server = WebServer::start(move |_, out| {
            out.write_all(begins).unwrap();
            hang()
        });
        let recorder = in_front_of(&server, "/mcp", &[]);
        let mut client = send(recorder.port, "POST /mcp", &[JSON], CALL);
        server.wait(1);
        let (status, tape) = recorder.end();
        assert_eq!(status.code(), Some(143));
        let mut got = String::new();
        client.read_to_string(&mut got).unwrap();
        let output_text = "signal 15 stopped tapegate before the MCP server answered";
        assert!(got.contains(output_text) && tape.contains(output_text), "{got}\n{tape}");
    }
}

#[test]
fn a_batch_is_on_the_tape_wherever_it_is_posted() {
    let server =
        WebServer::start(|_, out| out.write_all(&json("", &format!("[{ANSWER}]"))).is_ok());
    let recorder = in_front_of(&server, "/mcp", &[]);
    let got = ask(recorder.port, "POST /mcp/", &[JSON], &format!("[{CALL}]"));
    assert_eq!(got.body, format!("[{ANSWER}]"));
    let (_, tape) = recorder.end();
    assert!(tape.contains(CALL) && tape.contains(ANSWER), "{tape}");
}

#[test]
fn a_signal_is_told_on_the_stream_of_a_legacy_session() {
    let server = WebServer::start(|seen, out| {
        if seen.head.starts_with("POST") {
            return out.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").is_ok();
        }
        out.write_all(&[STREAM, b"event: endpoint\ndata: /post?s=1\n\n"].concat()).unwrap();
        hang()
    });
    let recorder = in_front_of(&server, "/sse", &[]);
    let mut stream = send(recorder.port, "GET /sse", &["Accept: text/event-stream"], "");
    let mut text = String::new();
    while !text.contains("/post?s=1\n\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    for id in 1..=2 {
        let call = CALL.replace("\"id\":1", &format!("\"id\":{id}"));
        assert_eq!(ask(recorder.port, "POST /post?s=1", &[JSON], &call).status, 202);
    }
    let (_, tape) = recorder.end();
    stream.read_to_string(&mut text).unwrap();
    let output_text = "signal 15 stopped tapegate before the MCP server answered";
    assert_eq!(
        (text.matches(output_text).count(), tape.matches(output_text).count()),
        (2, 2),
        "{text}"
    );
}
