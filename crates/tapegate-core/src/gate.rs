//! The interface between the relay and the policy that decides about messages.
//!
//! The relay asks a [`Gate`] about every message before it is sent. To the relay a gate is pure: it is
//! told what happened and returns a verdict. Whatever it notes about its decisions is persisted by
//! [`Gate::commit`], which is called before anything is sent.

mod task_handle;
mod user_question;

use std::fmt;

use crate::frame::{Frame, request_text};
use crate::json::{self, JsonObject};
use crate::pending::UnansweredRequest;
use crate::side::{Lane, Side};
use crate::tape::RecordError;
use crate::time::Timestamp;

pub use task_handle::{TASKS_EXTENSION, TaskDialect, TaskHandle, accepts_tasks, gives_input};
pub use user_question::{INPUT_KEY, InputQuestion, UserChoice, UserQuestion};

/// One message, and what is known about it besides its bytes.
#[derive(Debug, Clone, Copy)]
pub struct GateInput<'a> {
    /// When it arrived.
    pub at: Timestamp,
    /// Its number on the tape; for a batch, that of its first message.
    pub n: u64,
    /// The lane it travels in.
    pub lane: Lane,
    /// Who sent it.
    pub from: Side,
    /// The message.
    pub frame: &'a Frame<'a>,
    /// Whether its line ending arrived too. A partial line is not a message.
    pub terminated: bool,
    /// For an answer: the topic of its request, if the request is known.
    pub topic: Option<Topic>,
    /// A person's approval, if it was held before.
    pub approved: Option<&'a Approval>,
    /// The hold that ended because the lists it waited for arrived or failed.
    pub listed: Option<HoldId>,
}

/// Where a message stands in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePlace {
    /// When it arrived.
    pub at: Timestamp,
    /// The lane it travels in.
    pub lane: Lane,
    /// Who sent it.
    pub from: Side,
}

impl GateInput<'_> {
    /// Where the message stands.
    pub fn place(&self) -> MessagePlace {
        MessagePlace { at: self.at, lane: self.lane, from: self.from }
    }
}

/// What a request is about, as far as that affects how its answer is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Anything else.
    Other,
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
    /// `tasks/list`, from its first page.
    Tasks,
    /// `initialize` or `server/discover`.
    Hello,
    /// A call whose answer carries content.
    Call,
}

/// Identifies a held call to the relay, the gate and the approval channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldId(pub u64);

/// A person's approval of a held call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The call it was given for.
    pub hold_id: HoldId,
    /// Who gave it.
    pub by: String,
}

/// What to do with a message.
#[derive(Debug)]
pub enum Verdict {
    /// Send it on unchanged.
    Forward,
    /// Send this in its place.
    Rewrite(Vec<u8>),
    /// Do not send it. If it is a request, its sender gets an error.
    Refuse(Box<Refusal>),
    /// Hold it until it is approved or denied.
    Hold(Box<Hold>),
    /// Hold it until the server has answered requests of our own, then judge it again.
    ListFirst(Box<ListFirst>),
}

/// How a call is held while the server answers our own requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFirst {
    pub hold_id: HoldId,
    /// How long the answers may take.
    pub timeout_ms: u64,
    /// The first request to the server.
    pub request: OwnRequest,
}

/// A request of our own to the server. It can only ask for a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRequest {
    id: Vec<u8>,
    text: Vec<u8>,
}

/// The list that a request of our own asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListMethod {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

/// What to do after the answer to a request of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListStep {
    /// Send the server this request too.
    Next(OwnRequest),
    /// All lists are complete: judge the held call again.
    Done,
}

/// Why a message is refused, as its sender is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code of the JSON-RPC error.
    pub code: i32,
    pub message: String,
    /// Its data: JSON text.
    pub data: String,
    /// The reason recorded on the tape.
    pub reason: String,
}

