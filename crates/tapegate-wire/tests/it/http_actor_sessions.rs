//! An actor over HTTP: every transport and revision works as it does for a process.

use std::io::Write;
use std::path::Path;

use tapegate_core::tape::{RecordError, Recorder, TapeEntry};
use tapegate_core::time::Timestamp;
use tapegate_wire::link::LinkTarget;
use tapegate_wire::recorded_session::{OnTapeError, RecordedSession};

use crate::http_actor_host::HttpActorHost;
use crate::http_peers;

/// The header lines of a client without a session.
const MODERN: &[&str] = &["mcp-protocol-version: 2026-07-28", "mcp-method: tools/list"];

fn modern(id: u32) -> String {
    modern_request(id, "tools/list")
}

fn modern_request(id: u32, method: &str) -> String {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{meta}}}}}"#)
}

fn delete(hall: &HttpActorHost, session: &str) -> String {
    http_peers::reply(&mut http_peers::send(hall.port, "DELETE /mcp", &[session], "")).head
}

#[test]
fn a_session_has_a_seat_of_its_own_from_initialize_to_delete() {
    let hall = HttpActorHost::open();
    let (one, two) = (hall.session(), hall.session());
    assert!(hall.ask(&two, 1, "x").message().ends_with("\"id\":1,\"result\":{\"seat\":2}}"));
    assert!(hall.ask(&one, 1, "x").message().ends_with("\"id\":1,\"result\":{\"seat\":1}}"));
    let noted = hall.post(&[&one], r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    assert!(noted.head.contains(" 202 "));
    assert!(delete(&hall, &one).contains(" 204 "));
    hall.wait("1 Empty");
    assert!(hall.ask(&one, 2, "x").head.contains(" 404 "));
    assert!(hall.ask(&two, 2, "x").head.contains(" 200 "));
    let told = hall.log.lock().unwrap().clone();
    let first: Vec<_> = told.iter().filter(|line| line.starts_with("1 ")).collect();
    assert_eq!(first[0], "1 Taken { shared: false, streams: true }");
    assert_eq!(first[3], r#"1 {"jsonrpc":"2.0","method":"notifications/x"}"#);
    assert_eq!(first[4..], ["1 Left", "1 Empty"]);
}

#[test]
fn clients_without_sessions_share_a_seat_and_may_use_the_same_id() {
    let hall = HttpActorHost::open();
    let headers =
        [&["content-type: application/json", "accept: application/json"], MODERN].concat();
    let mut both = [(); 2].map(|()| http_peers::send(hall.port, "POST /mcp", &headers, &modern(1)));
    for reader in &mut both {
        assert!(http_peers::reply(reader).body.ends_with("\"id\":1,\"result\":{\"seat\":1}}"));
    }
    let told = hall.log.lock().unwrap().clone();
    assert_eq!(told[0], "1 Taken { shared: true, streams: true }");
    assert!(told.iter().all(|line| line.starts_with("1 ")));
}

#[test]
fn an_actor_whose_requests_have_no_client_hears_so_however_many_they_are() {
    let hall = HttpActorHost::open();
    let flood = hall.post(&[MODERN[0], "mcp-method: flood"], &modern_request(1, "flood"));
    assert!(flood.message().ends_with("\"id\":1,\"result\":{\"seat\":1}}"), "{flood:?}");
    // Far more refusals than the bridge keeps for a server that does not read.
    hall.wait_for("\"id\":8,\"error\":");
    let next = hall.post(MODERN, &modern(2));
    assert!(next.message().ends_with("\"id\":2,\"result\":{\"seat\":1}}"), "{next:?}");
}

#[test]
fn what_comes_before_the_answer_makes_a_stream() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let body =
        r#"{"jsonrpc":"2.0","id":1,"method":"progress","params":{"_meta":{"progressToken":"t"}}}"#;
    let reply = hall.post(&[&session], body);
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let data: Vec<_> = reply.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(data[0].contains("\"progressToken\":\"t\""), "{data:?}");
    assert!(data[1].ends_with("\"id\":1,\"result\":{\"seat\":1}}"), "{data:?}");
}

#[test]
fn the_actor_asks_its_client_by_the_id_it_likes() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let headers = ["content-type: application/json", "accept: text/event-stream", &session];
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#;
    let mut asked = http_peers::send(hall.port, "POST /mcp", &headers, body);
    http_peers::head(&mut asked);
    let question = http_peers::chunk(&mut asked).unwrap();
    assert!(question.contains(r#"data: {"jsonrpc":"2.0","id":7,"method":"roots/list"}"#));
    hall.post(&[&session], r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#);
    let answer = http_peers::chunk(&mut asked).unwrap();
    assert!(answer.contains("\"id\":1,\"result\":{\"seat\":1}}"), "{answer}");
    assert_eq!(http_peers::chunk(&mut asked), None);
}

#[test]
fn news_goes_to_the_stream_of_the_session_and_can_be_had_again() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let listen = |extra: &str| {
        let headers = ["accept: text/event-stream", &session, extra];
        let mut reader = http_peers::send(hall.port, "GET /mcp", &headers, "");
        let head = http_peers::head(&mut reader);
        assert!(head.head.contains(" 200 "), "{head:?}");
        reader
    };
    let mut first = listen("x-nothing: x");
    hall.ask(&session, 1, "news");
    let news = http_peers::chunk(&mut first).unwrap();
    assert!(news.contains("notifications/tools/list_changed"), "{news}");
    drop(first);
    let mut second = listen("last-event-id: 0-0");
    assert_eq!(http_peers::chunk(&mut second).unwrap(), news);
}

#[test]
fn the_old_transport_answers_on_its_stream() {
    let hall = HttpActorHost::open();
    let mut stream = http_peers::send(hall.port, "GET /sse", &["accept: text/event-stream"], "");
    http_peers::head(&mut stream);
    let endpoint = http_peers::chunk(&mut stream).unwrap();
    let path = endpoint.split("data: ").nth(1).unwrap().trim().to_owned();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
    let headers = ["content-type: application/json"];
    let accepted = http_peers::reply(&mut http_peers::send(
        hall.port,
        &format!("POST {path}"),
        &headers,
        body,
    ));
    assert!(accepted.head.contains(" 202 "));
    let answer = http_peers::chunk(&mut stream).unwrap();
    assert!(answer.contains("\"id\":1,\"result\":{\"seat\":1}}"), "{answer}");
    drop(stream);
    hall.wait("1 Empty");
}

#[test]
fn an_actor_has_room_for_more_sessions_than_processes() {
    let hall = HttpActorHost::open();
    let sessions: Vec<_> = (0..200).map(|_| hall.session()).collect();
    for (index, session) in sessions.iter().enumerate() {
        let answer = hall.ask(session, 1, "x").message();
        assert!(answer.ends_with(&format!("{{\"seat\":{}}}}}", index + 1)), "{answer}");
    }
}

#[test]
fn a_session_that_is_ended_does_not_wait_for_what_nobody_hears() {
    let hall = HttpActorHost::open();
    let session = hall.session();
    let waiting = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| hall.ask(&session, 1, "late").message());
        hall.wait(r#"1 {"jsonrpc":"2.0","id":1,"method":"late"}"#);
        delete(&hall, &session);
        waiting.join().unwrap()
    });
    assert!(waiting.contains("the client ended the session"), "{waiting}");
    hall.wait("1 Empty");
    assert!(!hall.log.lock().unwrap().contains(&"1 Due".to_owned()));
}

