//! How sessions end, and servers that are not there.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::agent::{Agent, INITIALIZE, result};
use super::server::{Server, json, opens, wait_for};

#[test]
fn the_last_answers_are_waited_for_when_the_client_leaves() {
    let server = Server::start(|asked, out| {
        if !opens(asked, out) {
            std::thread::sleep(Duration::from_millis(500));
            json(out, &result(asked.id(), "late"));
        }
    });
    let mut agent = Agent::open(&server.origin, &[]);
    agent.call(1, "x");
    agent.call(2, "x");
    let ended = agent.leave();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.rest.len(), 2, "{:?}", ended.rest);
    assert_eq!(server.asked().last().unwrap().method, "DELETE");
}

#[test]
fn a_signal_answers_what_is_pending_and_closes_the_tape() {
    let server = Server::start(|asked, out| {
        if !opens(asked, out) {
            std::thread::sleep(Duration::from_secs(20));
        }
    });
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut agent = Agent::open(&server.origin, &[]);
        agent.call(1, "x");
        let before = server.count(|asked| asked.says("tools/call"));
        wait_for("the call", || server.count(|asked| asked.says("tools/call")) > before.min(0));
        std::thread::sleep(Duration::from_millis(200));
        let began = Instant::now();
        agent.signal(signal);
        let ended = agent.wait();
        assert_eq!(ended.code, Some(code));
        assert!(began.elapsed() < Duration::from_secs(2));
        assert_eq!(ended.rest.len(), 1, "{:?}", ended.rest);
        assert!(ended.rest[0].contains("\"id\":1,\"error\""));
        assert!(ended.tape.lines().last().unwrap().contains("\"footer\""), "{}", ended.tape);
    }
}

#[test]
fn a_server_that_is_not_there_gives_errors_with_the_reason_and_exit_4() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut agent = Agent::start(&format!("http://127.0.0.1:{port}/mcp"), &[]);
    agent.say(INITIALIZE);
    let line = agent.hear();
    assert!(line.contains("\"id\":0,\"error\"") && line.contains("refused"), "{line}");
    agent.call(1, "x");
    assert!(agent.hear().contains("\"id\":1,\"error\""));
    let ended = agent.leave();
    assert_eq!(ended.code, Some(4));
    assert!(
        ended.stderr.contains(&format!("error: cannot reach 127.0.0.1:{port}")),
        "{}",
        ended.stderr
    );
    assert!(ended.tape.lines().last().unwrap().contains("\"footer\""));
}

#[test]
fn a_client_that_does_not_read_stops_the_server_and_loses_nothing() {
    let server = Server::start(|asked, out| {
        if !opens(asked, out) {
            json(out, &result(asked.id(), &"z".repeat(200_000)));
        }
    });
    let mut agent = Agent::open(&server.origin, &[]);
    for id in 1..=100 {
        agent.call(id, "x");
    }
    let ended = agent.leave();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.rest.len(), 100);
    assert!(ended.rest.iter().all(|line| line.len() > 200_000 && line.ends_with("z\"}}")));
}
