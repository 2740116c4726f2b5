//! Formats a tape as a timeline for people.

use tapegate_core::side::Side;
use tapegate_core::tape::timeline::{
    AnswerOutcome, CallAnswer, CallInfo, LineMarks, RequestState, RowKind, TimelineRow,
};

use super::columns::{pad, truncate_to, width};
use super::palette::Palette;
use super::{outcome_labels, plural, readable_json, visible_text};
use crate::zone::TimeZone;

/// The decision about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallDecision {
    /// `governance_decision`
    pub(crate) word: String,
    /// The rule that decided.
    pub(crate) rule: Option<String>,
    /// The person who decided.
    pub(crate) by: Option<String>,
    pub(crate) reason: Option<String>,
}

/// The settings for printing rows.
pub(crate) struct TimelineView<'z> {
    pub(crate) zone: &'z TimeZone,
    pub(crate) palette: Palette,
    /// The width of the terminal; `None` without one.
    pub(crate) columns: Option<usize>,
    /// Whether arguments and results are printed in full.
    pub(crate) full: bool,
    /// The day that was printed last.
    pub(crate) day: String,
}

/// The width of what precedes the method: the time, the direction and spaces.
const HEAD_COLUMNS: usize = 15;
/// The width of durations.
const DURATION_COLUMNS: usize = 7;
/// The width of the left part if there is no limit.
const LEFT_COLUMNS: usize = 48;
/// Longer durations are printed in bold.
const SLOW_US: u64 = 1_000_000;
const CHARS_MAX: usize = 4000;

