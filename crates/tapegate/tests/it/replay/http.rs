//! HTTP clients: each with its own session, or all without one.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{answer, call, lines, refusal, tape};
use crate::http_peers::{ReceivedReply, ask, send};
use crate::support::{RunningSession, SessionSetup, kept, replay, tapegate};

const JSON: &str = "content-type: application/json";
const BOTH: &str = "accept: application/json, text/event-stream";
const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const SAMPLE: &str = r#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}"#;
const SAMPLED: &str = r#"{"jsonrpc":"2.0","id":9,"result":{"role":"assistant"}}"#;
const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}"#;

/// A handshake, a call, the same call again, and one in which the server sends a request.
fn session() -> String {
    let script = [
        format!("> {HELLO}\n< {}\n> {READY}", answer(0, "hello")),
        format!("> {}\n< {}", call(1, "a", 1), answer(1, "one")),
        format!("> {}\n< {}", call(2, "a", 1), answer(2, "two")),
        format!(
            "> {}\n< {LOG}\n< {SAMPLE}\n> {SAMPLED}\n< {}",
            call(3, "b", 1),
            answer(3, "three")
        ),
    ];
    tape(&script.join("\n"))
}

fn served(setup: SessionSetup) -> (RunningSession, u16) {
    let run = setup.flags(&["--http", "127.0.0.1:0"]).start();
    let port = run.port();
    (run, port)
}

/// A client with a session.
struct ReplayClient {
    port: u16,
    session: String,
}

impl ReplayClient {
    fn greet(port: u16) -> Self {
        let got = ask(port, "POST /mcp", &[JSON, BOTH], HELLO);
        assert_eq!(got.status, 200, "{got:?}");
        assert!(got.body.contains(&answer(0, "hello")), "{got:?}");
        let session = got.header("mcp-session-id").unwrap().to_owned();
        let client = Self { port, session };
        assert_eq!(client.post(READY).status, 202);
        client
    }

    fn headers(&self) -> [String; 4] {
        let session = format!("mcp-session-id: {}", self.session);
        [JSON.to_owned(), BOTH.to_owned(), session, "mcp-protocol-version: 2025-06-18".to_owned()]
    }

    fn post(&self, body: &str) -> ReceivedReply {
        let headers = self.headers();
        ask(self.port, "POST /mcp", &headers.each_ref().map(String::as_str), body)
    }

    /// Posts a request and reads its stream incrementally.
    fn stream(&self, body: &str) -> BufReader<TcpStream> {
        let headers = self.headers();
        let headers = headers.each_ref().map(String::as_str);
        BufReader::new(send(self.port, "POST /mcp", &headers, body))
    }
}

/// Reads until a line contains `text`.
fn until(stream: &mut impl BufRead, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "{text} never came");
    }
}

#[test]
fn each_session_plays_the_tape_from_its_start() {
    let (run, port) = served(replay(session()));
    let (one, two) = (ReplayClient::greet(port), ReplayClient::greet(port));
    assert_ne!(one.session, two.session);
    for text in ["one", "two"] {
        for client in [&one, &two] {
            let got = client.post(&call("\"x\"", "a", 1));
            assert!(got.body.contains(&answer("\"x\"", text)), "{got:?}");
        }
    }
    run.signal(Signal::TERM);
    run.end().exits(143).complains("matched 6, unmatched 0, unused 1");
}

#[test]
fn sessions_may_share_one_place_on_the_tape() {
    let (run, port) = served(replay(session() + &session()).flags(&["--state-scope", "global"]));
    let one = ReplayClient::greet(port);
    assert!(one.post(&call(5, "a", 1)).body.contains(&answer(5, "one")));
    assert!(one.post(&call(6, "a", 1)).body.contains(&answer(6, "two")));
    // The next message on the tape is not an `initialize`.
    let got = ask(port, "POST /mcp", &[JSON, BOTH], HELLO);
    assert!(got.body.contains(&refusal(0)), "{got:?}");
    run.end().exits(6);
}

