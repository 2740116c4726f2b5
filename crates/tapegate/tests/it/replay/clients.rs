//! Clients of every kind: fast, odd and hostile ones, and those that do not read.

use std::io::Write;

use super::{MODES, answer, ask, call, lines, refusal, tape};
use crate::support::{SeededRandom, descriptor, is_stalled, replay, wait_until};

/// A tape with `count` calls made one after the other.
fn many(count: usize) -> String {
    let pair = |id| format!("> {}\n< {}\n", call(id, "t", id), answer(id, id));
    tape(&(0..count).map(pair).collect::<String>())
}

#[test]
fn ten_thousand_requests_in_one_piece_get_the_right_answers_in_every_mode() {
    let tape = many(10_000);
    let live: String = (0..10_000).map(|n| lines(&[call(n + 5, "t", n)])).collect();
    let got: String = (0..10_000).map(|n| lines(&[answer(n + 5, n)])).collect();
    for mode in MODES {
        let end = replay(&tape).flags(&["--match-mode", mode]).run(live.as_bytes()).exits(0);
        end.client_got(got.as_bytes()).complains("matched 10000, unmatched 0, unused 0");
    }
}

#[test]
fn ten_thousand_requests_in_any_order_get_the_right_answers() {
    let mut dice = SeededRandom::roll();
    let tape = many(10_000);
    let mut order: Vec<usize> = (0..10_000).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, dice.below(place as u64 + 1) as usize);
    }
    let live: String = order.iter().map(|n| lines(&[call(n + 5, "t", n)])).collect();
    let got: String = order.iter().map(|n| lines(&[answer(n + 5, n)])).collect();
    for mode in ["by-request", "fuzzy"] {
        let end = replay(&tape).flags(&["--match-mode", mode]).run(live.as_bytes()).exits(0);
        end.client_got(got.as_bytes()).complains("matched 10000, unmatched 0, unused 0");
    }
    // In order, the first request that comes much too early diverges, and no answer is wrong.
    let end = replay(&tape).run(live.as_bytes()).exits(6);
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    let (right, wrong): (Vec<&str>, Vec<&str>) =
        got.lines().partition(|line| line.contains("\"result\""));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    for (line, n) in right.iter().zip(&order) {
        assert_eq!(*line, answer(n + 5, n));
    }
}

#[test]
fn answers_of_many_megabytes_are_byte_exact() {
    let bytes = |n: usize| char::from(b"ABCDabcd0189+/=="[n * 7 % 16]);
    let data: String = (0..8 << 20).map(bytes).collect();
    let (asked, given) = (call(1, "t", 1), answer(1, &data));
    let script = format!("> {asked}\n< {given}\n> {}\n< {}\n", call(2, "t", 2), answer(2, 2));
    for mode in ["sequential", "by-request"] {
        let live = lines(&[call("\"a\"", "t", 1), call("\"b\"", "t", 2)]);
        let end = replay(tape(&script)).flags(&["--match-mode", mode]).run(live.as_bytes());
        let got = lines(&[answer("\"a\"", &data), answer("\"b\"", 2)]);
        end.exits(0).client_got(got.as_bytes());
    }
}

