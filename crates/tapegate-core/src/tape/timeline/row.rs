//! The rows of a timeline.

use crate::side::Side;

/// What a reader sees as one thing: a request with its answer, a notification, a frame that is not a
/// message, or where a recording begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The line it stands on, from 1.
    pub line: u64,
    /// `seq` of the message.
    pub seq: Option<u64>,
    /// When it was recorded, in microseconds since 1970.
    pub at_us: Option<i64>,
    /// Who sent it.
    pub from: Side,
    /// The session, if the tape names one.
    pub session: Option<String>,
    /// Which batch it came in.
    pub batch: Option<u64>,
    /// What it is.
    pub kind: RowKind,
    /// What the tape says about how it was handled.
    pub marks: Marks,
    /// The answer, if it has come.
    pub answer: Option<Answer>,
    /// How long its message is.
    pub bytes: u64,
    /// Its message, if whole messages are kept.
    pub message: Option<Vec<u8>>,
    /// Whether it, or its answer, is looked for.
    pub matched: bool,
    /// The request it belongs to, if that was handed out before.
    pub under: Option<String>,
    /// What belongs to it: progress, and what the server asked meanwhile.
    pub children: Vec<Row>,
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKind {
    /// A request; its answer is with it, or has not come.
    Request {
        /// What it asks for.
        call: Call,
        /// Its id, as JSON.
        id: Vec<u8>,
        /// What is known of its answer.
        state: RequestState,
    },
    /// A message that no answer is due to.
    Notification(Call),
    /// An answer whose request is not known, or was handed out before.
    LateAnswer(Call),
    /// An object that is not a JSON-RPC message.
    Other(String),
    /// A frame that is not a message, or a marker, with the reason.
    Anomaly {
        /// `parse_error`
        reason: String,
        /// How the frame begins.
        text: String,
        /// How long it was.
        bytes_total: u64,
    },
    /// A recording begins.
    Begin {
        /// `name`
        name: Option<String>,
        /// `upstream`
        upstream: String,
    },
    /// A recording ended in order.
    End {
        /// How many messages it has.
        messages: u64,
        /// How long it took.
        duration_ms: u64,
    },
    /// A line that cannot be read, or is of an unknown type.
    Fault(String),
}

/// What is known of a request's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// It has come.
    Answered,
    /// It may still come: the row had to be handed out before.
    Waiting,
    /// It is not on the tape.
    Unanswered,
    /// It was cancelled and not answered.
    Cancelled,
}

/// What a message is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: String,
    /// The tool, prompt or URI.
    pub name: Option<String>,
    /// The arguments, or the params that are not told otherwise, in short.
    pub arguments: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The line it stands on.
    pub line: u64,
    /// `seq` of the message.
    pub seq: Option<u64>,
    /// When it was recorded.
    pub at_us: Option<i64>,
    /// How long it took: `latency_ms`, or what the moments say.
    pub latency_us: Option<u64>,
    /// How it went.
    pub outcome: AnswerOutcome,
    /// What it says, in short.
    pub text: String,
    /// What the tape says about how it was handled.
    pub marks: Marks,
    /// How long the message is.
    pub bytes: u64,
    /// The message, if whole messages are kept.
    pub message: Option<Vec<u8>>,
}

/// How a request went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOutcome {
    /// A result.
    Ok,
    /// A result of a tool that says it is an error.
    ToolError,
    /// An error, with its code if it has one.
    Error(Option<i64>),
}

/// What a line says besides its message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The recorder's own message.
    pub ours: bool,
    /// It waited for a decision.
    pub held: bool,
    /// It was not sent on, for this reason.
    pub refused: Option<String>,
    /// The gate changed it.
    pub rewritten: bool,
    /// It came on a stream that was resumed.
    pub resumed: bool,
    /// Its line end never came.
    pub unterminated: bool,
    /// How many values are masked.
    pub redacted: usize,
}

impl Row {
    /// Whether it is still open: an answer to it, or to what belongs to it, is due.
    pub(super) fn is_open(&self) -> bool {
        self.is_waiting() || self.children.iter().any(Row::is_waiting)
    }

    fn is_waiting(&self) -> bool {
        match &self.kind {
            RowKind::Request { state: RequestState::Waiting, call, .. } => {
                super::is_waited_for(&call.method)
            }
            _ => false,
        }
    }

    /// About how much memory it takes.
    pub(super) fn weight(&self) -> usize {
        let kept = |message: &Option<Vec<u8>>| message.as_ref().map_or(0, Vec::len);
        let answer = self.answer.as_ref().map_or(0, |answer| kept(&answer.message) + 256);
        let children: usize = self.children.iter().map(Row::weight).sum();
        512 + kept(&self.message) + answer + children
    }

    /// What it is about, if it is a message.
    pub fn call(&self) -> Option<&Call> {
        match &self.kind {
            RowKind::Request { call, .. }
            | RowKind::Notification(call)
            | RowKind::LateAnswer(call) => Some(call),
            _ => None,
        }
    }

    /// Says that it is not waited for any longer.
    pub(super) fn end(&mut self, how: RequestState) {
        if let RowKind::Request { state, .. } = &mut self.kind
            && *state == RequestState::Waiting
        {
            *state = how;
        }
    }
}