#[test]
fn what_the_server_asks_comes_on_the_stream_of_the_call_and_its_answer_by_post() {
    let (run, port) = served(replay(session()).flags(&["--match-mode", "by-request"]));
    let client = ReplayClient::greet(port);
    let mut stream = client.stream(&call(5, "b", 1));
    until(&mut stream, LOG);
    until(&mut stream, SAMPLE);
    assert_eq!(client.post(SAMPLED).status, 202);
    until(&mut stream, &answer(5, "three"));
    run.signal(Signal::TERM);
    run.end().exits(143);
}

#[test]
fn clients_without_sessions_are_answered_and_told_what_belongs_to_their_request() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let asked = |id: u32, n: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"n":{n}}},{meta}}}}}"#
        )
    };
    let log = |n: u32| LOG.replace("\"x\"", &format!("\"about {n}\""));
    let scene = |n: u32| format!("@200 < {}\n@400 < {}\n", log(n), answer(n, n));
    let separate: String = (1..=4).map(|n| format!("@0 > {}\n{}", asked(n, n), scene(n))).collect();
    let flags = ["--match-mode", "by-request", "--timing", "realistic"];
    let (run, port) = served(replay(tape(&separate)).flags(&flags));
    thread::scope(|scope| {
        for n in 1..=4 {
            scope.spawn(move || {
                let modern = [JSON, BOTH, "mcp-protocol-version: 2026-07-28"];
                let named = ["mcp-method: tools/call", "mcp-name: t"];
                let headers = [&modern[..], &named].concat();
                let got = ask(port, "POST /mcp", &headers, &asked(7, n));
                assert!(got.body.contains(&log(n)), "{n}: {got:?}");
                assert!(got.body.contains(&answer(7, n)), "{n}: {got:?}");
                assert_eq!(got.body.matches("about").count(), 1, "{got:?}");
            });
        }
    });
    run.signal(Signal::TERM);
    run.end().exits(143).complains("matched 4, unmatched 0, unused 0");
}

#[test]
fn what_is_not_on_the_tape_is_answered_and_ends_everything() {
    let (run, port) = served(replay(session()));
    let client = ReplayClient::greet(port);
    let got = client.post(&call(5, "z", 1));
    assert!(got.body.contains(&refusal(5)), "{got:?}");
    run.end().exits(6).complains("error: no answer on the tape for tools/call z: ");
    // If that is only a warning, the replay goes on.
    let (run, port) = served(replay(session()).flags(&["--on-unmatched", "warn"]));
    let client = ReplayClient::greet(port);
    assert!(client.post(&call(5, "z", 1)).body.contains(&refusal(5)));
    assert!(client.post(&call(6, "a", 1)).body.contains(&answer(6, "one")));
    run.signal(Signal::INT);
    run.end().exits(130).complains("matched 2, unmatched 1, unused 2");
}

#[test]
fn a_session_that_is_ended_or_unknown_is_not_served() {
    let (run, port) = served(replay(session()));
    let client = ReplayClient::greet(port);
    let headers = client.headers();
    let headers = headers.each_ref().map(String::as_str);
    assert!(ask(port, "DELETE /mcp", &headers, "").status < 300);
    assert_eq!(client.post(&call(5, "a", 1)).status, 404);
    let stranger = ReplayClient { port, session: "made-up".to_owned() };
    assert_eq!(stranger.post(&call(5, "a", 1)).status, 404);
    // A page in a browser may not send requests either.
    let got = ask(port, "POST /mcp", &[JSON, BOTH, "origin: http://evil.example"], HELLO);
    assert_eq!(got.status, 403, "{got:?}");
    assert!(ReplayClient::greet(port).post(&call(6, "a", 1)).body.contains(&answer(6, "one")));
    run.signal(Signal::TERM);
    run.end().exits(143);
}

