//! What stands between a message and its way on.
//!
//! The relay asks a [`Gate`] about every message before it is sent. A gate is pure as far as the
//! relay can tell: it is told what happened and says what is to become of it. What it notes about
//! its decisions is kept by [`Gate::commit`], which comes before anything is sent.

use std::fmt;

use crate::frame::Frame;
use crate::json;
use crate::pending::Unanswered;
use crate::side::{Lane, Side};
use crate::tape::RecordError;
use crate::time::At;

/// One message, and what is known of it besides its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// When it came.
    pub at: At,
    /// Its number on the tape; of a batch, that of its first message.
    pub n: u64,
    /// The conversation.
    pub lane: Lane,
    /// Who sent it.
    pub from: Side,
    /// The message.
    pub frame: &'a Frame<'a>,
    /// Whether its line end came too. Half a line is no message.
    pub terminated: bool,
    /// For an answer: what its request was about, if the request is known.
    pub topic: Option<Topic>,
    /// The permission that a person has given for it, if it was held before.
    pub approved: Option<&'a Approval>,
    /// The hold that has ended because the lists it waited for have come, or failed to.
    pub listed: Option<Ticket>,
}

/// What a request is about, as far as its answer must be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Nothing of the kind.
    Other,
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
    /// `initialize` or `server/discover`.
    Hello,
    /// A call whose answer carries content.
    Call,
}

/// A held call's name between the relay, the gate and whoever asks people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A person's permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The call it was given for.
    pub ticket: Ticket,
    /// Who gave it.
    pub by: String,
}

/// What is to become of a message.
#[derive(Debug)]
pub enum Verdict {
    /// It is sent on as it arrived.
    Forward,
    /// This is sent in its place.
    Rewrite(Vec<u8>),
    /// It goes nowhere. If it was a request, its sender is told so.
    Refuse(Box<Refusal>),
    /// It waits until somebody has decided.
    Hold(Box<Hold>),
    /// It waits until the server has answered requests of our own, and is judged again then.
    ListFirst(Box<ListFirst>),
}

/// How a call waits for what the server is asked by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFirst {
    /// The name it is held by.
    pub ticket: Ticket,
    /// How long the answers may take.
    pub timeout_ms: u64,
    /// What the server is asked first.
    pub request: OwnRequest,
}

/// A request of our own to the server: it lists what the server has, and can be nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRequest {
    id: Vec<u8>,
    text: Vec<u8>,
}

/// What a request of our own asks for.
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

/// What follows the answer to a request of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListStep {
    /// The server is asked this too.
    Next(OwnRequest),
    /// That was all: the held call is judged again.
    Done,
}

/// Why a message goes nowhere, in the words that its sender is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code of the JSON-RPC error.
    pub code: i32,
    /// Its message.
    pub message: String,
    /// Its data: JSON text.
    pub data: String,
    /// What stands on the tape about it.
    pub why: String,
}

/// How a call is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Its name.
    pub ticket: Ticket,
    /// How long it may take.
    pub timeout_ms: u64,
    /// What its sender is told when that has passed; `None` if it is then sent on.
    pub on_timeout: Option<Refusal>,
}

/// How a hold came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// A person said yes. The gate is asked once more, with this.
    Approved(Approval),
    /// A person said no: this is what the sender is told.
    Refused(Refusal),
    /// Nobody could be asked, or nobody's answer could be had: this is what the sender is told.
    Unanswered(Refusal),
}

/// Why a hold ended without anybody's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldEnd {
    /// Nobody decided in time.
    TimedOut,
    /// The caller took the call back.
    Cancelled,
    /// The caller has waited long enough, and may well ask again: a decision is still worth having.
    Abandoned,
    /// Nobody could be asked.
    Unanswered,
    /// The session is over.
    Closed,
}

