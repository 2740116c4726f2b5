//! How sessions end, and servers that cannot be reached.

use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::{
    Latch, descriptor, hang, wait_for_exit, wait_until, wait_until_full, wait_until_idle,
};
use crate::tape_faults::SmallFileSystem;

use super::agent::{INITIALIZE, INITIALIZED, StdioAgent, call, result};
use super::server::{ScriptedServer, end, json, opens, piece, reply, stream};

#[test]
fn the_last_answers_are_waited_for_when_the_client_leaves() {
    let has_left = Latch::default();
    let late = has_left.clone();
    let server = ScriptedServer::start(move |asked, out| {
        if !opens(asked, out) {
            late.wait();
            json(out, &result(asked.id(), "late"));
        }
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    agent.call(1, "x");
    agent.call(2, "x");
    agent.close_input();
    wait_until("both calls", || server.count(|asked| asked.says("tools/call")) == 2);
    wait_until_idle(agent.pid());
    has_left.open();
    let ended = agent.wait();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.rest.len(), 2, "{:?}", ended.rest);
    assert_eq!(server.asked().last().unwrap().method, "DELETE");
}

#[test]
fn a_signal_answers_what_is_pending_and_closes_the_tape() {
    let server = ScriptedServer::start(|asked, out| {
        if !opens(asked, out) {
            hang();
        }
    });
    let signals = [(Signal::TERM, 143), (Signal::INT, 130)];
    for (before, (signal, code)) in signals.into_iter().enumerate() {
        let mut agent = StdioAgent::open(&server.origin, &[]);
        agent.call(1, "x");
        wait_until("the call", || server.count(|asked| asked.says("tools/call")) > before);
        agent.signal(signal);
        let ended = agent.wait();
        assert_eq!(ended.code, Some(code));
        assert_eq!(ended.rest.len(), 1, "{:?}", ended.rest);
        assert!(ended.rest[0].contains("\"id\":1,\"error\""));
        assert!(ended.tape.lines().last().unwrap().contains("\"footer\""), "{}", ended.tape);
    }
}

#[test]
fn a_server_that_is_not_there_gives_errors_with_the_reason_and_exit_4() {
    let mut agent = StdioAgent::start("http://127.0.0.1:1/mcp", &[]);
    agent.say(INITIALIZE);
    let line = agent.hear();
    assert!(line.contains("\"id\":0,\"error\"") && line.contains("refused"), "{line}");
    agent.call(1, "x");
    assert!(agent.hear().contains("\"id\":1,\"error\""));
    let ended = agent.leave();
    assert_eq!(ended.code, Some(4));
    assert!(ended.stderr.contains("error: cannot reach 127.0.0.1:1"), "{}", ended.stderr);
    assert!(ended.tape.lines().last().unwrap().contains("\"footer\""));
}

#[test]
fn a_server_that_accepts_everything_and_answers_nothing_is_exit_4() {
    for (status, body, reason) in [
        ("200 OK", "", "answered 200 OK and nothing else"),
        ("204 No Content", "", "answered 204 No Content and nothing else"),
        ("202 Accepted", "", "answered 202 Accepted and nothing else"),
        ("200 OK", r#"{"status":"ok"}"#, "reply has no answer"),
        ("200 OK", r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, "reply has no answer"),
    ] {
        let server = ScriptedServer::start(move |_, out| {
            reply(out, status, "Content-Type: application/json\r\n", body);
        });
        let mut agent = StdioAgent::start(&server.origin, &[]);
        agent.say(INITIALIZE);
        // It is accepted, which does not show that a server of MCP is there.
        agent.say(INITIALIZED);
        let ended = agent.leave();
        assert_eq!(ended.code, Some(4), "{status} {body}: {}", ended.stderr);
        let told = |line: &&str| line.starts_with("error: ") && line.contains(reason);
        assert!(ended.stderr.lines().any(|line| told(&line)), "{reason}: {}", ended.stderr);
        assert!(ended.rest.iter().any(|line| line.contains("\"id\":0,\"error\"")));
        assert_eq!(server.count(|asked| asked.says("notifications/initialized")), 1);
    }
}

#[test]
fn a_client_that_does_not_read_stops_the_server_and_loses_nothing() {
    let server = ScriptedServer::start(|asked, out| {
        if opens(asked, out) {
            return;
        }
        stream(out);
        for number in 0..300 {
            let line = format!(
                r#"{{"jsonrpc":"2.0","method":"n{number}","params":"{}"}}"#,
                "z".repeat(200_000)
            );
            piece(out, format!("data: {line}\n\n").as_bytes());
        }
        piece(out, format!("data: {}\n\n", result(asked.id(), "done")).as_bytes());
        end(out);
    });
    let mut agent = StdioAgent::open(&server.origin, &[]);
    agent.listen(false);
    agent.call(1, "x");
    wait_until_full(&descriptor(agent.pid(), 1));
    agent.listen(true);
    for number in 0..300 {
        assert!(agent.hear().contains(&format!("\"n{number}\"")));
    }
    assert_eq!(agent.hear(), result("1", "done"));
    let memory_kb = agent.memory_kb_max();
    assert!(memory_kb < 40_000, "{memory_kb} kB");
    assert_eq!(agent.leave().code, Some(0));
}

#[test]
fn a_client_that_is_gone_ends_the_session_even_while_it_waits() {
    let server = ScriptedServer::start(|asked, out| {
        if !opens(asked, out) {
            hang();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["record", "--upstream-http", &server.origin, "-o"])
        .arg(folder.path().join("t.jsonl"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(format!("{INITIALIZE}\n{}\n", call(1, "x")).as_bytes()).unwrap();
    wait_until("the call", || server.count(|asked| asked.says("tools/call")) == 1);
    drop((input, child.stdout.take()));
    assert_eq!(wait_for_exit("the recorder", &mut child).code(), Some(0));
    assert_eq!(server.asked().last().unwrap().method, "DELETE");
}

#[test]
fn a_request_whose_answer_does_not_fit_on_the_disk_gets_an_error_in_its_place() {
    let server = ScriptedServer::start(|asked, stream| {
        if !opens(asked, stream) {
            json(stream, &result(asked.id(), &"x".repeat(900_000)));
        }
    });
    let disk = SmallFileSystem::new("256k");
    let mut agent = StdioAgent::start_at(disk.path().join("t.jsonl"), &server.origin, &[]);
    agent.initialize();
    agent.call(7, "large");
    let told = agent.hear();
    let expected =
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"recording stopped: "#;
    assert!(told.starts_with(expected), "{told}");
    let ended = agent.wait();
    assert!(ended.code == Some(3) && ended.rest.is_empty(), "{:?} {:?}", ended.code, ended.rest);
}
