//! Clients that leave, stall, or pass odd descriptors: nothing is lost, no process is left, and
//! shared descriptors keep their flags.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;

use rustix::fs::fcntl_getfl;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use tapegate_core::side::Side;

use crate::support::{
    EndedSession, RunningSession, StepGate, descriptor, is_stalled, record, reply, request,
    terminal, wait_until, wait_until_stalled,
};

#[test]
fn the_last_reply_comes_however_slow_it_is_after_the_client_closed_its_end() {
    let end =
        record(&["hold=2", "eof", "release=2"]).run([request(1), request(2)].concat().as_bytes());
    end.exits(0).client_got([reply(1), reply(2)].concat().as_bytes()).checks().leaves_no_process();
}

#[test]
fn a_last_request_without_a_line_end_reaches_the_server_as_it_is() {
    let setup = record(&[]);
    let log = setup.folder().join("log");
    let setup = setup.sh(&format!("exec \"$FAKE\" log={} serve", log.display()));
    let line = request(1);
    let end = setup.run(line.trim_end().as_bytes()).exits(0).client_got(reply(1).as_bytes());
    assert_eq!(fs::read(log).unwrap(), line.trim_end().as_bytes());
    end.checks();
}

#[test]
fn signals_end_the_session_with_their_code_and_no_answer_is_invented() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut run = record(&["answer=1", "eof", "hang"]).start();
        run.send([request(1), request(2)].concat().as_bytes());
        run.lines(1);
        run.signal(signal);
        let end = run.end().exits(code).checks().leaves_no_process();
        let end = end.client_got(reply(1).as_bytes());
        let text = fs::read_to_string(end.run.tape_path()).unwrap();
        assert!(text.lines().last().unwrap().starts_with("{\"type\":\"footer\""), "{text}");
    }
}

#[test]
fn a_signal_is_handed_on_at_once_when_no_answer_is_awaited() {
    // Codex kills its servers some 40 ms after asking them to end; the footer must be written
    // first. A server that does not get the signal at once writes more after the end of its input.
    for (asked, is_awaited) in [(vec![request(1)], false), (vec![request(1), request(2)], true)] {
        let mut run = record(&["answer=1", "eof", "say={}"]).start();
        run.send(asked.concat().as_bytes());
        run.lines(1);
        run.signal(Signal::TERM);
        let end = run.end().exits(143).checks().leaves_no_process();
        let server_output = String::from_utf8(end.said(Side::Server)).unwrap();
        assert_eq!(server_output.contains("\n{}\n"), is_awaited, "{server_output}");
    }
}

#[test]
fn a_signal_ends_a_session_whose_server_ignores_term() {
    let mut run = record(&[]).sh("trap '' TERM INT HUP; echo up; exec sleep 300").start();
    run.lines(1);
    run.signal(Signal::TERM);
    let end = run.end().exits(143).leaves_no_process();
    end.checks();
    // Repeated signals are respected.
    run = record(&[]).sh("trap '' TERM INT HUP; echo up; exec sleep 300").start();
    run.lines(1);
    signal_until_the_end(&mut run, Signal::INT);
    run.end().exits(130).leaves_no_process();
}

#[test]
fn signals_end_a_session_whose_output_a_stranger_keeps_open() {
    // A grandchild in its own session is not ours to kill, and must not delay us.
    let script = "setsid sleep 20 & echo up; exec \"$FAKE\" eof";
    let mut run = record(&[]).sh(script).start();
    run.lines(1);
    signal_until_the_end(&mut run, Signal::TERM);
    run.end().exits(143).checks();
}

/// Sends signals as a user does who has lost patience.
fn signal_until_the_end(run: &mut RunningSession, signal: Signal) {
    wait_until("the end", || {
        run.signal(signal);
        !run.lives()
    });
}

#[test]
fn a_signal_ends_a_session_whose_client_does_not_read() {
    let run = record(&["flood=1000000,1000"]).not_reading().start();
    run.until("a tape of some size", |run| size(run.tape_path()) > 60_000);
    run.signal(Signal::TERM);
    run.end().exits(143).checks().leaves_no_process();
}

#[test]
fn a_client_that_reads_late_loses_nothing_of_a_server_that_is_gone() {
    // More than the pipe to the client holds is still in transit when the server has exited.
    let run = record(&["flood=2500,100", "exit=0"]).not_reading().start();
    run.until("the server's exit", |run| run.others().is_empty());
    run.read_on();
    let end = run.end().exits(0).checks();
    assert_eq!(count_lines(&end.stdout), 2500);
    assert_eq!(end.said(Side::Server), end.stdout);
}

