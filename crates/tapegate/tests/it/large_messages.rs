//! Messages far over the limit of a shim: `record` and `tape` pass them on byte for byte.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tapegate_core::side::Side;

use crate::http_peers::{STREAM, WebServer, ask, json};
use crate::proxy::{JSON, in_front_of};
use crate::support::{RunningSession, kept, record, tape, tapegate};

const ACCEPT: &str = "accept: application/json, text/event-stream";
const MB: usize = 1_000_000;
/// One over the limit of a shim, and one of an uneven size.
const SIZES: [usize; 2] = [11 * MB, 40 * MB + 7];
/// The memory of the test build itself, and of a few small messages.
const REST_KB_MAX: u64 = 40_000;

fn request(bytes: usize) -> String {
    let text = "q\\n\u{e9}".repeat(bytes / 5);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"t":"{text}"}}}}"#)
}

/// The answer of the scripted server.
fn answer(bytes: usize) -> String {
    let text = "y".repeat(bytes);
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"t":"{text}"}}}}"#)
}

/// Asserts that both messages are on the tape unchanged, and the answer is matched to its request.
#[track_caller]
fn holds(tape: &Path, request: &str, answer: &str) {
    let frames = kept(tape);
    let is = |at: usize, from: Side, text: &str| {
        let frame = &frames[at];
        assert!(frame.from == from && frame.reason.is_none(), "frame {at}");
        assert!(frame.bytes == text.as_bytes(), "frame {at} has {} bytes", frame.bytes.len());
    };
    assert_eq!(frames.len(), 2);
    is(0, Side::Client, request);
    is(1, Side::Server, answer);
    if frames[1].seq.is_some() {
        assert!(frames[1].latency_ms.is_some());
    }
}

/// Asserts that every command that reads tapes can read this one.
#[track_caller]
fn is_read_by_all(tape: &Path, other_dialect: &str) {
    let folder = tape.parent().unwrap();
    for args in [
        &["check"][..],
        &["show"],
        &["stats"],
        &["convert", "-o", "s.yaml", "--force", "-r"],
        &["convert", "-o", "o.jsonl", "--to", other_dialect, "--force", "-r"],
        &["redact", "--redact", "secrets", "-o", "r.jsonl", "--force"],
    ] {
        let done = tapegate().args(args).arg(tape).current_dir(folder).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {said}");
        assert!(!said.contains("left out"), "{args:?}: {said}");
    }
}

/// Asserts that the same request gets the same answer from the tape.
#[track_caller]
fn is_played(tape: &Path, request: &str, answer: &str) {
    let mut command = tapegate();
    command.args(["replay", "-q", "-r"]).arg(tape);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let line = format!("{request}\n");
    let writer = std::thread::spawn(move || input.write_all(line.as_bytes()));
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(done.stdout == format!("{answer}\n").as_bytes(), "{} bytes", done.stdout.len());
}

#[test]
fn large_messages_pass_on_stdio_both_ways_and_are_on_the_tape() {
    for bytes in SIZES {
        let mut setups =
            vec![(record(&[]), "t.jsonl", "overwatch"), (tape(&[]), "t.jsonl", "thoughtjack")];
        if bytes == SIZES[0] {
            setups.push((record(&[]), "t.jsonl.gz", "overwatch"));
        }
        for (setup, name, other_dialect) in setups {
            let log = setup.folder().join("log");
            let script = format!("exec \"$FAKE\" log={} large={bytes}", log.display());
            let (question, reply) = (request(bytes), answer(bytes));
            let line = format!("{question}\n");
            let end = setup.sh(&script).tape_at(name).run(line.as_bytes()).exits(0);
            assert!(end.stdout == format!("{reply}\n").as_bytes(), "{}", end.stdout.len());
            assert!(fs::read(&log).unwrap() == line.as_bytes(), "the server got something else");
            let end = end.checks();
            let tape = end.run.tape_path();
            holds(tape, &question, &reply);
            if bytes == SIZES[0] {
                is_read_by_all(tape, other_dialect);
                is_played(tape, &question, &reply);
            }
        }
    }
}

#[test]
fn the_memory_of_a_large_message_is_given_back() {
    let bytes = SIZES[1];
    let mut run = record(&[&format!("large={bytes}")]).start();
    for _ in 0..2 {
        run.send(format!("{}\n", request(bytes)).as_bytes());
    }
    run.until("both answers", |run| run.got().len() == 2 * (answer(bytes).len() + 1));
    is_at_rest(&run);
    // A message is held once, besides the overhead of growing its buffer.
    let kb_max = (2 * bytes as u64) / 1000 + REST_KB_MAX;
    assert!(run.memory_kb_max() < kb_max, "{} KB", run.memory_kb_max());
    run.end_of_input().exits(0);
}

fn is_at_rest(run: &RunningSession) {
    run.until("its memory back", |run| run.status_kb("VmRSS:") < REST_KB_MAX);
}

