//! What a live server can fail to keep of what it said on a tape.

use crate::views::report::Rule;

pub(super) static TOOL: Rule = Rule {
    id: "tool-drift",
    text: "A tool is not what it was: new, gone, or described otherwise. It may be a rug pull.",
    help: "Read what the tool says now as a model would, before it is trusted again.",
};
pub(super) static LISTED: Rule = Rule {
    id: "list-drift",
    text: "A resource, a resource template or a prompt is not what it was.",
    help: "See whether the change is meant.",
};
pub(super) static SERVER: Rule = Rule {
    id: "server-drift",
    text: "The server says something else about itself: version, capabilities, instructions.",
    help: "See whether the change is meant; if it is, record the session anew.",
};
pub(super) static ENDED: Rule = Rule {
    id: "server-ended",
    text: "The server was gone before everything was said.",
    help: "See what the server wrote to its standard error.",
};
pub(super) static ANSWER: Rule = Rule {
    id: "answer-changed",
    text: "The server answers otherwise than it did.",
    help: "See whether the change is meant; --ignore leaves out what changes by nature.",
};
pub(super) static OUTCOME: Rule = Rule {
    id: "outcome-changed",
    text: "There is an error where there was a result, or a result where there was an error.",
    help: "See whether the change is meant.",
};
pub(super) static MISSING: Rule = Rule {
    id: "answer-missing",
    text: "A request was not answered in time, or the answer was too large to be read.",
    help: "See whether the server is well, and give it more time or room.",
};
pub(super) static STRAY: Rule = Rule {
    id: "answer-stray",
    text: "The server answered something that nobody had asked.",
    help: "See which request the server takes it for.",
};
pub(super) static NOTICE: Rule = Rule {
    id: "notification-changed",
    text: "What the server says of its own accord is not what it was.",
    help: "See whether the change is meant; --ignore leaves out what changes by nature.",
};
pub(super) static QUESTION: Rule = Rule {
    id: "question-changed",
    text: "What the server asks the client is not what it was.",
    help: "See whether the change is meant, and whether a user would want to give what is asked.",
};
pub(super) static NOT_SENT: Rule = Rule {
    id: "not-sent",
    text: "A message of the tape was not sent, so what comes of it was not compared.",
    help: "Send more by --calls, if the server may be changed by it.",
};
pub(super) static NOTE: Rule = Rule {
    id: "note",
    text: "Something is worth knowing, and no change.",
    help: "Nothing need be done.",
};
