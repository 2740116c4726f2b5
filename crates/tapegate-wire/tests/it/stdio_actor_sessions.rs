//! An actor on pipes: which events the actor gets and when, and what the client receives.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use tapegate_core::tape::{RecordError, Recorder, TapeEntry};
use tapegate_core::time::Timestamp;
use tapegate_wire::recorded_session::{OnTapeError, RecordedSession};

use crate::stdio_actor_host::{MESSAGE_BYTES_MAX, StdioActorHost};

const TAKEN: &str = "1 Taken { shared: false, streams: false }";

#[test]
fn what_the_actor_says_comes_in_order_and_the_end_comes_last() {
    let mut house = StdioActorHost::open();
    house.say("say one\nsay two\n{\"half\":");
    assert_eq!((house.line(), house.line()), ("one".to_owned(), "two".to_owned()));
    house.say("1}\nlast");
    assert_eq!(house.line(), "{\"half\":1}");
    house.input = None;
    assert_eq!((house.line(), house.line()), ("last".to_owned(), String::new()));
    let told = [TAKEN, "1 say one", "1 say two", "1 {\"half\":1}", "1 last", "1 Left", "1 Empty"];
    assert_eq!(house.end(), ("Client".to_owned(), told.map(str::to_owned).to_vec()));
}

#[test]
fn the_actor_is_woken_when_it_wants_to_be() {
    let mut house = StdioActorHost::open();
    let begin = Instant::now();
    house.say("later 60 b\nlater 30 a\nlater 0 now\nsay first\n");
    assert_eq!(house.line(), "first");
    assert_eq!(house.line(), "now");
    assert_eq!(house.line(), "a");
    assert!(begin.elapsed() >= Duration::from_millis(30));
    assert_eq!(house.line(), "b");
    assert!(begin.elapsed() >= Duration::from_millis(60));
}

#[test]
fn a_client_that_has_closed_its_input_gets_what_is_still_to_be_said() {
    let mut house = StdioActorHost::open();
    house.say("later 50 b\nlater 20 a\n");
    house.input = None;
    assert_eq!((house.line(), house.line(), house.line()), ("a".into(), "b".into(), String::new()));
    let (cause, mut told) = house.end();
    assert_eq!(cause, "Client");
    assert_eq!(told.pop().unwrap(), "1 Empty");
    // On a busy machine, it may be noticed late that the client has left.
    told[3..].sort();
    assert_eq!(told[3..], ["1 Due", "1 Due", "1 Left"]);
}

#[test]
fn a_client_that_is_gone_ends_the_seat_whatever_was_still_to_be_said() {
    let mut house = StdioActorHost::open();
    house.say("later 100000 never\nsay here\n");
    assert_eq!(house.line(), "here");
    (house.input, house.output) = (None, None);
    let (cause, told) = house.end();
    assert_eq!(cause, "Client");
    assert_eq!(told[3..], ["1 Left", "1 Empty"]);
}

#[test]
fn nothing_is_read_after_a_stop_but_what_was_begun_is_said() {
    let mut house = StdioActorHost::open();
    house.say("later 50 late\nlater 100000 never\nstop\nsay more\n");
    assert_eq!((house.line(), house.line()), ("stopping".to_owned(), "late".to_owned()));
    assert_eq!(house.line(), "");
    let (cause, told) = house.end();
    assert_eq!(cause, "Actor");
    assert!(!told.contains(&"1 say more".to_owned()) && !told.contains(&"1 Left".to_owned()));
}

#[test]
fn a_stop_with_nothing_begun_ends_at_once() {
    let mut house = StdioActorHost::open();
    house.say("stop\n");
    assert_eq!((house.line(), house.line()), ("stopping".to_owned(), String::new()));
    assert_eq!(house.end().0, "Actor");
}

#[test]
fn a_client_that_does_not_read_is_not_told_more_than_fits() {
    let mut house = StdioActorHost::open();
    let (count, answer) = (100, 1_000_003);
    // Each requests a million bytes, and all of them arrive with one read.
    house.say(&"huge 1000000\n".repeat(count));
    house.input = None;
    let mut piece = vec![0; 64 * 1024];
    let mut read = 0;
    loop {
        // However late the client reads, the actor was asked for little more than was read.
        let asked = house.log.lock().unwrap().len().saturating_sub(1).min(count) * answer;
        assert!(asked < read + 6 * 1024 * 1024, "{asked} bytes were asked for, {read} read");
        match house.output.as_mut().unwrap().read(&mut piece).unwrap() {
            0 => break,
            more => read += more,
        }
    }
    assert_eq!(read, count * answer);
    assert_eq!(house.end().1.len(), count + 3);
}