#[test]
fn a_large_line_that_is_no_message_passes_and_is_kept_beside_the_tape() {
    let line = [&b"no JSON \xff\""[..], &vec![b'z'; SIZES[0]], b"\n"].concat();
    let mut run = record(&["copy"]).start();
    run.send(&line);
    run.until("its copy", |run| run.got().len() == line.len());
    is_at_rest(&run);
    let end = run.end_of_input().exits(0).client_got(&line);
    let frames = end.beside();
    assert_eq!(frames.len(), 2);
    assert!(frames.iter().all(|frame| frame.bytes == line[..line.len() - 1]));
}

#[test]
fn large_messages_pass_between_http_peers_as_bodies_and_as_events() {
    for bytes in SIZES {
        for events in [false, true] {
            let server = WebServer::start(move |_, out| {
                let reply = answer(bytes);
                match events {
                    false => out.write_all(&json("", &reply)).is_ok(),
                    true => {
                        out.write_all(STREAM).unwrap();
                        write!(out, "data: {reply}\n\n").is_err()
                    }
                }
            });
            let recorder = in_front_of(&server, "/mcp", &[]);
            let (question, reply) = (request(bytes), answer(bytes));
            let got = ask(recorder.port, "POST /mcp", &[JSON, ACCEPT], &question);
            let expected = if events { format!("data: {reply}\n\n") } else { reply.clone() };
            assert!(got.status == 200 && got.body == expected, "{} {}", got.status, got.head);
            assert!(server.seen()[0].body == question.as_bytes());
            holds(&recorder.tape_path(), &question, &reply);
            recorder.end();
        }
    }
}

#[test]
fn large_messages_pass_from_stdio_to_an_http_server() {
    for bytes in SIZES {
        let server =
            WebServer::start(move |_, out| out.write_all(&json("", &answer(bytes))).is_ok());
        let setup = record(&[]).server(&[]).flags(&["--upstream-http", &server.url("/mcp")]);
        let (question, reply) = (request(bytes), answer(bytes));
        let mut run = setup.start();
        run.send(format!("{question}\n").as_bytes());
        run.until("the answer", |run| run.got().len() == reply.len() + 1);
        let end = run.end_of_input();
        assert!(end.stdout == format!("{reply}\n").as_bytes());
        assert!(server.seen()[0].body == question.as_bytes());
        holds(end.run.tape_path(), &question, &reply);
    }
}

#[test]
fn large_messages_pass_from_http_clients_to_a_process() {
    for bytes in SIZES {
        let steps = format!("large={bytes}");
        let run = record(&[&steps]).flags(&["--http", "127.0.0.1:0"]).start();
        let question = request(bytes).replacen("\"m\"", "\"initialize\"", 1);
        let reply = answer(bytes);
        let got = ask(run.port(), "POST /mcp", &[JSON, ACCEPT], &question);
        assert!(got.status == 200 && got.body.contains(&reply), "{} {}", got.status, got.head);
        let tape = run.tape_path().to_owned();
        holds(&tape, &question, &reply);
    }
}

/// A command on a tape with an entry over its limit, and the expected exit code.
struct OversizeCommand {
    args: &'static [&'static str],
    code: i32,
}

#[test]
fn an_entry_that_is_too_long_to_be_read_is_named_by_every_reader_and_can_be_read_on_demand() {
    let (question, reply) = (request(10), answer(60_000));
    let end = record(&["large=60000"]).flags(&["--max-message-bytes", "64KB"]);
    let end = end.run(format!("{question}\n").as_bytes()).exits(0).checks();
    let tape = end.run.tape_path();
    holds(tape, &question, &reply);
    let policy = "schema: 1\ngovernance: {defaults: {action: forward}}\n";
    fs::write(end.run.folder().join("tapegate.yaml"), policy).unwrap();
    for OversizeCommand { args, code } in [
        OversizeCommand { args: &["check"], code: 1 },
        OversizeCommand { args: &["show"], code: 0 },
        OversizeCommand { args: &["stats"], code: 0 },
        OversizeCommand { args: &["convert", "-o", "s.yaml", "--force", "-r"], code: 0 },
        OversizeCommand { args: &["convert", "-o", "o.jsonl", "--to", "overwatch", "-r"], code: 2 },
        OversizeCommand {
            args: &["redact", "--redact", "secrets", "-o", "r.jsonl", "--force"],
            code: 1,
        },
        OversizeCommand { args: &["replay", "-r"], code: 2 },
        OversizeCommand { args: &["verify", "-r"], code: 2 },
        OversizeCommand { args: &["policy", "generate"], code: 2 },
        OversizeCommand { args: &["policy", "backtest"], code: 0 },
    ] {
        for (limit, fits) in [("32KB", false), ("64KB", true)] {
            let mut command = tapegate();
            command.args(args).arg(tape).args(["--max-entry-bytes", limit]);
            if args[0] == "verify" {
                command.args(["--", "true"]);
            }
            command.current_dir(end.run.folder()).env("TAPEGATE_HOME", end.run.folder());
            let done = command.stdin(Stdio::null()).output().unwrap();
            let out = [done.stdout, done.stderr].concat();
            let said = String::from_utf8_lossy(&out);
            let names =
                said.contains("longer than 32768 bytes") && said.contains("--max-entry-bytes");
            assert_eq!(names, !fits, "{args:?} {limit}: {said}");
            if !fits {
                assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
                let is_named = said.contains("line 3") || said.contains(":3: ");
                // With many tapes, a backtest reports which ones have such lines.
                assert!(is_named || args.contains(&"backtest"), "{args:?}: {said}");
            }
        }
    }
}

