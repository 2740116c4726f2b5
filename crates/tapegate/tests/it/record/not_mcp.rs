//! Something other than an MCP server at the URL: a login page, a wrong path, a missing token.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::http_peers::WebServer;
use crate::support::text_of;

#[test]
fn what_answers_in_the_place_of_a_server_is_named_with_an_exit_code_and_only_messages_reach_the_client()
 {
    for (head, body, text) in [
        (
            "401 Unauthorized\r\ncontent-type: text/plain",
            "no",
            "401 Unauthorized: no; if it wants credentials, pass them with --header",
        ),
        ("404 Not Found\r\ncontent-type: text/html", "<html>\nnone</html>", "404 Not Found"),
        (
            "200 OK\r\ncontent-type: text/html",
            "<html>log in</html>",
            "200 OK with a body (text/html)",
        ),
        (
            "200 OK\r\ncontent-type: application/json",
            "log in",
            "200 OK with a body (application/json)",
        ),
        (
            "500 Internal Server Error\r\ncontent-type: text/html",
            "<h1>",
            "500 Internal Server Error",
        ),
        // JSON with an `error`, as gateways send it, is no answer of an MCP server.
        (
            "500 Internal Server Error\r\ncontent-type: application/json",
            r#"{"error":"db down"}"#,
            r#"500 Internal Server Error: {"error":"db down"}"#,
        ),
        (
            "502 Bad Gateway\r\ncontent-type: application/json",
            r#"{"error":null}"#,
            "502 Bad Gateway",
        ),
        (
            "503 Service Unavailable\r\ncontent-type: application/json",
            r#"{"error":{"message":"overloaded"}}"#,
            "503 Service Unavailable: overloaded",
        ),
        (
            "429 Too Many Requests\r\ncontent-type: application/json",
            r#"{"error":{"code":429,"message":"slow down"}}"#,
            "429 Too Many Requests: slow down",
        ),
    ] {
        let length = body.len();
        let reply = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}");
        let server = WebServer::start(move |_, out| out.write_all(reply.as_bytes()).is_ok());
        let folder = tempfile::tempdir().unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_tapegate"))
            .args(["record", "-o", "t.jsonl", "--upstream-http", &server.url("/mcp")])
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        writeln!(run.stdin.take().unwrap(), "{hello}").unwrap();
        let done = run.wait_with_output().unwrap();
        let (got, said) =
            (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
        assert_eq!(done.status.code(), Some(4), "{text}: {said}");
        assert!(said.contains("error: the MCP server") && said.contains(text), "{text}: {said}");
        assert_eq!(got.lines().count(), 1, "{got}");
        assert!(got.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":"#), "{got}");
        let tape = text_of(&folder.path().join("t.jsonl"));
        assert!(tape.contains("\"by\":\"tapegate\"}\n{\"type\":\"footer\""), "{tape}");
    }
}
