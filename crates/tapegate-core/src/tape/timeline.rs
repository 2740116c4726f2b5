//! A tape as a timeline for people: requests with their answers, in the order they were made.
//!
//! Rows are returned in the order of their first message. A row waits for its answer, and later rows
//! wait too, but never more than [`TimelineOptions::rows_max`] rows or [`TimelineOptions::bytes_max`]
//! bytes. Beyond that, the oldest row is returned without its answer. A row of its own follows
//! later: the answer, or that there is none. This bounds memory, whatever the length of the tape.

mod brief_text;
mod messages;
mod open_calls;
mod row;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::bash_session::BashCommand;
use super::line::{LineFault, TapeLine};
use super::reader::{LineProblem, NumberedLine};
use crate::frame::{Frame, FrameBody};
use crate::json;
use crate::side::Side;
use crate::time::read_rfc3339;
use open_calls::{
    CallWithoutAnswer, CancelPoint, OpenCall, OpenCalls, ParentRequest, is_waited_for,
};

pub use row::{AnswerOutcome, CallAnswer, CallInfo, LineMarks, RequestState, RowKind, TimelineRow};

/// Whether a message matches a search.
pub type MessageTest = Box<dyn Fn(&[u8]) -> bool>;

/// How a timeline is built.
pub struct TimelineOptions {
    /// How many rows may wait for the answer of an older one; 0 returns rows as soon as they are
    /// complete.
    pub rows_max: usize,
    /// How many bytes may wait.
    pub bytes_max: usize,
    /// The maximum length of short texts.
    pub chars_max: usize,
    /// Whether whole messages are kept.
    pub whole: bool,
    /// The messages to search for; `None` for all.
    pub wanted: Option<MessageTest>,
}

/// The arguments of a message in short form, as in its row; empty if it is not a single message.
pub fn arguments(msg: &[u8], chars_max: usize) -> String {
    match Frame::read_without_gate_details(msg).body() {
        FrameBody::Message(envelope) => brief_text::arguments(envelope, chars_max),
        FrameBody::Batch | FrameBody::Garbage(_) => String::new(),
    }
}

/// The position of a request: its row, and the index among its children.
type RowPosition = (u64, Option<usize>);

/// How many children a row may have before it is returned.
const CHILDREN_MAX: usize = 10_000;

/// A row to return. Requests without an answer can be very many at once, so their rows are made
/// one by one.
enum ReadyRow {
    Row(Box<TimelineRow>),
    NoAnswer(Box<CallWithoutAnswer>, RequestState),
}

/// Builds the rows of one tape, fed line by line.
pub struct Timeline {
    options: TimelineOptions,
    open: OpenCalls,
    /// Rows that have not been returned, by number.
    rows: BTreeMap<u64, TimelineRow>,
    next: u64,
    bytes: usize,
    ready: VecDeque<ReadyRow>,
    /// Rows that may have become complete since the last check.
    touched: Vec<u64>,
    batches: u64,
    /// The last line that was too long to be read; requests before it may be answered there.
    too_long_line: u64,
    /// Sessions that have begun, for tapes without headers.
    begun: HashSet<Option<String>>,
}

impl Timeline {
    /// An empty timeline.
    pub fn new(options: TimelineOptions) -> Self {
        Self {
            options,
            open: OpenCalls::default(),
            rows: BTreeMap::new(),
            next: 0,
            bytes: 0,
            ready: VecDeque::new(),
            touched: Vec::new(),
            batches: 0,
            too_long_line: 0,
            begun: HashSet::new(),
        }
    }

    /// Adds the next line of a tape, or the problem with it.
    pub fn line(&mut self, next: &Result<NumberedLine<'_>, LineProblem>) {
        match next {
            Ok(NumberedLine { line, entry, .. }) => self.entry(*line, entry),
            Err(problem) => {
                if let LineProblem::Line { line, fault: LineFault::TooLong(_) } = problem {
                    self.too_long_line = *line;
                }
                let line = match problem {
                    LineProblem::Torn { line, .. }
                    | LineProblem::Line { line, .. }
                    | LineProblem::Io { line, .. } => *line,
                };
                let message_text = problem.to_string();
                let message_text =
                    message_text.strip_prefix(&format!("line {line}: ")).unwrap_or(&message_text);
                self.add_row(line, RowKind::Fault(message_text.to_owned()));
            }
        }
    }