#[test]
fn a_client_that_closed_its_end_and_reads_late_loses_nothing() {
    let mut run = record(&["flood=600,100", "eof", "exit=0"]).not_reading().start();
    run.close_input();
    run.until("the server's exit", |run| run.others().is_empty());
    run.read_on();
    let end = run.end().exits(0).checks();
    assert_eq!(count_lines(&end.stdout), 600);
}

#[test]
fn a_slow_server_gets_everything_a_client_wrote_before_it_closed_its_end() {
    let setup = record(&[]);
    let log = setup.folder().join("log");
    let gate = StepGate::new(setup.folder(), "gate");
    let setup = setup.steps(&[&gate.step(), &format!("log={}", log.display()), "eof"]);
    let lines: String = (0..4000)
        .map(|n| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{{\"n\":{n},\"x\":\"{n:0100}\"}}}}\n"))
        .collect();
    let mut run = setup.start();
    run.send_aside(lines.into_bytes());
    run.until("more than a pipe holds", |run| size(run.tape_path()) > 64 * 1024);
    gate.open();
    let end = run.end();
    assert_eq!(end.said(Side::Client), fs::read(&log).unwrap(), "recorded, but not delivered");
}

#[test]
fn a_slow_reader_holds_the_server_back_and_not_in_our_memory() {
    let run = record(&["flood=40000,1000", "exit=0"]).not_reading().start();
    run.until("a tape of some size", |run| size(run.tape_path()) > 60_000);
    // The flood is 40 MB; it stays in the server as long as the client does not read.
    wait_until_stalled(run.pid(), &run.server_output());
    let taken = size(run.tape_path());
    assert!(taken < 4_000_000, "{taken} bytes were taken from the server for nobody");
    assert!(run.memory_kb_max() < 32_000, "{} KB", run.memory_kb_max());
    run.read_on();
    let end = run.end().exits(0).checks();
    assert_eq!(count_lines(&end.stdout), 40_000);
    assert_eq!(end.said(Side::Server), end.stdout);
}

#[test]
fn a_server_that_never_reads_holds_the_client_back_and_not_in_our_memory() {
    let mut run = record(&["hang"]).start();
    let mut input = run.take_input();
    let line = request(1).repeat(1000);
    thread::spawn(move || while input.write_all(line.as_bytes()).is_ok() {});
    run.until("a tape of some size", |run| size(run.tape_path()) > 100_000);
    wait_until_stalled(run.pid(), &descriptor(run.pid(), 0));
    let taken = size(run.tape_path());
    assert!(taken < 8_000_000, "{taken}");
    assert!(run.memory_kb_max() < 32_000, "{} KB", run.memory_kb_max());
    run.signal(Signal::TERM);
    run.end().exits(143).checks().leaves_no_process();
}

#[test]
fn a_client_that_dies_while_its_server_does_not_read_leaves_no_process() {
    let (theirs_in, ours_in) = pipe().unwrap();
    let (ours_out, theirs_out) = pipe().unwrap();
    let run = record(&["hang"]).stdin(theirs_in).stdout(theirs_out).start();
    let mut input = File::from(ours_in);
    rustix::io::ioctl_fionbio(&input, true).unwrap();
    let line = request(1).repeat(100);
    let stdin = descriptor(run.pid(), 0);
    wait_until("a pipe that stays full", || {
        while input.write(line.as_bytes()).is_ok() {}
        is_stalled(run.pid(), &stdin)
    });
    drop(input);
    drop(ours_out);
    let end = run.end();
    end.leaves_no_process().checks();
}

#[test]
fn a_client_that_closes_its_output_early_ends_the_session() {
    let (ours_out, theirs_out) = pipe().unwrap();
    let mut run = record(&["serve"]).stdout(theirs_out).start();
    drop(ours_out);
    run.send(request(1).as_bytes());
    run.end().exits(0).checks().leaves_no_process();
}

#[test]
fn standard_input_may_be_a_file_or_the_null_device() {
    let setup = record(&["serve"]);
    let path = setup.folder().join("input");
    let lines: String = (0..3000).map(request).collect();
    let replies: String = (0..3000).map(reply).collect();
    fs::write(&path, &lines).unwrap();
    let end = setup.stdin(File::open(&path).unwrap()).start().end().exits(0).checks();
    end.client_got(replies.as_bytes()).leaves_no_process();
    let end = record(&["serve"]).stdin(Stdio::null()).start().end().exits(0);
    end.client_got(b"").checks().leaves_no_process();
}

#[test]
fn standard_output_may_be_a_file_or_the_null_device() {
    let setup = record(&["serve"]);
    let path = setup.folder().join("output");
    let file = File::create(&path).unwrap();
    let end = setup.stdout(file).run(request(1).as_bytes()).exits(0).checks();
    assert_eq!(fs::read_to_string(path).unwrap(), reply(1));
    drop(end);
    let end = record(&["serve"]).stdout(Stdio::null()).run(request(1).as_bytes()).exits(0);
    assert_eq!(end.tape().len(), 2);
}

#[test]
fn both_ends_may_be_socket_pairs_as_node_makes_them() {
    let (mut ours_in, theirs_in) = UnixStream::pair().unwrap();
    let (mut ours_out, theirs_out) = UnixStream::pair().unwrap();
    let setup = record(&["serve"]).stdin(OwnedFd::from(theirs_in));
    let run = setup.stdout(OwnedFd::from(theirs_out)).start();
    let lines: String = (0..20_000).map(request).collect();
    let writer = thread::spawn(move || {
        ours_in.write_all(lines.as_bytes()).unwrap();
    });
    let mut got = Vec::new();
    ours_out.read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert_eq!(got, (0..20_000).map(reply).collect::<String>().as_bytes());
    run.end().exits(0).checks().leaves_no_process();
}

#[test]
fn one_socket_may_be_both_ends() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let copy = theirs.try_clone().unwrap();
    let run = record(&["serve"]).stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(copy)).start();
    ours.write_all(request(1).as_bytes()).unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut got = Vec::new();
    ours.read_to_end(&mut got).unwrap();
    assert_eq!(got, reply(1).as_bytes());
    run.end().exits(0).checks();
}

