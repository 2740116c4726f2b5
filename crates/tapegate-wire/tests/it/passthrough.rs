//! The passthrough server of an actor: a process or a server over HTTP.

use std::path::Path;

use tapegate_wire::link::LinkTarget;

use crate::http_peers::HttpTestServer;
use crate::stdio_actor_host::StdioActorHost;

fn shell(script: &str) -> StdioActorHost {
    let argv = ["sh", "-c", script].map(str::to_owned);
    StdioActorHost::open_before(LinkTarget::Command(argv.to_vec()))
}

#[test]
fn a_process_is_started_when_it_is_asked_and_gone_when_the_client_is() {
    let mut house = shell("echo $$; exec cat");
    house.say("say first\nask one\nask two\n");
    assert_eq!(house.line(), "first");
    let pid = house.line().strip_prefix("behind ").unwrap().to_owned();
    assert_eq!((house.line(), house.line()), ("behind one".to_owned(), "behind two".to_owned()));
    assert!(Path::new("/proc").join(&pid).exists());
    house.input = None;
    assert_eq!(house.line(), "");
    assert_eq!(house.end().0, "Client");
    assert!(!Path::new("/proc").join(&pid).exists());
}

#[test]
fn nothing_is_started_that_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("started");
    let mut house = shell(&format!("touch {}; exec cat", mark.display()));
    house.say("say x\n");
    assert_eq!(house.line(), "x");
    house.input = None;
    assert_eq!(house.end().0, "Client");
    assert!(!mark.exists());
}

#[test]
fn what_is_asked_waits_for_a_server_that_is_slow_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let mut house = shell(&format!("read word < {}; exec cat", gate.display()));
    house.say(&"ask 0123456789\n".repeat(10_000));
    house.say("say all asked\n");
    assert_eq!(house.line(), "all asked");
    std::fs::write(&gate, "go\n").unwrap();
    for _ in 0..10_000 {
        assert_eq!(house.line(), "behind 0123456789");
    }
}

#[test]
fn the_actor_learns_that_the_server_has_ended_and_may_ask_again() {
    let mut house = shell("read x; echo \"last $x\"; exit 3");
    house.say("ask 1\n");
    assert_eq!(house.line(), "behind last 1");
    assert_eq!(house.line(), "gone: the MCP server ended (exit status: 3)");
    house.say("ask 2\n");
    assert_eq!(house.line(), "behind last 2");
}

#[test]
fn a_server_whose_heirs_hold_its_output_is_gone_all_the_same() {
    let mut house = shell("sleep 1000 & read x; exit 3");
    house.say("ask 1\n");
    assert_eq!(house.line(), "gone: the MCP server ended (exit status: 3)");
}

#[test]
fn the_actor_learns_that_a_server_cannot_be_started() {
    let argv = vec!["/no/such/server".to_owned()];
    let mut house = StdioActorHost::open_before(LinkTarget::Command(argv));
    house.say("ask 1\nsay next\n");
    let (one, two) = (house.line(), house.line());
    assert!(one == "next" && two.starts_with("gone: cannot start `/no/such/server`"), "{two}");
}

#[test]
fn a_server_that_takes_its_time_is_not_asked_more_than_fits() {
    // A shell reads its input byte by byte.
    let mut house = shell("while read -r line; do echo \"${#line}\"; done");
    let (count, bytes) = (200, 60_000);
    let mut input = house.input.take().unwrap();
    let asking = std::thread::spawn(move || {
        let line = format!("ask {}\n", "x".repeat(bytes));
        for _ in 0..count {
            std::io::Write::write_all(&mut input, line.as_bytes()).unwrap();
        }
        input
    });
    for answered in 0..count {
        let asked = house.heard.load(std::sync::atomic::Ordering::Relaxed);
        let waiting = asked.saturating_sub(answered) * bytes;
        assert!(waiting < 6 * 1024 * 1024, "{waiting} bytes wait for the server");
        assert_eq!(house.line(), format!("behind {bytes}"));
    }
    drop(asking.join().unwrap());
}

#[test]
fn whoever_waits_for_a_message_over_the_limit_is_told() {
    let long = "head -c 70000 /dev/zero | tr '\\0' x; echo '\"}'";
    let mut house = shell(&format!(
        "read x; printf '{{\"id\":5,\"result\":\"'; {long};
         printf '{{\"id\":6,\"method\":\"m\",\"params\":\"'; {long}; exec cat"
    ));
    house.say("ask go\n");
    let told = house.line();
    assert!(told.starts_with("behind {\"jsonrpc\":\"2.0\",\"id\":5,\"error\":"), "{told}");
    let answer = house.line();
    assert!(answer.starts_with("behind {\"jsonrpc\":\"2.0\",\"id\":6,\"error\":"), "{answer}");
}

#[test]
fn a_stop_and_a_client_that_is_gone_end_the_server_too() {
    for message in ["stop\n", ""] {
        let mut house = shell("trap '' TERM; echo $$; read x; while :; do sleep 1000; done");
        house.say("ask x\n");
        let pid = house.line().strip_prefix("behind ").unwrap().to_owned();
        house.say(message);
        house.input = None;
        house.output = None;
        house.end();
        assert!(!Path::new("/proc").join(&pid).exists());
    }
}

#[test]
fn a_server_by_http_is_like_one_on_pipes() {
    let server = HttpTestServer::start(|seen| {
        let (opens, id) = (seen.body.contains("initialize"), seen.body.contains("\"id\":1"));
        let session = if opens { "mcp-session-id: s1\r\n" } else { "" };
        let id = if id { 1 } else { 2 };
        (session.to_owned(), format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"))
    });
    let upstream = LinkTarget::Http { url: server.url(), headers: vec!["X-Key: k".to_owned()] };
    let mut house = StdioActorHost::open_before(upstream);
    house.say("ask {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n");
    house.say("ask {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n");
    assert_eq!(house.line(), "behind {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_eq!(house.line(), "behind {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
    house.input = None;
    assert_eq!(house.end().0, "Client");
    let farewell = server.wait("DELETE ");
    assert_eq!(farewell.header("mcp-session-id"), Some("s1"));
    assert_eq!(farewell.header("x-key"), Some("k"));
}

#[test]
fn a_server_by_http_that_is_not_there_is_answered_for() {
    let url = "http://127.0.0.1:1/mcp".to_owned();
    let mut house = StdioActorHost::open_before(LinkTarget::Http { url, headers: Vec::new() });
    house.say("ask {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
    let answer = house.line();
    assert!(answer.starts_with("behind {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":"), "{answer}");
    assert!(answer.contains("cannot reach 127.0.0.1"), "{answer}");
}
