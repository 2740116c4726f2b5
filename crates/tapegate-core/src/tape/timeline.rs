//! A tape as a timeline for people: requests with their answers, in the order they were made.
//!
//! Rows are returned in the order of their first message. A row waits for its answer, and later rows
//! wait too, but never more than [`TimelineOptions::rows_max`] rows or [`TimelineOptions::bytes_max`]
//! bytes. Beyond that, the oldest row is returned without its answer, which gets a row of its own
//! later. This bounds memory, whatever the length of the tape.

mod brief;
mod messages;
mod open;
mod row;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::line::Line;
use super::reader::{Numbered, Problem};
use super::session::BashCommand;
use crate::frame::{Body, Frame};
use crate::json;
use crate::side::Side;
use crate::time::read_rfc3339;
use open::{Open, Parent, is_waited_for};

pub use row::{Answer, AnswerOutcome, Call, Marks, RequestState, Row, RowKind};

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
    match Frame::glance(msg).body() {
        Body::Message(envelope) => brief::arguments(envelope, chars_max),
        Body::Batch | Body::Garbage(_) => String::new(),
    }
}

/// The position of a request: its row, and the index among its children.
type Place = (u64, Option<usize>);

/// How many children a row may have before it is returned.
const CHILDREN_MAX: usize = 10_000;

/// Builds the rows of one tape, fed line by line.
pub struct Timeline {
    options: TimelineOptions,
    open: Open,
    /// Rows that have not been returned, by number.
    rows: BTreeMap<u64, Row>,
    next: u64,
    bytes: usize,
    ready: VecDeque<Row>,
    /// Rows that may have become complete since the last check.
    touched: Vec<u64>,
    batches: u64,
    /// Sessions that have begun, for tapes without headers.
    begun: HashSet<Option<String>>,
}

impl Timeline {
    /// An empty timeline.
    pub fn new(options: TimelineOptions) -> Self {
        Self {
            options,
            open: Open::default(),
            rows: BTreeMap::new(),
            next: 0,
            bytes: 0,
            ready: VecDeque::new(),
            touched: Vec::new(),
            batches: 0,
            begun: HashSet::new(),
        }
    }

    /// Adds the next line of a tape, or the problem with it.
    pub fn line(&mut self, next: &Result<Numbered<'_>, Problem>) {
        match next {
            Ok(Numbered { line, entry, .. }) => self.entry(*line, entry),
            Err(problem) => {
                let line = match problem {
                    Problem::Torn { line, .. }
                    | Problem::Line { line, .. }
                    | Problem::Io { line, .. } => *line,
                };
                let words = problem.to_string();
                let words = words.strip_prefix(&format!("line {line}: ")).unwrap_or(&words);
                self.alone(line, RowKind::Fault(words.to_owned()));
            }
        }
    }

    /// Adds an entry of a tape.
    pub fn entry(&mut self, line: u64, entry: &Line<'_>) {
        match entry {
            Line::Message(message) => self.message(line, message),
            Line::Bad(bad) => self.anomaly(line, bad),
            Line::Header(header) => {
                self.forget(None);
                let name = header.name.as_deref().map(str::to_owned);
                let upstream = header.upstream.clone().into_owned();
                let at_us = read_rfc3339(&header.recorded_at);
                self.push(Row { at_us, ..bare(line, RowKind::Begin { name, upstream }) });
            }
            Line::Footer(footer) => {
                self.forget(None);
                let (messages, duration_ms) = (footer.total_messages, footer.duration_ms);
                self.alone(line, RowKind::End { messages, duration_ms });
            }
            Line::Unknown(kind) => {
                self.alone(line, RowKind::Fault(format!("a line of the unknown type `{kind}`")));
            }
        }
    }

