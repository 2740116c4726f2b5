//! Deliveries and side effects over HTTP, checked byte by byte.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::hostile_server::{HEADERS, HostileHttpServer, answer, call};
use crate::http_peers::{self, ReceivedReply};
use crate::support::GUARD;

fn post(rogue: &HostileHttpServer, session: &str, body: &str) -> TcpStream {
    http_peers::send(rogue.port, "POST /mcp", &[HEADERS[0], HEADERS[1], session], body)
}

fn ask(rogue: &HostileHttpServer, session: &str, id: u32, tool: &str) -> ReceivedReply {
    let headers = [HEADERS[0], HEADERS[1], session];
    http_peers::ask(rogue.port, "POST /mcp", &headers, &call(id, tool))
}

/// The message that a reply carries.
fn message(got: &ReceivedReply) -> &str {
    let data = got.body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    data.unwrap_or(&got.body)
}

/// The stream of a session, as lines with data.
fn listen(rogue: &HostileHttpServer, session: &str) -> impl Iterator<Item = String> + use<> {
    let stream =
        http_peers::send(rogue.port, "GET /mcp", &["accept: text/event-stream", session], "");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    // Chunks may end anywhere, so their sizes are removed before lines are searched.
    let mut text = String::new();
    std::iter::from_fn(move || {
        loop {
            if let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                let data = data.map(str::to_owned);
                text = rest.to_owned();
                match data.filter(|data| !data.is_empty()) {
                    Some(data) => return Some(data),
                    None => continue,
                }
            }
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
            let mut piece = vec![0; size + 2];
            reader.read_exact(&mut piece).ok()?;
            text.push_str(std::str::from_utf8(&piece[..size]).unwrap());
        }
    })
}

#[test]
fn a_dripped_answer_is_a_body_in_chunks_and_others_do_not_wait_for_it() {
    let rogue = HostileHttpServer::start();
    let session = rogue.session();
    let slow = post(&rogue, &session, &call(1, "slow"));
    let got = ask(&rogue, &session, 2, "drip");
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("transfer-encoding"), Some("chunked"));
    assert_eq!(got.body, answer(2, "dripped"));
    assert_eq!(message(&ask(&rogue, &session, 3, "plain")), answer(3, "call 1"));
    drop(slow);
    assert_eq!(message(&ask(&rogue, &session, 4, "plain")), answer(4, "call 2"), "ec_trans_004");
}

#[test]
fn nested_and_late_answers_come_as_they_should() {
    let rogue = HostileHttpServer::start();
    let session = rogue.session();
    let nested = "{\"k\":".repeat(100) + &answer(1, "deep") + &"}".repeat(100);
    assert_eq!(ask(&rogue, &session, 1, "deep").body, nested);
    let begin = Instant::now();
    assert_eq!(message(&ask(&rogue, &session, 2, "late")), answer(2, "late"));
    assert!(begin.elapsed() >= Duration::from_millis(150));
}

#[test]
fn a_body_without_an_end_is_not_closed() {
    let rogue = HostileHttpServer::start();
    let session = rogue.session();
    let mut stream = post(&rogue, &session, &call(1, "endless"));
    let mut seen = vec![0; 64 * 1024];
    stream.read_exact(&mut seen).unwrap();
    assert!(String::from_utf8_lossy(&seen).contains(&answer(1, "endless")));
    assert_eq!(message(&ask(&rogue, &session, 2, "plain")), answer(2, "call 1"));
    stream.set_nonblocking(true).unwrap();
    let mut rest = Vec::new();
    let open = stream.read_to_end(&mut rest).unwrap_err();
    assert_eq!(open.kind(), ErrorKind::WouldBlock);
    assert!(!rest.ends_with(b"0\r\n\r\n"));
}

#[test]
fn batches_and_requests_with_one_id_are_events_as_they_are() {
    let rogue = HostileHttpServer::start();
    let (session, other) = (rogue.session(), rogue.session());
    let mut stream = listen(&rogue, &session);
    assert_eq!(message(&ask(&rogue, &session, 1, "batch")), answer(1, "batched"));
    let batch: serde_json::Value = serde_json::from_str(&stream.next().unwrap()).unwrap();
    assert_eq!(batch.as_array().map(Vec::len), Some(5000));
    assert_eq!(message(&ask(&rogue, &session, 2, "twice")), answer(2, "asking"));
    let headers = [HEADERS[0], HEADERS[1], &session];
    for _ in 0..3 {
        assert_eq!(stream.next().unwrap(), r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
        let reply = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
        assert_eq!(http_peers::ask(rogue.port, "POST /mcp", &headers, reply).status, 202);
    }
    assert_eq!(message(&ask(&rogue, &session, 3, "plain")), answer(3, "call 1"));
    assert_eq!(message(&ask(&rogue, &other, 3, "plain")), answer(3, "call 1"), "ec_trans_022");
}

#[test]
fn ec_trans_021_a_flood_goes_to_its_own_session_alone() {
    let rogue = HostileHttpServer::start();
    let (one, two) = (rogue.session(), rogue.session());
    let (mut mine, mut theirs) = (listen(&rogue, &one), listen(&rogue, &two));
    let begin = Instant::now();
    assert!(message(&ask(&rogue, &one, 1, "flood")).contains("flooding"));
    assert_eq!(message(&ask(&rogue, &one, 2, "plain")), answer(2, "call 1"));
    for _ in 0..1000 {
        assert!(mine.next().unwrap().contains("notifications/message"));
    }
    assert!(begin.elapsed() >= Duration::from_millis(450), "{:?}", begin.elapsed());
    ask(&rogue, &two, 1, "twice");
    assert!(theirs.next().unwrap().contains("ping"), "the first thing that the other one hears");
}

#[test]
fn a_pipe_cannot_be_filled_where_there_is_none() {
    let rogue = HostileHttpServer::start();
    let session = rogue.session();
    assert_eq!(message(&ask(&rogue, &session, 1, "fill")), answer(1, "filled"));
}

#[test]
fn ec_trans_019_a_session_that_is_closed_in_order_ends_behind_the_answer() {
    let rogue = HostileHttpServer::start();
    let (one, two) = (rogue.session(), rogue.session());
    let mut stream = listen(&rogue, &one);
    assert_eq!(message(&ask(&rogue, &one, 1, "close")), answer(1, "closing"));
    assert_eq!(stream.next(), None);
    assert_eq!(ask(&rogue, &one, 2, "plain").status, 404);
    assert_eq!(message(&ask(&rogue, &two, 2, "plain")), answer(2, "call 1"));
}

#[test]
fn ec_trans_020_a_session_that_is_cut_has_its_connections_reset() {
    let rogue = HostileHttpServer::start();
    let (one, two) = (rogue.session(), rogue.session());
    let mut stream = post(&rogue, &one, &call(1, "cut"));
    let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(ask(&rogue, &one, 2, "plain").status, 404);
    assert_eq!(message(&ask(&rogue, &two, 2, "plain")), answer(2, "call 1"));
}

#[test]
fn ec_trans_013_a_signal_in_the_middle_of_an_answer_ends_the_server_at_once() {
    let mut rogue = HostileHttpServer::start();
    let session = rogue.session();
    let mut stream = post(&rogue, &session, &call(1, "slow"));
    let mut seen = [0; 16];
    stream.read_exact(&mut seen).unwrap();
    let begin = Instant::now();
    rogue.signal(Signal::TERM);
    stream.read_to_end(&mut Vec::new()).ok();
    rogue.end();
    assert!(begin.elapsed() < GUARD, "{:?}", begin.elapsed());
}