#[test]
fn hostile_requests_are_answered_and_the_replay_goes_on() {
    let (run, port) = served(replay(session()).flags(&["--max-message-bytes", "64KB"]));
    let client = ReplayClient::greet(port);
    let large = call(5, &"x".repeat(100_000), 1);
    for body in ["", "{", "\0", "17", "\"text\"", &large, &"[".repeat(50_000)] {
        let got = client.post(body);
        assert!((400..500).contains(&got.status), "{:.60}: {got:?}", body.escape_debug());
    }
    // These have no answer to wait for.
    for body in ["{}", "[]", r#"{"jsonrpc":"2.0","id":99,"result":{}}"#] {
        assert_eq!(client.post(body).status, 202, "{body}");
    }
    for line in ["GET /elsewhere", "PUT /mcp", "GET /mcp/../../etc/passwd"] {
        let got = ask(port, line, &[JSON, BOTH], HELLO);
        assert!(got.status >= 400, "{line}: {got:?}");
    }
    // Half a request, and bytes that are not a request.
    let mut half = send(port, "POST /mcp", &[JSON, BOTH, "x: y"], "");
    half.write_all(b"POST /mcp HTTP/1.1\r\ncontent-length: 10\r\n\r\n{").ok();
    drop(half);
    let mut noise = TcpStream::connect(("127.0.0.1", port)).unwrap();
    noise.write_all(&[0, 159, 146, 150, b'\n', b'\r', b'\n']).ok();
    noise.read_to_end(&mut Vec::new()).ok();
    assert!(client.post(&call(6, "a", 1)).body.contains(&answer(6, "one")));
    run.signal(Signal::TERM);
    run.end().exits(143);
}

#[test]
fn a_client_that_goes_away_takes_nobody_with_it() {
    let script = format!(
        "> {HELLO}\n< {}\n> {READY}\n> {}\n@600000 < {}\n> {}\n< {}\n",
        answer(0, "hello"),
        call(1, "slow", 1),
        answer(1, "late"),
        call(2, "quick", 2),
        answer(2, "soon")
    );
    let flags = ["--match-mode", "by-request", "--timing", "realistic"];
    let (run, port) = served(replay(tape(&script)).flags(&flags));
    let (one, two) = (ReplayClient::greet(port), ReplayClient::greet(port));
    let waiting = one.stream(&call(5, "slow", 1));
    assert!(two.post(&call(6, "quick", 2)).body.contains(&answer(6, "soon")));
    drop(waiting);
    assert!(one.post(&call(7, "quick", 2)).body.contains(&answer(7, "soon")));
    // Pending answers do not prevent it from ending.
    let _waiting = two.stream(&call(8, "slow", 1));
    run.signal(Signal::TERM);
    run.end().exits(143);
}

#[test]
fn answers_take_their_time_for_each_client_apart() {
    let script = format!(
        "> {HELLO}\n< {}\n> {READY}\n> {}\n@400 < {}\n",
        answer(0, "hello"),
        call(1, "slow", 1),
        answer(1, "late")
    );
    let (run, port) = served(replay(tape(&script)).flags(&["--timing", "realistic"]));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let client = ReplayClient::greet(port);
                let asked = Instant::now();
                assert!(client.post(&call(5, "slow", 1)).body.contains(&answer(5, "late")));
                assert!(asked.elapsed() >= Duration::from_millis(400));
            });
        }
    });
    run.signal(Signal::TERM);
    run.end().exits(143).complains("matched 16, unmatched 0, unused 0");
}

/// A replay over HTTP, started from a command line.
struct HttpReplay {
    process: Child,
    port: u16,
}

