//! Servers that misbehave: their output still arrives and is recorded, and they are ended.

use std::io::Read;

use rustix::process::Signal;
use tapegate_core::side::Side;

use crate::http_peers::ask;
use crate::support::{StepGate, TapedFrame, check, record, reply, request, tape, wait_until_read};

/// Lines that JSON parsers reject, and lines that they change when writing them again.
const ODD_LINES: &[&[u8]] = &[
    b"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"v\":1e309,\"w\":1.0,\"x\":-0}}",
    b"{\"jsonrpc\":\"2.0\",\"id\":18446744073709551616,\"method\":\"m\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"a\",\"method\":\"b\"}",
    b"{\"z\":1,\"a\":2,\"jsonrpc\":\"2.0\",\"method\":\"\\u006d\\/n\"}",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"t\":\"\\ud800 \\u0000 \xe2\x80\xa8\"}}",
    b"  { \"jsonrpc\" : \"2.0\" , \"method\" : \"n\" }\t\r",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\r",
    b"",
    b"\r",
    b"   ",
    b"Server listening on stdio",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"} {\"jsonrpc\":\"2.0\"}",
    b"\x00\x00{\"jsonrpc\":\"2.0\"}\x00",
    b"\xff\xfe{\"id\":1}\x80",
    b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"n\"}",
    b"[1,2,3]",
    b"[]",
    b"[{\"jsonrpc\":\"2.0\",\"method\":\"n\"},{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\"},7]",
    b"null",
    b"\"text\"",
    b"42",
    b"{}",
    b"{\"id\":9}",
    b"{\"method\":\"no version\",\"id\":10}",
];

fn odd_stream() -> Vec<u8> {
    ODD_LINES.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
}

#[test]
fn ec_stdio_015_odd_bytes_pass_both_ways_unchanged_and_are_all_on_an_overwatch_tape() {
    let stream = odd_stream();
    let end = tape(&["copy"]).run(&stream).exits(0).client_got_first(&stream).checks();
    for side in [Side::Client, Side::Server] {
        let theirs = end.tape().into_iter().filter(|kept| kept.from == side && !kept.ours);
        let on_tape: Vec<Vec<u8>> = theirs.map(|kept| kept.bytes).collect();
        assert_eq!(on_tape, ODD_LINES, "{side:?}");
    }
}

