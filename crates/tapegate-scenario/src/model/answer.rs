//! What using an item gives.

use std::rc::Rc;

use crate::form::{Form, Template};
use crate::when::When;

/// What using an item gives, whatever it is used with.
#[derive(Debug, Default)]
pub struct Response {
    /// The first of these that fits is taken.
    pub branches: Vec<Branch>,
    /// What is taken if none fits.
    pub otherwise: Answer,
}

/// An answer for some requests.
#[derive(Debug)]
pub struct Branch {
    /// Which requests; all of them, if it is not said.
    pub when: Option<When>,
    /// The answer.
    pub answer: Answer,
}

/// Where an answer comes from.
#[derive(Debug, Default)]
pub enum Answer {
    /// Nobody has said; the result is empty.
    #[default]
    Empty,
    /// Always the same.
    Reply(Reply),
    /// One after the other.
    Sequence(Sequence),
    /// A program or another server.
    Handler(Rc<Handler>),
}

/// Answers that are given one after the other.
#[derive(Debug)]
pub struct Sequence {
    /// Which sequence of the scenario: its place is kept by this.
    pub number: u32,
    /// The answers. There is at least one.
    pub replies: Vec<Reply>,
    /// What comes after the last.
    pub exhausted: Exhausted,
}

/// What comes after the last answer of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exhausted {
    /// The last again.
    #[default]
    Last,
    /// The first again.
    Cycle,
    /// An error.
    Error,
}

/// One answer.
#[derive(Debug)]
pub struct Reply {
    /// What is done before it is given.
    pub before: Vec<Action>,
    /// What is given.
    pub outcome: Outcome,
}

/// What a request is answered with.
#[derive(Debug)]
pub enum Outcome {
    /// A result: a JSON object.
    Result(Form),
    /// An error: a JSON object with `code`, `message` and perhaps `data`.
    Error(Form),
    /// Nothing at all.
    Silence,
}

/// Something the server does of its own accord.
#[derive(Debug)]
pub enum Action {
    /// It sends a notification.
    Notify {
        /// The method.
        method: String,
        /// The params.
        params: Option<Form>,
    },
    /// It asks the client. Before a reply it waits for the answer; on entering a phase it does not.
    Ask {
        /// The method.
        method: String,
        /// The id, as JSON, where it matters.
        id: Option<String>,
        /// The params.
        params: Option<Form>,
        /// The name that the answer goes by in templates: `${reply.NAME.…}`.
        name: Option<String>,
        /// How long it waits before it goes on without an answer.
        timeout_ns: u64,
    },
    /// It reports progress, if the client wants to know: an object with `progress`, and perhaps
    /// `total` and `message`.
    Progress(Form),
    /// It sends `notifications/message`, if the client wants to hear of this level.
    Message {
        /// The level.
        level: String,
        /// The params: `level`, `data`, and perhaps `logger`.
        params: Form,
    },
    /// It says something to the people who run it.
    Log(Template),
    /// It waits, in nanoseconds.
    Wait(u64),
    /// It ends the stream on which the request is to be answered, so that the client has to come back
    /// for the rest. Where there are no such streams nothing happens.
    EndStream,
}

/// A program or another server that answers.
#[derive(Debug)]
pub struct Handler {
    /// How it is reached.
    pub kind: HandlerKind,
    /// How long it may take, in nanoseconds.
    pub timeout_ns: u64,
}

/// How a handler is reached.
#[derive(Debug)]
pub enum HandlerKind {
    /// By a POST.
    Http {
        /// Where.
        url: String,
        /// Headers besides those that must be.
        headers: Vec<(String, String)>,
    },
    /// By starting it, without a shell.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Variables besides our own.
        env: Vec<(String, String)>,
        /// Where it is started.
        folder: Option<String>,
    },
}