    /// Adds a command of a recorded bash session, which is a request with its answer.
    pub fn command(&mut self, line: u64, command: &BashCommand) {
        let (arguments, result) = (command.arguments(), command.result());
        let short = |value: &[u8]| brief::value(value, self.options.chars_max);
        let number = |key: &str| json::member(&result, key).map(|code| code == b"0");
        let text = |key: &str| json::member(&result, key).and_then(json::string);
        let output = [text("stdout"), text("stderr")].into_iter().flatten().collect::<String>();
        let call = Call {
            method: "tools/call".to_owned(),
            name: Some(command.tool().to_owned()),
            arguments: short(&arguments),
        };
        let is_wanted = |text: &[u8]| self.options.wanted.as_ref().is_none_or(|is| is(text));
        let answer = Answer {
            line,
            seq: None,
            at_us: Some(command.ended_us()),
            latency_us: Some(command.duration_ms().saturating_mul(1000)),
            outcome: match number("exit_code") {
                Some(false) => AnswerOutcome::ToolError,
                _ => AnswerOutcome::Ok,
            },
            text: brief::cut(output.trim_end(), self.options.chars_max),
            marks: Marks::default(),
            bytes: result.len() as u64,
            message: self.options.whole.then(|| wrapped("result", &result)),
        };
        let kind = RowKind::Request { call, id: Vec::new(), state: RequestState::Answered };
        self.push(Row {
            at_us: Some(command.started_us()),
            bytes: arguments.len() as u64,
            message: self.options.whole.then(|| wrapped("params", &arguments)),
            matched: is_wanted(&arguments) || is_wanted(&result),
            answer: Some(answer),
            ..bare(line, kind)
        });
    }

    /// Adds a line that cannot be read, and why.
    pub fn fault(&mut self, line: u64, words: String) {
        self.alone(line, RowKind::Fault(words));
    }

    /// The next row that is complete or cannot wait any longer.
    pub fn next_row(&mut self) -> Option<Row> {
        self.ready.pop_front()
    }

    /// Releases all waiting rows; open requests may still be answered later.
    pub fn flush(&mut self) {
        while let Some((_, row)) = self.rows.pop_first() {
            self.ready.push_back(row);
        }
        self.bytes = 0;
    }

    /// Whether rows are waiting.
    pub fn has_waiting_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Releases all rows: there are no more lines.
    pub fn finish(&mut self) {
        self.forget(None);
        self.flush();
    }

    fn is_wanted(&self, msg: &[u8]) -> bool {
        self.options.wanted.as_ref().is_none_or(|wanted| wanted(msg))
    }

    fn alone(&mut self, line: u64, kind: RowKind) {
        self.push(bare(line, kind));
    }

    fn push(&mut self, row: Row) {
        self.put(row, None);
        self.release();
    }

    /// Puts a row below its parent, or at the end.
    fn put(&mut self, mut row: Row, parent: Option<Parent>) -> Place {
        self.bytes += row.weight();
        if let Some(Parent { place: (number, _), about }) = parent {
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

    fn row_at(&mut self, (number, child): Place) -> Option<&mut Row> {
        let row = self.rows.get_mut(&number)?;
        self.touched.push(number);
        match child {
            Some(child) => row.children.get_mut(child),
            None => Some(row),
        }
    }

    fn settle(&mut self, place: Place, how: impl FnOnce(&mut Row)) {
        if let Some(row) = self.row_at(place) {
            how(row);
        }
    }

    /// Stops waiting for answers: all of them, or those of one session.
    fn forget(&mut self, session: Option<&Option<String>>) {
        for place in self.open.forget(session) {
            self.settle(place, |row| row.end(RequestState::Unanswered));
        }
        self.release();
    }

    /// Releases the rows that need not wait.
    fn release(&mut self) {
        let touched = std::mem::take(&mut self.touched);
        if self.options.rows_max == 0 {
            for number in touched {
                if self.rows.get(&number).is_some_and(|row| !row.is_open()) {
                    self.ready.extend(self.rows.remove(&number));
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
            self.ready.push_back(row);
        }
    }

    /// Whether no more rows can wait for the oldest one.
    fn is_full(&self, head: &Row) -> bool {
        self.rows.len() > self.options.rows_max
            || self.bytes > self.options.bytes_max
            || head.children.len() > CHILDREN_MAX
    }
}

/// A row with only its line and kind.
fn bare(line: u64, kind: RowKind) -> Row {
    Row {
        line,
        seq: None,
        at_us: None,
        from: Side::Client,
        session: None,
        batch: None,
        kind,
        marks: Marks::default(),
        answer: None,
        bytes: 0,
        message: None,
        matched: false,
        under: None,
        children: Vec::new(),
    }
}

/// A value as the only member of an object.
fn wrapped(key: &str, value: &[u8]) -> Vec<u8> {
    [b"{\"", key.as_bytes(), b"\":", value, b"}"].concat()
}
