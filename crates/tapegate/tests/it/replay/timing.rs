//! When answers arrive: immediately, or as late as recorded. Only lower bounds are measured.

use std::time::{Duration, Instant};

use super::{answer, call, lines, tape};
use crate::support::{RunningSession, SessionSetup, replay};

const CANCEL: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;

/// A call that took `took_ms`, and one that took no time.
fn slow(took_ms: u32) -> SessionSetup {
    let script = format!(
        "> {}\n@{took_ms} < {}\n> {}\n< {}\n",
        call(1, "slow", 1),
        answer(1, "late"),
        call(2, "quick", 2),
        answer(2, "soon")
    );
    replay(tape(&script))
}

fn took(run: &mut RunningSession, line: &str, count: usize) -> Duration {
    let begun = Instant::now();
    run.send(format!("{line}\n").as_bytes());
    run.lines(count);
    begun.elapsed()
}

#[test]
fn realistic_and_scaled_answers_take_at_least_their_time() {
    for (timing, at_least_ms) in [("realistic", 300), ("scaled:2", 600), ("scaled:0.5", 150)] {
        let mut run = slow(300).flags(&["--timing", timing]).start();
        let took = took(&mut run, &call(1, "slow", 1), 1);
        assert!(took >= Duration::from_millis(at_least_ms), "{timing}: {took:?}");
        run.end_of_input().exits(0).client_got(lines(&[answer(1, "late")]).as_bytes());
    }
    // Without delays, a day on the tape takes no time at all.
    for timing in ["instant", "scaled:0", "scaled:1e-9"] {
        let mut run = slow(86_400_000).flags(&["--timing", timing]).start();
        took(&mut run, &call(1, "slow", 1), 1);
        run.end_of_input().exits(0);
    }
}

#[test]
fn a_latency_that_the_tape_names_counts_where_its_moments_are_too_coarse() {
    let text = tape(&format!("> {}\n< {}\n", call(1, "a", 1), answer(1, "one")));
    let (before, after) = text.split_once("\"}]}}}").unwrap();
    let text = format!("{before}\"}}]}}}},\"latency_ms\":250}}{after}");
    let mut run = replay(text).flags(&["--timing", "realistic"]).start();
    let took = took(&mut run, &call(1, "a", 1), 1);
    assert!(took >= Duration::from_millis(250), "{took:?}");
    run.end_of_input().exits(0);
}

#[test]
fn who_waits_holds_up_nobody_else() {
    let mut run = slow(400).flags(&["--timing", "realistic", "--match-mode", "by-request"]).start();
    let begun = Instant::now();
    run.send(lines(&[call(1, "slow", 1), call(2, "quick", 2)]).as_bytes());
    run.lines(2);
    assert!(begun.elapsed() >= Duration::from_millis(400));
    let got = lines(&[answer(2, "soon"), answer(1, "late")]);
    run.end_of_input().exits(0).client_got(got.as_bytes());
}

#[test]
fn a_thousand_that_wait_wait_at_the_same_time() {
    let pair = |n: usize| format!("@0 > {}\n@500 < {}\n", call(n, "t", n), answer(n, n));
    let script: String = (0..1000).map(pair).collect();
    let live: String = (0..1000).map(|n| lines(&[call(n, "t", n)])).collect();
    let flags = ["--timing", "realistic", "--match-mode", "by-request"];
    let begun = Instant::now();
    let end = replay(tape(&script)).flags(&flags).run(live.as_bytes()).exits(0);
    let (took, got) = (begun.elapsed(), String::from_utf8(end.stdout).unwrap());
    assert!(took >= Duration::from_millis(500) && took.as_secs() < 30, "{took:?}");
    assert_eq!(got.lines().count(), 1000);
}

