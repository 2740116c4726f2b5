//! `tapegate record` between HTTP clients and an HTTP server: what is over the size limit.

use std::io::Write;

use crate::proxy::{ANSWER, CALL, JSON, in_front_of};
use crate::web::{STREAM, WebServer, ask, json};

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