/// Runs a session over descriptors that we keep, and compares their flags before and after.
fn flags_stay(stdin: OwnedFd, stdout: OwnedFd, mut say: File, killed: bool) {
    let before = [fcntl_getfl(&stdin).unwrap(), fcntl_getfl(&stdout).unwrap()];
    let setup = record(&["serve"]).stdin(stdin.try_clone().unwrap());
    let run = setup.stdout(stdout.try_clone().unwrap()).start();
    say.write_all(request(1).as_bytes()).unwrap();
    run.until("an answer on the tape", |run| crate::support::kept(run.tape_path()).len() >= 2);
    run.signal(if killed { Signal::KILL } else { Signal::TERM });
    let end: EndedSession = run.end();
    end.leaves_no_process();
    let after = [fcntl_getfl(&stdin).unwrap(), fcntl_getfl(&stdout).unwrap()];
    assert_eq!(before, after, "killed: {killed}");
}

#[test]
fn the_flags_of_shared_pipes_sockets_and_terminals_are_never_changed() {
    for killed in [false, true] {
        let (theirs_in, ours_in) = pipe().unwrap();
        let (_ours_out, theirs_out) = pipe().unwrap();
        flags_stay(theirs_in, theirs_out, File::from(ours_in), killed);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let copy = theirs.try_clone().unwrap().into();
        flags_stay(theirs.into(), copy, File::from(OwnedFd::from(ours)), killed);
        let (ours, theirs) = terminal();
        flags_stay(theirs.try_clone().unwrap(), theirs, ours, killed);
    }
}

#[test]
fn lines_that_are_pasted_into_a_terminal_at_once_are_all_read_at_once() {
    let (mut ours, theirs) = terminal();
    let run = record(&["serve"]).stdin(theirs.as_fd().try_clone_to_owned().unwrap()).start();
    ours.write_all([request(1), request(2), request(3)].concat().as_bytes()).unwrap();
    run.lines(3);
    ours.write_all(b"\x04").unwrap();
    let end = run.end().exits(0).checks();
    end.client_got([reply(1), reply(2), reply(3)].concat().as_bytes());
}

/// A pipe that child processes do not inherit by accident.
fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

fn size(path: &std::path::Path) -> u64 {
    fs::metadata(path).map_or(0, |there| there.len())
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn a_terminal_that_is_hung_up_ends_the_session() {
    let (mut ours, theirs) = terminal();
    let run = record(&["serve"]).stdin(theirs).start();
    ours.write_all(request(1).as_bytes()).unwrap();
    run.lines(1);
    drop(ours);
    run.end().exits(0).client_got(reply(1).as_bytes()).checks().leaves_no_process();
}