#[test]
fn what_the_server_said_of_its_own_accord_takes_its_time_too() {
    let progress = |token: &str, n: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
        )
    };
    let asked = |id: &str, token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{"_meta":{{"progressToken":{token}}}}}}}"#
        )
    };
    let script = format!(
        "> {}\n@100 < {}\n@200 < {}\n@300 < {}\n",
        asked("1", "1"),
        progress("1", 1),
        progress("1", 2),
        answer(1, "done")
    );
    let mut run = replay(tape(&script)).flags(&["--timing", "realistic"]).start();
    let begun = Instant::now();
    run.send(lines(&[asked("\"x\"", "\"live\"")]).as_bytes());
    for (count, at_least_ms) in [(1, 100), (2, 200), (3, 300)] {
        run.lines(count);
        assert!(begun.elapsed() >= Duration::from_millis(at_least_ms), "{count}");
    }
    let got = [progress("\"live\"", 1), progress("\"live\"", 2), answer("\"x\"", "done")];
    run.end_of_input().exits(0).client_got(lines(&got).as_bytes());
}

#[test]
fn a_request_that_is_taken_back_is_not_answered() {
    for flags in [&["--match-mode", "by-request"][..], &[]] {
        let setup = slow(600_000).flags(&["--timing", "realistic"]).flags(flags);
        let mut run = setup.start();
        run.send(lines(&[&call(1, "slow", 1), CANCEL, &call(2, "quick", 2)]).as_bytes());
        run.lines(1);
        // Nothing is due any more, so there is no wait.
        run.end_of_input().exits(0).client_got(lines(&[answer(2, "soon")]).as_bytes());
    }
    // Its place in a batch stays empty.
    let batch = format!("[{},{}]", call(1, "slow", 1), call(2, "quick", 2));
    let mut run = slow(600_000).flags(&["--timing", "realistic"]).start();
    run.send(lines(&[&*batch, CANCEL]).as_bytes());
    run.lines(1);
    let got = format!("[{}]", answer(2, "soon"));
    run.end_of_input().exits(0).client_got(lines(&[got]).as_bytes());
}

#[test]
fn an_answer_that_was_given_cannot_be_taken_back() {
    let live = lines(&[&call(1, "slow", 1), CANCEL, &call(2, "quick", 2)]);
    let got = lines(&[answer(1, "late"), answer(2, "soon")]);
    slow(600_000).run(live.as_bytes()).exits(0).client_got(got.as_bytes());
}

#[test]
fn a_request_that_was_taken_back_on_the_tape_stays_open_until_it_is_again() {
    let script = format!(
        "> {}\n> {CANCEL}\n> {}\n< {}\n",
        call(1, "slow", 1),
        call(2, "quick", 2),
        answer(2, "soon")
    );
    let live = lines(&[&call(1, "slow", 1), CANCEL, &call(2, "quick", 2)]);
    let got = lines(&[answer(2, "soon")]);
    let end = replay(tape(&script)).run(live.as_bytes()).exits(0).client_got(got.as_bytes());
    end.complains("matched 2, unmatched 0, unused 0");
    // A client that does not cancel waits as it would have, and delays no other client.
    let live = lines(&[call(1, "slow", 1), call(2, "quick", 2)]);
    replay(tape(&script)).run(live.as_bytes()).exits(0).client_got(got.as_bytes());
}

#[test]
fn a_client_that_says_no_more_gets_its_answers_in_time_or_all_at_once_and_replay_ends() {
    let live = lines(&[call(1, "slow", 1)]);
    let got = lines(&[answer(1, "late")]);
    for (took_ms, at_least_ms, hurries) in [(700, 700, false), (86_400_000, 5000, true)] {
        let begun = Instant::now();
        let end = slow(took_ms).flags(&["--timing", "realistic"]).run(live.as_bytes()).exits(0);
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(at_least_ms) && took.as_secs() < 40, "{took:?}");
        let end = end.client_got(got.as_bytes());
        assert_eq!(
            end.stderr.contains("the client has stopped sending"),
            hurries,
            "{}",
            end.stderr
        );
    }
}