/// How a call is held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hold {
    pub hold_id: HoldId,
    /// How long a decision may take.
    pub timeout_ms: u64,
    /// The error its sender gets on timeout; `None` if the call is then sent on.
    pub on_timeout: Option<Refusal>,
    /// What its sender is told about the wait, in progress notifications.
    pub progress: String,
    /// What is sent if the call is released, if not the message as it arrived.
    pub replacement: Option<Vec<u8>>,
    /// The task that stands for the call, if its sender asked for one.
    pub task: Option<TaskHandle>,
}

/// How a hold was settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldOutcome {
    /// A person approved it. The gate judges the call again, with this approval.
    Approved(Approval),
    /// A person denied it: the error its sender gets.
    Refused(Refusal),
    /// No approver was reachable, or no decision could be obtained: the error its sender gets.
    Unanswered(Refusal),
    /// Not decided yet: the client's user is asked too, and the call stays held.
    AskUser(Box<UserQuestion>),
    /// Not decided yet: the call is answered with a question, and made again with the user's
    /// answer.
    AskInResult(Box<InputQuestion>),
}

/// Why a hold ended without a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEnd {
    /// No one decided in time.
    TimedOut,
    /// The caller cancelled the call.
    Cancelled,
    /// The caller stopped waiting but may well retry, so a decision is still useful.
    Abandoned,
    /// The caller was asked for its user's decision, and makes the call again with it.
    Asked,
    /// No approver was reachable.
    Unanswered,
    /// The session is over.
    Closed,
}

/// Decides about every message of a session.
pub trait Gate: fmt::Debug {
    /// Decides about a message. A batch is one message: the verdict applies to all of it, and it cannot
    /// be held.
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict;

    /// A hold has ended without a decision.
    fn hold_ended(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd);

    /// A hold has ended because its call was refused.
    fn hold_refused(&mut self, _hold_id: HoldId) {}

    /// The server has answered a request of our own that a held call waits for.
    fn own_request_answered(
        &mut self,
        _at: Timestamp,
        _hold_id: HoldId,
        _answer: &Frame<'_>,
    ) -> ListStep {
        ListStep::Done
    }

    /// A request of our own will not be answered; the held call is judged again after this.
    fn own_request_failed(&mut self, _at: Timestamp, _hold_id: HoldId, _reason: &str) {}

    /// The client has answered the question about a held call; `None` if its user has not decided.
    fn user_answered(&mut self, _at: Timestamp, _hold_id: HoldId, _choice: Option<UserChoice>) {}

    /// A message over the size limit was drained; `head` is its first bytes.
    fn note_oversize(&mut self, place: MessagePlace, bytes_total: u64, head: &[u8]);

    /// An answer arrived that matches no pending request.
    fn note_orphan_reply(&mut self, _place: MessagePlace, _id: &[u8]) {}

    /// A request of `asker` was sent and not answered: it has waited too long, or its receiver is gone.
    fn note_orphan_request(&mut self, _at: Timestamp, _asker: Side, _request: &UnansweredRequest) {}

    /// How long an answer may take before its request is an orphan; `None` if there is no limit.
    fn answer_timeout_ns(&self) -> Option<u64> {
        None
    }

