//! Replies that are event streams.

use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::agent::{StdioAgent, result};
use super::server::{ScriptedServer, accepted, end, json, opens, piece, stream};
use crate::support::{GUARD, Latch, hang, wait_until, wait_until_idle};

#[test]
fn a_stream_in_any_shape_gives_every_message_in_order_and_the_call_runs_once() {
    let text = "\u{feff}: hello\r\n\r\nid: 1\r\ndata:\r\n\r\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata:  \"method\":\"notifications/progress\",\"params\":{\"é\":\"€ 😀\"}}\n\nevent: other\ndata: no message\n\n: comment\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"ask\",\"method\":\"roots/list\"}\r\rretry: 5\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"word\":\"ü\"}}\n\n";
    for step in [1, 2, 3, 7, 1000] {
        let server = ScriptedServer::start(move |asked, out| {
            if asked.body.contains("\"ask\"") {
                return accepted(out);
            }
            if opens(asked, out) {
                return;
            }
            stream(out);
            text.trim_start_matches('\u{feff}')
                .as_bytes()
                .chunks(step)
                .for_each(|bytes| piece(out, bytes));
            end(out);
        });
        let mut agent = StdioAgent::open(&server.origin, &[]);
        agent.call(1, "x");
        assert_eq!(
            agent.hear(),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"é":"€ 😀"}}"#
        );
        assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","id":"ask","method":"roots/list"}"#);
        assert_eq!(agent.hear(), result("1", "ü"));
        let answer = r#"{"jsonrpc":"2.0","id":"ask","result":{"roots":[]}}"#;
        agent.say(answer);
        let ended = agent.leave();
        assert_eq!((ended.code, ended.rest.len()), (Some(0), 0));
        assert_eq!(server.count(|asked| asked.says("tools/call")), 1);
        assert_eq!(server.count(|asked| asked.body == answer), 1);
        assert!(ended.tape.contains(r#""params":{"é":"€ 😀"}"#), "{}", ended.tape);
    }
}

