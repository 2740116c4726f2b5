//! A gate between a client and a server on pipes. The server echoes its input, so the client sees
//! what has reached it.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::thread::JoinHandle;
use std::time::Duration;

use tapegate_core::gate::HoldEnd;
use tapegate_core::relay::HELD_MAX;
use tapegate_wire::child::ServerProcess;
use tapegate_wire::clock::Clock;
use tapegate_wire::port::StreamPort;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{ClientPorts, ShutdownTimeouts, run};

use crate::word_gate::{GateControl, guarded};

/// A session with a gate.
pub(crate) struct GatedPipes {
    input: Option<PipeWriter>,
    output: Option<BufReader<PipeReader>>,
    pub(crate) desk: GateControl,
    thread: JoinHandle<String>,
}

impl GatedPipes {
    /// In front of a server that echoes its input.
    fn open() -> Self {
        Self::before(&["cat"])
    }

    pub(crate) fn before(argv: &[&str]) -> Self {
        let (theirs_in, input) = pipe().unwrap();
        let (output, theirs_out) = pipe().unwrap();
        let (desk, deck) = guarded();
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let mut deck = deck(Clock::start());
            runtime.block_on(async {
                let client = ClientPorts {
                    input: StreamPort::reader(theirs_in.into()).unwrap(),
                    output: StreamPort::writer(theirs_out.into()).unwrap(),
                };
                let patience = ShutdownTimeouts {
                    grace: Duration::from_millis(300),
                    ..ShutdownTimeouts::default()
                };
                let server = ServerProcess::spawn(&argv).unwrap();
                let never = Signals::never();
                let outcome =
                    run(&mut deck, client, server, never, 1 << 20, patience, &|_| ()).await;
                format!("{:?}", outcome.cause)
            })
        });
        Self { input: Some(input), output: Some(BufReader::new(output)), desk, thread }
    }

    pub(crate) fn say(&mut self, text: &str) {
        let line = format!("{text}\n");
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// The next line; empty at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Closes the input, and returns the remaining output and why the session ended.
    fn leave(mut self) -> (Vec<String>, String) {
        self.input.take();
        let lines = self.output.take().unwrap().lines().map(Result::unwrap).collect();
        (lines, self.thread.join().unwrap())
    }
}

fn call(id: u64, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

fn refused(id: u64, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32099,"message":"{message}","data":{{"gate":"guard"}}}}}}"#
    )
}

fn cancel(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    )
}

