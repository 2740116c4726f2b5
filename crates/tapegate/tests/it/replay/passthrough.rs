//! Requests that are not on the tape, passed to a live server.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use super::{answer, ask, call, lines, tape};
use crate::http_peers::{WebServer, json};
use crate::support::{SessionSetup, replay, reply, request};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"live","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A tape with a handshake and one call.
fn taped() -> String {
    let hello = HELLO.replace("\"live\"", "\"recorded\"");
    tape(&format!(
        "> {hello}\n< {}\n> {READY}\n> {}\n< {}\n",
        answer("\"h\"", "hello"),
        call(1, "a", 1),
        answer(1, "one")
    ))
}

/// A server behind the tape that logs its input to the returned file.
fn logged(steps: &[&str]) -> (SessionSetup, PathBuf) {
    let setup = replay(taped());
    let log = setup.folder().join("log");
    let log_step = format!("log={}", log.display());
    let steps: Vec<&str> = [&log_step[..]].into_iter().chain(steps.iter().copied()).collect();
    (setup.behind(&steps), log)
}

fn heard(log: &PathBuf) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn ec_rec_009_a_new_request_is_passed_on_and_the_tape_is_not_touched() {
    let (setup, log) = logged(&["serve"]);
    let live = lines(&[HELLO, READY, &call(5, "a", 1), &call("\"n\"", "new", 2), &call(6, "b", 3)]);
    let end = setup.run(live.as_bytes()).exits(0).leaves_no_process();
    assert_eq!(fs::read_to_string(end.run.tape_path()).unwrap(), taped());
    // Recorded answers come from the tape; the server is initialized as the client initialized us.
    let heard = heard(&log);
    let greeting = HELLO.replace("\"h\"", "\"tapegate-initialize\"");
    assert_eq!(heard, [&greeting, READY, &call(1, "new", 2), &call(2, "b", 3)]);
    let got = [
        answer("\"h\"", "hello"),
        answer(5, "one"),
        reply("\"n\"").trim_end().replace("\"for\":\"n\"", "\"for\":1"),
        reply(6).trim_end().replace("\"for\":6", "\"for\":2"),
    ];
    let end = end.client_got(lines(&got).as_bytes());
    end.complains("matched 2, unmatched 2, unused 0").complains("passed on");
}

#[test]
fn a_server_that_is_not_needed_is_not_started() {
    let (setup, log) = logged(&["serve"]);
    let live = lines(&[HELLO, READY, &call(5, "a", 1), &ask(6, "ping")]);
    setup.run(live.as_bytes()).exits(0);
    assert!(!log.exists());
}

#[test]
fn a_client_that_greets_nobody_has_nobody_greeted() {
    let (setup, log) = logged(&["serve"]);
    let end = setup.flags(&["--match-mode", "by-request"]).run(request(5).as_bytes()).exits(0);
    assert_eq!(heard(&log), [request(1).trim_end()]);
    end.client_got(reply(5).replace("\"for\":5", "\"for\":1").as_bytes());
}

#[test]
fn an_initialize_that_is_not_on_the_tape_is_the_servers_own() {
    let setup = replay(tape(&format!("> {}\n< {}\n", call(1, "a", 1), answer(1, "one"))));
    let log = setup.folder().join("log");
    let setup = setup.behind(&[&format!("log={}", log.display()), "serve"]);
    let live = lines(&[HELLO, READY, &call(5, "a", 1), &call(6, "b", 1)]);
    let end = setup.flags(&["--match-mode", "by-request"]).run(live.as_bytes()).exits(0);
    assert_eq!(heard(&log), [&HELLO.replace("\"h\"", "1"), READY, &call(2, "b", 1)]);
    end.client_got_some(&answer(5, "one"));
}

#[test]
fn what_the_server_behind_says_of_its_own_accord_reaches_the_client_and_its_answers_come_back() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"live"}}"#;
    let ask = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":{{}}}}"#)
    };
    let (setup, log) = logged(&[
        "answer=1",
        "read=2",
        &format!("say={note}"),
        &format!("say={}", ask("7")),
        &format!("say={}", ask("7")),
        "read=2",
        "say={\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"done\":true}}",
        "eof",
    ]);
    let mut run = setup.start();
    run.send(lines(&[HELLO, READY, &call("\"x\"", "new", 1)]).as_bytes());
    let got = run.lines(4);
    let got: Vec<String> = String::from_utf8(got).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(got[1..3], [note.to_owned(), ask("7")]);
    // The same id is in use, so the second request has another.
    let (_, rest) = got[3].split_once("\"id\":").unwrap();
    let (second, _) = rest.split_once(',').unwrap();
    assert_ne!(second, "7");
    let said = |id: &str, text: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{text}"}}"#);
    run.send(lines(&[said(second, "two"), said("7", "one")]).as_bytes());
    run.lines(5);
    assert_eq!(heard(&log)[3..], [said("7", "two"), said("7", "one")]);
    let end = run.end_of_input().exits(0).leaves_no_process();
    end.client_got_some("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"done\":true}}\n");
}

