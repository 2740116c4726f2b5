//! How a replay ends: by its client, a signal, a request that is not on the tape, or a tape that
//! becomes unreadable.

use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;

use rustix::process::Signal;
use serde_json::Value;

use super::{answer, ask, call, lines, refusal, tape};
use crate::support::{check, replay};

fn pairs(count: usize, bytes: usize) -> String {
    let text = "x".repeat(bytes);
    let pair = |n| format!("> {}\n< {}\n", call(n, "t", n), answer(n, &text));
    tape(&(0..count).map(pair).collect::<String>())
}

#[test]
fn signals_end_it_with_their_code_after_what_was_said() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut run = replay(pairs(3, 1)).start();
        run.send(lines(&[call(1, "t", 0), call(2, "t", 1)]).as_bytes());
        run.lines(2);
        run.signal(signal);
        let end = run.end().exits(code);
        let got = lines(&[answer(1, "x"), answer(2, "x")]);
        end.client_got(got.as_bytes()).complains("matched 2, unmatched 0, unused 1");
    }
}

#[test]
fn a_signal_ends_what_waits_for_its_moment_and_a_client_that_does_not_read() {
    let script = format!("> {}\n@600000 < {}\n", call(1, "t", 1), answer(1, "late"));
    let mut run = replay(tape(&script)).flags(&["--timing", "realistic"]).start();
    run.send(lines(&[call(1, "t", 1), ask(2, "ping")]).as_bytes());
    run.lines(1);
    run.signal(Signal::TERM);
    run.end().exits(143);

    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut run = replay(pairs(100, 1_000_000)).stdout(writer).start();
    let live: String = (0..100).map(|n| lines(&[call(n, "t", n)])).collect();
    run.send(live.as_bytes());
    // It has started to answer, and gets no further.
    reader.read_exact(&mut [0]).unwrap();
    run.signal(Signal::TERM);
    run.end().exits(143);
}

#[test]
fn what_is_not_on_the_tape_ends_it_after_what_is_under_way() {
    let script = format!(
        "> {}\n@300 < {}\n> {}\n@600000 < {}\n",
        call(1, "t", 1),
        answer(1, "soon"),
        call(2, "t", 2),
        answer(2, "never")
    );
    let flags = ["--timing", "realistic", "--match-mode", "by-request"];
    let mut run = replay(tape(&script)).flags(&flags).start();
    let live = [call(1, "t", 1), call(2, "t", 2), call(3, "t", 3), call(4, "t", 1)];
    run.send(lines(&live).as_bytes());
    // The input stays open: the third request ends the replay, and the fourth is not read.
    let end = run.end().exits(6);
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    let got: Vec<&str> = got.lines().collect();
    assert!(got[0].starts_with(&refusal(3)), "{got:?}");
    assert_eq!(got[1], answer(1, "soon"), "what is due in a moment is still said");
    assert!(got.len() == 2 || got[2].starts_with(&refusal(2)), "{got:?}");
    end.complains("error: no answer on the tape for tools/call t: ").complains("\nhint: ");
}

#[test]
fn the_error_names_the_method_the_mode_and_what_comes_nearest() {
    for (mode, output_text) in [
        ("sequential", "no recorded answer for tools/call u (not the next request on the tape)"),
        ("by-request", "no recorded answer for tools/call u (not on the tape)"),
        ("fuzzy", "no recorded answer for tools/call u (not on the tape)"),
    ] {
        let end = replay(pairs(1, 1)).flags(&["--match-mode", mode]);
        let end = end.run(lines(&[call(1, "u", 1)]).as_bytes()).exits(6);
        let got = format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"{output_text}","data":{{"by":"tapegate","method":"tools/call","mode":"{mode}","nearest":1}}}}}}"#
        );
        end.client_got(lines(&[got]).as_bytes());
    }
}