impl TimelineView<'_> {
    /// The heading above the rows of a tape.
    pub(crate) fn heading(&self, tape: &str, begin: Option<&TimelineRow>) -> String {
        let mut parts = vec![visible_text::inline(tape, CHARS_MAX)];
        if let Some(RowKind::Begin { name, upstream }) = begin.map(|row| &row.kind) {
            parts.extend(name.iter().map(|name| visible_text::inline(name, CHARS_MAX)));
            parts.push(visible_text::inline(upstream, CHARS_MAX));
        }
        let text = parts.join(" · ");
        let text = self.columns.map_or(text.clone(), |columns| truncate_to(&text, columns));
        format!("{}\n", self.palette.bold(&text))
    }

    /// A row with its child rows.
    pub(crate) fn row(
        &mut self,
        row: &TimelineRow,
        decided: &dyn Fn(&TimelineRow) -> Option<CallDecision>,
        keep: &dyn Fn(&TimelineRow) -> bool,
    ) -> String {
        let mut out = self.new_day(row);
        let depth = usize::from(row.under.is_some());
        self.write_row(row, depth, decided(row).as_ref(), &mut out);
        for child in row.children.iter().filter(|child| keep(child)) {
            self.write_row(child, 1, decided(child).as_ref(), &mut out);
        }
        out
    }

    /// A line for the day, if a new one begins.
    fn new_day(&mut self, row: &TimelineRow) -> String {
        let Some(at_us) = row.at_us else { return String::new() };
        let day: String = self.zone.local(at_us).chars().take(10).collect();
        if day == self.day {
            return String::new();
        }
        self.day.clone_from(&day);
        format!("{}\n", self.palette.faint(&format!("{day} ({})", self.zone.offset(at_us))))
    }

    fn write_row(
        &self,
        row: &TimelineRow,
        depth: usize,
        decision: Option<&CallDecision>,
        out: &mut String,
    ) {
        let palette = self.palette;
        let time = row.at_us.map(|at_us| self.zone.local(at_us));
        let time = time.as_deref().and_then(|time| time.get(11..)).unwrap_or("            ");
        let (arrow, left) = self.left(row, depth);
        let right = row_outcome(row, decision);
        let duration = row.answer.as_ref().and_then(|answer| answer.latency_us);
        let text = match (right.text.is_empty(), duration) {
            (true, None) => match self.columns {
                Some(columns) => truncate_to(&left, columns.saturating_sub(HEAD_COLUMNS)),
                None => left,
            },
            (_, duration) => {
                let (left_columns, right_columns) = self.parts(&left);
                let shown = duration.map(outcome_labels::duration).unwrap_or_default();
                let display_text = format!("{shown:>DURATION_COLUMNS$}");
                let shown = match duration {
                    Some(us) if us >= SLOW_US => palette.bold(&display_text),
                    _ => palette.faint(&display_text),
                };
                let right_text = truncate_to(&right.text, right_columns);
                let right_text = match right.tone {
                    RowTone::Bad => palette.red(&right_text),
                    RowTone::Notable => palette.bold(&right_text),
                    RowTone::Plain => right_text,
                };
                format!("{} {shown}  {right_text}", pad(&left, left_columns))
            }
        };
        let arrow = if row.marks.ours { palette.bold(arrow) } else { arrow.to_owned() };
        let line = format!("{} {arrow} {}", palette.faint(time), text.trim_end());
        out.push_str(line.trim_end());
        out.push('\n');
        if self.full {
            self.write_details(row, out);
        }
    }

    /// The widths of the two parts of a line.
    fn parts(&self, left: &str) -> (usize, usize) {
        let Some(columns) = self.columns else {
            return (LEFT_COLUMNS.max(width(left)), usize::MAX);
        };
        let room = columns.saturating_sub(HEAD_COLUMNS + 1 + DURATION_COLUMNS + 2);
        let left = room * 3 / 5;
        (left, room - left)
    }

    /// The direction and the message.
    fn left(&self, row: &TimelineRow, depth: usize) -> (&'static str, String) {
        let arrow = match row.from {
            Side::Client => "→",
            Side::Server => "←",
        };
        let inline = |text: &str| visible_text::inline(text, CHARS_MAX);
        let mut parts = Vec::new();
        parts.extend(row.session.as_ref().map(|session| format!("[{}]", inline(session))));
        parts.extend(row.batch.map(|batch| format!("[batch {batch}]")));
        let mut arrow = arrow;
        match &row.kind {
            RowKind::Request { call, .. } | RowKind::Notification(call) => {
                parts.extend(row.marks.ours.then(|| "tapegate:".to_owned()));
                parts.push(call_text(call));
            }
            RowKind::LateAnswer(call) if call.method.is_empty() => {
                parts.push("answer to an unknown request".to_owned());
            }
            RowKind::LateAnswer(call) | RowKind::NoAnswer { call, .. } => {
                parts.push(format!("answer to {}", call_text(call)));
            }
            RowKind::Other(text) => parts.push(format!("not JSON-RPC: {}", inline(text))),
            RowKind::Anomaly { reason, text, bytes_total } => {
                let size = outcome_labels::bytes(*bytes_total);
                parts.push(format!("not a message ({}, {size}): {}", inline(reason), inline(text)));
            }
            RowKind::Begin { .. } => {
                arrow = " ";
                parts.push("another recording begins".to_owned());
            }
            RowKind::End { messages, duration_ms } => {
                arrow = " ";
                let took = outcome_labels::duration(duration_ms.saturating_mul(1000));
                parts.push(format!("end: {} in {took}", plural(*messages, "message")));
            }
            RowKind::Fault(text) => {
                arrow = "!";
                parts.push(format!("line {}: {}", row.line, inline(text)));
            }
        }
        if let Some(under) = &row.under {
            parts.push(format!("(of {})", inline(under)));
        }
        (arrow, format!("{}{}", "  ".repeat(depth), parts.join(" ")))
    }

    /// The complete arguments and result, below a line.
    fn write_details(&self, row: &TimelineRow, out: &mut String) {
        let indent = " ".repeat(HEAD_COLUMNS);
        let mut part = |title: &str, raw: &[u8]| {
            out.push_str(&format!("{indent}{}\n", self.palette.faint(title)));
            for line in readable_json::lines(raw, &format!("{indent}  ")) {
                out.push_str(&line);
                out.push('\n');
            }
        };
        let member = tapegate_core::json::member;
        if let Some(message) = &row.message {
            match member(message, "params") {
                Some(params) => part("params", member(params, "arguments").unwrap_or(params)),
                None if matches!(row.kind, RowKind::Anomaly { .. } | RowKind::Other(_)) => {
                    part("raw", &quoted(message));
                }
                None => {}
            }
        }
        if let Some(message) = row.answer.as_ref().and_then(|answer| answer.message.as_ref()) {
            member(message, "result").into_iter().for_each(|raw| part("result", raw));
            member(message, "error").into_iter().for_each(|raw| part("error", raw));
        }
    }
}

fn quoted(bytes: &[u8]) -> Vec<u8> {
    super::json::quoted(&String::from_utf8_lossy(bytes))
}

