//! Tasks of ours, in whatever order things happen: each request has one answer, a call is sent at most
//! once and only if it was approved, and a task that has ended stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tapegate_core::frame::Frame;
use tapegate_core::gate::{
    Approval, Gate, GateInput, Hold, HoldEnd, HoldId, HoldOutcome, MessagePlace, Refusal,
    TaskDialect, TaskHandle, Verdict,
};
use tapegate_core::json;
use tapegate_core::relay::{HoldsEndedCause, Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;

/// A step. Numbers choose among what is available.
#[derive(Debug, Clone)]
enum TaskPlayStep {
    Call,
    Get(usize),
    Result(usize),
    Cancel(usize),
    /// Takes back a request for a result.
    Withdraw(usize),
    Approve(usize),
    Deny(usize),
    /// The server answers a request of ours: with a result, an error, or a task of its own.
    Answer(usize, u8),
    Fail(usize),
    Wait(u64),
    Unheld,
}

fn step() -> impl Strategy<Value = TaskPlayStep> {
    let n = any::<usize>;
    prop_oneof![
        6 => Just(TaskPlayStep::Call),
        4 => n().prop_map(TaskPlayStep::Get),
        4 => n().prop_map(TaskPlayStep::Result),
        2 => n().prop_map(TaskPlayStep::Cancel),
        2 => n().prop_map(TaskPlayStep::Withdraw),
        6 => n().prop_map(TaskPlayStep::Approve),
        2 => n().prop_map(TaskPlayStep::Deny),
        6 => (n(), 0u8..4).prop_map(|(at, kind)| TaskPlayStep::Answer(at, kind)),
        1 => n().prop_map(TaskPlayStep::Fail),
        2 => (0u64..30_000).prop_map(TaskPlayStep::Wait),
        1 => Just(TaskPlayStep::Unheld),
    ]
}

/// Holds each call as a task.
#[derive(Debug, Default)]
struct TaskGate {
    count: u64,
    held: BTreeSet<u64>,
    approved: BTreeSet<u64>,
}

fn refusal() -> Refusal {
    let text = || "no".to_owned();
    Refusal { code: -1, message: text(), data: "{}".to_owned(), reason: text() }
}

impl Gate for TaskGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        if let Some(Approval { hold_id, .. }) = case.approved {
            assert!(self.held.remove(&hold_id.0), "approved and not held");
            self.approved.insert(hold_id.0);
            return Verdict::Forward;
        }
        if !case.frame.envelope().is_some_and(|msg| msg.is_method("tools/call")) {
            return Verdict::Forward;
        }
        self.count += 1;
        let n = self.count;
        self.held.insert(n);
        let task = TaskHandle {
            task_id: format!("task-{n}"),
            request_id: format!("call-{n}"),
            ttl_ms: 60_000,
            keep_ms: 30_000,
            poll_ms: 1,
            dialect: TaskDialect::Core,
        };
        let on_timeout = Some(refusal());
        let hold = Hold { hold_id: HoldId(n), timeout_ms: 20_000, on_timeout, ..Hold::default() };
        Verdict::Hold(Box::new(Hold { task: Some(task), ..hold }))
    }

    fn hold_ended(&mut self, _: Timestamp, hold_id: HoldId, _: HoldEnd) {
        assert!(self.held.remove(&hold_id.0), "it was held");
    }

    fn hold_refused(&mut self, hold_id: HoldId) {
        assert!(self.held.remove(&hold_id.0), "it was held");
    }

    fn note_oversize(&mut self, _: MessagePlace, _: u64, _: &[u8]) {}

    fn note_unsent(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) {}

    fn reject_ambiguous(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) -> bool {
        true
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

#[derive(Default)]
struct TaskSession {
    relay: Relay,
    gate: TaskGate,
    ms: u64,
    last_id: u64,
    /// The client's requests, and what answers them.
    asked: BTreeMap<u64, Vec<String>>,
    /// Requests for results that are not answered and not taken back.
    waiting: BTreeSet<u64>,
    tasks: Vec<String>,
    /// The raw ids of our requests that the server has not answered.
    open: Vec<String>,
    sent: BTreeSet<String>,
    ended: BTreeMap<String, String>,
}

fn text_of(text: &str, path: &[&str]) -> Option<String> {
    let value = path.iter().try_fold(text.as_bytes(), |value, name| json::member(value, name))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn chosen<T: Clone>(from: &[T], at: usize) -> Option<T> {
    from.get(at.checked_rem(from.len())?).cloned()
}

impl TaskSession {
    fn receive(&mut self, from: Side, text: &str) {
        let frame = &Frame::read(text.as_bytes());
        self.feed(RelayEvent::Received { lane: Lane::ONLY, from, frame, terminated: true });
    }

    fn feed(&mut self, event: RelayEvent<'_>) {
        let at = Timestamp { wall_us: 0, mono_ns: self.ms * 1_000_000 };
        let mut sent = Vec::new();
        self.relay.handle(at, event, &mut self.gate, &mut |action| match action {
            RelayAction::Forward { to, message, .. } | RelayAction::Answer { to, message, .. } => {
                sent.push((to, String::from_utf8(message.bytes().to_vec()).expect("a text")));
            }
            _ => {}
        });
        sent.into_iter().for_each(|(to, text)| match to {
            Side::Client => self.client_got(text),
            Side::Server => self.server_got(&text),
        });
        assert_eq!(self.relay.held_calls(), self.gate.held.len(), "the gate knows of every hold");
    }

    fn client_got(&mut self, text: String) {
        let id = text_of(&text, &["id"]).expect("an answer").parse().expect("an id of the client");
        self.waiting.remove(&id);
        for path in [&["result", "task"][..], &["result"]] {
            let of = |name| text_of(&text, &[path, &[name]].concat());
            let (Some(task), Some(status)) = (of("taskId"), of("status")) else { continue };
            if let Some(ended) = self.ended.get(&task) {
                assert_eq!(*ended, status, "{text}");
            } else if status != "\"working\"" {
                self.ended.insert(task, status);
            }
        }
        let answers = self.asked.get_mut(&id).expect("a request of the client");
        answers.push(text);
        assert_eq!(answers.len(), 1, "{answers:?}");
    }

    fn server_got(&mut self, text: &str) {
        let Some(id) = text_of(text, &["id"]) else { return };
        if id.parse::<u64>().is_ok() {
            // A task that has expired is unknown here; the server says so.
            return self
                .receive(Side::Server, &format!(r#"{{"id":{id},"error":{{"code":-32602}}}}"#));
        }
        if text.contains("tools/call") {
            let number =
                id.trim_matches('"').trim_start_matches("call-").parse().expect("a number");
            assert!(self.gate.approved.contains(&number), "{text}");
            assert!(self.sent.insert(id.clone()), "sent twice: {text}");
        }
        self.open.push(id);
    }

    fn ask(&mut self, method: &str, params: &str) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.asked.insert(id, Vec::new());
        let text = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
        self.receive(Side::Client, &text);
        id
    }

    fn ask_about(&mut self, verb: &str, at: usize) -> Option<u64> {
        let task = chosen(&self.tasks, at)?;
        Some(self.ask(&format!("tasks/{verb}"), &format!(r#"{{"taskId":{task}}}"#)))
    }

    fn settle(&mut self, at: usize, approves: bool) {
        let held: Vec<u64> = self.gate.held.iter().copied().collect();
        let Some(hold_id) = chosen(&held, at).map(HoldId) else { return };
        let outcome = match approves {
            true => HoldOutcome::Approved(Approval { hold_id, by: "one".to_owned() }),
            false => HoldOutcome::Refused(refusal()),
        };
        self.feed(RelayEvent::HoldSettled { hold_id, outcome });
    }

    fn take(&mut self, step: &TaskPlayStep) {
        match *step {
            TaskPlayStep::Call => {
                let id = self.ask("tools/call", r#"{"name":"a","task":{}}"#);
                let answer = self.asked[&id].first().expect("an answer at once").clone();
                self.tasks.extend(text_of(&answer, &["result", "task", "taskId"]));
            }
            TaskPlayStep::Get(at) => drop(self.ask_about("get", at)),
            TaskPlayStep::Cancel(at) => drop(self.ask_about("cancel", at)),
            TaskPlayStep::Result(at) => {
                if let Some(id) = self.ask_about("result", at)
                    && self.asked[&id].is_empty()
                {
                    self.waiting.insert(id);
                }
            }
            TaskPlayStep::Withdraw(at) => {
                let waiting: Vec<u64> = self.waiting.iter().copied().collect();
                let Some(id) = chosen(&waiting, at) else { return };
                self.waiting.remove(&id);
                self.asked.remove(&id);
                let method = "notifications/cancelled";
                let text = format!(r#"{{"method":"{method}","params":{{"requestId":{id}}}}}"#);
                self.receive(Side::Client, &text);
            }
            TaskPlayStep::Approve(at) => self.settle(at, true),
            TaskPlayStep::Deny(at) => self.settle(at, false),
            TaskPlayStep::Answer(at, kind) => {
                let Some(id) = chosen(&self.open, at) else { return };
                let answer = match kind {
                    0 => r#""error":{"code":-1,"message":"x"}"#,
                    1 => r#""result":{"task":{"taskId":"s"}}"#,
                    2 => r#""result":{"content":[],"isError":true}"#,
                    _ => r#""result":{"content":[]}"#,
                };
                // It may answer twice.
                self.receive(Side::Server, &format!(r#"{{"id":{id},{answer}}}"#));
            }
            TaskPlayStep::Fail(at) => {
                let Some(id) = chosen(&self.open, at) else { return };
                let (lane, asker, id) = (Lane::ONLY, Side::Client, id.as_bytes());
                self.feed(RelayEvent::RequestFailed { lane, asker, id, error: b"{}" });
            }
            TaskPlayStep::Wait(ms) => {
                self.ms += ms;
                self.feed(RelayEvent::Tick);
            }
            TaskPlayStep::Unheld => {
                self.feed(RelayEvent::HoldsEnded {
                    lane: None,
                    reason: "over",
                    cause: HoldsEndedCause::SessionEnded,
                    keeps_lists: false,
                });
                assert_eq!(self.relay.held_calls(), 0);
            }
        }
        assert_eq!(self.relay.unanswered_requests(Side::Client), self.waiting.len());
    }
}

proptest! {
    #[test]
    fn tasks_are_answered_once_and_sent_once(steps in prop::collection::vec(step(), 1..80)) {
        let mut session = TaskSession::default();
        steps.iter().for_each(|step| session.take(step));
        let (side, reason, error_type) = (Side::Server, "gone", None);
        session.feed(RelayEvent::SideGone { lane: None, side, reason, error_type });
        prop_assert_eq!(session.relay.unanswered_requests(Side::Client), 0);
        for (id, answers) in &session.asked {
            prop_assert_eq!(answers.len(), 1, "{}", id);
        }
    }
}
