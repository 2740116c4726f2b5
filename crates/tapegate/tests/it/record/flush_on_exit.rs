//! Tape and log are completed first: a client that leaves and kills us soon after finds a complete
//! tape and log, however long the server takes to end.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::Signal;

use crate::support::{
    RunningSession, SeededRandom, SessionSetup, StepGate, check, kept, record, reply, request, shim,
};

/// A server that answers, but is slow to end.
const SLOW: &str = "trap '' TERM; \"$FAKE\" serve; sleep 300";

/// The tape of a run: at the requested path, or the one created by a shim.
fn tape_of(run: &RunningSession) -> PathBuf {
    let folder = run.folder().join("state/tapes/s");
    let made =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).next();
    made.unwrap_or_else(|| run.tape_path().to_owned())
}

fn has_footer(tape: &Path) -> bool {
    crate::support::text_of(tape).lines().last().is_some_and(|line| line.contains("\"footer\""))
}

fn setups() -> [SessionSetup; 3] {
    [record(&[]), record(&[]).tape_at("t.jsonl.gz"), shim("", &[])]
}

/// Waits until the tape has a footer, kills the recorder, and checks what is left.
#[track_caller]
fn is_whole_after_a_kill(run: RunningSession, messages: &str) {
    let tape = tape_of(&run);
    run.until("a footer", |_| has_footer(&tape));
    if tape != run.tape_path() {
        let log = run.folder().join("state/activity.jsonl");
        run.until("the session's end in the log", |_| {
            fs::read_to_string(&log).is_ok_and(|log| log.contains("\"event\":\"ended\""))
        });
    }
    assert!(!run.others().is_empty(), "the server ended first");
    run.signal(Signal::KILL);
    let _end = run.end().leaves_no_process();
    let text = check(&tape, 0);
    assert!(text.contains(messages) && !text.contains("footer"), "{text}");
}

/// Tests several sessions at once, since it takes a while until the server of each is killed.
fn at_once(setups: impl IntoIterator<Item = SessionSetup>, test: impl Fn(RunningSession) + Sync) {
    thread::scope(|scope| {
        for setup in setups {
            scope.spawn(|| test(setup.sh(SLOW).start()));
        }
    });
}

#[test]
fn a_client_that_closes_its_end_and_kills_leaves_a_whole_tape() {
    at_once(setups(), |mut run| {
        run.send(request(1).as_bytes());
        run.lines(1);
        run.close_input();
        is_whole_after_a_kill(run, "2 messages (1 client, 1 server)");
    });
}

#[test]
fn a_client_that_asks_us_to_end_and_kills_leaves_a_whole_tape() {
    at_once(setups(), |mut run| {
        run.send(request(1).as_bytes());
        run.lines(1);
        run.signal(Signal::TERM);
        is_whole_after_a_kill(run, "2 messages (1 client, 1 server)");
    });
}

#[test]
fn a_client_that_stops_reading_and_kills_leaves_a_whole_tape() {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let mut run = record(&[]).sh(SLOW).stdout(theirs).start();
    drop(ours);
    run.send(request(1).as_bytes());
    is_whole_after_a_kill(run, "2 messages (1 client, 1 server)");
}

/// `printf ... | tapegate record -- server`: the input ends long before the answers arrive.
#[test]
fn what_comes_after_the_client_has_closed_its_end_is_before_the_footer() {
    for name in ["t.jsonl", "t.jsonl.gz"] {
        let setup = record(&[]).tape_at(name);
        let gates = [1, 2, 3].map(|at| StepGate::new(setup.folder(), &format!("gate{at}")));
        let waits = gates.each_ref().map(StepGate::step);
        let [first, second, third] = waits.each_ref().map(String::as_str);
        let answer = "release=1";
        let steps = ["hold=3", "eof", first, answer, second, answer, third, answer];
        let mut run = setup.steps(&steps).start();
        run.send([request(1), request(2), request(3)].concat().as_bytes());
        run.close_input();
        for (gate, answers) in gates.iter().zip(1..) {
            gate.open();
            run.lines(answers);
            // At every moment the tape is complete, and has what the client has got.
            let tape = run.tape_path();
            run.until("a footer", |_| has_footer(tape));
            assert!(kept(tape).len() >= 3 + answers);
            assert!(answers == 3 || !run.others().is_empty(), "the server ended first");
        }
        let end = run.end().exits(0).checks();
        end.client_got([reply(1), reply(2), reply(3)].concat().as_bytes());
    }
}

#[test]
fn a_kill_at_any_moment_of_the_end_leaves_a_tape_that_has_what_the_client_has_got() {
    let requests: String = (0..400).map(request).collect();
    let (mut footers, mut dice) = (0, SeededRandom::roll());
    for round in 0..20 {
        let mut run = record(&["serve"]).start();
        run.send_aside(requests.clone().into_bytes());
        run.lines(1 + round * 20);
        if round == 19 {
            // The last one is killed when all is done.
            run.until("a footer", |run| has_footer(run.tape_path()));
        } else {
            dice.pause_us(2_700);
        }
        run.signal(Signal::KILL);
        let end = run.end().leaves_no_process();
        let text = check(end.run.tape_path(), 0);
        footers += usize::from(!text.contains("no footer"));
        let on_tape = end.said(tapegate_core::side::Side::Server);
        assert!(on_tape.starts_with(&end.stdout), "{text}");
    }
    assert!(footers > 0, "no round came to the end");
}

/// Codex closes our input, asks us to end and kills us some 50 ms later.
#[test]
fn twenty_of_twenty_sessions_that_are_ended_as_codex_does_it_have_a_footer() {
    for _ in 0..4 {
        at_once(
            [record(&[]), shim("", &[]), record(&[]), shim("", &[]), record(&[])],
            |mut run| {
                run.send(request(1).as_bytes());
                run.lines(1);
                run.close_input();
                run.signal(Signal::TERM);
                is_whole_after_a_kill(run, "2 messages (1 client, 1 server)");
            },
        );
    }
}
