//! Deliveries and side effects on stdio, checked byte by byte.

use std::io::Write;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::hostile_server::{HostileServer, answer, call};
use crate::support::{GUARD, descriptor, wait_until_stalled};

#[test]
fn a_dripped_answer_is_whole_and_what_comes_meanwhile_waits_for_its_end() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "drip"));
    assert_eq!(rogue.bytes(8), answer(1, "dripped")[..8]);
    rogue.say(&call(2, "plain"));
    assert_eq!(rogue.line(), answer(1, "dripped")[8..]);
    assert_eq!(rogue.line(), answer(2, "call 1"));
}

#[test]
fn a_line_without_an_end_goes_on_with_what_comes_next() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "endless"));
    let padded = rogue.bytes(64 * 1024);
    assert_eq!(padded.trim_end_matches(' '), answer(1, "endless"));
    rogue.say(&call(2, "plain"));
    assert_eq!(rogue.line(), answer(2, "call 1"));
}

#[test]
fn a_nested_answer_is_deep_inside_and_a_late_one_holds_nobody_up() {
    let mut rogue = HostileServer::start();
    let begin = Instant::now();
    rogue.say(&call(1, "late"));
    rogue.say(&call(2, "deep"));
    rogue.say(&call(3, "plain"));
    let nested = "{\"k\":".repeat(100) + &answer(2, "deep") + &"}".repeat(100);
    assert_eq!(rogue.line(), nested);
    assert_eq!(rogue.line(), answer(3, "call 1"));
    assert_eq!(rogue.line(), answer(1, "late"));
    assert!(begin.elapsed() >= Duration::from_millis(150));
}

#[test]
fn side_effects_do_not_keep_requests_waiting() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "flood"));
    assert_eq!(rogue.line(), answer(1, "flooding"));
    assert!(rogue.line().contains("notifications/message"));
    rogue.say(&call(2, "plain"));
    rogue.input = None;
    let rest = rogue.rest();
    let lines: Vec<&str> = rest.lines().collect();
    let place = lines.iter().position(|line| *line == answer(2, "call 1")).unwrap();
    assert!(place < 5900, "the flood had to end first: {place}");
    // On a busy machine, some of them may be dropped.
    let count = lines.iter().filter(|line| line.contains("notifications/message")).count();
    assert!((1000..6000).contains(&count), "{count}");
    assert_eq!(rogue.end(), Some(0));
}

#[test]
fn a_batch_is_one_line_and_a_filled_pipe_too() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "batch"));
    rogue.say(&call(2, "fill"));
    rogue.say(&call(3, "plain"));
    rogue.input = None;
    let rest = rogue.rest();
    let lines: Vec<serde_json::Value> =
        rest.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    let batch = lines.iter().find_map(|line| line.as_array()).unwrap();
    assert_eq!(batch.len(), 5000);
    assert!(rest.lines().any(|line| line.len() == 4 * 1024 * 1024 - 1));
    assert_eq!(rogue.end(), Some(0));
}

#[test]
fn ec_trans_002_a_client_that_does_not_read_is_not_read_from_while_its_pipe_is_full() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "fill"));
    assert_eq!(rogue.line(), answer(1, "filled"));
    assert_eq!(rogue.bytes(1), "{");
    let mut input = rogue.input.take().unwrap();
    // More than a pipe holds: it is accepted only once the other pipe is read.
    let text = format!("{}\n", call(2, "plain")).repeat(2000);
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    wait_until_stalled(rogue.pid(), &descriptor(rogue.pid(), 0));
    assert!(!writer.is_finished(), "it was heard though it does not read");
    let rest = rogue.rest();
    writer.join().unwrap();
    assert_eq!(rest.lines().filter(|line| line.contains("\"id\":2")).count(), 2000);
    assert_eq!(rogue.end(), Some(0));
}

#[test]
fn requests_with_one_id_may_all_be_answered() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "twice"));
    assert_eq!(rogue.line(), answer(1, "asking"));
    for _ in 0..3 {
        assert_eq!(rogue.line(), r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#);
        rogue.say(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    }
    rogue.say(&call(2, "plain"));
    assert_eq!(rogue.line(), answer(2, "call 1"));
}

#[test]
fn ec_trans_004_a_client_that_goes_in_the_middle_of_an_answer_ends_the_server() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "slow"));
    assert_eq!(rogue.bytes(1), "{");
    (rogue.input, rogue.output) = (None, None);
    assert_eq!(rogue.end(), Some(0));
}

#[test]
fn ec_trans_013_a_signal_in_the_middle_of_an_answer_ends_the_server_at_once() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "slow"));
    assert_eq!(rogue.bytes(1), "{");
    let begin = Instant::now();
    rogue.signal(Signal::TERM);
    let rest = rogue.rest();
    rogue.end();
    assert!(begin.elapsed() < GUARD, "{:?}", begin.elapsed());
    assert!(answer(1, "slow")[1..].starts_with(&rest) && rest.len() < 12, "{rest}");
}

#[test]
fn ec_trans_019_a_connection_that_is_closed_in_order_ends_behind_the_answer() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "close"));
    assert_eq!(rogue.rest(), answer(1, "closing") + "\n");
    assert_eq!(rogue.end(), Some(0));
}

#[test]
fn ec_trans_020_a_connection_that_is_cut_ends_before_the_answer() {
    let mut rogue = HostileServer::start();
    rogue.say(&call(1, "cut"));
    assert_eq!(rogue.rest(), "");
    assert_eq!(rogue.end(), Some(0));
}