/// Decides about every message of a session.
pub trait Gate: fmt::Debug {
    /// What is to become of a message. A batch is one message: what is said about it is said about
    /// all of it, and it cannot be held.
    fn judge(&mut self, case: &Case<'_>) -> Verdict;

    /// A hold has ended, though nobody has decided.
    fn ended(&mut self, at: At, ticket: Ticket, how: HoldEnd);

    /// The server has answered a request of our own, for which a call is held.
    fn own_answer(&mut self, _at: At, _ticket: Ticket, _answer: &Frame<'_>) -> ListStep {
        ListStep::Done
    }

    /// A request of our own gets no answer; the held call is judged again after this.
    fn own_failed(&mut self, _at: At, _ticket: Ticket, _why: &str) {}

    /// A message over the size limit was drained; `head` is how it begins.
    fn oversized(&mut self, at: At, lane: Lane, from: Side, bytes_total: u64, head: &[u8]);

    /// An answer came that no request waits for.
    fn orphan_reply(&mut self, _at: At, _lane: Lane, _from: Side, _id: &[u8]) {}

    /// A request of `asker` was sent and is not answered: it has waited for too long, or nobody is
    /// left to answer it.
    fn orphan_request(&mut self, _at: At, _asker: Side, _request: &Unanswered) {}

    /// How long an answer may take before its request is an orphan; `None` if that is not of interest.
    fn answer_timeout_ns(&self) -> Option<u64> {
        None
    }

    /// A message goes nowhere that the gate was not asked about, because it could not travel as it is.
    fn unsent(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str);

    /// An HTTP request or reply can be read in more than one way, for the reason `why`. Notes it, and
    /// returns whether the message is refused. A gate that only observes notes it and returns false.
    fn rejects(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) -> bool;

    /// An HTTP request of a client was passed on that carries no message, such as a step of a login,
    /// or whose query the client chose. `what` says which and how it ended, without secrets.
    fn plain_exchange(&mut self, _at: At, _lane: Lane, _what: &str) {}

    /// Whether secrets are looked for in what the server says to the client.
    fn masks(&mut self) -> bool {
        false
    }

    /// Masks the secrets in text of the server that is not a message, such as the body of an HTTP error
    /// or a header, and notes it; `what` says what the text is. Returns what is sent in its place, or
    /// `None` if it is sent as it is. A gate that only observes notes it and returns `None`.
    fn mask_text(&mut self, _at: At, _lane: Lane, _what: &str, _text: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Has everything kept that was noted. An error means that nothing may be sent because of it.
    fn commit(&mut self) -> Result<(), RecordError>;

    /// Whether it looks at anything at all. Only the gate that is none does not.
    fn governs(&self) -> bool {
        true
    }

    /// Whether what it says is carried out by now, so that nothing may leave that it has not judged. A
    /// gate that only observes says no, and bytes pass as they came.
    fn enforces(&mut self) -> bool {
        self.governs()
    }
}

/// The gate that is none: everything is sent on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Open;

impl Gate for Open {
    fn judge(&mut self, _: &Case<'_>) -> Verdict {
        Verdict::Forward
    }

    fn ended(&mut self, _: At, _: Ticket, _: HoldEnd) {}

    fn oversized(&mut self, _: At, _: Lane, _: Side, _: u64, _: &[u8]) {}

    fn unsent(&mut self, _: At, _: Lane, _: Side, _: &Frame<'_>, _: &str) {}

    fn rejects(&mut self, _: At, _: Lane, _: Side, _: &Frame<'_>, _: &str) -> bool {
        false
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    fn governs(&self) -> bool {
        false
    }
}

impl ListMethod {
    /// The method.
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
    /// A request for a list, or for the page of it that begins at `cursor`. `id` is a text that no client
    /// can guess. `meta` is the JSON object that goes with it as `_meta`; anything else is left out.
    pub fn new(id: &str, list: ListMethod, cursor: Option<&str>, meta: Option<&[u8]>) -> Self {
        let mut raw_id = Vec::new();
        json::write_str(&mut raw_id, id);
        let mut text = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        text.extend_from_slice(&raw_id);
        text.extend_from_slice(b",\"method\":\"");
        text.extend_from_slice(list.name().as_bytes());
        text.extend_from_slice(b"\",\"params\":{");
        if let Some(cursor) = cursor {
            text.extend_from_slice(b"\"cursor\":");
            json::write_str(&mut text, cursor);
        }
        let is_object = |meta: &&[u8]| meta.first() == Some(&b'{') && json::check(meta).is_ok();
        if let Some(meta) = meta.filter(is_object) {
            text.extend(cursor.map(|_| b','));
            text.extend_from_slice(b"\"_meta\":");
            text.extend_from_slice(&json::compact(meta));
        }
        text.extend_from_slice(b"}}");
        Self { id: raw_id, text }
    }

    /// Its raw id.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// The whole request on one line, without line end.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn into_text(self) -> Vec<u8> {
        self.text
    }
}

impl Topic {
    /// What a request with this method is about.
    pub fn of(method: &[u8]) -> Self {
        match method {
            b"tools/list" => Self::Tools,
            b"resources/list" => Self::Resources,
            b"resources/templates/list" => Self::Templates,
            b"prompts/list" => Self::Prompts,
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
