//! Compares the client's answers to requests of the server with the recorded ones.
//!
//! What the recorded server sent next depended on the recorded answer, so a different one is a
//! divergence. Model output and folders vary from run to run and from machine to machine; there a
//! different answer is only worth a warning, unless the user asks for strictness.

use std::io;

use super::player_turn::PlayerTurn;
use crate::frame::{Envelope, Frame, MessageKind};
use crate::json::diff::{DiffOptions, diff};
use crate::json::path::JsonPath;
use crate::json::{self, JsonLocation};
use crate::tape::index::NONE;

/// An answer of the client that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedReply {
    /// The recorded request of the server: its `seq`, or its line if it has none.
    pub number: u32,
    /// The method of that request.
    pub method: String,
    /// How it differs.
    pub change: ReplyChange,
    /// The recorded result or error; empty if it is not known.
    pub recorded: Vec<u8>,
    /// The live one, redacted as the tape is; empty if there is none.
    pub live: Vec<u8>,
    /// Whether it counts as a divergence.
    pub fails: bool,
}

/// How an answer of the client differs from the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyChange {
    /// A different result.
    OtherResult,
    /// A different error.
    OtherError,
    /// An error instead of the recorded result.
    ErrorForResult,
    /// A result instead of the recorded error.
    ResultForError,
    /// There is no answer.
    Missing,
    /// The client left before it answered.
    LeftBefore,
    /// The client has declared that it cannot answer such requests, and was not asked.
    CannotAnswer,
}

impl ReplyChange {
    /// A description of what the client does.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OtherResult => "the client's answer differs from the recorded one",
            Self::OtherError => "the client's error differs from the recorded one",
            Self::ErrorForResult => "the client answers with an error; a result was recorded",
            Self::ResultForError => "the client answers with a result; an error was recorded",
            Self::Missing => "the client does not answer",
            Self::LeftBefore => "the client disconnects without answering",
            Self::CannotAnswer => "the client does not support it; it is not sent",
        }
    }
}

/// Requests of the server whose answers vary from run to run.
const VARYING: [&str; 2] = ["sampling/createMessage", "roots/list"];

impl PlayerTurn<'_, '_> {
    /// Reports an answer of the client that differs from the recorded one.
    pub(super) fn compare_reply(
        &mut self,
        request: u32,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> io::Result<()> {
        let tape = &mut self.context.tape;
        let request_entry = tape.index.entry(request);
        if request_entry.pair == NONE {
            return Ok(());
        }
        let answer = tape.index.entry(request_entry.pair);
        let recorded = tape.text(&answer)?.to_vec();
        let live = tape.masked(text).into_owned();
        let found = match (answer.kind == MessageKind::Error, envelope.kind() == MessageKind::Error)
        {
            (false, true) => Some((ReplyChange::ErrorForResult, "result", "error")),
            (true, false) => Some((ReplyChange::ResultForError, "error", "result")),
            (true, true) => {
                // Messages of errors are prose and vary between versions of a client. Their codes
                // do not.
                let code = |text| json::member(json::member(text, "error")?, "code");
                let same = code(&recorded) == code(&live);
                (!same).then_some((ReplyChange::OtherError, "error", "error"))
            }
            (false, false) => {
                let same = is_same_result(&recorded, &live);
                (!same).then_some((ReplyChange::OtherResult, "result", "result"))
            }
        };
        let Some((change, of_recorded, of_live)) = found else { return Ok(()) };
        let of = |text, key| json::member(text, key).unwrap_or_default().to_vec();
        let (recorded, live) = (of(&recorded, of_recorded), of(&live, of_live));
        self.report_reply_change(request, change, (recorded, live))
    }

    /// Counts and reports a change in the client's answer to a recorded request.
    pub(super) fn report_reply_change(
        &mut self,
        request: u32,
        change: ReplyChange,
        (recorded, live): (Vec<u8>, Vec<u8>),
    ) -> io::Result<()> {
        let tape = &mut self.context.tape;
        let request_entry = tape.index.entry(request);
        let frame = Frame::read(tape.text(&request_entry)?);
        let method = frame.envelope().and_then(|envelope| envelope.method);
        let method = method.map(|method| method.decode().into_owned()).unwrap_or_default();
        let fails = match change {
            // A missing answer may be the client's choice, or follow from its capabilities.
            ReplyChange::LeftBefore | ReplyChange::CannotAnswer => false,
            ReplyChange::OtherResult if VARYING.contains(&method.as_str()) => {
                self.context.options.strict_replies
            }
            _ => true,
        };
        let number = request_entry.number;
        self.stats.report_changed_reply(ChangedReply {
            number,
            method,
            change,
            recorded,
            live,
            fails,
        });
        Ok(())
    }
}

/// Whether two answers have the same result, ignoring its `_meta`.
fn is_same_result(one: &[u8], two: &[u8]) -> bool {
    let of = |text| json::member(text, "result").unwrap_or_default();
    let ignored: Vec<JsonPath> = JsonPath::read("result._meta").into_iter().collect();
    let terms =
        DiffOptions { root: JsonLocation::member("result"), ignored: &ignored, listed_max: 1 };
    match diff(of(one), of(two), &terms) {
        Ok(found) => found.is_empty(),
        // Results that are not JSON are compared byte by byte.
        Err(_) => of(one) == of(two),
    }
}
