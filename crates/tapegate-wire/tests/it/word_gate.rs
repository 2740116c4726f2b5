//! A gate controlled by words in messages, and the approver of what it holds.
//!
//! From a client, `deny` is refused, `hold` is held for a minute, and `short` for no time at all.
//! From a server, `cut` is removed and `spoil` is refused. A word is a whole JSON string, or its
//! first part if it continues with `-`.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tapegate_core::frame::Frame;
use tapegate_core::gate::{
    Approval, Gate, GateInput, Hold, HoldEnd, HoldId, HoldOutcome, MessagePlace, Refusal, Verdict,
};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{RecordError, Recorder, TapeEntry};
use tapegate_core::time::Timestamp;
use tapegate_wire::clock::Clock;
use tapegate_wire::recorded_session::{OnTapeError, RecordedSession};

use crate::waiting::{PATIENCE, wait_for};

/// The headers of a client that accepts JSON.
pub(crate) const JSON: &[&str] = &["content-type: application/json", "accept: application/json"];
/// The headers of a client that accepts events too.
pub(crate) const BOTH: &[&str] =
    &["content-type: application/json", "accept: application/json, text/event-stream"];

/// What the gate has done.
#[derive(Debug, Default)]
pub(crate) struct GateActions {
    /// Every client text that was permitted, on arrival or by approval.
    pub(crate) permitted: Vec<String>,
    pub(crate) ended: Vec<HoldEnd>,
    /// Whether the log cannot be written.
    pub(crate) broken: bool,
    /// How often it was asked about client messages.
    pub(crate) judged: usize,
    /// How many frames the session's thread had scanned when it was asked about each.
    pub(crate) scans: Vec<u64>,
    /// The notes on exchanges without a message.
    pub(crate) plain: Vec<String>,
    /// The entries on the tape.
    pub(crate) tape: Vec<String>,
}

/// The test's handle on the gate.
pub(crate) struct GateControl {
    pub(crate) done: Arc<Mutex<GateActions>>,
    holds: Receiver<(HoldId, String)>,
    settle: tokio::sync::mpsc::Sender<(HoldId, HoldOutcome)>,
}

#[derive(Debug)]
struct WordGate {
    done: Arc<Mutex<GateActions>>,
    holds: Sender<(HoldId, String)>,
    tickets: u64,
}

struct TestRecorder(Arc<Mutex<GateActions>>);

/// A gate for a session that is created on another thread.
pub(crate) fn guarded() -> (GateControl, impl FnOnce(Clock) -> RecordedSession + Send + 'static) {
    let done = Arc::<Mutex<GateActions>>::default();
    let (holds_in, holds) = channel();
    let (settle, settlements) = tokio::sync::mpsc::channel(64);
    let guard = WordGate { done: Arc::clone(&done), holds: holds_in, tickets: 0 };
    let tape = TestRecorder(Arc::clone(&done));
    let deck = |clock| {
        RecordedSession::with_gate(
            Box::new(tape),
            Box::new(guard),
            settlements,
            clock,
            OnTapeError::Stop,
        )
    };
    (GateControl { done, holds, settle }, deck)
}

impl GateControl {
    /// Waits for the next held call.
    pub(crate) fn held(&self) -> (HoldId, String) {
        self.holds.recv_timeout(PATIENCE).expect("a call is held")
    }

    /// The next held call, if there is one already.
    pub(crate) fn try_held(&self) -> Option<(HoldId, String)> {
        self.holds.try_recv().ok()
    }

    pub(crate) fn approve(&self, ticket: HoldId) {
        let approval = Approval { hold_id: ticket, by: "me".to_owned() };
        self.settle.blocking_send((ticket, HoldOutcome::Approved(approval))).unwrap();
    }

    pub(crate) fn deny(&self, ticket: HoldId) {
        self.settle.blocking_send((ticket, HoldOutcome::Refused(refusal("rejected")))).unwrap();
    }

    /// Waits until a hold has ended, and returns how all that have ended did so.
    pub(crate) fn wait_ended(&self) -> Vec<HoldEnd> {
        let ended = || self.done.lock().unwrap().ended.clone();
        wait_for("the end of a hold", || Some(ended()).filter(|ended| !ended.is_empty()))
    }

    pub(crate) fn permitted(&self, text: &str) -> bool {
        self.done.lock().unwrap().permitted.iter().any(|one| one == text)
    }
}

/// A tool call.
pub(crate) fn call(id: u64, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

/// The gate's answer in place of the server's.
pub(crate) fn refused(id: u64, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32099,"message":"{message}","data":{{"gate":"guard"}}}}}}"#
    )
}

fn refusal(message: &str) -> Refusal {
    let (code, data) = (-32099, "{\"gate\":\"guard\"}".to_owned());
    Refusal { code, message: message.to_owned(), data, reason: format!("guard: {message}") }
}

fn has(text: &str, word: &str) -> bool {
    text.contains(&format!("\"{word}\"")) || text.contains(&format!("\"{word}-"))
}

impl Gate for WordGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        let text = String::from_utf8_lossy(case.frame.bytes()).into_owned();
        let mut done = self.done.lock().unwrap();
        if case.from == Side::Server {
            return match () {
                () if has(&text, "spoil") => Verdict::Refuse(Box::new(refusal("spoilt"))),
                () if has(&text, "cut") => {
                    Verdict::Rewrite(text.replace("\"cut\"", "\"-\"").into_bytes())
                }
                () => Verdict::Forward,
            };
        }
        done.judged += 1;
        #[cfg(debug_assertions)]
        done.scans.push(tapegate_core::frame::scan_count());
        let holds = has(&text, "hold") || has(&text, "short");
        if holds && case.approved.is_none() {
            self.tickets += 1;
            let ticket = HoldId(self.tickets);
            let timeout_ms = if has(&text, "short") { 0 } else { 60_000 };
            self.holds.send((ticket, text)).ok();
            let on_timeout = Some(refusal("timed out"));
            return Verdict::Hold(Box::new(Hold {
                hold_id: ticket,
                timeout_ms,
                on_timeout,
                ..Hold::default()
            }));
        }
        if has(&text, "deny") {
            return Verdict::Refuse(Box::new(refusal("denied")));
        }
        done.permitted.push(text);
        Verdict::Forward
    }

    fn hold_ended(&mut self, _: Timestamp, _: HoldId, how: HoldEnd) {
        self.done.lock().unwrap().ended.push(how);
    }

    fn note_oversize(&mut self, _: MessagePlace, _: u64, _: &[u8]) {}

    fn note_unsent(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) {}

    fn reject_ambiguous(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) -> bool {
        true
    }

    fn note_plain_exchange(&mut self, _: Timestamp, _: Lane, what: &str) {
        self.done.lock().unwrap().plain.push(what.to_owned());
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        match self.done.lock().unwrap().broken {
            true => Err("the log is full".into()),
            false => Ok(()),
        }
    }
}

impl Recorder for TestRecorder {
    fn append(&mut self, entry: &TapeEntry<'_>) {
        let text = String::from_utf8_lossy(&entry.bytes).into_owned();
        let line = format!("{:?} {:?} {:?} {text}", entry.from, entry.body, entry.gate_outcome);
        self.0.lock().unwrap().tape.push(line);
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    fn close(&mut self, _: Timestamp) -> Result<(), RecordError> {
        Ok(())
    }
}
