//! Adds the messages of a tape to a timeline.

use super::super::line::{Bad, Message, Stamp};
use super::open::{Asked, AskedKey, Parent};
use super::{
    Answer, AnswerOutcome, Call, Marks, RequestState, Row, RowKind, Timeline, bare, brief,
};
use crate::frame::{Body, Envelope, Frame, Kind, elements};
use crate::json;
use crate::pending::IdKey;
use crate::side::Side;
use crate::time::read_rfc3339;

/// How much of a frame that is not a message is read.
const ANOMALY_BYTES_MAX: usize = 4096;

/// What the rows of one message have in common.
struct Seen<'m> {
    line: u64,
    message: &'m Message<'m>,
    at_us: Option<i64>,
    session: Option<String>,
    batch: Option<u64>,
}

impl Timeline {
    pub(super) fn message(&mut self, line: u64, message: &Message<'_>) {
        let frame = Frame::glance(&message.msg);
        let at_us = match message.ts {
            Stamp::At(at_us) => Some(at_us),
            Stamp::Text(text) => read_rfc3339(text),
        };
        let session = session_name(message.session.as_deref());
        let mut seen = Seen { line, message, at_us, session, batch: message.batch };
        match frame.body() {
            Body::Message(envelope) => self.one(&seen, envelope, &message.msg),
            Body::Batch => {
                self.batches += 1;
                seen.batch = Some(self.batches);
                for element in elements(&message.msg) {
                    match element.envelope() {
                        Some(envelope) => self.one(&seen, envelope, element.bytes()),
                        None => self.other(&seen, element.bytes()),
                    }
                }
            }
            Body::Garbage(_) => self.other(&seen, &message.msg),
        }
    }

    /// Adds one message.
    fn one(&mut self, seen: &Seen<'_>, envelope: &Envelope<'_>, msg: &[u8]) {
        match (envelope.kind(), envelope.id) {
            (Kind::Request, Some(id)) => self.request(seen, envelope, id, msg),
            (Kind::Response | Kind::Error, id) => self.answer(seen, envelope, id, msg),
            (Kind::Request | Kind::Notification, _) => self.notification(seen, envelope, msg),
            (Kind::Other, _) => self.other(seen, msg),
        }
    }

    fn request(&mut self, seen: &Seen<'_>, envelope: &Envelope<'_>, id: &[u8], msg: &[u8]) {
        let from = seen.message.from;
        let call = self.call(envelope);
        // A tape without headers may hold several recordings, each with its own ids.
        let begins = from == Side::Client && call.method == "initialize";
        if begins && seen.message.seq.is_none() && !self.begun.insert(seen.session.clone()) {
            self.forget(Some(&seen.session));
        }
        let key = (from, seen.session.clone(), IdKey::new(id));
        let token = envelope
            .progress_token
            .map(|token| (from.other(), seen.session.clone(), IdKey::new(token)));
        let (method, name) = (call.method.clone(), call.name.clone());
        let kind = RowKind::Request { call, id: id.to_vec(), state: RequestState::Waiting };
        let row = self.row(seen, kind, msg);
        let parent = match from {
            Side::Server => self.open.latest(&seen.session),
            Side::Client => None,
        };
        let place = self.put(row, parent);
        let (seq, at_us) = (seen.message.seq, seen.at_us);
        let asked = Asked { place, seq, at_us, method, name, token };
        if !self.open.ask(key, id, asked) {
            self.settle(place, |row| row.end(RequestState::Unanswered));
        }
        self.release();
    }

    fn notification(&mut self, seen: &Seen<'_>, envelope: &Envelope<'_>, msg: &[u8]) {
        let from = seen.message.from;
        let call = self.call(envelope);
        let key = |id: &[u8], of: Side| (of, seen.session.clone(), IdKey::new(id));
        let cancels = call.method == "notifications/cancelled";
        let cancelled = envelope.request_id.filter(|_| cancels);
        let cancelled = cancelled.and_then(|id| self.open.with_id(&key(id, from)));
        let token = envelope.progress_token.filter(|_| call.method == "notifications/progress");
        let parent = match (&cancelled, token) {
            (Some(_), _) => cancelled.clone(),
            (None, Some(token)) => self.open.with_token(&key(token, from)),
            (None, None) if from == Side::Server => self.open.latest(&seen.session),
            (None, None) => None,
        };
        let row = self.row(seen, RowKind::Notification(call), msg);
        self.put(row, parent);
        if let Some(Parent { place, .. }) = cancelled {
            // Its answer may still come, but the row does not wait for it.
            self.settle(place, |row| row.end(RequestState::Cancelled));
        }
        self.release();
    }