#[test]
fn exhausted_requests_are_refused_repeated_or_begun_again() {
    let script = format!(
        "> {}\n< {}\n> {}\n< {}\n",
        call(1, "t", 1),
        answer(1, "one"),
        call(2, "t", 1),
        answer(2, "two")
    );
    let live: Vec<String> = (0..5).map(|n| call(n, "t", 1)).collect();
    for mode in super::MODES {
        for (on, texts) in [
            ("last", ["one", "two", "two", "two", "two"]),
            ("cycle", ["one", "two", "one", "two", "one"]),
        ] {
            let flags = ["--match-mode", mode, "--on-exhausted", on];
            let end = replay(tape(&script)).flags(&flags).run(lines(&live).as_bytes()).exits(0);
            let got: Vec<String> = (0..5).map(|n| answer(n, texts[n])).collect();
            end.client_got(lines(&got).as_bytes());
        }
        let flags = ["--match-mode", mode, "--on-exhausted", "error"];
        let end = replay(tape(&script)).flags(&flags).run(lines(&live).as_bytes()).exits(6);
        let got = lines(&[answer(0, "one"), answer(1, "two")]) + &refusal(2);
        assert!(String::from_utf8_lossy(&end.stdout).starts_with(&got));
    }
}

#[test]
fn a_tape_that_is_cut_short_while_it_is_played_ends_it_with_an_error() {
    let mut run = replay(pairs(10, 500_000)).flags(&["--match-mode", "by-request"]).start();
    run.send(lines(&[call(1, "t", 0)]).as_bytes());
    run.lines(1);
    let file = fs::File::options().write(true).open(run.tape_path()).unwrap();
    file.set_len(1_000_000).unwrap();
    run.send(lines(&[call(2, "t", 9)]).as_bytes());
    let end = run.end().exits(3);
    let end = end.complains("error: cannot continue reading `");
    end.complains("the tape was truncated while it was played");
}

#[test]
fn a_tape_that_breaks_while_it_is_played_still_leaves_a_report_and_a_whole_new_tape() {
    let setup = replay(pairs(10, 500_000)).flags(&["--match-mode", "by-request"]);
    let (report, new) = (setup.folder().join("r.json"), setup.folder().join("new.jsonl"));
    let setup = setup.flags(&["--report", report.to_str().unwrap()]);
    let mut run = setup.flags(&["--record-to", new.to_str().unwrap()]).start();
    run.send(lines(&[call(1, "t", 0)]).as_bytes());
    run.lines(1);
    fs::File::options().write(true).open(run.tape_path()).unwrap().set_len(1_000_000).unwrap();
    run.send(lines(&[call(2, "t", 9)]).as_bytes());
    let end = run.end().exits(3).complains("error: cannot continue reading `");
    let end = end.complains("matched 1, unmatched 0, unused 9");
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!((&report["ok"], &report["unused"]), (&false.into(), &9.into()), "{report:#}");
    let cases = report["cases"].as_array().unwrap();
    let broken = cases.iter().find(|case| case["rule"] == "tape-broken").unwrap();
    let output_text = broken["message"].as_str().unwrap();
    assert!(output_text.contains("was truncated while it was played"), "{output_text}");
    let checked = check(&new, 0);
    assert!(!checked.contains("no footer"), "{checked}");
    drop(end);
}

#[test]
fn a_tape_that_is_written_anew_while_it_is_played_ends_it_with_an_error() {
    let mut run = replay(pairs(10, 500_000)).flags(&["--match-mode", "by-request"]).start();
    run.send(lines(&[call(1, "t", 0)]).as_bytes());
    run.lines(1);
    let bytes = fs::metadata(run.tape_path()).unwrap().len();
    let file = fs::File::options().write(true).open(run.tape_path()).unwrap();
    file.write_all_at(&vec![b'x'; bytes as usize], 0).unwrap();
    run.send(lines(&[call(2, "t", 9)]).as_bytes());
    let end = run.end().exits(3);
    end.complains("the tape was rewritten while it was played");
}

#[test]
fn a_tape_that_is_replaced_or_deleted_while_it_is_played_is_played_on() {
    let mut run = replay(pairs(10, 500_000)).flags(&["--match-mode", "by-request"]).start();
    run.send(lines(&[call(1, "t", 0)]).as_bytes());
    run.lines(1);
    fs::remove_file(run.tape_path()).unwrap();
    fs::write(run.tape_path(), "another one\n").unwrap();
    run.send(lines(&[call(2, "t", 9)]).as_bytes());
    run.lines(2);
    run.end_of_input().exits(0);
}