#[test]
fn ids_come_back_as_the_client_spelled_them() {
    const IDS: [&str; 16] = [
        "1",
        "1.0",
        "1e2",
        "-0",
        "0.10",
        "12345678901234567890123456789",
        "-9007199254740993",
        "1E+400",
        "\"1\"",
        "\"\"",
        "\"a\\u0062\\n\\/\"",
        "\"\\ud83d\\ude00\"",
        "\"é ✓ 😀\"",
        "\"\\ud800\"",
        "\"tapegate-initialize\"",
        "\"id\\\":1\"",
    ];
    let pair = |n: usize| format!("> {}\n< {}\n", call(7, "t", n), answer(7, n));
    let script: String = (0..IDS.len()).map(pair).collect();
    for mode in MODES {
        let live: Vec<String> = IDS.iter().enumerate().map(|(n, id)| call(id, "t", n)).collect();
        let got: Vec<String> = IDS.iter().enumerate().map(|(n, id)| answer(id, n)).collect();
        let end = replay(tape(&script)).flags(&["--match-mode", mode]);
        end.run(lines(&live).as_bytes()).exits(0).client_got(lines(&got).as_bytes());
    }
    // The same holds for ids on the tape: the answer has the live id, wherever the recorded one
    // was.
    for recorded in IDS {
        let given = format!(r#"{{"result":{{"id":3}},"id":{recorded},"jsonrpc":"2.0"}}"#);
        let script = format!("> {}\n< {given}\n", call(recorded, "t", 1));
        let end = replay(tape(&script)).run(lines(&[call(4, "t", 1)]).as_bytes()).exits(0);
        end.client_got(b"{\"result\":{\"id\":3},\"id\":4,\"jsonrpc\":\"2.0\"}\n");
    }
}

#[test]
fn garbage_is_answered_and_the_replay_goes_on() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let empty: Vec<u8> = b"[]".to_vec();
    let nulls = vec![0; 5000];
    for garbage in [
        b"hello".as_slice(),
        b"{",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
        b"\x00\x01\x02",
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
        b"\"text\"",
        b"null",
        b"17",
        &empty,
        &nulls,
        b"[1,{},[]]",
        b"{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"m\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":5}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"m\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
        b"\x1b[31m\x07\x7f",
        deep.as_bytes(),
    ] {
        for mode in MODES {
            let live = [b"\r\n\n", garbage, b"\n", lines(&[call(1, "t", 0)]).as_bytes()].concat();
            let flags = ["--match-mode", mode, "--on-unmatched", "warn"];
            let end = replay(many(1)).flags(&flags).run(&live).exits(0);
            let got = String::from_utf8(end.stdout.clone()).unwrap();
            let shown = garbage[..garbage.len().min(60)].escape_ascii();
            assert_eq!(got.lines().last(), Some(answer(1, 0).as_str()), "{shown}: {got}");
            assert_eq!(got.lines().count(), 2, "{shown}: {got}");
            assert!(got.contains("\"error\":{\"code\":-32"), "{shown}: {got}");
            assert!(!end.stderr.contains('\x1b'), "{shown}: {}", end.stderr);
        }
    }
}

#[test]
fn answers_nobody_asked_for_and_odd_notifications_are_passed_over() {
    for odd in [
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":""}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/none/such","params":[1]}"#,
        "[{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]",
        "   ",
    ] {
        let live = lines(&[odd, &call(1, "t", 0)]);
        let end = replay(many(1)).run(live.as_bytes()).exits(0);
        end.client_got(lines(&[answer(1, 0)]).as_bytes());
    }
}