fn call_text(call: &CallInfo) -> String {
    let inline = |text: &str| visible_text::inline(text, CHARS_MAX);
    let parts = [
        inline(&call.method),
        call.name.as_deref().map(inline).unwrap_or_default(),
        inline(&call.arguments),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// How a result is highlighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowTone {
    Plain,
    Notable,
    Bad,
}

/// The result of a row.
struct RowOutcome {
    text: String,
    tone: RowTone,
}

fn row_outcome(row: &TimelineRow, decision: Option<&CallDecision>) -> RowOutcome {
    let decided = decision_text(row, decision);
    let (outcome, tone) = match (&row.answer, &row.kind) {
        (Some(answer), _) => outcome(answer, &row.marks),
        (None, RowKind::Request { state, .. } | RowKind::NoAnswer { state, .. }) => match state {
            RequestState::Waiting => ("no answer yet".to_owned(), RowTone::Notable),
            RequestState::Unanswered => ("no answer".to_owned(), RowTone::Bad),
            RequestState::Unreadable => {
                ("answer not found: a later line is too long to read".to_owned(), RowTone::Bad)
            }
            RequestState::Cancelled => ("cancelled".to_owned(), RowTone::Notable),
            RequestState::Answered => (String::new(), RowTone::Plain),
        },
        (None, RowKind::Anomaly { .. } | RowKind::Fault(_)) => (String::new(), RowTone::Bad),
        (None, _) => (String::new(), RowTone::Plain),
    };
    let tone = if row.marks.refused.is_some() { RowTone::Bad } else { tone };
    let outcome = visible_text::inline(&outcome, CHARS_MAX);
    // Our answer to a denied call already says so.
    let decided = if outcome.starts_with(&decided) { String::new() } else { decided };
    let texts = [decided, outcome];
    let text = texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" · ");
    RowOutcome { text, tone }
}

/// The decision, from the activity log or from the marks on the tape.
pub(crate) fn decision_text(row: &TimelineRow, decision: Option<&CallDecision>) -> String {
    let inline = |text: &str| visible_text::inline(text, 200);
    if let Some(decision) = decision {
        let word = match (outcome_labels::decision(&decision.word), &decision.by) {
            ("allowed", Some(_)) => "approved",
            (word, _) => word,
        };
        let by = decision.by.as_deref().map(|by| format!(" by {}", inline(by)));
        let denies = word.contains("denied");
        let rule = decision.rule.as_deref().filter(|_| denies && by.is_none());
        let rule = rule.map(|rule| format!(" by rule {}", inline(rule)));
        return format!("{}{}", inline(word), by.or(rule).unwrap_or_default());
    }
    let is_ours = row.answer.as_ref().is_some_and(|answer| answer.marks.ours);
    match &row.marks {
        LineMarks { refused: Some(_), .. } => "denied".to_owned(),
        // The answer does not show whether a person was asked after the list had come.
        LineMarks { held_for_list: true, .. } if row.answer.is_none() => "held".to_owned(),
        LineMarks { held: true, .. } => match (&row.answer, is_ours) {
            (None, _) => "waits for a person".to_owned(),
            // The answer is a task, or a question to the client's user.
            (Some(CallAnswer { outcome: AnswerOutcome::Ok, .. }), true) => {
                "waits for a person".to_owned()
            }
            (Some(_), true) => "not approved".to_owned(),
            (Some(_), false) => "approved".to_owned(),
        },
        LineMarks { rewritten: true, .. } => "changed".to_owned(),
        _ => String::new(),
    }
}

fn outcome(answer: &CallAnswer, marks: &LineMarks) -> (String, RowTone) {
    let by = if answer.marks.ours && marks.refused.is_none() { "tapegate: " } else { "" };
    match answer.outcome {
        AnswerOutcome::Ok => (format!("{by}{}", answer.text), RowTone::Plain),
        AnswerOutcome::ToolError => (format!("{by}error: {}", answer.text), RowTone::Bad),
        AnswerOutcome::Error(_) if marks.refused.is_some() => (answer.text.clone(), RowTone::Bad),
        AnswerOutcome::Error(code) => {
            let code = code.map(|code| format!(" {code}")).unwrap_or_default();
            (format!("{by}error{code}: {}", answer.text), RowTone::Bad)
        }
    }
}