    /// A message is not sent for a reason other than a verdict: it could not be delivered as it is.
    fn note_unsent(&mut self, place: MessagePlace, frame: &Frame<'_>, reason: &str);

    /// An HTTP request or reply is ambiguous, for `reason`. Notes it, and returns whether the
    /// message is refused. A gate that only observes returns false.
    fn reject_ambiguous(&mut self, place: MessagePlace, frame: &Frame<'_>, reason: &str) -> bool;

    /// An HTTP request was passed on that carries no message, such as a login step, or whose query the
    /// client chose. `what` describes it and its outcome, without secrets.
    fn note_plain_exchange(&mut self, _at: Timestamp, _lane: Lane, _what: &str) {}

    /// Whether secrets in what the server sends to the client are looked for.
    fn masks(&mut self) -> bool {
        false
    }

    /// Masks the secrets in text from the server that is not a message, such as the body of an HTTP error
    /// or a header, and notes it; `what` names the text. Returns the masked text, or `None` to send it
    /// unchanged. A gate that only observes notes it and returns `None`.
    fn mask_text(
        &mut self,
        _at: Timestamp,
        _lane: Lane,
        _what: &str,
        _text: &[u8],
    ) -> Option<Vec<u8>> {
        None
    }

    /// Persists everything noted so far. On an error, nothing that depends on it may be sent.
    fn commit(&mut self) -> Result<(), RecordError>;

    /// Whether it inspects messages at all. False only for a gate that permits everything.
    fn is_active(&self) -> bool {
        true
    }

    /// Whether its verdicts are currently enforced, so that nothing unjudged may be sent. False for a
    /// gate that only observes: bytes then pass unchanged.
    fn is_enforcing(&mut self) -> bool {
        self.is_active()
    }
}

/// A gate that permits everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct PermitAllGate;

impl Gate for PermitAllGate {
    fn judge(&mut self, _: &GateInput<'_>) -> Verdict {
        Verdict::Forward
    }

    fn hold_ended(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}

    fn note_oversize(&mut self, _: MessagePlace, _: u64, _: &[u8]) {}

    fn note_unsent(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) {}

    fn reject_ambiguous(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) -> bool {
        false
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    fn is_active(&self) -> bool {
        false
    }
}

impl ListMethod {
    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }
}

impl OwnRequest {
    /// A request for a list, or for the page of it at `cursor`. `id` is a text that no client can guess.
    /// `meta` is the JSON object to send as `_meta`; anything else is left out.
    pub fn new(id: &str, list: ListMethod, cursor: Option<&str>, meta: Option<&[u8]>) -> Self {
        let id = json::quoted(id);
        let is_object = |meta: &&[u8]| meta.first() == Some(&b'{') && json::check(meta).is_ok();
        let params = JsonObject::new()
            .raw_opt("cursor", cursor.map(json::quoted))
            .raw_opt("_meta", meta.filter(is_object).map(json::compact));
        let text = request_text(&id, list.name(), Some(&params.finish()));
        Self { id, text }
    }

    /// Its raw id.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// The whole request on one line, without a line ending.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn into_text(self) -> Vec<u8> {
        self.text
    }
}

impl Topic {
    /// The topic of a request with this method.
    pub fn of(method: &[u8]) -> Self {
        match method {
            b"tools/list" => Self::Tools,
            b"resources/list" => Self::Resources,
            b"resources/templates/list" => Self::Templates,
            b"prompts/list" => Self::Prompts,
            b"tasks/list" => Self::Tasks,
            b"initialize" | b"server/discover" => Self::Hello,
            b"tools/call" | b"resources/read" | b"prompts/get" | b"completion/complete" => {
                Self::Call
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_our_own_is_a_list_whatever_the_gate_puts_in() {
        let written = |cursor, meta: Option<&str>| {
            let request =
                OwnRequest::new("a\n", ListMethod::Tools, cursor, meta.map(str::as_bytes));
            String::from_utf8_lossy(request.text()).into_owned()
        };
        let start = r#"{"jsonrpc":"2.0","id":"a\n","method":"tools/list","params":"#;
        for (cursor, meta, params) in [
            (None, None, "{}}"),
            (Some("a\"b\n"), None, r#"{"cursor":"a\"b\n"}}"#),
            (None, Some("{ \"x\":\n1}"), r#"{"_meta":{"x":1}}}"#),
            (Some("c"), Some("{}"), r#"{"cursor":"c","_meta":{}}}"#),
            (None, Some("{}},\"method\":\"tools/call\",\"x\":{\"y\":{}"), "{}}"),
            (None, Some("7"), "{}}"),
        ] {
            assert_eq!(written(cursor, meta), format!("{start}{params}"));
        }
    }
}
