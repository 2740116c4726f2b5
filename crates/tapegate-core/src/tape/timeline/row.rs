//! The rows of a timeline.

use crate::side::Side;

/// One item of a timeline: a request with its answer, a notification, a frame that is not a message,
/// or the start or end of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineRow {
    /// Its line, from 1.
    pub line: u64,
    /// `seq` of the message.
    pub seq: Option<u64>,
    /// When it was recorded, in microseconds since 1970.
    pub at_us: Option<i64>,
    /// Who sent it.
    pub from: Side,
    /// The session, if the tape names one.
    pub session: Option<String>,
    /// The batch it arrived in.
    pub batch: Option<u64>,
    /// What it is.
    pub kind: RowKind,
    /// How it was handled, according to the tape.
    pub marks: LineMarks,
    /// Its answer, if there is one.
    pub answer: Option<CallAnswer>,
    /// The length of its message.
    pub bytes: u64,
    /// Its message, if whole messages are kept.
    pub message: Option<Vec<u8>>,
    /// Whether it, or its answer, matches the search.
    pub matched: bool,
    /// The request it belongs to, if that was returned before.
    pub under: Option<String>,
    /// What belongs to it: progress, and the server's requests meanwhile.
    pub children: Vec<TimelineRow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKind {
    /// A request; its answer is in the same row, if it has arrived.
    Request {
        /// What it asks for.
        call: CallInfo,
        /// Its id, as JSON.
        id: Vec<u8>,
        /// The state of its answer.
        state: RequestState,
    },
    /// A message that expects no answer.
    Notification(CallInfo),
    /// An answer whose request is unknown, or was returned before.
    LateAnswer(CallInfo),
    /// A request that was returned before, while it waited, and has no answer on the tape.
    NoAnswer {
        /// What it asked for, without its arguments.
        call: CallInfo,
        /// Neither [`RequestState::Answered`] nor [`RequestState::Waiting`].
        state: RequestState,
    },
    /// An object that is not a JSON-RPC message.
    Other(String),
    /// A frame that is not a message, or a marker, with the reason.
    Anomaly {
        /// `parse_error`
        reason: String,
        /// The start of the frame.
        text: String,
        /// The length of the frame.
        bytes_total: u64,
    },
    /// A recording begins.
    Begin {
        /// `name`
        name: Option<String>,
        /// `upstream`
        upstream: String,
    },
    /// A recording was closed in order.
    End {
        /// How many messages it has.
        messages: u64,
        duration_ms: u64,
    },
    /// A line that cannot be read, or is of an unknown type.
    Fault(String),
}

/// The state of a request's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// It has arrived.
    Answered,
    /// It may still arrive: the row was returned before. Another row follows, with the answer or
    /// without one, except for a subscription that lasts to the end.
    Waiting,
    /// It is not on the tape.
    Unanswered,
    /// It may be on a line that is too long to be read.
    Unreadable,
    /// It was cancelled and not answered.
    Cancelled,
}

/// What a message is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallInfo {
    pub method: String,
    /// The tool, prompt or URI.
    pub name: Option<String>,
    /// The arguments, or the params that are not shown elsewhere, in short form.
    pub arguments: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAnswer {
    pub line: u64,
    /// `seq` of the message.
    pub seq: Option<u64>,
    /// When it was recorded.
    pub at_us: Option<i64>,
    /// How long it took: `latency_ms`, or the difference of the timestamps.
    pub latency_us: Option<u64>,
    pub outcome: AnswerOutcome,
    /// A short text of its content.
    pub text: String,
    /// How it was handled, according to the tape.
    pub marks: LineMarks,
    /// The length of the message.
    pub bytes: u64,
    /// The message, if whole messages are kept.
    pub message: Option<Vec<u8>>,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// A result.
    Ok,
    /// A tool result that is marked as an error.
    ToolError,
    /// An error, with its code if it has one.
    Error(Option<i64>),
}

/// The marks of a line, besides its message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineMarks {
    /// The recorder's own message.
    pub ours: bool,
    /// It waited for a person's decision.
    pub held: bool,
    /// It waited for a list that the gate had asked the server for, not for a person at first.
    pub held_for_list: bool,
    /// It was not sent on, for this reason.
    pub refused: Option<String>,
    /// The gate changed it.
    pub rewritten: bool,
    /// It arrived on a resumed stream.
    pub resumed: bool,
    /// Its line ending never arrived.
    pub unterminated: bool,
    /// How many values are masked.
    pub redacted: usize,
}

impl TimelineRow {
    /// Whether it, or one of its children, still waits for an answer.
    pub(super) fn is_open(&self) -> bool {
        self.is_waiting() || self.children.iter().any(TimelineRow::is_waiting)
    }

    fn is_waiting(&self) -> bool {
        match &self.kind {
            RowKind::Request { state: RequestState::Waiting, call, .. } => {
                super::is_waited_for(&call.method)
            }
            _ => false,
        }
    }

    /// Approximately how much memory it takes.
    pub(super) fn weight(&self) -> usize {
        let kept = |message: &Option<Vec<u8>>| message.as_ref().map_or(0, Vec::len);
        let answer = self.answer.as_ref().map_or(0, |answer| kept(&answer.message) + 256);
        let children: usize = self.children.iter().map(TimelineRow::weight).sum();
        512 + kept(&self.message) + answer + children
    }

    /// What it is about, if it is a message.
    pub fn call(&self) -> Option<&CallInfo> {
        match &self.kind {
            RowKind::Request { call, .. }
            | RowKind::Notification(call)
            | RowKind::LateAnswer(call)
            | RowKind::NoAnswer { call, .. } => Some(call),
            _ => None,
        }
    }

    /// Marks it as no longer waiting.
    pub(super) fn end(&mut self, how: RequestState) {
        if let RowKind::Request { state, .. } = &mut self.kind
            && *state == RequestState::Waiting
        {
            *state = how;
        }
    }
}