#[test]
fn ec_stdio_015_odd_bytes_pass_beside_a_thoughtjack_tape_that_stays_a_tape() {
    let stream = odd_stream();
    let end = record(&["copy"]).run(&stream).exits(0).client_got_first(&stream).checks();
    let of = |kept: Vec<TapedFrame>| -> Vec<TapedFrame> {
        kept.into_iter().filter(|kept| kept.from == Side::Server).collect()
    };
    let (on, off) = (of(end.tape()), of(end.beside()));
    // Batches are on the tape element by element, and beside it as received.
    for line in ODD_LINES {
        let beside = off.iter().any(|kept| kept.bytes == *line);
        let whole = on.iter().any(|kept| kept.bytes == line.trim_ascii());
        assert!(beside || whole, "{}", line.escape_ascii());
    }
    let elements: Vec<String> =
        on.iter().filter(|kept| kept.batch.is_some()).map(TapedFrame::text).collect();
    assert_eq!(
        elements,
        [r#"{"jsonrpc":"2.0","method":"n"}"#, r#"{"jsonrpc":"2.0","id":5,"method":"m"}"#]
    );
    let numbers: Vec<u64> = end.tape().iter().filter_map(|kept| kept.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    check(&crate::support::beside(end.run.tape_path()), 0);
}

#[test]
fn ec_stdio_016_a_message_without_jsonrpc_is_forwarded_and_recorded_as_it_is() {
    let line = b"{\"id\":1,\"result\":{}}\n";
    let end = record(&["copy"]).run(line).exits(0).client_got(line).checks();
    assert_eq!(end.said(Side::Server), line);
}

#[test]
fn ec_stdio_027_a_partial_line_waits_for_its_end() {
    let setup = record(&[]);
    let gate = StepGate::new(setup.folder(), "gate");
    let half = r#"raw={"jsonrpc":"2.0","met"#;
    let mut run = setup.steps(&[half, &gate.step(), r#"raw=hod":"n"}\n"#, "eof"]).start();
    gate.open_after(|| wait_until_read(&run.server_output()));
    run.close_input();
    let end = run.end().exits(0).checks();
    let end = end.client_got(b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
    assert_eq!(end.tape().len(), 1);
}

#[test]
fn ec_stdio_010_half_a_line_at_a_crash_is_forwarded_and_recorded_and_nothing_is_added() {
    for (setup, overwatch) in [
        (record(&["read=1", r#"raw={"jsonrpc":"2.0","id":1,"resu"#, "exit=3"]), false),
        (tape(&["read=1", r#"raw={"jsonrpc":"2.0","id":1,"resu"#, "exit=3"]), true),
    ] {
        let mut run = setup.start();
        run.send(request(1).as_bytes());
        let end = run.end().exits(3).checks().leaves_no_process();
        let half = r#"{"jsonrpc":"2.0","id":1,"resu"#;
        let end = end.client_got(half.as_bytes());
        let frames = if overwatch { end.tape() } else { end.beside() };
        let halves: Vec<_> = frames.iter().filter(|k| k.reason.is_some()).collect();
        assert_eq!(halves.len(), 1);
        assert_eq!(halves[0].reason.as_deref(), Some("unterminated_frame_at_close"));
        assert_eq!(halves[0].bytes, half.as_bytes());
        assert!(!end.tape().iter().any(|kept| kept.ours));
    }
}

#[test]
fn a_whole_message_without_a_line_end_is_forwarded_as_it_came() {
    let line = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let end = record(&["read=1", r#"raw={"jsonrpc":"2.0","id":1,"result":{}}"#, "exit=0"]);
    let end = end.run(request(1).as_bytes()).exits(0).client_got(line).checks();
    assert_eq!(end.tape()[1].bytes, line);
    let end = tape(&["read=1", r#"raw={"jsonrpc":"2.0","id":1,"result":{}}"#, "exit=0"]);
    let end = end.run(request(1).as_bytes()).exits(0).client_got(line).checks();
    assert_eq!(end.tape()[1].reason.as_deref(), Some("unterminated_frame_at_close"));
}

#[test]
fn ec_stdio_010_a_server_that_dies_is_told_of_on_standard_error_and_no_answer_is_invented() {
    let steps = ["answer=1", "err=first\n", "err=no module named x\n", "read=2", "exit=7"];
    let mut run = record(&steps).start();
    run.send([request(1), request("\"two\""), request(3.5)].concat().as_bytes());
    let end = run.end().exits(7).checks().leaves_no_process();
    let output_text = "error: the MCP server ended (exit status: 7) and left 2 requests unanswered; \
                 its last lines on standard error:\n  first\n  no module named x\n";
    let end = end.complains(output_text).client_got(reply(1).as_bytes());
    assert!(end.stderr.starts_with("first\nno module named x\n"), "{}", end.stderr);
    assert_eq!(end.said(Side::Server), reply(1).as_bytes());
}

#[test]
fn a_server_that_dies_behind_http_is_told_of_on_standard_error_too() {
    let steps = ["read=1", "err=first\n", "err=no module named x\n", "exit=7"];
    let killed = "read line; echo first >&2; echo no module named x >&2; kill -9 $$";
    for (setup, how) in
        [(record(&steps), "exit status: 7"), (record(&[]).sh(killed), "signal: 9 (SIGKILL)")]
    {
        let run = setup.flags(&["--http", "127.0.0.1:0"]).start();
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
        let headers = ["content-type: application/json", "accept: application/json"];
        let got = ask(run.port(), "POST /mcp", &headers, hello);
        assert!(got.body.contains("\"by\":\"tapegate\""), "{got:?}");
        run.says(&format!(
            "error: the MCP server ended ({how}) and left 1 request unanswered; \
             its last lines on standard error:\n  first\n  no module named x\n"
        ));
        run.signal(Signal::TERM);
        let end = run.end().exits(143).checks().leaves_no_process();
        assert!(end.stderr.contains("first\nno module named x\n"), "{}", end.stderr);
    }
}

#[test]
fn a_server_that_is_ended_with_its_session_is_not_told_of() {
    let setup = record(&["serve"]).flags(&["--http", "127.0.0.1:0"]);
    let run = setup.start();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    let headers = ["content-type: application/json", "accept: application/json"];
    let got = ask(run.port(), "POST /mcp", &headers, hello);
    let session = format!("mcp-session-id: {}", got.header("mcp-session-id").unwrap());
    let gone = ask(run.port(), "DELETE /mcp", &[session.as_str()], "");
    assert!(gone.status < 300, "{gone:?}");
    run.until("the end of the server", |run| run.others().is_empty());
    run.signal(Signal::TERM);
    let end = run.end().exits(143);
    assert!(!end.stderr.contains("the MCP server ended"), "{}", end.stderr);
}

#[test]
fn of_many_lines_on_standard_error_the_last_ten_are_repeated_and_made_visible() {
    let script = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo \"line $i\"; done >&2; \
                  printf '\\033[31mred\\n' >&2; exit 1";
    let end = record(&[]).sh(script).start().end().exits(1);
    let (passed, ours) = end.stderr.split_once("error: the MCP server ended").unwrap();
    assert!(passed.starts_with("line 1\nline 2\n") && passed.contains("line 2000\n\x1b[31mred\n"));
    let lines: Vec<&str> = ours.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(lines.len(), 10, "{ours}");
    assert!(lines[0] == "  line 1992" && !lines[9].contains('\x1b'), "{ours}");
}

#[test]
fn a_server_that_ends_in_order_before_its_client_is_no_error() {
    let end = record(&["answer=1", "exit=0"]).run(request(1).as_bytes()).exits(0);
    assert!(!end.stderr.contains("error: "), "{}", end.stderr);
    let end = record(&["answer=1", "exit=5"]).flags(&["--quiet"]).start().end_of_input();
    assert!(!end.stderr.contains("recorded"), "{}", end.stderr);
}

#[test]
fn ec_stdio_010_a_server_that_dies_by_a_signal_gives_128_and_the_signal() {
    let mut run = record(&["read=1", "abort"]).start();
    run.send(request(1).as_bytes());
    let end = run.end().exits(128 + 6).checks().client_got(b"").leaves_no_process();
    end.complains("SIGABRT").complains("left 1 request unanswered");
}

#[test]
fn a_server_that_cannot_be_started_leaves_no_tape_and_exits_4() {
    let setup = record(&[]).sh("x");
    let tape = setup.tape_path().to_owned();
    let done = crate::support::tapegate()
        .args(["record", "-o"])
        .arg(&tape)
        .args(["--", "/no/such/server"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&done.stderr).contains("cannot start `/no/such/server`"));
    assert!(done.stdout.is_empty() && !tape.exists());
}

#[test]
fn ec_stdio_032_a_line_of_5_mb_passes_both_ways() {
    let text = "z".repeat(5_000_000);
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{text}\"}}\n");
    let end = record(&["copy"]).run(line.as_bytes()).exits(0).client_got(line.as_bytes()).checks();
    assert_eq!(end.said(Side::Client), line.as_bytes());
    assert_eq!(end.said(Side::Server), line.as_bytes());
}

#[test]
fn a_flood_of_the_server_arrives_whole_and_in_order() {
    let end = record(&["flood=60000,40", "exit=0"]).start().end().exits(0).checks();
    assert_eq!(end.stdout.iter().filter(|byte| **byte == b'\n').count(), 60_000);
    assert_eq!(end.said(Side::Server), end.stdout);
}

#[test]
fn ec_stdio_028_a_flood_on_standard_error_passes_and_blocks_nothing() {
    let end = record(&["err=hello from the server\n", "err-flood=3000000", "serve"]);
    let end = end.run(request(1).as_bytes()).exits(0).client_got(reply(1).as_bytes()).checks();
    assert!(end.stderr.starts_with("hello from the server\n"));
    assert!(end.stderr.len() > 3_000_000);
    assert_eq!(end.tape().len(), 2);
}

#[test]
fn a_grandchild_that_keeps_the_output_open_does_not_keep_the_session() {
    let mut run = record(&["spawn=sleep 300", "answer=1", "exit=4"]).start();
    run.send(request(1).as_bytes());
    run.end().exits(4).client_got(reply(1).as_bytes()).checks().leaves_no_process();
}

#[test]
fn a_grandchild_that_ignores_term_is_killed_too() {
    let end = record(&[]).sh("trap '' TERM; sh -c 'sleep 300; :' & exec \"$FAKE\" serve");
    let end = end.run(request(1).as_bytes()).exits(0).client_got(reply(1).as_bytes());
    end.checks().leaves_no_process();
}

#[test]
fn a_server_that_never_exits_on_eof_is_asked_and_ended() {
    let end = record(&["serve", "hang"]).run(request(1).as_bytes());
    end.exits(0).client_got(reply(1).as_bytes()).checks().leaves_no_process();
}

#[test]
fn a_server_that_ignores_eof_and_term_is_killed() {
    let end = record(&[]).sh("trap '' TERM; \"$FAKE\" serve; sleep 300");
    let end = end.run(request(1).as_bytes()).exits(0).client_got(reply(1).as_bytes());
    end.complains("so it was ended (signal: 9 (SIGKILL))").checks().leaves_no_process();
}

#[test]
fn a_server_that_never_stops_writing_and_ignores_everything_is_killed() {
    let server = "trap '' TERM PIPE; while :; do echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}' || :; done";
    record(&[]).sh(server).run(b"").exits(0).checks().leaves_no_process();
}

#[test]
fn a_server_that_closes_its_output_and_runs_on_is_over_for_the_client() {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut run = record(&[]).sh("read line; exec 1>&-; sleep 300").stdout(theirs).start();
    run.send(request(1).as_bytes());
    let mut got = Vec::new();
    std::fs::File::from(ours).read_to_end(&mut got).unwrap();
    assert!(got.is_empty() && run.lives(), "the client sees the end at once, as without us");
    run.end().exits(143).checks().complains("left 1 request unanswered").leaves_no_process();
}

#[test]
fn a_server_that_closes_its_input_is_ended() {
    let mut run = record(&[]).sh("exec 0<&-; echo ready; sleep 300").start();
    run.lines(1);
    run.send(request(1).as_bytes());
    run.end().exits(143).client_got(b"ready\n").complains("error: ").leaves_no_process();
}

#[test]
fn a_server_that_sends_its_last_words_and_exits_at_once_loses_none() {
    for _ in 0..10 {
        let end = record(&["flood=500,100", "exit=0"]).start().end().exits(0);
        assert_eq!(end.stdout.iter().filter(|byte| **byte == b'\n').count(), 500);
    }
}
