//! kill -9 at random moments under load: what a peer got is on the tape, and no process is left.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::thread;

use rustix::process::{Signal, kill_process};
use tapegate_core::side::Side;

use crate::support::{
    RunningSession, SeededRandom, SessionSetup, check, kept, record, request, shim, tape,
};

/// A session under load in both directions, whose server logs its input to `log`.
fn loaded(setup: SessionSetup, padding: u64) -> (RunningSession, std::path::PathBuf) {
    let log = setup.folder().join("log");
    let mut run = setup.sh(&format!("exec \"$FAKE\" log={} copy", log.display())).start();
    let mut input = run.take_input();
    thread::spawn(move || {
        let padding = "p".repeat(padding as usize);
        for n in 0..2_000_000u64 {
            let line = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{{\"n\":{n},\"x\":\"{padding}\"}}}}\n"
            );
            if input.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    (run, log)
}

/// The messages of one side on the tape, one per line.
fn on_tape(tape: &Path, side: Side) -> Vec<u8> {
    let theirs = kept(tape).into_iter().filter(|kept| kept.from == side);
    theirs.flat_map(|kept| [kept.bytes, b"\n".to_vec()].concat()).collect()
}

#[track_caller]
fn is_prefix(got: &[u8], of: &[u8], whose: &str) {
    let same = got.iter().zip(of).take_while(|(one, two)| one == two).count();
    assert!(
        got.len() <= of.len() && same == got.len(),
        "{whose} got {} bytes, {} are on the tape, the first {same} agree",
        got.len(),
        of.len()
    );
}

#[test]
fn ec_rec_011_killing_the_recorder_loses_nothing_that_a_peer_has_got() {
    let mut dice = SeededRandom::roll();
    for round in 0..16 {
        let setup = if round % 2 == 0 { record(&[]) } else { tape(&[]) };
        let (run, log) = loaded(setup, [10, 300, 5000, 60_000][round / 2 % 4]);
        run.lines(1 + dice.below(30) as usize);
        dice.pause_us(60_000);
        run.signal(Signal::KILL);
        let end = run.end().leaves_no_process();
        let tape = end.run.tape_path();
        check(tape, 0);
        is_prefix(&end.stdout, &on_tape(tape, Side::Server), "the client");
        is_prefix(&fs::read(log).unwrap(), &on_tape(tape, Side::Client), "the server");
    }
}

#[test]
fn ec_stdio_010_killing_the_server_loses_nothing_it_has_said() {
    let mut dice = SeededRandom::roll();
    for round in 0..6 {
        let (run, _) = loaded(record(&[]), [10, 300, 5000][round % 3]);
        run.lines(1 + dice.below(30) as usize);
        dice.pause_us(60_000);
        for pid in run.others() {
            kill_process(pid, Signal::KILL).ok();
        }
        let end = run.end().exits(137).checks().leaves_no_process();
        // The server may have been cut off in the middle of a line, which is then beside the tape.
        let whole = end.stdout.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = end.stdout[whole..].to_vec();
        assert_eq!(end.said(Side::Server), end.stdout[..whole]);
        let torn: Vec<u8> = end.beside().into_iter().flat_map(|kept| kept.bytes).collect();
        assert_eq!(torn, tail);
    }
}

#[test]
fn killing_the_client_ends_everything_in_order() {
    // The client is a shell that we kill; the recorder is its child.
    for _ in 0..3 {
        let setup = record(&["serve"]);
        let (tape, folder) = (setup.tape_path().to_owned(), setup.folder().to_owned());
        let script = format!(
            "i=0; while :; do i=$((i+1)); echo '{{\"jsonrpc\":\"2.0\",\"id\":'$i',\"method\":\"m\"}}'; done \
             | setsid {} record -q -o {} -- \"$FAKE\" serve | cat > {}/got",
            env!("CARGO_BIN_EXE_tapegate"),
            tape.display(),
            folder.display()
        );
        // The outer recorder only guards the inner one, which is not in its group.
        let run = record(&[]).sh(&format!("exec 0</dev/null; {script}")).start();
        run.until("some traffic", |_| {
            fs::metadata(folder.join("got")).is_ok_and(|m| m.len() > 20_000)
        });
        let shells: Vec<_> = run
            .others()
            .into_iter()
            .filter(|pid| {
                let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_pid()))
                    .unwrap_or_default();
                ["sh\n", "cat\n"].contains(&name.as_str())
            })
            .collect();
        for pid in shells {
            kill_process(pid, Signal::KILL).ok();
        }
        run.until("the end of every process", |run| run.others().is_empty());
        let got = fs::read(folder.join("got")).unwrap();
        is_prefix(&got, &on_tape(&tape, Side::Server), "the client");
        check(&tape, 0);
        let text = fs::read_to_string(&tape).unwrap();
        assert!(text.lines().last().unwrap().contains("\"type\":\"footer\""));
        assert!(!text.contains("\"by\":\"tapegate\""), "nobody was there to be told anything");
    }
}

#[test]
fn killing_the_recorder_ends_a_server_that_only_waits() {
    let mut run = record(&["answer=1", "hang"]).start();
    run.send(request(1).as_bytes());
    run.lines(1);
    run.signal(Signal::KILL);
    run.end().leaves_no_process();
}

/// Servers that do not end when asked to: alone, and with children that outlive them.
const STUBBORN: [&str; 2] = [
    "trap '' TERM HUP INT; echo $$ >pid; sleep 300 & echo >up; exec sleep 300",
    "echo $$ >pid; (trap '' TERM HUP INT; sleep 300 </dev/null) & echo >up; cat",
];

/// How many reapers watch the server of a run.
fn sentries(run: &RunningSession) -> usize {
    let group = fs::read_to_string(run.folder().join("pid")).unwrap();
    let line = format!("tapegate-sentry\0{}\0", group.trim());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
    lines.filter(|got| *got == line.as_bytes()).count()
}

fn stubborn(script: &str) -> [RunningSession; 2] {
    [record(&[]), shim("", &[])].map(|setup| {
        let folder = setup.folder().display().to_string();
        let run = setup.sh(&format!("cd {folder}; {script}")).start();
        run.until("the server", |run| run.folder().join("up").exists());
        run
    })
}

#[test]
fn killing_us_ends_a_server_and_its_children_that_do_not_want_to_end() {
    // Together, since each sentry waits a while before it kills.
    thread::scope(|scope| {
        for run in STUBBORN.into_iter().flat_map(stubborn) {
            scope.spawn(|| {
                run.until("a sentry", |run| sentries(run) == 1);
                run.signal(Signal::KILL);
                let end = run.end().leaves_no_process();
                end.run.until("the end of the sentry", |run| sentries(run) == 0);
            });
        }
    });
}

#[test]
fn killing_us_as_soon_as_the_server_is_heard_ends_it_though_it_does_not_want_to() {
    let script = "trap '' TERM HUP INT; echo '{}'; exec sleep 300";
    let rounds = || {
        for round in 0..5 {
            let setup = if round % 2 == 0 { record(&[]) } else { shim("", &[]) };
            let run = setup.sh(script).start();
            run.lines(1);
            run.signal(Signal::KILL);
            run.end().leaves_no_process();
        }
    };
    thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(rounds))));
}

