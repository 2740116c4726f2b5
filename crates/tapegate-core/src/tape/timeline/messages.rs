//! Adds the messages of a tape to a timeline.

use super::super::line::{BadFrame, MessageLine};
use super::open_calls::{CancelPoint, OpenCall, ParentRequest, RequestKey};
use super::{
    AnswerOutcome, CallAnswer, CallInfo, LineMarks, RequestState, RowKind, Timeline, TimelineRow,
    brief_text, minimal_row,
};
use crate::frame::{Envelope, Frame, FrameBody, MessageKind, elements};
use crate::json;
use crate::pending::IdKey;
use crate::side::Side;

/// How much of a frame that is not a message is read.
const ANOMALY_BYTES_MAX: usize = 4096;

/// What the rows of one message have in common.
struct RowContext<'m> {
    line: u64,
    message: &'m MessageLine<'m>,
    at_us: Option<i64>,
    session: Option<String>,
    batch: Option<u64>,
}

impl Timeline {
    pub(super) fn message(&mut self, line: u64, message: &MessageLine<'_>) {
        let frame = Frame::read_without_gate_details(&message.msg);
        let at_us = message.ts.micros();
        let session = session_name(message.session.as_deref());
        let mut seen = RowContext { line, message, at_us, session, batch: message.batch };
        match frame.body() {
            FrameBody::Message(envelope) => self.add_message(&seen, envelope, &message.msg),
            FrameBody::Batch => {
                self.batches += 1;
                seen.batch = Some(self.batches);
                for element in elements(&message.msg) {
                    match element.envelope() {
                        Some(envelope) => self.add_message(&seen, envelope, element.bytes()),
                        None => self.add_other(&seen, element.bytes()),
                    }
                }
            }
            FrameBody::Garbage(_) => self.add_other(&seen, &message.msg),
        }
    }

    fn add_message(&mut self, row_context: &RowContext<'_>, envelope: &Envelope<'_>, msg: &[u8]) {
        match (envelope.kind(), envelope.id) {
            (MessageKind::Request, Some(id)) => self.request(row_context, envelope, id, msg),
            (MessageKind::Response | MessageKind::Error, id) => {
                self.add_answer(row_context, envelope, id, msg)
            }
            (MessageKind::Request | MessageKind::Notification, _) => {
                self.add_notification(row_context, envelope, msg)
            }
            (MessageKind::Other, _) => self.add_other(row_context, msg),
        }
    }

    fn request(
        &mut self,
        row_context: &RowContext<'_>,
        envelope: &Envelope<'_>,
        id: &[u8],
        msg: &[u8],
    ) {
        let from = row_context.message.from;
        let call = self.call(envelope);
        // A tape without headers may hold several recordings, each with its own ids.
        let begins = from == Side::Client && call.method == "initialize";
        if begins
            && row_context.message.seq.is_none()
            && !self.begun.insert(row_context.session.clone())
        {
            self.stop_waiting(Some(&row_context.session));
        }
        let key = (from, row_context.session.clone(), IdKey::new(id));
        let token = envelope
            .progress_token
            .map(|token| (from.other(), row_context.session.clone(), IdKey::new(token)));
        let (method, name) = (call.method.clone(), call.name.clone());
        let kind = RowKind::Request { call, id: id.to_vec(), state: RequestState::Waiting };
        let row = self.row(row_context, kind, msg);
        let (line, matched) = (row_context.line, row.matched);
        let parent = match from {
            Side::Server => self.open.latest(&row_context.session),
            Side::Client => None,
        };
        let position = self.insert_row(row, parent);
        let (seq, at_us) = (row_context.message.seq, row_context.at_us);
        let cancelled = CancelPoint::Never;
        let open_call =
            OpenCall { position, line, seq, at_us, method, name, token, matched, cancelled };
        if !self.open.add(key, id, open_call) {
            self.settle(position, |row| row.end(RequestState::Unanswered));
        }
        self.release();
    }

