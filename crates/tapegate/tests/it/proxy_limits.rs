//! `tapegate record` between HTTP clients and an HTTP server: messages over the size limit.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::http_peers::{STREAM, WebRecorder, WebServer, ask, json};
use crate::proxy::{ANSWER, CALL, JSON, in_front_of};

#[test]
fn what_is_too_large_is_refused_and_the_session_goes_on() {
    let server = WebServer::start(|seen, out| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        let big = format!(r#"{{"result":"{}","jsonrpc":"2.0","id":1}}"#, "x".repeat(3000));
        if body.contains("events") {
            out.write_all(STREAM).unwrap();
            return write!(
                out,
                "data: {big}\n\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"after\"}}\n\n"
            )
            .is_err();
        }
        out.write_all(&json("", if body.contains("big") { &big } else { ANSWER })).is_ok()
    });
    let recorder = in_front_of(&server, "/mcp", &["--max-message-bytes", "2048"]);
    let large =
        format!(r#"{{"method":"x","params":"{}","jsonrpc":"2.0","id":"q"}}"#, "y".repeat(5000));
    let refused = ask(recorder.port, "POST /mcp", &[JSON], &large);
    assert_eq!(refused.status, 413);
    assert!(refused.body.contains(r#""id":"q","error":{"code":-32010"#), "{}", refused.body);
    assert!(server.seen().is_empty());
    let answer = ask(recorder.port, "POST /mcp", &[JSON], &CALL.replace('x', "big"));
    assert!(answer.body.contains(r#""id":1,"error":{"code":-32010"#), "{}", answer.body);
    let events = ask(recorder.port, "POST /mcp", &[JSON], &CALL.replace('x', "events"));
    assert!(
        events.body.contains(r#""id":1,"error":{"code":-32010"#) && events.body.contains("after"),
        "{}",
        events.body
    );
    assert_eq!(ask(recorder.port, "POST /mcp", &[JSON], CALL).body, ANSWER);
    let beside = recorder.tape_path().with_file_name("t.jsonl.anomalies.jsonl");
    let anomalies = std::fs::read_to_string(beside).unwrap();
    assert_eq!(
        anomalies.matches("\"parse_error\":\"message_too_large\"").count(),
        3,
        "{anomalies}"
    );
    recorder.end();
}

#[test]
fn an_answer_of_the_client_over_the_limit_reaches_the_server_as_an_error() {
    let server = WebServer::start(|seen, out| {
        if String::from_utf8_lossy(&seen.body).contains("method") {
            out.write_all(STREAM).unwrap();
            let question = r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#;
            return write!(out, "data: {question}\n\ndata: {ANSWER}\n\n").is_err();
        }
        out.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").is_ok()
    });
    let recorder = in_front_of(&server, "/mcp", &["--max-message-bytes", "2048"]);
    let headers = [JSON, "Mcp-Session-Id: s"];
    assert!(ask(recorder.port, "POST /mcp", &headers, CALL).body.contains("roots/list"));
    let large = format!(r#"{{"result":"{}","jsonrpc":"2.0","id":9}}"#, "y".repeat(5000));
    assert_eq!(ask(recorder.port, "POST /mcp", &headers, &large).status, 202);
    let told = String::from_utf8(server.wait(2)[1].body.clone()).unwrap();
    assert!(told.starts_with(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32010,"#), "{told}");
    recorder.end();
}

#[test]
fn a_batch_whose_answers_are_over_the_limit_gets_an_error_for_each() {
    let server = WebServer::start(|_, out| {
        let big = format!(r#"[{{"result":"{}","jsonrpc":"2.0","id":1}}]"#, "x".repeat(3000));
        out.write_all(&json("", &big)).is_ok()
    });
    let recorder = in_front_of(&server, "/mcp", &["--max-message-bytes", "2048"]);
    let batch = format!("[{CALL},{}]", CALL.replace("\"id\":1", "\"id\":2"));
    let got = ask(recorder.port, "POST /mcp", &[JSON], &batch);
    assert!(
        got.status == 502 && got.body.starts_with('[') && got.body.matches("error").count() == 2,
        "{} {}",
        got.status,
        got.body
    );
}

#[test]
fn a_question_of_the_server_over_the_limit_is_answered_with_an_error() {
    let server = WebServer::start(|seen, out| {
        if !String::from_utf8_lossy(&seen.body).contains("tools/call") {
            return out.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").is_ok();
        }
        let pad = "x".repeat(3000);
        let question = format!(r#"{{"method":"sampling/createMessage","params":"{pad}","id":71}}"#);
        out.write_all(STREAM).unwrap();
        write!(out, "data: {question}\n\ndata: {ANSWER}\n\n").is_err()
    });
    let recorder = in_front_of(&server, "/mcp", &["--max-message-bytes", "2048"]);
    let got = ask(recorder.port, "POST /mcp", &[JSON, "Mcp-Session-Id: s"], CALL);
    assert_eq!(got.body, format!("data: {ANSWER}\n\n"));
    let told = &server.wait(2)[1];
    let body = String::from_utf8_lossy(&told.body);
    assert!(body.starts_with(r#"{"jsonrpc":"2.0","id":71,"error":{"code":-32010,"#), "{body}");
    assert_eq!(told.header("mcp-session-id"), Some("s"));
    let (_, tape) = recorder.end();
    assert!(tape.contains(r#""id":71,"error""#), "{tape}");
}

/// The start of an endless request: a call, and then nothing but a string.
const ENDLESS: &str = r#"{"jsonrpc":"2.0","id":"q","method":"tools/call","params":""#;

/// Starts a request whose body has the given length, or any.
fn begin(port: u16, length: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let accept = "Accept: application/json, text/event-stream";
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{JSON}\r\n{accept}\r\n{length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Both kinds of recorder that clients reach over HTTP.
fn recorders() -> (WebServer, [WebRecorder; 2]) {
    let server = WebServer::start(|_, out| out.write_all(&json("", ANSWER)).is_ok());
    let proxy = in_front_of(&server, "/mcp", &["--max-message-bytes", "2048"]);
    let bridge = WebRecorder::start(&["--max-message-bytes", "2048", "--", "cat"]);
    (server, [proxy, bridge])
}

/// Reads the refusal that ends a connection.
fn refused(mut stream: TcpStream) {
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert!(head.to_ascii_lowercase().contains("\r\nconnection: close"), "{head}");
    assert!(body.contains(r#""id":"q","error":{"code":-32010"#), "{body}");
}

fn anomalies(recorder: &WebRecorder) -> String {
    let beside = recorder.tape_path().with_file_name("t.jsonl.anomalies.jsonl");
    std::fs::read_to_string(beside).unwrap()
}

#[test]
fn a_body_that_is_told_to_be_endless_is_refused_before_it_has_come() {
    let (_server, recorders) = recorders();
    for recorder in recorders {
        let mut stream = begin(recorder.port, "Content-Length: 99999999999");
        stream.write_all(ENDLESS.as_bytes()).unwrap();
        refused(stream);
        let anomalies = anomalies(&recorder);
        assert!(anomalies.contains("message_too_large") && anomalies.contains("tools/call"));
        let got = ask(recorder.port, "POST /mcp", &[JSON], "{}");
        assert_ne!(got.status, 0);
        recorder.end();
    }
}

#[test]
fn a_body_over_the_limit_that_stalls_is_refused_with_its_length() {
    let (_server, recorders) = recorders();
    let streams = recorders.each_ref().map(|recorder| {
        let mut stream = begin(recorder.port, "Content-Length: 5000");
        stream.write_all(ENDLESS.as_bytes()).unwrap();
        stream
    });
    streams.into_iter().for_each(refused);
    for recorder in recorders {
        let anomalies = anomalies(&recorder);
        assert!(anomalies.contains("\"bytes\":5000"), "{anomalies}");
        recorder.end();
    }
}

#[test]
fn a_body_that_never_ends_is_refused_and_the_connection_closed() {
    let (_server, recorders) = recorders();
    for recorder in recorders {
        let mut stream = begin(recorder.port, "Transfer-Encoding: chunked");
        let mut writer = stream.try_clone().unwrap();
        write!(stream, "{:x}\r\n{ENDLESS}\r\n", ENDLESS.len()).unwrap();
        let writing = std::thread::spawn(move || {
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            // Until it is disconnected, at the latest after 16 GiB.
            (0..1 << 18).find(|_| writer.write_all(chunk.as_bytes()).is_err())
        });
        let mut reply = vec![0; 4096];
        let count = stream.read(&mut reply).unwrap();
        let reply = String::from_utf8_lossy(&reply[..count]);
        assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
        assert!(writing.join().unwrap().is_some());
        assert!(anomalies(&recorder).contains("message_too_large"));
        recorder.end();
    }
}