#[test]
fn a_request_that_is_taken_back_is_taken_back_behind_by_its_number_there() {
    let (setup, log) = logged(&["answer=1", "eof"]);
    let mut run = setup.start();
    let cancel = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    run.send(lines(&[HELLO, READY, &call("\"x\"", "new", 1)]).as_bytes());
    run.until("the request", |_| heard(&log).len() == 3);
    run.send(lines(&[cancel("\"y\""), cancel("\"x\"")]).as_bytes());
    run.until("the cancellation", |_| heard(&log).len() == 4);
    assert_eq!(heard(&log)[3], cancel("1"));
    // No answer is outstanding any more.
    run.end_of_input().exits(0).client_got(lines(&[answer("\"h\"", "hello")]).as_bytes());
}

#[test]
fn a_batch_may_be_answered_from_both() {
    let (setup, _) = logged(&["serve"]);
    let batch = format!("[{},{},{}]", call(2, "new", 1), call(3, "a", 1), call(4, "new", 2));
    let live = lines(&[HELLO, READY, &batch]);
    let end = setup.flags(&["--match-mode", "by-request"]).run(live.as_bytes()).exits(0);
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    let batch: serde_json::Value = serde_json::from_str(got.lines().nth(1).unwrap()).unwrap();
    let ids: Vec<u64> =
        batch.as_array().unwrap().iter().map(|one| one["id"].as_u64().unwrap()).collect();
    assert_eq!((ids.len(), got.lines().count()), (3, 2), "{got}");
    assert!([2, 3, 4].iter().all(|id| ids.contains(id)), "{got}");
}

#[test]
fn ten_thousand_requests_are_passed_on_and_each_gets_its_own_answer() {
    let (setup, _) = logged(&["answer=1", "read=1", "reverse=10000", "eof"]);
    let setup = setup.flags(&["--match-mode", "by-request", "-q"]);
    let live: String = (0..10_000).map(|n| lines(&[call(n + 7, "new", n)])).collect();
    let end = setup.run((lines(&[HELLO, READY]) + &live).as_bytes()).exits(0);
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    let mut got: Vec<&str> = got.lines().skip(1).collect();
    assert_eq!(got.len(), 10_000);
    got.reverse();
    for (n, line) in got.iter().enumerate() {
        let wanted = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"for":{}}}}}"#, n + 7, n + 1);
        assert_eq!(*line, wanted);
    }
}

