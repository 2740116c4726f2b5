//! What one message costs without any I/O: scanning, pairing, writing, reading.
//!
//! `cargo bench -p tapegate-core` prints nanoseconds a message, the best of many rounds, because
//! the machines this runs on are shared. For comparisons between builds, not for promises.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Gate, GateInput, HoldEnd, HoldId, MessagePlace, PermitAllGate, Verdict};
use tapegate_core::lines::{LineSplitter, StreamLine};
use tapegate_core::relay::{Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::signature::Signer;
use tapegate_core::tape::index::{IndexSplicer, TapeChunk};
use tapegate_core::tape::{Dialect, EntryWriter, EntryWriterOptions, RecordError, TapeLine};
use tapegate_core::time::Timestamp;

const CALL: &str = r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello there"}}}"#;
const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"hello there"}]}}"#;

fn main() {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{}"}}}}"#,
        "lorem ipsum ".repeat(800)
    );
    let tree = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":[{}{{}}]}}"#,
        r#"{"a":1.5,"b":[true,null],"c":"d"},"#.repeat(3500)
    );
    for (name, message) in
        [("call", CALL), ("answer", ANSWER), ("9.6 KB text", &text), ("115 KB tree", &tree)]
    {
        measure(&format!("scan {name}"), 1, || {
            black_box(Frame::read(black_box(message.as_bytes())));
        });
    }
    measure("pass a call and its answer, tape included", 2, pass());
    measure("pair a call and its answer, no tape", 2, pair());
    measure("pair a call and its answer, each put to a gate", 2, judge());
    measure("cut a line", 600, cut());
    let line = format!(
        r#"{{"type":"message","seq":7,"ts":"2026-01-01T00:00:00.000000Z","dir":"c2s","msg":{CALL}}}"#
    );
    measure("read a tape line", 1, || drop(black_box(TapeLine::read(black_box(line.as_bytes())))));
    read_stretch();
}

/// Calls and answers as they stand on a tape, in lines of some 300 bytes.
fn tape_text(calls: u32) -> String {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(2);
    let line = |seq: u32, dir: &str, msg: &str, more: &str| {
        format!(
            r#"{{"type":"message","seq":{seq},"ts":"2026-01-01T00:00:00.{seq:06}Z","dir":"{dir}","msg":{msg}{more}}}"#
        ) + "\n"
    };
    let pair = |n: u32| {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"write_file","arguments":{{"path":"/srv/data/{n}.txt","mode":420,"append":false,"text":"{}"}}}}}}"#,
            &text[..60]
        );
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":{n},"result":{{"content":[{{"type":"text","text":"{}"}}],"isError":false}}}}"#,
            &text[..90]
        );
        line(2 * n, "c2s", &call, "") + &line(2 * n + 1, "s2c", &answer, ",\"latency_ms\":0")
    };
    (0..calls).map(pair).collect()
}

fn read_stretch() {
    const CALLS: u32 = 400;
    let text = tape_text(CALLS);
    let signer = Signer::default();
    let mut stretch = TapeChunk::default();
    stretch.read(text.as_bytes(), true, &signer);
    measure("read a tape line into a stretch, 300 bytes", 2 * CALLS, || {
        stretch.read(black_box(text.as_bytes()), true, &signer);
    });
    let lines: Vec<_> = text.lines().step_by(2).collect();
    let calls: Vec<_> = lines
        .iter()
        .map(|line| &line[line.find("{\"jsonrpc").unwrap_or(0)..line.len() - 1])
        .collect();
    let frames: Vec<_> = calls.iter().map(|call| Frame::read(call.as_bytes())).collect();
    measure("sign a call of a tape", CALLS, || {
        for frame in &frames {
            black_box(frame.envelope().map(|said| signer.sign(frame.bytes(), said)));
        }
    });
    measure("scan a call of a tape", CALLS, || {
        for call in &calls {
            black_box(Frame::read(call.as_bytes()));
        }
    });
    measure("splice a message of a stretch", 2 * CALLS, || {
        let mut splicer = IndexSplicer::new(signer.clone());
        splicer.add(&mut stretch).ok();
        black_box(splicer.finish().ok());
    });
}