#[test]
fn a_stop_ends_the_server_once_what_was_begun_is_answered() {
    let hall = HttpActorHost::open();
    let (one, two, three) = (hall.session(), hall.session(), hall.session());
    let mut stream =
        http_peers::send(hall.port, "GET /mcp", &["accept: text/event-stream", &three], "");
    http_peers::head(&mut stream);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| hall.ask(&two, 5, "late").message());
        let never = scope.spawn(|| hall.ask(&three, 6, "never").message());
        hall.wait(r#"2 {"jsonrpc":"2.0","id":5,"method":"late"}"#);
        hall.wait(r#"3 {"jsonrpc":"2.0","id":6,"method":"never"}"#);
        let last = hall.ask(&one, 1, "stop");
        assert!(last.message().ends_with("\"id\":1,\"result\":{\"seat\":1}}"), "{last:?}");
        assert!(late.join().unwrap().ends_with("\"id\":5,\"result\":{\"seat\":2}}"));
        let never = never.join().unwrap();
        assert!(
            never.contains("\"id\":6,\"error\"") && never.contains("the play is over"),
            "{never}"
        );
    });
    assert_eq!(http_peers::chunk(&mut stream), None);
    let (cause, told) = hall.end();
    assert_eq!(cause, "Actor");
    assert_eq!(told.iter().filter(|line| line.ends_with(" Empty")).count(), 3);
    assert!(!told.iter().any(|line| line.ends_with(" Left")), "{told:?}");
}

#[test]
fn each_session_has_its_own_server_behind_and_none_outlives_its_session() {
    let script = "exec sed -u 's/\"method\":\"behind\"/\"result\":{\"pid\":'$$'}/'";
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let hall = HttpActorHost::open_before(LinkTarget::Command(argv));
    let process = |session: &str| {
        let answer = hall.ask(session, 1, "behind").message();
        let pid = answer.split("\"pid\":").nth(1).unwrap_or_else(|| panic!("{answer}"));
        Path::new("/proc").join(pid.trim_end_matches('}'))
    };
    let (one, two) = (hall.session(), hall.session());
    let (first, second) = (process(&one), process(&two));
    assert!(first != second && first == process(&one) && first.exists());
    delete(&hall, &one);
    hall.wait("1 Empty");
    assert!(!first.exists() && second.exists());
    hall.ask(&two, 9, "stop");
    assert_eq!(hall.end().0, "Actor");
    assert!(!second.exists());
}

/// Writes entries into a pipe.
pub(crate) struct PipeRecorder(pub(crate) std::io::PipeWriter);

impl Recorder for PipeRecorder {
    fn append(&mut self, entry: &TapeEntry<'_>) {
        let text = String::from_utf8_lossy(&entry.bytes);
        let resumed = if entry.resumed { " resumed" } else { "" };
        writeln!(self.0, "{:?} {} {text}{resumed}", entry.from, entry.lane.session).unwrap();
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    fn close(&mut self, _: Timestamp) -> Result<(), RecordError> {
        Ok(())
    }
}

#[test]
fn the_bridge_records_what_clients_saw() {
    let (tape, to) = std::io::pipe().unwrap();
    let hall = HttpActorHost::open_recorded(|clock| {
        RecordedSession::new(Box::new(PipeRecorder(to)), clock, OnTapeError::Stop)
    });
    let session = hall.session();
    hall.ask(&session, 1, "stop");
    assert_eq!(hall.end().0, "Actor");
    let lines = std::io::read_to_string(tape).unwrap();
    let expected = r#"Client 1 {"jsonrpc":"2.0","id":0,"method":"initialize"}
Server 1 {"jsonrpc":"2.0","id":0,"result":{"seat":1}}
Client 1 {"jsonrpc":"2.0","id":1,"method":"stop"}
Server 1 {"jsonrpc":"2.0","id":1,"result":{"seat":1}}
"#;
    assert_eq!(lines, expected);
}
