//! Responses to using an item.

use std::rc::Rc;

use tapegate_yaml::word_choices;

use crate::request_matcher::RequestMatcher;
use crate::template::{JsonTemplate, Template};

/// The response to using an item.
#[derive(Debug, Default)]
pub struct ItemResponse {
    /// The first branch that matches is taken.
    pub branches: Vec<ResponseBranch>,
    /// The answer if no branch matches.
    pub otherwise: AnswerSource,
}

/// An answer for some requests.
#[derive(Debug)]
pub struct ResponseBranch {
    /// The condition on the request; `None` matches every request.
    pub when: Option<RequestMatcher>,
    pub answer: AnswerSource,
}

/// Where an answer comes from.
#[derive(Debug, Default)]
pub enum AnswerSource {
    /// Nothing was configured; the result is empty.
    #[default]
    Empty,
    /// A fixed reply.
    Reply(ScenarioReply),
    /// One reply after another.
    Sequence(ReplySequence),
    /// A program or another server.
    Handler(Rc<ResponseHandler>),
}

/// Replies given one after another.
#[derive(Debug)]
pub struct ReplySequence {
    /// Its number within the scenario, by which its position is stored.
    pub number: u32,
    /// The replies; at least one.
    pub replies: Vec<ScenarioReply>,
    /// What follows the last one.
    pub exhausted: OnSequenceEnd,
}

word_choices! {
    /// What follows the last reply of a sequence.
    #[derive(Default)]
    pub enum OnSequenceEnd {
        /// The last one again.
        #[default]
        Last = "last",
        /// The first one again.
        Cycle = "cycle",
        /// An error.
        Error = "error",
    }
}

/// One reply.
#[derive(Debug)]
pub struct ScenarioReply {
    /// The actions before it is sent.
    pub before: Vec<ScenarioAction>,
    /// What is sent.
    pub outcome: ReplyOutcome,
}

/// What a request is answered with.
#[derive(Debug)]
pub enum ReplyOutcome {
    /// A result: a JSON object.
    Result(JsonTemplate),
    /// An error: a JSON object with `code`, `message` and perhaps `data`.
    Error(JsonTemplate),
    /// No answer.
    Silence,
}

/// Something the server does on its own.
#[derive(Debug)]
pub enum ScenarioAction {
    /// Sends a notification.
    Notify { method: String, params: Option<JsonTemplate> },
    /// Sends a request to the client. Before a reply it waits for the answer; on entering a phase
    /// not.
    Ask {
        method: String,
        /// The id, as JSON, if the scenario sets it.
        id: Option<String>,
        params: Option<JsonTemplate>,
        /// The name of the answer in templates: `${reply.NAME.…}`.
        name: Option<String>,
        /// How long to wait before going on without an answer.
        timeout_ns: u64,
    },
    /// Reports progress, if the client asked for it: an object with `progress`, and optionally
    /// `total` and `message`.
    Progress(JsonTemplate),
    /// Sends `notifications/message`, if the client wants this level.
    Message {
        level: String,
        /// The params: `level`, `data`, and optionally `logger`.
        params: JsonTemplate,
    },
    /// Writes a log message for the user.
    Log(Template),
    /// Waits, in nanoseconds.
    Wait(u64),
    /// Ends the stream on which the request would be answered, so that the client has to reconnect
    /// for the rest. Does nothing on transports without such streams.
    EndStream,
}

/// A program or another server that answers.
#[derive(Debug)]
pub struct ResponseHandler {
    /// How it is called.
    pub kind: HandlerKind,
    /// Its timeout in nanoseconds.
    pub timeout_ns: u64,
}

word_choices! {
    /// The type of a handler, as scenarios name it.
    pub enum HandlerType {
        /// Called by an HTTP POST.
        Http = "http",
        /// A command.
        Command = "command",
    }
}

/// How a handler is called.
#[derive(Debug)]
pub enum HandlerKind {
    /// By an HTTP POST.
    Http {
        url: String,
        /// Additional headers.
        headers: Vec<(String, String)>,
    },
    /// By running a command, without a shell.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Additional environment variables.
        env: Vec<(String, String)>,
        /// Its working directory.
        folder: Option<String>,
    },
}