    /// Adds an entry of a tape.
    pub fn entry(&mut self, line: u64, entry: &TapeLine<'_>) {
        match entry {
            TapeLine::Message(message) => self.message(line, message),
            TapeLine::Bad(bad) => self.add_anomaly(line, bad),
            TapeLine::Header(header) => {
                self.stop_waiting(None);
                let name = header.name.as_deref().map(str::to_owned);
                let upstream = header.upstream.clone().into_owned();
                let at_us = read_rfc3339(&header.recorded_at);
                self.push(TimelineRow {
                    at_us,
                    ..minimal_row(line, RowKind::Begin { name, upstream })
                });
            }
            TapeLine::Footer(footer) => {
                self.stop_waiting(None);
                let (messages, duration_ms) = (footer.total_messages, footer.duration_ms);
                self.add_row(line, RowKind::End { messages, duration_ms });
            }
            TapeLine::Unknown(kind) => {
                self.add_row(line, RowKind::Fault(format!("a line of the unknown type `{kind}`")));
            }
        }
    }

    /// Adds a command of a recorded bash session, which is a request with its answer.
    pub fn command(&mut self, line: u64, command: &BashCommand) {
        let (arguments, result) = (command.arguments(), command.result());
        let short = |value: &[u8]| brief_text::value(value, self.options.chars_max);
        let number = |key: &str| json::member(&result, key).map(|code| code == b"0");
        let text = |key: &str| json::member(&result, key).and_then(json::string);
        let output = [text("stdout"), text("stderr")].into_iter().flatten().collect::<String>();
        let call = CallInfo {
            method: "tools/call".to_owned(),
            name: Some(command.tool().to_owned()),
            arguments: short(&arguments),
        };
        let is_wanted = |text: &[u8]| self.options.wanted.as_ref().is_none_or(|is| is(text));
        let answer = CallAnswer {
            line,
            seq: None,
            at_us: Some(command.ended_us()),
            latency_us: Some(command.duration_ms().saturating_mul(1000)),
            outcome: match number("exit_code") {
                Some(false) => AnswerOutcome::ToolError,
                _ => AnswerOutcome::Ok,
            },
            text: brief_text::truncate(output.trim_end(), self.options.chars_max),
            marks: LineMarks::default(),
            bytes: result.len() as u64,
            message: self.options.whole.then(|| wrap_member("result", &result)),
        };
        let kind = RowKind::Request { call, id: Vec::new(), state: RequestState::Answered };
        self.push(TimelineRow {
            at_us: Some(command.started_us()),
            bytes: arguments.len() as u64,
            message: self.options.whole.then(|| wrap_member("params", &arguments)),
            matched: is_wanted(&arguments) || is_wanted(&result),
            answer: Some(answer),
            ..minimal_row(line, kind)
        });
    }

    /// Adds a line that cannot be read, and why.
    pub fn add_unreadable(&mut self, line: u64, message_text: String) {
        self.add_row(line, RowKind::Fault(message_text));
    }

    /// The next row that is complete or cannot wait any longer.
    pub fn next_row(&mut self) -> Option<TimelineRow> {
        Some(match self.ready.pop_front()? {
            ReadyRow::Row(row) => *row,
            ReadyRow::NoAnswer(call, state) => no_answer_row(*call, state),
        })
    }

    /// Releases all waiting rows; open requests may still be answered later.
    pub fn flush(&mut self) {
        while let Some((_, row)) = self.rows.pop_first() {
            self.ready.push_back(ReadyRow::Row(Box::new(row)));
        }
        self.bytes = 0;
    }

    /// Whether rows are waiting.
    pub fn has_waiting_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Releases all rows: there are no more lines.
    pub fn finish(&mut self) {
        self.stop_waiting(None);
        self.flush();
    }

    fn is_wanted(&self, msg: &[u8]) -> bool {
        self.options.wanted.as_ref().is_none_or(|wanted| wanted(msg))
    }

    fn add_row(&mut self, line: u64, kind: RowKind) {
        self.push(minimal_row(line, kind));
    }

    fn push(&mut self, row: TimelineRow) {
        self.insert_row(row, None);
        self.release();
    }