/// A call and its answer, as they arrive.
const CALL_AND_ANSWER: [(Side, &str); 2] = [(Side::Client, CALL), (Side::Server, ANSWER)];

/// Relay and scribe as the driver loop uses them.
fn pass() -> impl FnMut() {
    let options = EntryWriterOptions { dialect: Dialect::Thoughtjack, raw: false, shared: false };
    let mut entry_writer = EntryWriter::new(options, None, Timestamp::default());
    let (mut relay, mut tape, mut beside) = (Relay::default(), Vec::new(), Vec::new());
    move || {
        tape.clear();
        for (from, text) in CALL_AND_ANSWER {
            let frame = Frame::read_without_gate_details(text.as_bytes());
            let event =
                RelayEvent::Received { lane: Lane::ONLY, from, frame: &frame, terminated: true };
            relay.handle(
                Timestamp::default(),
                event,
                &mut PermitAllGate,
                &mut |action| match action {
                    RelayAction::Record(entry) => entry_writer.write(entry, &mut tape, &mut beside),
                    other => drop(black_box(other)),
                },
            );
        }
        black_box(&tape);
    }
}

/// The relay with a gate that has to be asked, and lets everything pass.
fn judge() -> impl FnMut() {
    let (mut relay, mut gate) = (Relay::default(), ObservingGate(0));
    move || {
        let gate: &mut dyn Gate = &mut gate;
        for (from, text) in CALL_AND_ANSWER {
            let frame = Frame::read(text.as_bytes());
            let event =
                RelayEvent::Received { lane: Lane::ONLY, from, frame: &frame, terminated: true };
            relay.handle(Timestamp::default(), event, gate, &mut |action| drop(black_box(action)));
        }
    }
}

/// Looks at everything, and stops nothing.
#[derive(Debug)]
struct ObservingGate(u64);

impl Gate for ObservingGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        self.0 += u64::from(case.topic.is_some());
        Verdict::Forward
    }

    fn hold_ended(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}

    fn note_oversize(&mut self, _: MessagePlace, _: u64, _: &[u8]) {}

    fn note_unsent(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) {}

    fn reject_ambiguous(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) -> bool {
        true
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

/// The relay alone.
fn pair() -> impl FnMut() {
    let mut relay = Relay::default();
    move || {
        for (from, text) in CALL_AND_ANSWER {
            let frame = Frame::read_without_gate_details(text.as_bytes());
            let event =
                RelayEvent::Received { lane: Lane::ONLY, from, frame: &frame, terminated: true };
            relay.handle(Timestamp::default(), event, &mut PermitAllGate, &mut |action| {
                drop(black_box(action))
            });
        }
    }
}

fn cut() -> impl FnMut() {
    let stream = format!("{CALL}\n").repeat(600).into_bytes();
    let mut lines = LineSplitter::new(10_000_000);
    move || {
        let room = lines.read_buffer();
        let count = stream.len().min(room.len());
        room[..count].copy_from_slice(&stream[..count]);
        lines.filled(count);
        while let Some(StreamLine::Line(range)) = lines.next_line() {
            black_box(lines.bytes(range));
        }
        lines.release();
    }
}

/// Measures `work` if the command line names it or names nothing.
fn measure(name: &str, messages: u32, mut work: impl FnMut()) {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    if words.peek().is_some() && !words.any(|word| name.contains(&word)) {
        return;
    }
    const ROUNDS: u32 = 200;
    let mut best = f64::MAX;
    let once = {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos().max(50) as u64
    };
    let repeats = (1_000_000 / once).clamp(1, 10_000);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..repeats).for_each(|_| work());
        best = best.min(start.elapsed().as_nanos() as f64 / repeats as f64);
    }
    println!("{:<44} {:>10.1} ns", name, best / f64::from(messages));
}