#[test]
fn a_message_over_the_limit_is_refused_and_the_replay_goes_on() {
    let text = "z".repeat(200_000);
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":8,"method":"m","params":{{"id":6,"t":"{text}"}}}}"#);
    let last =
        format!(r#"{{"params":{{"id":6,"t":"{text}"}},"method":"m","jsonrpc":"2.0","id":8}}"#);
    for large in [large, last] {
        let live = lines(&[&call(1, "t", 0), &large, &call(2, "t", 1)]);
        let limit = ["--max-message-bytes", "64KB"];
        let end = replay(many(2)).flags(&limit).run(live.as_bytes()).exits(0);
        let got = String::from_utf8(end.stdout.clone()).unwrap();
        let got: Vec<&str> = got.lines().collect();
        assert_eq!((got[0], got[2]), (&*answer(1, 0), &*answer(2, 1)), "{got:?}");
        assert!(got[1].starts_with("{\"jsonrpc\":\"2.0\",\"id\":8,\"error\":"), "{}", got[1]);
        end.complains("over the limit of 65536");
        // A message within the limit is accepted, but is not on the tape.
        let end = replay(many(2)).run(lines(&[&large]).as_bytes()).exits(6);
        end.client_got_some(&refusal(8));
    }
}

#[test]
fn a_line_that_never_ends_takes_no_more_memory_than_a_message_may() {
    let mut run = replay(many(1)).flags(&["--max-message-bytes", "10MB"]).start();
    let mut input = run.take_input();
    let piece = vec![b'a'; 1 << 20];
    for _ in 0..60 {
        input.write_all(&piece).unwrap();
    }
    run.until("it to be drained", |_| {
        rustix::io::ioctl_fionread(&input).is_ok_and(|left| left == 0)
    });
    assert!(run.own_memory_kb_max() < 16_000, "{} KB", run.own_memory_kb_max());
    writeln!(input, "\n{}", call(1, "t", 0)).unwrap();
    run.gets(&answer(1, 0));
    drop(input);
    run.end().exits(0);
}

#[test]
fn a_client_that_closes_its_input_still_gets_every_answer() {
    let text = "x".repeat(1000);
    let pair = |n: usize| format!("> {}\n@{} < {}\n", call(n, "t", n), n * 2 + 1, answer(n, &text));
    let script: String = (0..2000).map(pair).collect();
    let live: String = (0..2000).map(|n| lines(&[call(n, "t", n)])).collect();
    let got: String = (0..2000).map(|n| lines(&[answer(n, &text)])).collect();
    for timing in ["instant", "realistic"] {
        let flags = ["--match-mode", "by-request", "--timing", timing];
        let mut run = replay(tape(&script)).flags(&flags).not_reading().start();
        // Nothing is read before everything has been sent and the input is closed.
        run.send(live.as_bytes());
        run.close_input();
        run.read_on();
        let end = run.end().exits(0);
        let sorted = |bytes: &[u8]| {
            let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(Into::into).collect();
            lines.sort_unstable();
            lines
        };
        let (lines, wanted) = (sorted(&end.stdout), sorted(got.as_bytes()));
        assert!(lines == wanted, "{} of {} answers", lines.len(), wanted.len());
    }
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let text = "x".repeat(100_000);
    let pair = |n: usize| format!("> {}\n< {}\n", call(n, "t", n), answer(n, &text));
    let script: String = (0..50).map(pair).collect();
    let flags = ["--match-mode", "by-request", "--on-exhausted", "cycle"];
    let mut run = replay(tape(&script)).flags(&flags).not_reading().start();
    let mut input = run.take_input();
    rustix::io::ioctl_fionbio(&input, true).unwrap();
    let stdin = descriptor(run.pid(), 0);
    let line = |sent: usize| lines(&[call(sent, "t", sent % 50)]);
    let mut sent = 0;
    wait_until("a pipe that stays full", || {
        // A line is short enough to be written completely or not at all.
        while sent < 20_000 && input.write(line(sent).as_bytes()).is_ok() {
            sent += 1;
        }
        sent == 20_000 || is_stalled(run.pid(), &stdin)
    });
    assert!(sent < 20_000, "everything was read");
    assert!(run.memory_kb_max() < 60_000, "{} KB", run.memory_kb_max());
    drop(input);
    run.read_on();
    let end = run.end().exits(0);
    assert_eq!(end.stdout.iter().filter(|byte| **byte == b'\n').count(), sent);
}

#[test]
fn a_client_that_is_killed_ends_the_replay() {
    use std::process::{Command, Stdio};
    let setup = replay(many(1));
    let mut client = Command::new("sh");
    client.args(["-c", "echo \"$1\"; exec sleep 600", "sh", &call(1, "t", 0)]);
    let mut client = client.stdout(Stdio::piped()).spawn().unwrap();
    let run = setup.stdin(client.stdout.take().unwrap()).start();
    run.lines(1);
    client.kill().unwrap();
    client.wait().unwrap();
    run.end().exits(0).client_got(lines(&[answer(1, 0)]).as_bytes());
}

#[test]
fn a_client_that_stops_reading_for_good_ends_the_replay() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut run = replay(many(3)).stdout(writer).start();
    run.send(lines(&[call(1, "t", 0)]).as_bytes());
    drop(reader);
    let mut input = run.take_input();
    // It is noticed when there is something to write.
    input.write_all(lines(&[call(2, "t", 1), call(3, "t", 2)]).as_bytes()).ok();
    run.end().exits(0);
}

#[test]
fn courtesies_need_no_tape() {
    let mut live = vec![ask(1, "ping"), ask(2, "logging/setLevel"), ask(3, "server/discover")];
    live.push(call(4, "t", 0));
    let empty = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    for mode in MODES {
        let end = replay(many(1)).flags(&["--match-mode", mode]);
        let end = end.run(lines(&live).as_bytes()).exits(0);
        let got = String::from_utf8(end.stdout.clone()).unwrap();
        let got: Vec<&str> = got.lines().collect();
        assert_eq!((got[0], got[1], got[3]), (&*empty(1), &*empty(2), &*answer(4, 0)));
        assert!(got[2].contains("\"error\":{\"code\":-32601,"), "{}", got[2]);
    }
}
