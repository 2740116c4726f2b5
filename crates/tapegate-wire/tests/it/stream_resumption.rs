//! Streamed answers of an actor: closing early, and resuming.

use tapegate_wire::recorded_session::{OnTapeError, RecordedSession};

use crate::http_actor_host::HttpActorHost;
use crate::http_actor_sessions::PipeRecorder;
use crate::http_peers::{self, HttpMessage};

const NEW: &str = "mcp-protocol-version: 2025-11-25";
const OLD: &str = "mcp-protocol-version: 2025-06-18";
const PART: &str =
    r#"{"jsonrpc":"2.0","id":5,"method":"part","params":{"_meta":{"progressToken":"t"}}}"#;
const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":5,"result":{"seat":1}}"#;

/// The events of a body: each id, with its content.
fn events(body: &str) -> Vec<(String, String)> {
    let events = body.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':'));
    let field = |event: &str, name: &str| {
        let mut lines = event.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned())
    };
    events
        .map(|event| {
            let rest = field(event, "data")
                .or_else(|| field(event, "retry").map(|ms| "retry ".to_owned() + &ms));
            (field(event, "id").unwrap_or_default(), rest.unwrap_or_default())
        })
        .collect()
}

fn come_back(hall: &HttpActorHost, session: &str, last: &str) -> HttpMessage {
    let last = format!("last-event-id: {last}");
    let headers = ["accept: text/event-stream", session, NEW, &last];
    http_peers::reply(&mut http_peers::send(hall.port, "GET /mcp", &headers, ""))
}

fn pairs<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, rest)| ((*id).to_owned(), (*rest).to_owned())).collect()
}

#[test]
fn an_answer_is_a_stream_that_begins_with_an_id_for_those_who_know_what_to_do_with_it() {
    let hall = HttpActorHost::open();
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let opened = hall.post(&[], body);
    assert_eq!(opened.header("content-type"), Some("text/event-stream"));
    let result = r#"{"jsonrpc":"2.0","id":0,"result":{"seat":1}}"#;
    assert_eq!(events(&opened.body), pairs(&[("1-1", ""), ("1-2", result)]));
    let session = format!("mcp-session-id: {}", opened.header("mcp-session-id").unwrap());
    let body = r#"{"jsonrpc":"2.0","id":5,"method":"x"}"#;
    let new = hall.post(&[&session, NEW], body);
    assert_eq!(events(&new.body), pairs(&[("2-1", ""), ("2-2", ANSWER)]));
    let old = hall.post(&[&session, OLD], body);
    assert_eq!(events(&old.body), pairs(&[("3-1", ANSWER)]));
    assert_eq!(events(&come_back(&hall, &session, "2-1").body), pairs(&[("2-2", ANSWER)]));
}

#[test]
fn who_does_not_name_streams_gets_json() {
    let hall = HttpActorHost::open();
    for accept in ["accept: application/json", "accept: */*", "x-nothing: x"] {
        let session = hall.session();
        for method in ["x", "part"] {
            let headers = ["content-type: application/json", accept, &session, NEW];
            let body = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}"}}"#);
            let reply =
                http_peers::reply(&mut http_peers::send(hall.port, "POST /mcp", &headers, &body));
            assert!(reply.message().starts_with(r#"{"jsonrpc":"2.0","id":5,"result":"#));
            // A message before the answer requires a stream, where that is acceptable.
            let streams = method == "part" && accept != "accept: application/json";
            let expected = if streams { "text/event-stream" } else { "application/json" };
            assert_eq!(reply.header("content-type"), Some(expected), "{accept} {method}");
        }
    }
}

#[test]
fn a_stream_ends_early_and_the_rest_is_there_for_who_comes_back() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let first = hall.post(&[&session, NEW], PART);
    let said = pairs(&[("2-1", ""), ("2-2", PROGRESS), ("", "retry 100")]);
    assert_eq!(events(&first.body), said);
    let rest = pairs(&[("2-3", PROGRESS), ("2-4", ANSWER)]);
    // At once, while the answer is pending, and again long after it has arrived.
    for (last, count) in [("2-2", 2), ("2-2", 2), ("2-3", 1), ("2-4", 0)] {
        assert_eq!(events(&come_back(&hall, &session, last).body), rest[2 - count..], "{last}");
    }
}

#[test]
fn a_stream_does_not_end_early_for_who_cannot_come_back() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let reply = hall.post(&[&session, OLD], PART);
    let said = pairs(&[("2-1", PROGRESS), ("2-2", PROGRESS), ("2-3", ANSWER)]);
    assert_eq!(events(&reply.body), said);
}

#[test]
fn who_waits_for_an_answer_knows_soon_that_it_is_under_way() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let headers = [
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        &session,
        NEW,
    ];
    let body = r#"{"jsonrpc":"2.0","id":5,"method":"never"}"#;
    let mut reader = http_peers::send(hall.port, "POST /mcp", &headers, body);
    assert!(http_peers::head(&mut reader).head.contains(" 200 "));
    assert_eq!(events(&http_peers::chunk(&mut reader).unwrap()), pairs(&[("2-1", "")]));
}

#[test]
fn what_a_client_has_to_come_back_for_is_marked_on_the_tape() {
    let (tape, to) = std::io::pipe().unwrap();
    let hall = HttpActorHost::open_recorded(|clock| {
        RecordedSession::new(Box::new(PipeRecorder(to)), clock, OnTapeError::Stop)
    });
    let session = hall.session();
    hall.post(&[&session, NEW], PART);
    come_back(&hall, &session, "2-2");
    hall.post(&[&session, OLD], PART);
    hall.ask(&session, 9, "stop");
    assert_eq!(hall.end().0, "Actor");
    let lines = std::io::read_to_string(tape).unwrap();
    let lines: Vec<_> = lines.lines().skip(2).take(8).collect();
    let (asked, told, answered) =
        (format!("Client 1 {PART}"), format!("Server 1 {PROGRESS}"), format!("Server 1 {ANSWER}"));
    let (later, last) = (format!("{told} resumed"), format!("{answered} resumed"));
    assert_eq!(lines, [&asked, &told, &later, &last, &asked, &told, &told, &answered]);
}
