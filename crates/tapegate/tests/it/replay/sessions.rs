//! `--session`: which session of a tape is played.

use super::{HEADER, answer, ask, call, lines, messages, tape};
use crate::support::{replay, tapegate};

fn hello(id: u32) -> String {
    ask(id, "initialize")
}

/// Two consecutive sessions, as on an appended tape without headers.
fn appended() -> String {
    let session = |n: u32| {
        let tool = format!("t{n}");
        format!(
            "> {}\n< {}\n> {}\n< {}\n",
            hello(1),
            answer(1, format!("hello {n}")),
            call(2, &tool, n),
            answer(2, n)
        )
    };
    tape(&format!("{}{}", session(1), session(2)))
}

#[test]
fn a_session_is_chosen_by_its_number_or_as_the_last() {
    for (flags, n) in [
        (&[][..], 1),
        (&["--session", "1"], 1),
        (&["--session", "2"], 2),
        (&["--session", "last"], 2),
        (&["--session", "all"], 1),
    ] {
        let live = lines(&[hello(7), call(8, &format!("t{n}"), n)]);
        let end = replay(appended()).flags(flags).run(live.as_bytes()).exits(0);
        let left = if flags.is_empty() || flags[1] == "all" { 2 } else { 0 };
        let end = end.complains(&format!("matched 2, unmatched 0, unused {left}"));
        end.client_got(lines(&[answer(7, format!("hello {n}")), answer(8, n)]).as_bytes());
    }
}

#[test]
fn requests_of_another_session_are_not_found_when_one_is_chosen() {
    let flags = ["--session", "2", "--match-mode", "by-request"];
    let live = lines(&[hello(7), call(8, "t1", 1)]);
    replay(appended()).flags(&flags).run(live.as_bytes()).exits(6);
}

#[test]
fn the_hint_names_the_session_that_has_the_request() {
    let live = lines(&[hello(7), call(8, "t2", 2)]);
    let end = replay(appended()).run(live.as_bytes()).exits(6);
    let end = end.complains("the tape has 2 sessions; playing the first");
    end.complains("hint: session 2 of the tape has this request: pass --session 2");
}

#[test]
fn a_session_that_is_not_there_is_wrong_usage() {
    let end = replay(appended()).flags(&["--session", "3"]).run(b"").exits(64);
    end.complains("error: the tape has no session 3, only 2");
    replay(appended()).flags(&["--session", "0"]).run(b"").exits(64);
}

#[test]
fn a_tape_with_answers_of_our_own_is_played_with_a_warning() {
    let text = messages(&format!("> {}\n< {}\n", call(1, "t", 1), answer(1, 1)));
    let marked = text.replace("\"dir\":\"s2c\"", "\"dir\":\"s2c\",\"by\":\"tapegate\"");
    let end = replay(format!("{HEADER}\n{marked}")).run(b"").exits(0);
    end.complains(
        "1 answer on this tape is Tapegate's own (`\"by\":\"tapegate\"`), not the server's",
    );
}

#[test]
fn a_scenario_is_not_a_tape_and_a_tape_is_not_a_scenario_and_both_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), "server:\n  name: x\n").unwrap();
    std::fs::write(folder.path().join("t.jsonl"), appended()).unwrap();
    let run = |args: &[&str]| {
        let done = tapegate().current_dir(&folder).args(args).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, stderr) = run(&["replay", "-r", "s.yaml", "--http", "127.0.0.1:0"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("hint: this seems to be a scenario: run `tapegate serve s.yaml`"),
        "{stderr}"
    );
    let (code, stderr) = run(&["serve", "t.jsonl"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.starts_with("error: `t.jsonl` is a tape, not a scenario\n"), "{stderr}");
    assert!(stderr.contains("`tapegate replay -r t.jsonl` plays it"), "{stderr}");
}
