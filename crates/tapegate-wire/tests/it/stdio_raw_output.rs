//! An actor on pipes that sends partial or non-message data.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tapegate_wire::recorded_session::{OnTapeError, RecordedSession};

use crate::http_actor_sessions::PipeRecorder;
use crate::stdio_actor_host::StdioActorHost;
use crate::waiting::wait_until;

fn read(house: &mut StdioActorHost, count: usize) -> String {
    let mut bytes = vec![0; count];
    house.output.as_mut().unwrap().read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn each_piece_of_a_line_is_sent_at_once() {
    let mut house = StdioActorHost::open();
    house.say("piece {\"a\"\n");
    assert_eq!(read(&mut house, 4), "{\"a\"");
    house.say("piece :\n");
    assert_eq!(read(&mut house, 1), ":");
    house.say("end 1}\nsay next\n");
    assert_eq!((house.line(), house.line()), ("1}".to_owned(), "next".to_owned()));
}

#[test]
fn what_is_said_goes_on_in_a_line_without_an_end() {
    let mut house = StdioActorHost::open();
    house.say("piece abc\nsay def\nsay ghi\n");
    assert_eq!((house.line(), house.line()), ("abcdef".to_owned(), "ghi".to_owned()));
}

#[test]
fn ec_trans_002_a_client_that_does_not_read_a_line_to_its_end_is_not_heard() {
    let mut house = StdioActorHost::open();
    house.say("fill 100\n");
    assert_eq!(read(&mut house, 1), "x");
    let lines = 1_000_000;
    let mut input = house.input.take().unwrap();
    let pipe = input.try_clone().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&b"\n".repeat(lines)).unwrap());
    // The buffers in between hold some of it, and then both sides are blocked.
    wait_until("both to be blocked", || house.host.is_stalled(&pipe));
    drop(pipe);
    let heard = house.heard.load(Ordering::Relaxed);
    assert!(heard < lines / 2, "{heard}");
    let mut rest = Vec::new();
    house.output.as_mut().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!(rest.iter().filter(|byte| **byte == b'x').count(), 100 * 32 * 1024 - 1);
    assert_eq!(rest.iter().filter(|byte| **byte == b'\n').count(), lines + 1);
    writer.join().unwrap();
}

#[test]
fn a_client_for_whom_too_much_is_held_back_is_not_heard_but_what_is_due_comes() {
    let mut house = StdioActorHost::open();
    house.say("later 50 then\nhoard 100000000\nsay never\n");
    assert_eq!(house.line(), "then");
    wait_until("an idle host", || house.host.is_idle());
    assert_eq!(house.heard.load(Ordering::Relaxed), 2);
    house.output = None;
    let (cause, told) = house.end();
    assert_eq!(cause, "Client");
    assert!(!told.iter().any(|line| line.contains("never")), "{told:?}");
}

#[test]
fn ec_trans_019_who_is_left_in_order_gets_what_was_said_and_then_the_end() {
    let mut house = StdioActorHost::open();
    house.say("huge 1000000\nsay last\nleave\nsay never\n");
    assert_eq!(house.line().len(), 1_000_002);
    assert_eq!((house.line(), house.line()), ("last".to_owned(), String::new()));
    let (cause, told) = house.end();
    assert_eq!(cause, "Actor");
    assert_eq!(told[1..], ["1 huge 1000000", "1 say last", "1 leave", "1 Empty"]);
}

#[test]
fn ec_trans_020_who_is_left_abruptly_loses_what_was_not_sent() {
    let mut house = StdioActorHost::open();
    house.say("say never\nbreak\n");
    assert_eq!(house.line(), "");
    assert_eq!(house.end().0, "Actor");
}

#[test]
fn ec_trans_004_a_client_that_goes_in_the_middle_of_a_line_ends_the_seat() {
    let mut house = StdioActorHost::open();
    house.say("fill 100000\n");
    assert_eq!(read(&mut house, 10), "x".repeat(10));
    (house.input, house.output) = (None, None);
    assert_eq!(house.end().0, "Client");
}

#[test]
fn what_was_sent_in_pieces_is_on_the_tape_as_one_line() {
    let (tape, to) = std::io::pipe().unwrap();
    let mut house = StdioActorHost::open_recorded(|clock| {
        RecordedSession::new(Box::new(PipeRecorder(to)), clock, OnTapeError::Stop)
    });
    house.say("piece {\"id\":\npiece 1,\nend \"result\":{}}\npiece {\"open\"\nsay {\"id\":2}\n");
    assert_eq!(house.line(), "{\"id\":1,\"result\":{}}");
    assert_eq!(house.line(), "{\"open\"{\"id\":2}");
    house.say("piece {\"never\n");
    assert_eq!(read(&mut house, 7), "{\"never");
    house.input = None;
    assert_eq!(house.line(), "");
    let heard = Arc::clone(&house.heard);
    house.end();
    assert_eq!(heard.load(Ordering::Relaxed), 6);
    let lines = std::io::read_to_string(tape).unwrap();
    let said: Vec<&str> = lines.lines().filter_map(|line| line.strip_prefix("Server 1 ")).collect();
    let expected = ["{\"id\":1,\"result\":{}}", "{\"open\"", "{\"id\":2}", "{\"never"];
    assert_eq!(said, expected);
}