    /// Puts a row below its parent, or at the end.
    fn insert_row(&mut self, mut row: TimelineRow, parent: Option<ParentRequest>) -> RowPosition {
        self.bytes += row.weight();
        if let Some(ParentRequest { position: (number, _), about }) = parent {
            if let Some(parent) = self.rows.get_mut(&number) {
                parent.children.push(row);
                return (number, Some(parent.children.len() - 1));
            }
            row.under = Some(about.to_string());
        }
        let number = self.next;
        self.next += 1;
        self.rows.insert(number, row);
        self.touched.push(number);
        (number, None)
    }

    fn row_at(&mut self, (number, child): RowPosition) -> Option<&mut TimelineRow> {
        let row = self.rows.get_mut(&number)?;
        self.touched.push(number);
        match child {
            Some(child) => row.children.get_mut(child),
            None => Some(row),
        }
    }

    fn settle(&mut self, position: RowPosition, how: impl FnOnce(&mut TimelineRow)) {
        if let Some(row) = self.row_at(position) {
            how(row);
        }
    }

    /// Stops waiting for answers: all of them, or those of one session.
    fn stop_waiting(&mut self, session: Option<&Option<String>>) {
        let mut returned = Vec::new();
        for call in self.open.remove_all(session) {
            let state = self.end_state(&call.open_call);
            let OpenCall { position, method, cancelled, .. } = &call.open_call;
            let needs_row = is_waited_for(method) && *cancelled != CancelPoint::BeforeRow;
            match self.row_at(*position) {
                Some(row) => row.end(state),
                None if needs_row => returned.push((call, state)),
                None => {}
            }
        }
        self.release();
        let rows = returned.into_iter();
        self.ready.extend(rows.map(|(call, state)| ReadyRow::NoAnswer(Box::new(call), state)));
    }

    /// The state of a request for which no answer is waited for any more.
    fn end_state(&self, open_call: &OpenCall) -> RequestState {
        match open_call.cancelled {
            CancelPoint::BeforeRow | CancelPoint::AfterRow => RequestState::Cancelled,
            CancelPoint::Never if open_call.line < self.too_long_line => RequestState::Unreadable,
            CancelPoint::Never => RequestState::Unanswered,
        }
    }

    /// Releases the rows that need not wait.
    fn release(&mut self) {
        let touched = std::mem::take(&mut self.touched);
        if self.options.rows_max == 0 {
            for number in touched {
                if self.rows.get(&number).is_some_and(|row| !row.is_open()) {
                    let row = self.rows.remove(&number).map(Box::new);
                    self.ready.extend(row.map(ReadyRow::Row));
                }
            }
            return;
        }
        while let Some((_, head)) = self.rows.first_key_value() {
            if head.is_open() && !self.is_full(head) {
                break;
            }
            let Some((_, row)) = self.rows.pop_first() else { break };
            self.bytes = self.bytes.saturating_sub(row.weight());
            self.ready.push_back(ReadyRow::Row(Box::new(row)));
        }
    }

    /// Whether no more rows can wait for the oldest one.
    fn is_full(&self, head: &TimelineRow) -> bool {
        self.rows.len() > self.options.rows_max
            || self.bytes > self.options.bytes_max
            || head.children.len() > CHILDREN_MAX
    }
}

/// The row that ends the wait for a request whose own row was returned before.
fn no_answer_row(call: CallWithoutAnswer, state: RequestState) -> TimelineRow {
    let CallWithoutAnswer { from, session, open_call } = call;
    let (method, name) = (open_call.method, open_call.name);
    let call = CallInfo { method, name, arguments: String::new() };
    TimelineRow {
        seq: open_call.seq,
        at_us: open_call.at_us,
        from,
        session,
        matched: open_call.matched,
        ..minimal_row(open_call.line, RowKind::NoAnswer { call, state })
    }
}

/// A row with only its line and kind.
fn minimal_row(line: u64, kind: RowKind) -> TimelineRow {
    TimelineRow {
        line,
        seq: None,
        at_us: None,
        from: Side::Client,
        session: None,
        batch: None,
        kind,
        marks: LineMarks::default(),
        answer: None,
        bytes: 0,
        message: None,
        matched: false,
        under: None,
        children: Vec::new(),
    }
}

/// A value as the only member of an object.
fn wrap_member(key: &str, value: &[u8]) -> Vec<u8> {
    [b"{\"", key.as_bytes(), b"\":", value, b"}"].concat()
}