#[test]
fn a_server_that_asks_before_it_answers_is_answered() {
    let (told, heard) = channel();
    let (told, heard) = (Mutex::new(told), Mutex::new(heard));
    let server = ScriptedServer::start(move |asked, out| {
        if asked.body.contains("\"ask\"") {
            told.lock().unwrap().send(()).unwrap();
            return accepted(out);
        }
        if opens(asked, out) {
            return;
        }
        stream(out);
        piece(out, b"data: {\"jsonrpc\":\"2.0\",\"id\":\"ask\",\"method\":\"roots/list\"}\n\n");
        heard.lock().unwrap().recv_timeout(GUARD).unwrap();
        piece(out, format!("data: {}\n\n", result("1", "done")).as_bytes());
        end(out);
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    agent.call(1, "x");
    assert!(agent.hear().contains("roots/list"));
    agent.say(r#"{"jsonrpc":"2.0","id":"ask","result":{"roots":[]}}"#);
    assert_eq!(agent.hear(), result("1", "done"));
    assert_eq!(agent.leave().code, Some(0));
}

#[test]
fn a_stream_that_breaks_is_taken_up_where_it_broke() {
    let times = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&times);
    let server = ScriptedServer::start(move |asked, out| {
        if opens(asked, out) {
            return;
        }
        log.lock().unwrap().push(Instant::now());
        stream(out);
        match asked.header("last-event-id") {
            None => piece(out, b"id: e1\nretry: 300\ndata:\n\n"),
            Some("e1") => {
                piece(
                    out,
                    b"id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\ndata: {\"torn",
                );
                // This time the stream is cut off.
                return out.shutdown(std::net::Shutdown::Both).unwrap();
            }
            Some(_) => piece(out, format!("id: e3\ndata: {}\n\n", result("1", "late")).as_bytes()),
        }
        end(out);
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    agent.call(1, "x");
    assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","method":"one"}"#);
    assert_eq!(agent.hear(), result("1", "late"));
    let ended = agent.leave();
    assert_eq!(ended.code, Some(0));
    let marked: Vec<_> =
        ended.tape.lines().filter(|line| line.contains("\"resumed\":true")).collect();
    assert_eq!(marked.len(), 2, "{}", ended.tape);
    assert!(marked[0].contains("\"one\"") && marked[1].contains("late"), "{}", ended.tape);
    assert_eq!(server.count(|asked| asked.says("tools/call")), 1);
    let asked = server.asked();
    let resumed: Vec<_> = asked.iter().filter_map(|asked| asked.header("last-event-id")).collect();
    assert_eq!(resumed, ["e1", "e2"]);
    let times = times.lock().unwrap();
    assert!(times[1] - times[0] >= Duration::from_millis(300), "the pause was not kept");
}

#[test]
fn a_stream_that_breaks_for_good_is_an_error_and_no_second_call() {
    let server = ScriptedServer::start(|asked, out| {
        if opens(asked, out) {
            return;
        }
        if asked.method == "GET" {
            return super::server::reply(out, "404 Not Found", "", "");
        }
        stream(out);
        let id = if asked.id() == "2" { "id: e1\nretry: 1\n" } else { "" };
        piece(out, format!("{id}data: {{\"jsonrpc\":\"2.0\",\"method\":\"one\"}}\n\n").as_bytes());
        end(out);
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    for (id, output_text) in [(1, "ended before the answer came"), (2, "404 Not Found")] {
        agent.call(id, "x");
        assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","method":"one"}"#);
        let line = agent.hear();
        assert!(
            line.contains(&format!("\"id\":{id},\"error\"")) && line.contains(output_text),
            "{line}"
        );
    }
    assert_eq!(agent.leave().code, Some(0));
    assert_eq!(server.count(|asked| asked.says("tools/call")), 2);
}

#[test]
fn a_server_may_speak_first_and_again_after_a_break() {
    let server = ScriptedServer::start(|asked, out| {
        if asked.method != "GET" {
            if !opens(asked, out) {
                json(out, &result(asked.id(), "x"));
            }
            return;
        }
        stream(out);
        match asked.header("last-event-id") {
            None => {
                piece(
                    out,
                    b"id: g1\nretry: 10\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"one\"}\n\n",
                );
                end(out);
            }
            Some(_) => {
                piece(out, b"id: g2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"two\"}\n\n");
                hang();
            }
        }
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","method":"one"}"#);
    assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","method":"two"}"#);
    agent.call(1, "x");
    assert_eq!(agent.hear(), result("1", "x"));
    assert_eq!(agent.leave().code, Some(0));
    assert_eq!(server.count(|asked| asked.header("last-event-id") == Some("g1")), 1);
}

#[test]
fn a_cancellation_is_posted_and_does_not_keep_the_session_open() {
    let server = ScriptedServer::start(|asked, out| {
        if opens(asked, out) {
            return;
        }
        // Like servers that drop a cancelled call: the stream stays open indefinitely.
        stream(out);
        piece(out, b": working\n\n");
        hang();
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    agent.call(1, "x");
    wait_until("the call", || server.count(|asked| asked.says("tools/call")) == 1);
    agent.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let ended = agent.leave();
    assert_eq!((ended.code, ended.rest.len()), (Some(0), 0));
    assert_eq!(server.count(|asked| asked.says("notifications/cancelled")), 1);
}

#[test]
fn calls_that_wait_for_the_client_never_keep_its_answers_back() {
    let answers: Arc<(Mutex<Vec<String>>, Condvar)> = Arc::default();
    let server = ScriptedServer::start(move |asked, out| {
        if asked.body.contains("\"roots\"") {
            answers.0.lock().unwrap().push(asked.id().to_owned());
            answers.1.notify_all();
            return accepted(out);
        }
        if opens(asked, out) {
            return;
        }
        stream(out);
        let ask = format!("\"ask-{}\"", asked.id());
        let request = format!(r#"{{"jsonrpc":"2.0","id":{ask},"method":"roots/list"}}"#);
        piece(out, format!("data: {request}\n\n").as_bytes());
        let got = answers.0.lock().unwrap();
        drop(answers.1.wait_while(got, |got| !got.contains(&ask)).unwrap());
        piece(out, format!("data: {}\n\n", result(asked.id(), "done")).as_bytes());
        end(out);
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    // More than are in flight at once.
    (1..=400).for_each(|id| agent.call(id, "x"));
    let mut done = 0;
    while done < 400 {
        let line = agent.hear();
        match line.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()) {
            Some(id) if line.contains("roots/list") => {
                agent.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#));
            }
            _ => done += 1,
        }
    }
    assert_eq!(agent.leave().code, Some(0));
}

#[test]
fn an_answer_over_the_limit_becomes_an_error_for_the_server_and_so_does_its_question() {
    let server = ScriptedServer::start(|asked, out| {
        if opens(asked, out) {
            return;
        }
        if !asked.says("tools/call") {
            return accepted(out);
        }
        let question = |id: u32, pad: usize| {
            let pad = "x".repeat(pad);
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"sampling/createMessage\",\"params\":\"{pad}\"}}\n\n"
            )
        };
        stream(out);
        piece(out, question(71, 3000).as_bytes());
        piece(out, question(72, 3).as_bytes());
    });
    let mut agent = StdioAgent::open(&server.origin, &["--max-message-bytes", "2KB"]);
    agent.call(1, "ask");
    assert!(agent.hear().contains("\"id\":72,\"method\""));
    agent.say(&result("72", &"x".repeat(3000)));
    let refused = |id: &str| {
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32010,"#);
        server.count(|asked| asked.body.starts_with(&start)) == 1
    };
    wait_until("the server is told", || refused("71") && refused("72"));
}

#[test]
fn a_request_that_was_only_accepted_is_given_up_when_the_servers_stream_is_lost() {
    let gets = Mutex::new(0);
    let is_accepted = Latch::default();
    let lost = is_accepted.clone();
    let server = ScriptedServer::start(move |asked, out| {
        if asked.method == "GET" {
            *gets.lock().unwrap() += 1;
            if *gets.lock().unwrap() > 1 {
                opens(asked, out);
                return;
            }
            stream(out);
            piece(out, b"retry: 1\n\n");
            lost.wait();
            return end(out);
        }
        if !opens(asked, out) {
            accepted(out);
        }
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    agent.call(1, "x");
    wait_until("the call", || server.count(|asked| asked.says("tools/call")) == 1);
    wait_until_idle(agent.pid());
    is_accepted.open();
    let answer = agent.hear();
    assert!(answer.contains("its stream was lost before it answered"), "{answer}");
    assert_eq!(agent.leave().code, Some(0));
}

#[test]
fn what_is_said_in_reply_to_a_notification_is_not_lost() {
    let server = ScriptedServer::start(|asked, out| {
        if asked.says("notifications/streams") {
            stream(out);
            piece(out, b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/news\"}\n\n");
            return end(out);
        }
        if asked.says("notifications/answers") {
            let error = r#"{"code":-1,"message":"unwanted"}"#;
            return json(out, &format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#));
        }
        if !opens(asked, out) {
            json(out, &result(asked.id(), "x"));
        }
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    agent.say(r#"{"jsonrpc":"2.0","method":"notifications/streams"}"#);
    assert_eq!(agent.hear(), r#"{"jsonrpc":"2.0","method":"notifications/news"}"#);
    agent.say(r#"{"jsonrpc":"2.0","method":"notifications/answers"}"#);
    agent.call(1, "x");
    assert_eq!(agent.hear(), result("1", "x"));
    let ended = agent.leave();
    assert!(ended.tape.contains("notifications/news"), "{}", ended.tape);
}