#[test]
fn a_large_answer_from_behind_is_byte_exact() {
    let (setup, _) = logged(&["answer=1", "read=2", "big=1,8000000", "eof"]);
    let live = lines(&[HELLO, READY, &call("\"x\"", "new", 1)]);
    let end = setup.run(live.as_bytes()).exits(0);
    let text = "y".repeat(8_000_000);
    let got = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{{\"t\":\"{text}\"}}}}\n");
    end.client_got((lines(&[answer("\"h\"", "hello")]) + &got).as_bytes());
}

const GONE: &str =
    r#""error":{"code":-32000,"message":"not on the tape, and the live server is unavailable: "#;

#[test]
fn a_server_that_cannot_be_started_is_an_error_for_who_asks_and_the_tape_plays_on() {
    let setup = replay(taped()).flags(&["--on-unmatched", "passthrough", "--upstream", "/no/such"]);
    let setup = setup.flags(&["--match-mode", "by-request"]);
    let live = [HELLO, READY, &call(5, "new", 1), &call(6, "new", 2), &call(7, "a", 1)];
    let end = setup.run(lines(&live).as_bytes()).exits(4);
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    for id in [5, 6] {
        assert!(got.contains(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{GONE}")), "{got}");
    }
    assert!(got.contains(&answer(7, "one")) && got.lines().count() == 4, "{got}");
    end.complains("warning: ").complains("/no/such");
}

#[test]
fn a_server_that_dies_is_an_error_for_everyone_who_waits_and_the_tape_plays_on() {
    for steps in [
        &["exit=7"][..],
        &["answer=1", "exit=0"],
        &["answer=1", "read=4", "exit=7"],
        &["answer=1", "read=4", "abort"],
        &["answer=1", "read=4", "raw={\"jsonrpc\":\"2.0\",\"id\":1,\"resu", "exit=0"],
    ] {
        let (setup, _) = logged(steps);
        let mut run = setup.flags(&["--match-mode", "by-request"]).start();
        let live = [HELLO, READY, &call(5, "new", 1), &call(6, "new", 2), &call(7, "new", 3)];
        run.send(lines(&live).as_bytes());
        run.lines(4);
        // Later requests are answered as well.
        run.send(lines(&[call(8, "new", 4), call(9, "a", 1)]).as_bytes());
        run.lines(6);
        let end = run.end_of_input().exits(4).leaves_no_process();
        let got = String::from_utf8(end.stdout.clone()).unwrap();
        for id in 5..9 {
            let wanted = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{GONE}");
            assert_eq!(got.matches(&wanted).count(), 1, "{steps:?} {got}");
        }
        assert!(got.contains(&answer(9, "one")) && got.lines().count() == 6, "{got}");
    }
}

#[test]
fn a_server_that_refuses_the_greeting_is_told_with_its_reason() {
    let refused = r#"{"jsonrpc":"2.0","id":"tapegate-initialize","error":{"code":-32602,"message":"go away"}}"#;
    let (setup, _) = logged(&["read=1", &format!("say={refused}"), "eof"]);
    let live = lines(&[HELLO, READY, &call(5, "new", 1)]);
    let end = setup.run(live.as_bytes()).exits(4).leaves_no_process();
    end.client_got_some("it refused `initialize`: ").client_got_some("go away");
}

#[test]
fn the_server_behind_ends_with_the_replay() {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let steps = ["answer=1", "spawn=exec sleep 600 2>&-", "hang"];
        let kills = signal == Signal::KILL;
        let (setup, log) = logged(if kills { &["answer=1", "hang"] } else { &steps });
        let mut run = setup.start();
        run.send(lines(&[HELLO, READY, &call(5, "new", 1)]).as_bytes());
        run.until("the server", |_| !heard(&log).is_empty());
        run.signal(signal);
        let end = run.end().leaves_no_process();
        assert!(kills || end.status.code() == Some(128 + signal.as_raw()), "{}", end.stderr);
    }
    // A client that neither writes nor reads is gone, even if answers are outstanding.
    let (reader, writer) = std::io::pipe().unwrap();
    let (setup, log) = logged(&["answer=1", "hang"]);
    let mut run = setup.stdout(writer).start();
    run.send(lines(&[HELLO, READY, &call(5, "new", 1)]).as_bytes());
    run.until("the server", |_| !heard(&log).is_empty());
    drop(reader);
    run.end_of_input().exits(0).leaves_no_process();
}

#[test]
fn a_server_reached_by_http_is_asked_what_the_tape_does_not_know() {
    let server = WebServer::start(|seen, out| {
        use std::io::Write;
        let text = String::from_utf8_lossy(&seen.body);
        let Ok(said) = serde_json::from_str::<serde_json::Value>(&text) else {
            return out.write_all(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n").is_ok();
        };
        if said.get("id").is_none() {
            return out.write_all(b"HTTP/1.1 202 Ok\r\ncontent-length: 0\r\n\r\n").is_ok();
        }
        let result = match said["method"].as_str() {
            Some("initialize") => {
                r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#.to_owned()
            }
            _ => format!("{{\"for\":{}}}", said["params"]["arguments"]["n"]),
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, said["id"]);
        out.write_all(&json("mcp-session-id: s1\r\n", &body)).is_ok()
    });
    let url = server.url("/mcp");
    let flags = ["--on-unmatched", "passthrough", "--upstream-http", &url, "--header", "X-Key: k"];
    let setup = replay(taped()).flags(&flags).flags(&["--match-mode", "by-request"]);
    let live = [HELLO, READY, &call(5, "new", 11), &call(7, "a", 1)];
    let mut run = setup.start();
    run.send(lines(&live).as_bytes());
    run.lines(3);
    let end = run.end_of_input().exits(0);
    let end = end.client_got_some("{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"for\":11}}\n");
    end.client_got_some(&answer(7, "one"));
    let posts: Vec<_> =
        server.seen().into_iter().filter(|seen| seen.head.starts_with("POST")).collect();
    assert!(posts.iter().all(|seen| seen.header("x-key") == Some("k")));
    assert!(!posts.iter().any(|seen| String::from_utf8_lossy(&seen.body).contains("\"a\"")));

    let flags = ["--on-unmatched", "passthrough", "--upstream-http", "http://127.0.0.1:1/mcp"];
    let setup = replay(taped()).flags(&flags).flags(&["--match-mode", "by-request"]);
    let end = setup.run(lines(&live).as_bytes()).exits(4).client_got_some(&answer(7, "one"));
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    assert!(got.contains("{\"jsonrpc\":\"2.0\",\"id\":5,\"error\":"), "{got}");
}