    fn answer(&mut self, seen: &Seen<'_>, envelope: &Envelope<'_>, id: Option<&[u8]>, msg: &[u8]) {
        let key: Option<AskedKey> =
            id.map(|id| (seen.message.from.other(), seen.session.clone(), IdKey::new(id)));
        let asked = key.and_then(|key| self.open.answer(&key, seen.message.req));
        let method = asked.as_ref().map_or("", |asked| asked.method.as_str());
        let since = asked.as_ref().and_then(|asked| asked.at_us);
        let answer = self.answer_of(seen, envelope, method, since, msg);
        let matched = self.is_wanted(msg);
        let row = asked.as_ref().and_then(|asked| self.row_at(asked.place));
        if let Some(row) = row {
            if let RowKind::Request { state, .. } = &mut row.kind {
                *state = RequestState::Answered;
            }
            row.answer = Some(answer);
            row.matched |= matched;
            self.bytes += 256 + if self.options.whole { msg.len() } else { 0 };
        } else {
            let asked = asked.map(|asked| (asked.method, asked.name)).unwrap_or_default();
            let call = Call { method: asked.0, name: asked.1, arguments: String::new() };
            let row = self.row(seen, RowKind::LateAnswer(call), msg);
            self.put(Row { answer: Some(answer), message: None, ..row }, None);
        }
        self.release();
    }

    fn answer_of(
        &self,
        seen: &Seen<'_>,
        envelope: &Envelope<'_>,
        method: &str,
        since_us: Option<i64>,
        msg: &[u8],
    ) -> Answer {
        let chars_max = self.options.chars_max;
        let (outcome, text) = match (envelope.error, envelope.result) {
            (Some(error), _) => {
                let (code, text) = brief::error(error, chars_max);
                (AnswerOutcome::Error(code), text)
            }
            (None, result) => {
                let result = result.unwrap_or_default();
                let failed = json::member(result, "isError") == Some(b"true");
                let outcome = if failed { AnswerOutcome::ToolError } else { AnswerOutcome::Ok };
                (outcome, brief::result(method, result, chars_max))
            }
        };
        let passed = since_us.zip(seen.at_us).and_then(|(from, to)| u64::try_from(to - from).ok());
        let latency_us = match (seen.message.latency_ms, passed) {
            // The tape rounds down. Its moments are more exact, unless the clock was set meanwhile.
            (Some(ms), Some(us)) if us / 1000 == ms => Some(us),
            (Some(ms), _) => Some(ms.saturating_mul(1000)),
            (None, passed) => passed,
        };
        Answer {
            line: seen.line,
            seq: seen.message.seq,
            at_us: seen.at_us,
            latency_us,
            outcome,
            text,
            marks: marks(seen.message),
            bytes: msg.len() as u64,
            message: self.options.whole.then(|| msg.to_vec()),
        }
    }

    fn other(&mut self, seen: &Seen<'_>, msg: &[u8]) {
        let text = brief::value(msg, self.options.chars_max);
        let row = self.row(seen, RowKind::Other(text), msg);
        self.put(row, None);
        self.release();
    }

    pub(super) fn anomaly(&mut self, line: u64, bad: &Bad<'_>) {
        let start = &bad.raw[..bad.raw.len().min(ANOMALY_BYTES_MAX)];
        let text = String::from_utf8_lossy(start);
        let kind = RowKind::Anomaly {
            reason: bad.reason.clone().into_owned(),
            text: brief::cut(&text, self.options.chars_max),
            bytes_total: bad.bytes_total.unwrap_or(bad.raw.len() as u64),
        };
        let at_us = match bad.ts {
            Stamp::At(at_us) => Some(at_us),
            Stamp::Text(text) => read_rfc3339(text),
        };
        self.push(Row {
            at_us,
            from: bad.from,
            session: session_name(bad.session.as_deref()),
            bytes: bad.raw.len() as u64,
            matched: self.is_wanted(&bad.raw),
            message: self.options.whole.then(|| bad.raw.to_vec()),
            ..bare(line, kind)
        });
    }

    fn call(&self, envelope: &Envelope<'_>) -> Call {
        let cut = |text: json::Str<'_>| brief::cut(&text.decode(), self.options.chars_max);
        Call {
            method: envelope.method.map(cut).unwrap_or_default(),
            name: envelope.name.or(envelope.uri).map(cut),
            arguments: brief::arguments(envelope, self.options.chars_max),
        }
    }

    fn row(&self, seen: &Seen<'_>, kind: RowKind, msg: &[u8]) -> Row {
        Row {
            seq: seen.message.seq,
            at_us: seen.at_us,
            from: seen.message.from,
            session: seen.session.clone(),
            batch: seen.batch,
            marks: marks(seen.message),
            bytes: msg.len() as u64,
            matched: self.is_wanted(msg),
            message: self.options.whole.then(|| msg.to_vec()),
            ..bare(seen.line, kind)
        }
    }
}

/// The marks of a line, besides its message.
fn marks(message: &Message<'_>) -> Marks {
    let mut marks = Marks {
        ours: message.ours,
        resumed: message.resumed,
        unterminated: message.unterminated,
        redacted: message.redacted.len(),
        ..Marks::default()
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