    fn add_notification(
        &mut self,
        row_context: &RowContext<'_>,
        envelope: &Envelope<'_>,
        msg: &[u8],
    ) {
        let from = row_context.message.from;
        let call = self.call(envelope);
        let key = |id: &[u8], of: Side| (of, row_context.session.clone(), IdKey::new(id));
        let cancels = call.method == "notifications/cancelled";
        let cancelled = envelope.request_id.filter(|_| cancels);
        let cancelled_key = cancelled.map(|id| key(id, from));
        let cancelled = cancelled_key.as_ref().and_then(|key| self.open.with_id(key));
        let token = envelope.progress_token.filter(|_| call.method == "notifications/progress");
        let parent = match (&cancelled, token) {
            (Some(_), _) => cancelled.clone(),
            (None, Some(token)) => self.open.with_token(&key(token, from)),
            (None, None) if from == Side::Server => self.open.latest(&row_context.session),
            (None, None) => None,
        };
        let row = self.row(row_context, RowKind::Notification(call), msg);
        self.insert_row(row, parent);
        if let Some(ParentRequest { position, .. }) = cancelled {
            // Its answer may still come, but the row does not wait for it.
            let when = match self.row_at(position) {
                Some(row) => {
                    row.end(RequestState::Cancelled);
                    CancelPoint::BeforeRow
                }
                None => CancelPoint::AfterRow,
            };
            cancelled_key.iter().for_each(|key| self.open.mark_cancelled(key, when));
        }
        self.release();
    }

    fn add_answer(
        &mut self,
        row_context: &RowContext<'_>,
        envelope: &Envelope<'_>,
        id: Option<&[u8]>,
        msg: &[u8],
    ) {
        let key: Option<RequestKey> = id.map(|id| {
            (row_context.message.from.other(), row_context.session.clone(), IdKey::new(id))
        });
        let open_call = key.and_then(|key| self.open.take_answered(&key, row_context.message.req));
        let method = open_call.as_ref().map_or("", |open_call| open_call.method.as_str());
        let since = open_call.as_ref().and_then(|open_call| open_call.at_us);
        let answer = self.answer_of(row_context, envelope, method, since, msg);
        let matched = self.is_wanted(msg);
        let row = open_call.as_ref().and_then(|open_call| self.row_at(open_call.position));
        if let Some(row) = row {
            if let RowKind::Request { state, .. } = &mut row.kind {
                *state = RequestState::Answered;
            }
            row.answer = Some(answer);
            row.matched |= matched;
            self.bytes += 256 + if self.options.whole { msg.len() } else { 0 };
        } else {
            let open_call =
                open_call.map(|open_call| (open_call.method, open_call.name)).unwrap_or_default();
            let call =
                CallInfo { method: open_call.0, name: open_call.1, arguments: String::new() };
            let row = self.row(row_context, RowKind::LateAnswer(call), msg);
            self.insert_row(TimelineRow { answer: Some(answer), message: None, ..row }, None);
        }
        self.release();
    }

    fn answer_of(
        &self,
        row_context: &RowContext<'_>,
        envelope: &Envelope<'_>,
        method: &str,
        since_us: Option<i64>,
        msg: &[u8],
    ) -> CallAnswer {
        let chars_max = self.options.chars_max;
        let (outcome, text) = match (envelope.error, envelope.result) {
            (Some(error), _) => {
                let (code, text) = brief_text::error(error, chars_max);
                (AnswerOutcome::Error(code), text)
            }
            (None, result) => {
                let result = result.unwrap_or_default();
                let failed = json::member(result, "isError") == Some(b"true");
                let outcome = if failed { AnswerOutcome::ToolError } else { AnswerOutcome::Ok };
                (outcome, brief_text::result(method, result, chars_max))
            }
        };
        let passed =
            since_us.zip(row_context.at_us).and_then(|(from, to)| u64::try_from(to - from).ok());
        let latency_us = match (row_context.message.latency_ms, passed) {
            // The tape rounds down. Its moments are more exact, unless the clock was set meanwhile.
            (Some(ms), Some(us)) if us / 1000 == ms => Some(us),
            (Some(ms), _) => Some(ms.saturating_mul(1000)),
            (None, passed) => passed,
        };
        CallAnswer {
            line: row_context.line,
            seq: row_context.message.seq,
            at_us: row_context.at_us,
            latency_us,
            outcome,
            text,
            marks: marks(row_context.message),
            bytes: msg.len() as u64,
            message: self.options.whole.then(|| msg.to_vec()),
        }
    }

