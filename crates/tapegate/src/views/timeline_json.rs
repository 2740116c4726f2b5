//! Formats a tape as a timeline for programs. The keys are stable (docs/show.md).

use tapegate_core::json::{compact, member};
use tapegate_core::side::Side;
use tapegate_core::tape::timeline::{
    AnswerOutcome, CallAnswer, LineMarks, RequestState, RowKind, TimelineRow,
};
use tapegate_core::time::{SubSecond, rounded_ms, write_rfc3339};

use super::json::JsonWriter;
use super::timeline::CallDecision;

/// A row as one line.
pub(crate) fn line(
    tape: &str,
    row: &TimelineRow,
    decided: &dyn Fn(&TimelineRow) -> Option<CallDecision>,
    keep: &dyn Fn(&TimelineRow) -> bool,
) -> Vec<u8> {
    let object = JsonWriter::object(|json| {
        json.text("tape", tape);
        write(json, row, decided);
        let children: Vec<&TimelineRow> = row.children.iter().filter(|child| keep(child)).collect();
        if !children.is_empty() {
            json.list("children", children, |json, child| write(json, child, decided));
        }
    });
    let mut line = compact(&object).into_owned();
    line.push(b'\n');
    line
}

fn write(
    json: &mut JsonWriter,
    row: &TimelineRow,
    decided: &dyn Fn(&TimelineRow) -> Option<CallDecision>,
) {
    json.number("line", row.line);
    row.seq.into_iter().for_each(|seq| json.number("seq", seq));
    write_time(json, "ts", row.at_us);
    let direction = match row.from {
        Side::Client => "c2s",
        Side::Server => "s2c",
    };
    if !matches!(row.kind, RowKind::Begin { .. } | RowKind::End { .. } | RowKind::Fault(_)) {
        json.text("direction", direction);
    }
    row.session.iter().for_each(|session| json.text("session", session));
    row.batch.into_iter().for_each(|batch| json.number("batch", batch));
    kind(json, row);
    if let Some(params) = row.message.as_deref().and_then(|message| member(message, "params")) {
        json.raw("params", params);
    }
    marks(json, &row.marks);
    if let Some(CallDecision { word, rule, by, reason }) = decided(row) {
        json.text("decision", &word);
        rule.iter().for_each(|rule| json.text("rule", rule));
        by.iter().for_each(|by| json.text("decided_by", by));
        reason.iter().for_each(|reason| json.text("decision_reason", reason));
    }
    if let Some(answer) = &row.answer {
        json.object_member("answer", |json| write_answer(json, answer));
    }
}

fn kind(json: &mut JsonWriter, row: &TimelineRow) {
    let word = match &row.kind {
        RowKind::Request { .. } => "request",
        RowKind::Notification(_) => "notification",
        RowKind::LateAnswer(_) => "answer",
        RowKind::NoAnswer { .. } => "no_answer",
        RowKind::Other(_) => "other",
        RowKind::Anomaly { .. } => "anomaly",
        RowKind::Begin { .. } => "begin",
        RowKind::End { .. } => "end",
        RowKind::Fault(_) => "fault",
    };
    json.text("type", word);
    if let Some(call) = row.call() {
        json.text("method", &call.method);
        call.name.iter().for_each(|name| json.text("name", name));
    }
    match &row.kind {
        RowKind::Request { id, state, .. } => {
            if !id.is_empty() {
                json.raw("id", id);
            }
            json.text("state", state_word(*state));
        }
        RowKind::NoAnswer { state, .. } => json.text("state", state_word(*state)),
        RowKind::Other(text) => json.text("text", text),
        RowKind::Anomaly { reason, text, bytes_total } => {
            json.text("reason", reason);
            json.text("text", text);
            json.number("bytes", *bytes_total);
        }
        RowKind::Begin { name, upstream } => {
            name.iter().for_each(|name| json.text("name", name));
            json.text("upstream", upstream);
        }
        RowKind::End { messages, duration_ms } => {
            json.number("messages", *messages);
            json.number("duration_ms", *duration_ms);
        }
        RowKind::Fault(text) => json.text("fault", text),
        RowKind::Notification(_) | RowKind::LateAnswer(_) => {}
    }
}

fn state_word(state: RequestState) -> &'static str {
    match state {
        RequestState::Answered => "answered",
        RequestState::Waiting => "waiting",
        RequestState::Unanswered => "unanswered",
        RequestState::Unreadable => "unreadable",
        RequestState::Cancelled => "cancelled",
    }
}

fn write_answer(json: &mut JsonWriter, answer: &CallAnswer) {
    json.number("line", answer.line);
    answer.seq.into_iter().for_each(|seq| json.number("seq", seq));
    write_time(json, "ts", answer.at_us);
    answer.latency_us.into_iter().for_each(|us| json.number("latency_ms", rounded_ms(us)));
    let outcome = match answer.outcome {
        AnswerOutcome::Ok => "ok",
        AnswerOutcome::ToolError => "tool_error",
        AnswerOutcome::Error(_) => "error",
    };
    json.text("outcome", outcome);
    let message = answer.message.as_deref().unwrap_or_default();
    for key in ["result", "error"] {
        member(message, key).into_iter().for_each(|raw| json.raw(key, raw));
    }
    marks(json, &answer.marks);
}

fn marks(json: &mut JsonWriter, marks: &LineMarks) {
    if marks.ours {
        json.text("by", "tapegate");
    }
    marks.refused.iter().for_each(|reason| json.text("refused", reason));
    if marks.held_for_list {
        json.text("held", "list");
    }
    let flags = [
        ("held", marks.held),
        ("rewritten", marks.rewritten),
        ("resumed", marks.resumed),
        ("unterminated", marks.unterminated),
    ];
    for (key, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        json.raw(key, b"true");
    }
    if marks.redacted > 0 {
        json.number("redacted", marks.redacted as u64);
    }
}

fn write_time(json: &mut JsonWriter, key: &str, at_us: Option<i64>) {
    if let Some(at_us) = at_us {
        let mut text = Vec::new();
        write_rfc3339(&mut text, at_us, SubSecond::Micros);
        json.text(key, &String::from_utf8_lossy(&text));
    }
}