impl HttpReplay {
    fn start(command: &mut Command) -> Self {
        let process = command.arg("--http").arg(":0").stderr(Stdio::piped()).spawn().unwrap();
        // From here on it is killed even if its output is unexpected.
        let mut player = Self { process, port: 0 };
        let mut said = String::new();
        BufReader::new(player.process.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        // The line starts with the name it was started by.
        let (_, rest) = said.split_once(": listening on http://127.0.0.1:").unwrap();
        player.port = rest.split_once('/').unwrap().0.parse().unwrap();
        player
    }
}

impl Drop for HttpReplay {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn the_command_line_of_the_seed_listens_on_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("thoughtjack");
    symlink(env!("CARGO_BIN_EXE_tapegate"), &link).unwrap();
    fs::write(folder.path().join("session.jsonl"), session()).unwrap();
    let mut command = Command::new(&link);
    command.args(["replay", "--recording", "session.jsonl"]).current_dir(folder.path());
    let player = HttpReplay::start(command.stdin(Stdio::null()));
    let got = ReplayClient::greet(player.port).post(&call(5, "a", 1));
    assert!(got.body.contains(&answer(5, "one")), "{got:?}");
}

#[test]
fn a_tape_may_come_from_standard_input_and_a_port_that_is_taken_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), session()).unwrap();
    let input = fs::File::open(folder.path().join("t.jsonl")).unwrap();
    let player = HttpReplay::start(tapegate().args(["replay", "-r", "-"]).stdin(input));
    let got = ReplayClient::greet(player.port).post(&call(5, "a", 1));
    assert!(got.body.contains(&answer(5, "one")), "{got:?}");
    let address = format!("127.0.0.1:{}", player.port);
    let end = replay(session()).flags(&["--http", &address]).start().end();
    end.exits(4).complains("error: cannot listen on ");
    let end = replay(session()).flags(&["--http", "nowhere"]).start().end().exits(64);
    assert!(end.stderr.starts_with("error: "), "{}", end.stderr);
}

#[test]
fn a_new_tape_marks_what_tapegate_said_itself_and_nothing_else() {
    let setup = replay(session());
    let new = setup.folder().join("new.jsonl");
    let setup = setup.flags(&["--record-to", new.to_str().unwrap(), "--match-mode", "by-request"]);
    let (run, port) = served(setup.flags(&["--on-unmatched", "warn"]));
    let client = ReplayClient::greet(port);
    assert!(client.post(&call(50, "a", 1)).body.contains(&answer(50, "one")));
    assert!(client.post(&call(60, "unknown", 1)).body.contains("\"error\""));
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":70,\"method\":\"ping\"}";
    assert!(client.post(ping).body.contains("\"result\""));
    run.signal(Signal::TERM);
    let _end = run.end().exits(143);
    let kept = kept(&new);
    let is_ours = |id: u32| {
        let is_answer = |text: &str| {
            text.contains(&format!("\"id\":{id},"))
                && !text.contains("\"method\":\"ping\"")
                && (text.contains("\"result\"") || text.contains("\"error\""))
        };
        let answer = kept.iter().find(|kept| is_answer(&kept.text()));
        answer.unwrap_or_else(|| panic!("no answer to {id}")).ours
    };
    assert_eq!([50, 60, 70].map(is_ours), [false, true, true]);
}

#[test]
fn a_new_tape_has_every_session_and_what_was_passed_on() {
    let setup = replay(session());
    let new = setup.folder().join("new.jsonl");
    let setup = setup.flags(&["--record-to", new.to_str().unwrap(), "--match-mode", "by-request"]);
    let (run, port) = served(setup.behind(&["serve"]));
    for n in 0..2 {
        let client = ReplayClient::greet(port);
        assert!(client.post(&call(5, "a", 1)).body.contains(&answer(5, "one")));
        let got = client.post(&call(6, "new", n));
        assert!(got.body.contains("\"id\":6,\"result\":{\"for\":"), "{got:?}");
    }
    run.signal(Signal::TERM);
    let end = run.end().exits(143).leaves_no_process();
    assert_eq!(fs::read_to_string(end.run.tape_path()).unwrap(), session());
    crate::support::check(&new, 0);
    let calls = kept(&new).into_iter().filter(|kept| kept.text().contains("\"new\"")).count();
    assert_eq!(calls, 2);
    // A replay of it finds both old and new requests.
    let live = [HELLO, &call(1, "new", 1), &call(2, "a", 1), &call(3, "b", 1)];
    let live = lines(&live) + SAMPLED + "\n";
    let again = replay(fs::read(&new).unwrap()).flags(&["--match-mode", "by-request"]);
    again.run(live.as_bytes()).exits(0).complains(" unmatched 0,");
}