    fn add_other(&mut self, row_context: &RowContext<'_>, msg: &[u8]) {
        let text = brief_text::value(msg, self.options.chars_max);
        let row = self.row(row_context, RowKind::Other(text), msg);
        self.insert_row(row, None);
        self.release();
    }

    pub(super) fn add_anomaly(&mut self, line: u64, bad: &BadFrame<'_>) {
        let start = &bad.raw[..bad.raw.len().min(ANOMALY_BYTES_MAX)];
        let text = String::from_utf8_lossy(start);
        let kind = RowKind::Anomaly {
            reason: bad.reason.clone().into_owned(),
            text: brief_text::truncate(&text, self.options.chars_max),
            bytes_total: bad.bytes_total.unwrap_or(bad.raw.len() as u64),
        };
        self.push(TimelineRow {
            at_us: bad.ts.micros(),
            from: bad.from,
            session: session_name(bad.session.as_deref()),
            bytes: bad.raw.len() as u64,
            matched: self.is_wanted(&bad.raw),
            message: self.options.whole.then(|| bad.raw.to_vec()),
            ..minimal_row(line, kind)
        });
    }

    fn call(&self, envelope: &Envelope<'_>) -> CallInfo {
        let cut =
            |text: json::JsonStr<'_>| brief_text::truncate(&text.decode(), self.options.chars_max);
        CallInfo {
            method: envelope.method.map(cut).unwrap_or_default(),
            name: envelope.name.or(envelope.uri).map(cut),
            arguments: brief_text::arguments(envelope, self.options.chars_max),
        }
    }

    fn row(&self, row_context: &RowContext<'_>, kind: RowKind, msg: &[u8]) -> TimelineRow {
        TimelineRow {
            seq: row_context.message.seq,
            at_us: row_context.at_us,
            from: row_context.message.from,
            session: row_context.session.clone(),
            batch: row_context.batch,
            marks: marks(row_context.message),
            bytes: msg.len() as u64,
            matched: self.is_wanted(msg),
            message: self.options.whole.then(|| msg.to_vec()),
            ..minimal_row(row_context.line, kind)
        }
    }
}

/// The marks of a line, besides its message.
fn marks(message: &MessageLine<'_>) -> LineMarks {
    let mut marks = LineMarks {
        ours: message.ours,
        resumed: message.resumed,
        unterminated: message.unterminated,
        redacted: message.redacted.len(),
        ..LineMarks::default()
    };
    if !message.extra.is_empty() {
        let object = [b"{", &message.extra[1..], b"}"].concat();
        let is = |key: &str| json::member(&object, key) == Some(b"true");
        (marks.held, marks.rewritten) = (is("held"), is("rewritten"));
        marks.held_for_list = json::member(&object, "held") == Some(b"\"list\"");
        let refused = json::member(&object, "refused").and_then(json::string);
        marks.refused = refused.map(|reason| reason.into_owned());
    }
    marks
}

fn session_name(raw: Option<&[u8]>) -> Option<String> {
    let raw = raw?;
    let text = json::string(raw).map(|name| name.into_owned());
    Some(text.unwrap_or_else(|| String::from_utf8_lossy(raw).into_owned()))
}
