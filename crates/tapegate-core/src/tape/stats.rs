//! Statistics of tapes: calls by name, how long they took, and how they ended.
//!
//! Fed with the rows of timelines that hold nothing back. Several tapes can be summed.

mod latencies;

use std::collections::BTreeMap;

use super::timeline::{AnswerOutcome, RequestState, RowKind, TimelineRow};
use crate::side::Side;
use crate::time::rounded_ms;

pub use latencies::Latencies;

/// How many names are counted separately; calls with further names are counted together.
const NAMES_MAX: usize = 10_000;
/// The name under which calls with further names are counted.
pub const OTHER_NAMES: &str = "(other names)";

/// The side that made a request, its method, and the tool or prompt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey {
    /// The side that made it.
    pub from: Side,
    pub method: String,
    /// The tool or prompt; other methods have none.
    pub name: Option<String>,
}

/// The results of one kind of request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallStats {
    /// How many there are.
    pub count: u64,
    /// Answers that are errors, or results marked as errors.
    pub errors: u64,
    /// Requests that the gate did not send on.
    pub denied: u64,
    /// Requests without an answer.
    pub unanswered: u64,
    /// Requests that were cancelled and not answered.
    pub cancelled: u64,
    /// Bytes of requests and answers.
    pub bytes: u64,
    /// How long they took.
    pub latencies: Latencies,
}

/// Statistics of tapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TapeStats {
    /// Recordings that were closed in order.
    pub footers: u64,
    /// Messages from the client.
    pub client_messages: u64,
    /// Messages from the server.
    pub server_messages: u64,
    /// Notifications, of both sides.
    pub notifications: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Frames that are not messages, and objects that are not JSON-RPC.
    pub anomalies: u64,
    /// Lines that cannot be read.
    pub faults: u64,
    /// Messages of the recorder itself.
    pub by_tapegate: u64,
    /// Answers that match no request on the tape.
    pub stray_answers: u64,
    /// The first timestamp, in microseconds since 1970.
    pub first_us: Option<i64>,
    /// The last timestamp.
    pub last_us: Option<i64>,
    calls: BTreeMap<CallKey, CallStats>,
}

/// The error codes of calls that the gate does not send: denied by a Cedar policy, by a person, by
/// timeout, by a rule or pin, or by visibility.
const DENIED: [i64; 5] = [-32003, -32007, -32008, -32014, -32015];

impl CallStats {
    /// Counts a request that is not answered any more.
    fn end(&mut self, state: RequestState) {
        match state {
            RequestState::Unanswered => self.unanswered += 1,
            RequestState::Cancelled => self.cancelled += 1,
            RequestState::Answered | RequestState::Waiting | RequestState::Unreadable => {}
        }
    }
}

impl TapeStats {
    /// Counts a row and its children.
    pub fn row(&mut self, row: &TimelineRow) {
        row.children.iter().for_each(|child| self.row(child));
        let moments = [row.at_us, row.answer.as_ref().and_then(|answer| answer.at_us)];
        for at_us in moments.into_iter().flatten() {
            self.first_us = Some(self.first_us.map_or(at_us, |first| first.min(at_us)));
            self.last_us = Some(self.last_us.map_or(at_us, |last| last.max(at_us)));
        }
        match &row.kind {
            RowKind::Request { state, .. } => self.request(row, *state),
            // The answer came too late for its request's row, but still belongs to that call.
            RowKind::LateAnswer(call) => {
                self.message(row.from, row.marks.ours, row.answer.as_ref().map_or(0, |a| a.bytes));
                match call.method.is_empty() {
                    true => self.stray_answers += 1,
                    false => self.count_answer(row),
                }
            }
            RowKind::NoAnswer { state, .. } => self.stats_of(row).end(*state),
            RowKind::Notification(_) => {
                self.message(row.from, row.marks.ours, row.bytes);
                self.notifications += 1;
            }
            RowKind::Other(_) => {
                self.message(row.from, row.marks.ours, row.bytes);
                self.anomalies += 1;
            }
            RowKind::Anomaly { .. } => {
                self.anomalies += 1;
                self.bytes += row.bytes;
            }
            RowKind::Fault(_) => self.faults += 1,
            RowKind::End { .. } => self.footers += 1,
            RowKind::Begin { .. } => {}
        }
    }

    /// The kinds of requests and their results.
    pub fn calls(&self) -> impl Iterator<Item = (&CallKey, &CallStats)> {
        self.calls.iter()
    }

    /// All requests together.
    pub fn total(&self) -> CallStats {
        let mut total = CallStats::default();
        for stats in self.calls.values() {
            total.count += stats.count;
            total.errors += stats.errors;
            total.denied += stats.denied;
            total.unanswered += stats.unanswered;
            total.cancelled += stats.cancelled;
            total.bytes += stats.bytes;
            total.latencies.merge(&stats.latencies);
        }
        total
    }

    fn request(&mut self, row: &TimelineRow, state: RequestState) {
        self.message(row.from, row.marks.ours, row.bytes);
        let stats = self.stats_of(row);
        stats.count += 1;
        stats.bytes += row.bytes;
        stats.denied += u64::from(row.marks.refused.is_some());
        stats.end(state);
        if let Some(answer) = &row.answer {
            self.message(row.from.other(), answer.marks.ours, answer.bytes);
            self.count_answer(row);
        }
    }

    fn count_answer(&mut self, row: &TimelineRow) {
        let Some(answer) = &row.answer else { return };
        let stats = self.stats_of(row);
        stats.bytes += answer.bytes;
        stats.errors += u64::from(answer.outcome != AnswerOutcome::Ok);
        // A call that was held first has no `refused`, since it was recorded before the decision.
        let is_denial =
            matches!(answer.outcome, AnswerOutcome::Error(Some(code)) if DENIED.contains(&code));
        let is_counted = row.marks.refused.is_some();
        // Only our own errors: a server may use the same codes.
        stats.denied += u64::from(is_denial && answer.marks.ours && !is_counted);
        if let Some(us) = answer.latency_us {
            stats.latencies.add(rounded_ms(us));
        }
    }

    fn message(&mut self, from: Side, ours: bool, bytes: u64) {
        match from {
            Side::Client => self.client_messages += 1,
            Side::Server => self.server_messages += 1,
        }
        self.by_tapegate += u64::from(ours);
        self.bytes += bytes;
    }

    fn stats_of(&mut self, row: &TimelineRow) -> &mut CallStats {
        let call = row.call();
        let method = call.map(|call| call.method.clone()).unwrap_or_default();
        // A late answer comes from the other side than its request.
        let from = match row.kind {
            RowKind::LateAnswer(_) => row.from.other(),
            _ => row.from,
        };
        let has_names = matches!(&*method, "tools/call" | "prompts/get");
        let name = call.and_then(|call| call.name.clone()).filter(|_| has_names);
        let mut key = CallKey { from, method, name };
        // A client can call any number of names, and each takes memory.
        if self.calls.len() >= NAMES_MAX && !self.calls.contains_key(&key) {
            key = CallKey { method: OTHER_NAMES.to_owned(), name: None, ..key };
        }
        self.calls.entry(key).or_default()
    }
}