#[test]
fn a_refused_call_is_answered_and_never_reaches_the_server() {
    let mut house = GatedPipes::open();
    house.say(&call(1, "deny"));
    house.say(r#"{"jsonrpc":"2.0","method":"deny"}"#);
    house.say(&call(2, "x"));
    assert_eq!(house.line(), refused(1, "denied"));
    assert_eq!(house.line(), call(2, "x"));
    let done = std::sync::Arc::clone(&house.desk.done);
    let (rest, cause) = house.leave();
    assert!(rest.is_empty() || rest[0].contains("before it answered"), "{rest:?}");
    assert_eq!(cause, "Client");
    let tape = done.lock().unwrap().tape.join("\n");
    assert!(tape.contains("Refused(\"guard: denied\")"), "{tape}");
}

#[test]
fn what_the_server_says_is_judged_too() {
    let mut house = GatedPipes::before(&[
        "sh",
        "-c",
        r#"echo '{"method":"n","x":"spoil"}'; echo '{"method":"n","x":["cut"]}'; cat"#,
    ]);
    assert_eq!(house.line(), r#"{"method":"n","x":["-"]}"#);
    house.say(&call(1, "x"));
    assert_eq!(house.line(), call(1, "x"));
    house.leave();
}

#[test]
fn a_held_call_waits_beside_the_stream_until_somebody_decides() {
    let mut house = GatedPipes::open();
    house.say(&call(1, "hold"));
    house.say(&call(2, "hold"));
    house.say(&call(3, "x"));
    assert_eq!(house.line(), call(3, "x"));
    let (one, two) = (house.desk.held(), house.desk.held());
    house.desk.approve(two.0);
    assert_eq!(house.line(), call(2, "hold"));
    house.desk.deny(one.0);
    assert_eq!(house.line(), refused(1, "rejected"));
    house.leave();
}

#[test]
fn a_hold_ends_in_time_though_nothing_else_happens() {
    let mut house = GatedPipes::open();
    house.say(&call(1, "short"));
    assert_eq!(house.line(), refused(1, "timed out"));
    assert_eq!(house.desk.done.lock().unwrap().ended, [HoldEnd::TimedOut]);
    house.leave();
}

#[test]
fn a_held_call_that_is_taken_back_never_reaches_the_server() {
    let mut house = GatedPipes::open();
    house.say(&call(1, "hold"));
    let (ticket, _) = house.desk.held();
    house.say(&cancel(1));
    house.say(&call(2, "x"));
    assert_eq!(house.line(), call(2, "x"));
    assert_eq!(house.desk.done.lock().unwrap().ended, [HoldEnd::Cancelled]);
    house.desk.approve(ticket);
    house.say(&call(3, "x"));
    assert_eq!(house.line(), call(3, "x"), "the cancellation is no news to the server either");
    house.leave();
}

#[test]
fn when_too_many_calls_are_held_the_client_is_not_read_from_and_the_rest_goes_on() {
    let mut house = GatedPipes::open();
    let count = HELD_MAX as u64 + 8;
    let burst: Vec<String> = (1..=count).map(|id| call(id, "hold")).collect();
    house.say(&burst.join("\n"));
    house.say(&call(99, "x"));
    let mut held: Vec<_> = (0..HELD_MAX).map(|_| house.desk.held()).collect();
    assert_eq!(house.desk.try_held(), None);
    // The server's direction and decisions continue; each decision makes room for another call.
    for id in 1..=8 {
        house.desk.approve(held.remove(0).0);
        assert_eq!(house.line(), call(id, "hold"));
        held.push(house.desk.held());
        assert_eq!(house.desk.try_held(), None);
    }
    house.desk.deny(held[0].0);
    assert_eq!(house.line(), refused(9, "rejected"));
    assert_eq!(house.line(), call(99, "x"), "the line behind them was kept");
    // A client that leaves ends held calls, so it waits for the approved ones.
    for (ticket, _) in held.drain(1..) {
        house.desk.approve(ticket);
        let line = house.line();
        assert!(line.contains("tools/call"), "{line}");
    }
    let (rest, _) = house.leave();
    assert!(rest.iter().all(|line| line.contains("before it answered")), "{rest:?}");
}

#[test]
fn when_the_client_closes_its_input_held_calls_end_at_once() {
    let mut house = GatedPipes::open();
    house.say(&call(1, "hold"));
    let (ticket, _) = house.desk.held();
    house.input.take();
    let answer = house.line();
    assert!(answer.contains(r#""id":1,"error""#), "{answer}");
    assert!(answer.contains("the client disconnected before the call was decided"), "{answer}");
    // An approval that arrives too late sends nothing.
    house.desk.approve(ticket);
    assert_eq!(house.leave().0, Vec::<String>::new());
}

#[test]
fn when_the_server_ends_held_calls_are_answered() {
    let mut house = GatedPipes::before(&["sh", "-c", "read line; exit 3"]);
    house.say(&call(1, "hold"));
    house.desk.held();
    house.say(&call(2, "x"));
    let one = house.line();
    let two = house.line();
    assert!(one.contains(r#""id":1,"error""#) && one.contains("exit status: 3"), "{one}");
    assert!(two.contains(r#""id":2,"error""#), "{two}");
    assert_eq!(house.desk.done.lock().unwrap().ended, [HoldEnd::Closed]);
    assert_eq!(house.leave().1, "Server");
}

#[test]
fn when_the_client_is_gone_nobody_need_decide_any_more() {
    let mut house = GatedPipes::open();
    house.say(&call(1, "hold"));
    house.desk.held();
    house.input.take();
    house.output.take();
    assert_eq!(house.thread.join().unwrap(), "Client");
    assert_eq!(house.desk.done.lock().unwrap().ended, [HoldEnd::Closed]);
}

#[test]
fn when_nothing_can_be_noted_nothing_is_sent() {
    let mut house = GatedPipes::open();
    house.say(&call(1, "x"));
    assert_eq!(house.line(), call(1, "x"));
    house.desk.done.lock().unwrap().broken = true;
    house.say(&call(2, "x"));
    let (rest, cause) = house.leave();
    assert!(cause.contains("the log is full"), "{cause}");
    assert!(rest.iter().all(|line| line.contains("\"error\"")), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("\"id\":2,")), "{rest:?}");
}

/// Reproducible pseudo-random numbers.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Both directions at once, with any verdict and any chunking.
fn storm(seed: u64) {
    const CALLS: u64 = 400;
    let mut dice = PseudoRandom(seed);
    let mut house = GatedPipes::open();
    let names = ["x", "deny", "hold", "x-\u{e9}", "short"];
    let calls: Vec<String> = (1..=CALLS)
        .map(|id| {
            let name = names[dice.roll(5) as usize];
            let pad = "y".repeat(dice.roll(3) as usize * dice.roll(2000) as usize);
            call(id, &format!("{name}-{pad}"))
        })
        .collect();
    let stream = calls.iter().map(|call| format!("{call}\n")).collect::<String>().into_bytes();
    let mut input = house.input.take().unwrap();
    let output = house.output.take().unwrap();
    let writer = std::thread::spawn(move || {
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let count = (1 + dice.roll(700) as usize).min(rest.len());
            input.write_all(&rest[..count]).unwrap();
            rest = &rest[count..];
        }
        input
    });
    let reader = std::thread::spawn(move || {
        let mut seen = Vec::new();
        let mut lines = output.lines();
        while seen.len() < CALLS as usize {
            seen.push(lines.next().expect("a line").unwrap());
        }
        (seen, lines)
    });
    let mut dice = PseudoRandom(seed + 1);
    while !reader.is_finished() {
        let Some((ticket, _)) = house.desk.try_held() else {
            std::thread::yield_now();
            continue;
        };
        match dice.roll(2) {
            0 => house.desk.approve(ticket),
            _ => house.desk.deny(ticket),
        }
    }
    let (seen, lines) = reader.join().unwrap();
    let mut at_once = calls.iter().filter(|call| call.contains("\"x"));
    let mut ids: Vec<u64> = Vec::new();
    for line in &seen {
        let id = line.split("\"id\":").nth(1).unwrap().split(',').next().unwrap();
        ids.push(id.parse().unwrap());
        if line.contains("\"error\"") {
            continue;
        }
        assert!(house.desk.permitted(line), "without a permit: {line}");
        if line.contains("\"x") {
            assert_eq!(Some(line), at_once.next(), "order is kept");
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=CALLS).collect::<Vec<_>>(), "each call is sent or answered, once");
    drop(writer.join().unwrap());
    drop(lines);
    house.thread.join().unwrap();
}

#[test]
fn in_any_storm_each_call_is_sent_with_a_permit_or_answered_once() {
    for seed in 1..=6 {
        storm(seed * 7919);
    }
}