#[test]
fn a_tape_that_is_followed_goes_on_behind_an_entry_that_is_too_long() {
    let end = record(&["large=60000"]).run(format!("{}\n", request(10)).as_bytes()).exits(0);
    let mut command = tapegate();
    command.args(["show", "--follow", "--max-entry-bytes", "32KB"]).arg(end.run.tape_path());
    let done = command.env("TAPEGATE_HOME", end.run.folder()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("longer than 32768 bytes"), "{said}");
}

/// A tape in order, with an answer of 20 KB on line 5 and a request that nobody answered.
fn tape_with_long_answer(folder: &Path) -> PathBuf {
    let init = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"r","version":"1"}}}"#;
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    let call =
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"big","arguments":{}}}"#;
    let text = "x".repeat(20_000);
    let big = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    let last =
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"mute","arguments":{}}}"#;
    let mut tape = String::from(
        "{\"type\":\"header\",\"version\":\"1.0\",\"recorded_at\":\"2026-03-20T14:22:11Z\",\"upstream\":\"s\",\"thoughtjack_version\":\"0.1.0\"}\n",
    );
    let messages = [("c2s", init), ("s2c", hello), ("c2s", call), ("s2c", &big), ("c2s", last)];
    for (at, (dir, msg)) in messages.iter().enumerate() {
        let seq = at + 1;
        tape += &format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-03-20T14:22:11.00{seq}Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
        );
    }
    tape += "{\"type\":\"footer\",\"total_messages\":5,\"client_messages\":3,\"server_messages\":2,\"duration_ms\":5}\n";
    let path = folder.join("t.jsonl");
    fs::write(&path, tape).unwrap();
    path
}

#[track_caller]
fn run_in(folder: &Path, arguments: &[&str], input: &str) -> (Option<i32>, String) {
    let mut command = tapegate();
    command.args(arguments).current_dir(folder).env("TAPEGATE_HOME", folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that reads no input may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let done = child.wait_with_output().unwrap();
    let out = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(out).unwrap())
}

#[test]
fn a_scenario_answers_calls_whose_answers_were_too_long_to_be_read() {
    let folder = tempfile::tempdir().unwrap();
    tape_with_long_answer(folder.path());
    let mut arguments = vec!["convert", "-r", "t.jsonl", "-o", "s.yaml"];
    arguments.extend(["--max-entry-bytes", "10KB", "--format", "json"]);
    let (code, out) = run_in(folder.path(), &arguments, "");
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("\"answers_left_out\": 1"), "{out}");
    assert!(out.contains("\"warnings\": [\"1 entry of the tape is longer"), "{out}");
    let yaml = fs::read_to_string(folder.path().join("s.yaml")).unwrap();
    assert!(yaml.contains("[the recorded answer was left out"), "{yaml}");
    // The other call really has no answer.
    assert_eq!(yaml.matches("The tape has no answer.").count(), 1, "{yaml}");
    let tape = fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
    let sent: Vec<serde_json::Value> =
        tape.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let input = format!("{}\n{}\n", sent[0]["msg"], sent[2]["msg"]);
    let (_, out) = run_in(folder.path(), &["serve", "s.yaml"], &input);
    assert!(out.contains("\"id\":2") && out.contains("was left out"), "{out}");
}

#[test]
fn an_entry_that_is_too_long_is_not_taken_for_damage_or_for_silence() {
    let folder = tempfile::tempdir().unwrap();
    tape_with_long_answer(folder.path());
    let limit = ["--max-entry-bytes", "10KB"];
    let hint = "hint: pass a higher limit, such as --max-entry-bytes 1GB";
    for command in [
        &["replay", "-r", "t.jsonl"][..],
        &["convert", "-r", "t.jsonl", "-o", "o.jsonl", "--to", "overwatch"],
    ] {
        let (code, out) = run_in(folder.path(), &[command, &limit].concat(), "");
        assert_eq!(code, Some(2), "{out}");
        assert!(out.contains(hint) && !out.contains("damaged"), "{out}");
    }
    let (code, out) = run_in(folder.path(), &[&["check", "t.jsonl"][..], &limit].concat(), "");
    assert_eq!(code, Some(1), "{out}");
    assert!(!out.contains("footer") && !out.contains("follows"), "{out}");
    assert!(out.contains("request 2 (`tools/call` of `big`) has no answer on the lines"), "{out}");
    assert!(out.contains("request 3 (`tools/call` of `mute`) was never answered"), "{out}");
    let (_, out) = run_in(folder.path(), &[&["show", "t.jsonl"][..], &limit].concat(), "");
    let line_of = |name: &str| out.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(line_of("call big").contains("answer not found: a later line is too long"), "{out}");
    assert!(line_of("call mute").ends_with("no answer"), "{out}");
}
