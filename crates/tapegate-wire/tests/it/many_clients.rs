//! Many clients at once: their memory is bounded, and clients beyond the limits get an error.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use tapegate_wire::clock::Clock;
use tapegate_wire::http::listener::HttpListener;
use tapegate_wire::http::proxy::Proxy;
use tapegate_wire::http::upstream::HttpUpstream;
use tapegate_wire::http::{BodyBudget, SharedSession, serve};
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;

use crate::http_peers::{self, HttpMessage, HttpTestServer};
use crate::proxy_gate::answering;
use crate::waiting::PATIENCE;
use crate::word_gate::{JSON, call};

const MIB: usize = 1 << 20;
/// Longer than any test, for timeouts that must not expire.
const LONG: Duration = Duration::from_secs(600);
/// Longer than a busy machine delays a peer.
const SHORT: Duration = Duration::from_secs(2);

/// A proxy whose clients share the budget `bodies` and a limited number of connections.
fn bounded(server: &HttpTestServer, connections_max: usize, bodies: BodyBudget) -> u16 {
    let (told, port) = mpsc::channel();
    let url = server.url();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = HttpListener::bind("127.0.0.1:0")
                .await
                .unwrap()
                .with_connection_limit(connections_max);
            told.send(listener.address().unwrap().port()).unwrap();
            let station = SharedSession::with_budget(
                RecordedSession::without_recording(Clock::start()),
                4 * MIB,
                bodies,
            );
            let proxy = Proxy::new(Rc::clone(&station), HttpUpstream::new(&url, &[]).unwrap());
            serve(listener, proxy, &station, Signals::never()).await;
        });
    });
    port.recv().unwrap()
}

/// Begins a request of `length` and sends the first part of its body.
fn begin(port: u16, length: &str, part: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{}\r\n", JSON.join("\r\n"));
    stream.write_all(format!("{head}{length}\r\n\r\n").as_bytes()).unwrap();
    stream.write_all(part).unwrap();
    stream
}

fn post(port: u16, body: &str) -> HttpMessage {
    http_peers::reply(&mut http_peers::send(port, "POST /mcp", JSON, body))
}

fn large(id: u64, bytes: usize) -> String {
    call(id, &"x".repeat(bytes))
}

fn is_busy(reply: &HttpMessage) {
    assert!(reply.head.starts_with("HTTP/1.1 503"), "{}", reply.head);
    assert!(reply.header("retry-after").is_some(), "{}", reply.head);
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(!reply.body.contains("jsonrpc") && reply.body.contains("Try again"), "{}", reply.body);
}

#[test]
fn a_large_body_that_finds_no_room_is_told_to_come_again_and_small_ones_pass() {
    let server = answering("{}");
    let port = bounded(&server, 64, BodyBudget::with_limits(4 * MIB, SHORT, LONG));
    let length = format!("content-length: {}", 3 * MIB);
    let stalled = begin(port, &length, &vec![b' '; MIB]);
    is_busy(&post(port, &large(1, 2 * MIB)));
    assert!(post(port, &call(2, "x")).body.contains("\"id\":2"));
    // A body without a length takes its share as it arrives.
    let mut chunked = begin(port, "transfer-encoding: chunked", b"");
    let chunk = [format!("{MIB:x}\r\n").as_bytes(), &vec![b' '; MIB], b"\r\n"].concat();
    (0..2).for_each(|_| drop(chunked.write_all(&chunk)));
    is_busy(&http_peers::reply(&mut BufReader::new(chunked)));
    drop(stalled);
    let begin = std::time::Instant::now();
    while !post(port, &large(3, 2 * MIB)).body.contains("\"id\":3") {
        assert!(begin.elapsed() < PATIENCE, "its part was not given back");
    }
}

#[test]
fn bodies_of_more_than_a_share_take_turns_and_leave_the_budget_to_others() {
    let server = answering("{}");
    let bodies = BodyBudget::with_limits(2 * MIB, SHORT, LONG).with_shared_limit(MIB);
    let port = bounded(&server, 64, bodies);
    // With nothing else in progress, a body may be larger than the budget.
    assert!(post(port, &large(1, 3 * MIB)).body.contains("\"id\":1"));
    let length = format!("content-length: {}", 3 * MIB);
    let stalled = begin(port, &length, &vec![b' '; 2 * MIB]);
    is_busy(&post(port, &large(2, 3 * MIB)));
    assert!(post(port, &large(3, MIB / 2)).body.contains("\"id\":3"));
    // A body of undeclared length takes its turn when it turns out to be large.
    let mut chunked = begin(port, "transfer-encoding: chunked", b"");
    let chunk = [format!("{MIB:x}\r\n").as_bytes(), &vec![b' '; MIB], b"\r\n"].concat();
    (0..3).for_each(|_| drop(chunked.write_all(&chunk)));
    is_busy(&http_peers::reply(&mut BufReader::new(chunked)));
    drop(stalled);
    let begun = std::time::Instant::now();
    while !post(port, &large(4, 3 * MIB)).body.contains("\"id\":4") {
        assert!(begun.elapsed() < PATIENCE, "the turn was not given back");
    }
    let mut chunked = begin(port, "transfer-encoding: chunked", b"");
    let body = large(5, 3 * MIB);
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    chunked.write_all(chunk.as_bytes()).unwrap();
    assert!(http_peers::reply(&mut BufReader::new(chunked)).body.contains("\"id\":5"));
}

#[test]
fn a_body_that_stalls_gives_its_part_back_and_who_waits_for_it_goes_on() {
    let server = answering("{}");
    let port = bounded(&server, 64, BodyBudget::with_limits(4 * MIB, LONG, SHORT));
    let length = format!("content-length: {}", 4 * MIB);
    let stalled = [(); 3].map(|()| begin(port, &length, &[b' '; 1000]));
    assert!(post(port, &large(1, 2 * MIB)).body.contains("\"id\":1"));
    for stream in stalled {
        let reply = http_peers::reply(&mut BufReader::new(stream));
        assert!(reply.head.starts_with("HTTP/1.1 408"), "{reply:?}");
        assert!(!reply.body.contains("jsonrpc"), "{reply:?}");
    }
}

#[test]
fn a_connection_that_finds_no_room_is_told_so_and_later_there_is_room() {
    let server = answering("{}");
    let port = bounded(&server, 2, BodyBudget::new());
    let mut held = [(); 2].map(|()| http_peers::send(port, "POST /mcp", JSON, &call(1, "x")));
    for reader in &mut held {
        assert!(http_peers::reply(reader).body.contains("\"id\":1"));
    }
    for body in [call(2, "x"), large(2, 2 * MIB)] {
        is_busy(&post(port, &body));
    }
    // A client that sends nothing does not block others either.
    let mut silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    drop(held);
    let begin = std::time::Instant::now();
    while !post(port, &call(3, "x")).body.contains("\"id\":3") {
        assert!(begin.elapsed() < PATIENCE, "there is no room");
    }
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(silent.read(&mut [0; 9]).unwrap_or(0), 0);
}
