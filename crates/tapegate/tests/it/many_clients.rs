//! Sixty clients whose large requests never end: memory is bounded, and other clients are served.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::http_peers::{WebServer, ask, json};
use crate::shim::setup::FORWARD;
use crate::support::{GUARD, RunningSession, record, replay, shim};

const JSON: &str = "content-type: application/json";
const ACCEPT: &str = "accept: application/json, text/event-stream";
const CLIENTS: usize = 60;
const BODY_BYTES: usize = 9_900_000;
/// The documented bound: 128 MiB of bodies, and room for 60 connections and the program itself.
const MEMORY_KB_MAX: u64 = 200 * 1024;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// A request of ten megabytes without its end.
fn unfinished(port: u16) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    // Clients without room are not read from, and refused ones are disconnected.
    stream.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{JSON}\r\n{ACCEPT}\r\ncontent-length: {BODY_BYTES}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let piece = vec![b' '; 100_000];
    (0..90).find(|_| stream.write_all(&piece).is_err());
    stream
}

fn ping(padding: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#,
        "x".repeat(padding)
    )
}

fn bears_a_crowd(run: &RunningSession) {
    let port = run.port();
    let (sent, over) = (Barrier::new(CLIENTS + 1), Barrier::new(CLIENTS + 1));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let stream = unfinished(port);
                sent.wait();
                over.wait();
                drop(stream);
            });
        }
        sent.wait();
        let got = ask(port, "POST /mcp", &[JSON, ACCEPT], &ping(10));
        assert!(got.status != 0 && got.status != 503, "a small request is served: {got:?}");
        let memory_kb = run.memory_kb_max();
        assert!(memory_kb < MEMORY_KB_MAX, "{memory_kb} KB");
        over.wait();
    });
    let begin = Instant::now();
    while ask(port, "POST /mcp", &[JSON, ACCEPT], &ping(5_000_000)).status == 503 {
        assert!(begin.elapsed() < GUARD, "large requests are not served again");
    }
}

#[test]
fn a_recorder_between_http_peers_bears_a_crowd() {
    let server = WebServer::start(|_, stream| stream.write_all(&json("", ANSWER)).is_ok());
    let setup = record(&[]).server(&[]).flags(&["--http", "127.0.0.1:0"]);
    bears_a_crowd(&setup.flags(&["--upstream-http", &server.url("/mcp")]).start());
}

#[test]
fn a_governed_shim_in_front_of_a_process_bears_a_crowd() {
    bears_a_crowd(&shim(FORWARD, &["serve"]).flags(&["--http", "127.0.0.1:0"]).start());
}

#[test]
fn a_tape_that_is_played_by_http_bears_a_crowd() {
    let tape = r#"{"type":"message","seq":1,"ts":"2026-01-01T00:00:00.000Z","dir":"c2s","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}"#;
    bears_a_crowd(&replay(format!("{tape}\n")).flags(&["--http", "127.0.0.1:0"]).start());
}