#[test]
fn a_stop_does_not_wait_for_ever_for_a_client_that_does_not_read() {
    let mut house = StdioActorHost::open();
    house.say("huge 1000000\nstop\n");
    let (cause, _) = house.end();
    assert_eq!(cause, "Actor");
}

#[test]
fn a_message_over_the_limit_is_told_as_such() {
    let mut house = StdioActorHost::open();
    let long = "y".repeat(MESSAGE_BYTES_MAX + 1);
    house.say(&format!("{long}\nsay next\n"));
    assert_eq!((house.line(), house.line()), ("too large".to_owned(), "next".to_owned()));
    house.input = None;
    let too_large = format!("1 too large {} {MESSAGE_BYTES_MAX}", MESSAGE_BYTES_MAX + 1);
    assert_eq!(house.end().1[1], too_large);
}

#[test]
fn without_a_server_behind_the_actor_is_told_so() {
    let mut house = StdioActorHost::open();
    house.say("ask 1\n");
    assert_eq!(house.line(), "gone: there is no upstream server");
}

/// Writes entries into a pipe, and fails on demand.
struct FailingRecorder {
    to: std::io::PipeWriter,
    waiting: Vec<u8>,
}

impl Recorder for FailingRecorder {
    fn append(&mut self, entry: &TapeEntry<'_>) {
        let side = format!("{:?} ", entry.from);
        self.waiting.extend([side.as_bytes(), &entry.bytes, b"\n"].concat());
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        if self.waiting.windows(4).any(|four| four == b"fail") {
            return Err("the disk is full".into());
        }
        self.to.write_all(&std::mem::take(&mut self.waiting))?;
        Ok(())
    }

    fn close(&mut self, _: Timestamp) -> Result<(), RecordError> {
        Ok(())
    }
}

fn open_recorded() -> (StdioActorHost, std::io::PipeReader) {
    let (from, to) = std::io::pipe().unwrap();
    let house = StdioActorHost::open_recorded(|clock| {
        let tape = FailingRecorder { to, waiting: Vec::new() };
        RecordedSession::new(Box::new(tape), clock, OnTapeError::Stop)
    });
    (house, from)
}

#[test]
fn what_the_client_saw_is_on_the_tape_and_was_there_first() {
    let (mut house, mut tape) = open_recorded();
    house.say("say {\"a\":1}\n");
    assert_eq!(house.line(), "{\"a\":1}");
    let expected = b"Client say {\"a\":1}\nServer {\"a\":1}\n";
    let mut found = vec![0; expected.len()];
    tape.read_exact(&mut found).unwrap();
    assert_eq!(found, expected);
    house.say(&format!("{}\nlater 10 x\n", "y".repeat(MESSAGE_BYTES_MAX + 1)));
    house.input = None;
    assert_eq!(house.end().0, "Client");
    let mut rest = String::new();
    tape.read_to_string(&mut rest).unwrap();
    let said: Vec<_> = rest.lines().map(|line| &line[..line.len().min(20)]).collect();
    let over = "Client yyyyyyyyyyyyy";
    assert_eq!(said, [over, "Server too large", "Client later 10 x", "Server x"]);
}

#[test]
fn what_is_not_on_the_tape_is_not_said_and_the_client_learns_why() {
    let (mut house, _tape) = open_recorded();
    house.say("say before\n{\"id\":7,\"method\":\"wait\"}\n");
    assert_eq!((house.line(), house.line().len() > 2), ("before".to_owned(), true));
    house.say("say {\"id\":8,\"result\":\"fail\"}\n");
    let answers = [house.line(), house.line()];
    assert!(answers[0].contains("\"id\":8,\"error\""), "{answers:?}");
    assert!(answers[0].contains("recording stopped: the disk is full"), "{answers:?}");
    assert!(answers[1].contains("\"id\":7,\"error\""), "{answers:?}");
    assert_eq!(house.line(), "");
    assert_eq!(house.end().0, "Tape(\"the disk is full\")");
}
