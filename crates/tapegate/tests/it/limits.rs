//! Messages over the limit: refused, drained, marked, and the session goes on.

use tapegate_core::side::Side;

use crate::support::{
    TapedFrame, descriptor, is_stalled, record, reply, request, tape, wait_until,
};

const LIMIT: &[&str] = &["--max-message-bytes", "64KB"];

fn refusal(id: &str, line: &str) -> bool {
    line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32010,"))
}

fn marks(frames: &[TapedFrame]) -> Vec<(Side, u64)> {
    let marked = frames.iter().filter(|kept| kept.reason.as_deref() == Some("message_too_large"));
    marked.map(|kept| (kept.from, kept.bytes_total.unwrap())).collect()
}

#[test]
fn ec_stdio_014_a_request_over_the_limit_is_answered_and_does_not_reach_the_server() {
    let text = "z".repeat(100_000);
    for big in [
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\",\"params\":{{\"id\":6,\"t\":\"{text}\"}}}}\n"
        ),
        format!(
            "{{\"params\":{{\"id\":6,\"t\":\"{text}\"}},\"method\":\"m\",\"jsonrpc\":\"2.0\",\"id\":5}}\n"
        ),
    ] {
        for setup in [record(&["serve"]), tape(&["serve"])] {
            let lines = [&request(1), &big, &request(2)].map(String::as_str).concat();
            let end = setup.flags(LIMIT).run(lines.as_bytes()).exits(0).checks();
            let got = String::from_utf8(end.stdout.clone()).unwrap();
            let got: Vec<_> = got.lines().collect();
            assert_eq!(got.len(), 3, "{got:?}");
            assert!(got.iter().any(|line| refusal("5", line)), "{got:?}");
            assert!(got.contains(&reply(1).trim_end()) && got.contains(&reply(2).trim_end()));
            let frames = [end.tape(), end.beside()].concat();
            assert_eq!(marks(&frames), [(Side::Client, big.len() as u64 - 1)]);
            assert_eq!(end.tape().iter().filter(|kept| kept.ours).count(), 1);
        }
    }
}

#[test]
fn ec_stdio_014_an_answer_over_the_limit_becomes_an_error_for_who_asked() {
    for step in ["big=1,100000", "big=last,1,100000"] {
        let end = record(&["read=1", step, "serve"]).flags(LIMIT);
        let end = end.run([request(1), request(2)].concat().as_bytes()).exits(0).checks();
        let got = String::from_utf8(end.stdout.clone()).unwrap();
        let got: Vec<_> = got.lines().collect();
        assert_eq!(got.len(), 2, "{got:?}");
        assert!(refusal("1", got[0]), "{got:?}");
        assert_eq!(got[1], reply(2).trim_end());
        assert_eq!(marks(&end.beside()).len(), 1);
    }
}

#[test]
fn ec_stdio_014_a_request_of_the_server_over_the_limit_is_answered_to_the_server() {
    let setup = record(&[]);
    let log = setup.folder().join("log");
    let script = format!("exec \"$FAKE\" log={} big=request,9,100000 eof", log.display());
    let mut run = setup.sh(&script).flags(LIMIT).start();
    run.until("an answer to the server", |_| {
        std::fs::read(&log).is_ok_and(|got| got.ends_with(b"\n"))
    });
    run.close_input();
    let end = run.end().exits(0).client_got(b"").checks();
    let got = std::fs::read_to_string(&log).unwrap();
    assert!(refusal("9", got.trim_end()), "{got}");
    assert_eq!(end.said(Side::Client), got.as_bytes());
}

#[test]
fn ec_stdio_014_a_notification_over_the_limit_is_marked_and_the_session_goes_on() {
    let end = record(&["big=note,,3000000", "serve"]).flags(LIMIT);
    let end = end.run(request(1).as_bytes()).exits(0).client_got(reply(1).as_bytes()).checks();
    let beside = end.beside();
    assert_eq!(marks(&beside).len(), 1);
    assert!(beside[0].bytes.len() <= 4096 && beside[0].bytes.starts_with(b"{\"jsonrpc\""));
    assert!(end.stderr.contains("warning"), "{}", end.stderr);
}

#[test]
fn a_line_of_the_limit_passes_and_one_byte_more_does_not() {
    let line = |bytes: usize| {
        let empty = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\"}";
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}\n",
            "x".repeat(bytes - empty.len())
        )
    };
    let fits = line(65536);
    let end = record(&["copy"]).flags(LIMIT).run(fits.as_bytes()).exits(0);
    end.client_got(fits.as_bytes()).checks();
    let end = record(&["copy"]).flags(LIMIT).run(line(65537).as_bytes()).exits(0);
    let end = end.client_got(b"").checks();
    assert_eq!(marks(&end.beside()), [(Side::Client, 65537)]);
}

#[test]
fn a_line_that_never_ends_is_drained_in_bounded_memory() {
    let mut run = record(&["serve"]).flags(&["--max-message-bytes", "10MB"]).start();
    let mut input = run.take_input();
    let piece = vec![b'a'; 1 << 20];
    for _ in 0..60 {
        std::io::Write::write_all(&mut input, &piece).unwrap();
    }
    run.until("it to be drained", |_| {
        rustix::io::ioctl_fionread(&input).is_ok_and(|left| left == 0)
    });
    assert!(run.memory_kb_max() < 40_000, "{} KB", run.memory_kb_max());
    drop(input);
    let end = run.end().exits(0).client_got(b"").checks();
    assert_eq!(marks(&end.beside()), [(Side::Client, 60 << 20)]);
}

#[test]
fn a_client_that_does_not_read_its_refusals_is_not_read_from() {
    let run = record(&["serve"]).flags(&["--max-message-bytes", "1KB"]).not_reading();
    let mut run = run.start();
    let mut input = run.take_input();
    rustix::io::ioctl_fionbio(&input, true).unwrap();
    let params = "p".repeat(1100);
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":"{params}"}}"#) + "\n";
    let stdin = descriptor(run.pid(), 0);
    let mut sent = 0;
    wait_until("a pipe that stays full", || {
        // A line is short enough to be written completely or not at all.
        while sent < 20_000 && std::io::Write::write(&mut input, line.as_bytes()).is_ok() {
            sent += 1;
        }
        sent == 20_000 || is_stalled(run.pid(), &stdin)
    });
    assert!(sent < 20_000, "everything was read");
    drop(input);
    run.read_on();
    let end = run.end().exits(0);
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    assert!(got.lines().count() == sent && got.lines().all(|line| refusal("1", line)), "{sent}");
}
