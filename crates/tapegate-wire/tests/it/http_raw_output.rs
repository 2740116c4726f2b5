//! An actor over HTTP that sends partial or non-message data.

use std::io::{BufReader, Read};
use std::net::TcpStream;

use tapegate_wire::recorded_session::{OnTapeError, RecordedSession};

use crate::http_actor_host::HttpActorHost;
use crate::http_actor_sessions::PipeRecorder;
use crate::http_peers::{self, HttpMessage};

const JSON: &[&str] =
    &["content-type: application/json", "accept: application/json, text/event-stream"];

fn request(id: u32, method: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}")
}

fn answer(id: u32, seat: u32) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"seat\":{seat}}}}}")
}

fn post(hall: &HttpActorHost, session: &str, body: &str) -> BufReader<TcpStream> {
    http_peers::send(hall.port, "POST /mcp", &[JSON, &[session]].concat(), body)
}

/// The same for a client that accepts no events, so that even a late answer is not a stream.
fn post_plainly(hall: &HttpActorHost, session: &str, body: &str) -> BufReader<TcpStream> {
    let headers = ["content-type: application/json", "accept: application/json", session];
    http_peers::send(hall.port, "POST /mcp", &headers, body)
}

/// The stream of a session.
fn listen(hall: &HttpActorHost, session: &str) -> BufReader<TcpStream> {
    let mut reader =
        http_peers::send(hall.port, "GET /mcp", &["accept: text/event-stream", session], "");
    assert!(http_peers::head(&mut reader).head.contains(" 200 "));
    reader
}

/// The data of the next event of a stream.
fn event(reader: &mut BufReader<TcpStream>) -> String {
    let mut text = String::new();
    while !text.ends_with("\n\n") {
        text.push_str(&http_peers::chunk(reader).unwrap());
    }
    assert_eq!(text.matches("\n\n").count(), 1, "{text}");
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    data.unwrap_or_default().to_owned()
}

#[test]
fn an_answer_in_pieces_is_a_body_of_json_in_chunks() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let mut reader = post_plainly(&hall, &session, &request(1, "drip"));
    let head = http_peers::head(&mut reader);
    assert_eq!(head.header("content-type"), Some("application/json"));
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    let pieces: Vec<String> = std::iter::from_fn(|| http_peers::chunk(&mut reader)).collect();
    assert_eq!(pieces.concat(), answer(1, 1));
    assert!(pieces.len() > 3, "{pieces:?}");
    assert_eq!(hall.ask(&session, 1, "x").message(), answer(1, 1));
}

#[test]
fn for_those_who_take_only_events_it_is_the_data_of_one() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let headers = ["content-type: application/json", "accept: text/event-stream", &session];
    let reply = http_peers::reply(&mut http_peers::send(
        hall.port,
        "POST /mcp",
        &headers,
        &request(1, "drip"),
    ));
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    assert_eq!(reply.message(), answer(1, 1));
}

#[test]
fn answers_drip_side_by_side_and_ids_may_be_the_same_without_sessions() {
    let hall = HttpActorHost::open();
    let mut all = [(); 3].map(|()| modern(&hall, "drip"));
    for reader in &mut all {
        assert_eq!(http_peers::reply(reader).message(), answer(1, 1));
    }
}

/// Sends a request of a client without a session.
fn modern(hall: &HttpActorHost, method: &str) -> BufReader<TcpStream> {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{meta}}}}}"#);
    let method = format!("mcp-method: {method}");
    let headers = [JSON, &["mcp-protocol-version: 2026-07-28", &method]].concat();
    http_peers::send(hall.port, "POST /mcp", &headers, &body)
}

#[test]
fn ec_trans_021_of_clients_without_sessions_only_the_one_is_left_who_asked() {
    let hall = HttpActorHost::open();
    let mut waiting = modern(&hall, "late");
    hall.wait_for("late");
    let mut left = modern(&hall, "leave");
    assert_eq!(http_peers::reply(&mut left).message(), answer(1, 1));
    assert_eq!(left.read_to_end(&mut Vec::new()).unwrap(), 0);
    let mut broken = modern(&hall, "break");
    let error = broken.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(http_peers::reply(&mut waiting).message(), answer(1, 1));
    let told = hall.log.lock().unwrap().clone();
    assert!(!told.iter().any(|line| line.ends_with("Empty")), "{told:?}");
}

#[test]
fn a_body_without_an_end_stays_open_and_holds_nobody_up() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let mut reader = post_plainly(&hall, &session, &request(1, "endless"));
    assert_eq!(http_peers::head(&mut reader).header("content-type"), Some("application/json"));
    let mut body = String::new();
    let whole = answer(1, 1) + &"A".repeat(1000);
    while body.len() < whole.len() {
        body.push_str(&http_peers::chunk(&mut reader).unwrap());
    }
    assert_eq!(body, whole);
    assert_eq!(hall.ask(&session, 2, "x").message(), answer(2, 1));
    drop(reader);
    assert_eq!(hall.ask(&session, 3, "x").message(), answer(3, 1));
}