#[test]
fn an_ordinary_end_leaves_no_sentry_behind() {
    for run in stubborn("echo $$ >pid; echo >up; cat >/dev/null") {
        run.until("a sentry", |run| sentries(run) == 1);
        let end = run.end_of_input().exits(0).leaves_no_process();
        assert_eq!(sentries(&end.run), 0);
    }
}

#[test]
fn a_gzip_tape_reads_up_to_its_last_flush_after_kill_9() {
    let mut run =
        record(&["serve"]).tape_at("t.jsonl.gz").flags(&["--flush-interval", "50ms"]).start();
    for id in 0..500 {
        run.send(request(id).as_bytes());
    }
    run.lines(500);
    let path = run.tape_path().to_owned();
    // Flushed data can be read while the tape is being written.
    run.until("a flush of everything", |_| check(&path, 0).contains("1000 messages"));
    run.send(request(501).as_bytes());
    run.lines(501);
    run.signal(Signal::KILL);
    let end = run.end().leaves_no_process();
    let text = check(end.run.tape_path(), 0);
    assert!(text.contains("messages (50") && text.contains("no footer"), "{text}");
    // A truncated gzip member loses itself and nothing before it.
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    let text = check(&path, 0);
    assert!(text.contains("warning: the compressed tape was cut off"), "{text}");
}