#[test]
fn ec_trans_004_a_client_that_goes_in_the_middle_of_an_answer_takes_nobody_along() {
    let hall = HttpActorHost::open();
    let (one, two) = (hall.session(), hall.session());
    let mut reader = post(&hall, &one, &request(1, "drip"));
    http_peers::head(&mut reader);
    assert!(http_peers::chunk(&mut reader).is_some());
    drop(reader);
    assert_eq!(hall.ask(&two, 1, "drip").message(), answer(1, 2));
    assert_eq!(hall.ask(&one, 2, "drip").message(), answer(2, 1));
}

#[test]
fn what_is_no_message_is_an_event_as_it_is_and_nothing_comes_between() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let mut stream = listen(&hall, &session);
    assert_eq!(hall.ask(&session, 1, "batch").message(), answer(1, 1));
    assert_eq!(event(&mut stream), "[{\"jsonrpc\":\"2.0\",\"method\":\"a\"},7]");
    assert!(event(&mut stream).contains("list_changed"));
}

#[test]
fn requests_with_one_id_may_be_answered_one_by_one() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let mut stream = listen(&hall, &session);
    assert_eq!(hall.ask(&session, 1, "twice").message(), answer(1, 1));
    let answered = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    for _ in 0..2 {
        assert_eq!(event(&mut stream), r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
        assert!(hall.post(&[&session], answered).head.contains(" 202 "));
    }
    assert_eq!(hall.ask(&session, 9, "x").message(), answer(9, 1));
    let told = hall.log.lock().unwrap().clone();
    assert_eq!(told.iter().filter(|line| line.ends_with(answered)).count(), 2);
}

#[test]
fn ec_trans_019_who_is_left_in_order_gets_the_answer_and_then_the_end() {
    let hall = HttpActorHost::open();
    let (one, two) = (hall.session(), hall.session());
    let mut stream = listen(&hall, &one);
    let mut reader = post(&hall, &one, &request(1, "leave"));
    assert_eq!(http_peers::reply(&mut reader).message(), answer(1, 1));
    let (mut rest, mut said) = (Vec::new(), String::new());
    assert_eq!(reader.read_to_end(&mut rest).unwrap(), 0);
    stream.read_to_string(&mut said).unwrap();
    assert_eq!(said, "0\r\n\r\n", "the stream ends as it should");
    hall.wait("1 Empty");
    assert!(hall.ask(&one, 2, "x").head.contains(" 404 "));
    assert_eq!(hall.ask(&two, 2, "x").message(), answer(2, 2), "ec_trans_021: only its own");
}

#[test]
fn ec_trans_020_who_is_left_abruptly_has_its_connections_reset() {
    let hall = HttpActorHost::open();
    let (one, two) = (hall.session(), hall.session());
    let mut stream = listen(&hall, &one);
    let mut reader = post(&hall, &one, &request(1, "break"));
    for reader in [&mut reader, &mut stream] {
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
    assert!(hall.ask(&one, 2, "x").head.contains(" 404 "));
    assert_eq!(hall.ask(&two, 2, "x").message(), answer(2, 2), "ec_trans_022: only its own");
}

#[test]
fn by_the_older_transport_pieces_make_one_event_of_the_only_stream() {
    let hall = HttpActorHost::open();
    let mut stream = http_peers::send(hall.port, "GET /sse", &["accept: text/event-stream"], "");
    http_peers::head(&mut stream);
    let path = event(&mut stream);
    for (id, method) in [(1, "drip"), (2, "x")] {
        let line = format!("POST {path}");
        let reply =
            http_peers::reply(&mut http_peers::send(hall.port, &line, JSON, &request(id, method)));
        assert!(reply.head.contains(" 202 "));
    }
    assert_eq!([event(&mut stream), event(&mut stream)], [answer(1, 1), answer(2, 1)]);
    let told = hall.log.lock().unwrap().clone();
    assert_eq!(told[0], "1 Taken { shared: false, streams: false }");
}

#[test]
fn what_was_sent_in_pieces_is_on_the_tape_as_one_message() {
    let (tape, to) = std::io::pipe().unwrap();
    let hall = HttpActorHost::open_recorded(|clock| {
        RecordedSession::new(Box::new(PipeRecorder(to)), clock, OnTapeError::Stop)
    });
    let session = hall.session();
    let _stream = listen(&hall, &session);
    let HttpMessage { body, .. } = hall.ask(&session, 1, "drip");
    assert_eq!(body, answer(1, 1));
    hall.ask(&session, 2, "batch");
    hall.ask(&session, 3, "stop");
    assert_eq!(hall.end().0, "Actor");
    let lines = std::io::read_to_string(tape).unwrap();
    let place = |text: &str| lines.find(text);
    let (asked, answered) = (place(&request(1, "drip")), place(&answer(1, 1)));
    assert!(asked.is_some() && asked < answered, "{lines}");
    assert!(place("{\"jsonrpc\":\"2.0\",\"method\":\"a\"}").is_some(), "{lines}");
}
