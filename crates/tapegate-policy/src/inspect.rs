//! Checks that every reader parses a message the same way.
//!
//! A decision is worthless if the receiver reads a different message than the gate did. So anything
//! that parsers disagree about is a fault: bytes after the value, duplicate members, member names
//! that lenient parsers confuse, misplaced line ends, calls that are not requests or have no name.
//! An ordinary message costs one search over its bytes; only unusual bytes or params are parsed a
//! second time.

mod embedded;
mod prototype;
mod repeats;
mod target;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::{Body, Envelope, Frame, Garbage, Kind, is_long_batch};
use tapegate_core::json;
use tapegate_core::side::Side;

use crate::gated::Gated;

pub use target::{Target, targets};

/// How the messages of one side arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carrier {
    /// One message per line.
    #[default]
    Lines,
    /// HTTP bodies and events: line ends are allowed between values, and an array may hold several
    /// messages.
    Http,
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// It is not UTF-8.
    NotUtf8,
    /// It is not JSON.
    NotJson,
    /// There are bytes after it.
    Trailing,
    /// It, or a name in it, contains a NUL.
    Nul,
    /// It contains a carriage return.
    CarriageReturn,
    /// It is JSON, but not an object.
    NotAnObject,
    /// It is an array of messages on a line-based transport.
    Batch,
    /// It is a batch with more elements than allowed.
    LongBatch,
    /// It lacks `"jsonrpc":"2.0"`.
    Version,
    /// It is not a request, notification or response.
    Shapeless,
    /// It is both a request and a response.
    Ambiguous,
    /// Its id is neither a string nor a number.
    Id,
    /// A member occurs twice.
    Repeated,
    /// It has member names that lenient parsers take for the same key.
    Twin,
    /// It has a member `__proto__`, which JavaScript merges into the object that has it.
    Prototype,
    /// A string in it contains another message after a line end.
    Embedded,
    /// A name in it contains an unpaired surrogate.
    Surrogate,
    /// It is nested too deeply.
    Deep,
    /// It calls something, but is not a request.
    Notification,
    /// It calls something, but does not name it.
    Nameless,
    /// It requests input before it responds, but not in the form the protocol defines.
    InputRequests,
    /// A text in it mentions a file of Tapegate's own. This is only logged.
    OwnFileMention,
}

/// Everything unusual about the form of a message; nearly always empty. The judge decides which of
/// these faults stop the message.
pub fn inspect(frame: &Frame<'_>, from: Side, carrier: Carrier) -> Vec<Fault> {
    let mut faults = Vec::new();
    match frame.body() {
        Body::Garbage(Garbage::Empty) => {}
        Body::Garbage(Garbage::NotAnObject) => faults.push(Fault::NotAnObject),
        Body::Garbage(Garbage::NotJson(fault)) => faults.push(no_json(frame.bytes(), fault)),
        Body::Batch if carrier == Carrier::Lines => faults.push(Fault::Batch),
        Body::Batch => {
            line_ends(frame.bytes(), carrier, &mut faults);
            if is_empty_array(frame.text()) {
                faults.push(Fault::Shapeless);
            }
            if is_long_batch(frame.bytes()) {
                faults.push(Fault::LongBatch);
            }
        }
        Body::Message(said) => {
            // Most messages have neither line ends nor escapes; one search rules both out.
            let odd = memchr::memchr2(b'\r', b'\\', frame.bytes()).is_some();
            if odd {
                line_ends(frame.bytes(), carrier, &mut faults);
            }
            envelope(said, &mut faults);
            if prototype::found(frame.bytes(), odd) {
                faults.push(Fault::Prototype);
            }
            if odd && embedded::found(frame.bytes()) {
                faults.push(Fault::Embedded);
            }
            if from == Side::Client {
                call(said, &mut faults);
            }
        }
    }
    faults
}

/// The faults of arguments that did not arrive in a message.
pub(crate) fn inspect_arguments(arguments: &[u8]) -> Vec<Fault> {
    if prototype::found(arguments, true) { vec![Fault::Prototype] } else { Vec::new() }
}

fn no_json(bytes: &[u8], fault: &json::Fault) -> Fault {
    if memchr::memchr(0, bytes).is_some() {
        Fault::Nul
    } else if std::str::from_utf8(bytes).is_err() {
        Fault::NotUtf8
    } else if fault.is_trailing() {
        Fault::Trailing
    } else {
        Fault::NotJson
    }
}

/// A carriage return is white space in JSON, but some readers end a line there.
fn line_ends(bytes: &[u8], carrier: Carrier, faults: &mut Vec<Fault>) {
    let line = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if carrier == Carrier::Lines && memchr::memchr(b'\r', line).is_some() {
        faults.push(Fault::CarriageReturn);
    }
}

/// Whether the text of an array has no elements.
fn is_empty_array(array: &[u8]) -> bool {
    let inside = array.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

fn envelope(said: &Envelope<'_>, faults: &mut Vec<Fault>) {
    let there = |value: Option<&[u8]>| value.is_some_and(|value| value != b"null");
    let answers = there(said.result) || there(said.error);
    let kind = said.kind();
    // Only a request needs an id that can be answered; an error may have the id `null`.
    let odd_id = said.id.is_some_and(|id| !matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9')));
    let nobody = kind == Kind::Error && said.id == Some(b"null");
    let odd_method = said.method.is_some_and(|method| method.escaped && target::lone(method));
    for (fault, is) in [
        (Fault::Version, !said.version_ok),
        (Fault::Shapeless, kind == Kind::Other),
        (Fault::Ambiguous, said.method.is_some() && answers),
        (Fault::Id, odd_id && !nobody),
        (Fault::Repeated, said.repeated),
        (Fault::Twin, said.twisted),
        (Fault::Surrogate, odd_method),
    ] {
        if is {
            faults.push(fault);
        }
    }
}

/// The faults of a call with a gated method.
fn call(said: &Envelope<'_>, faults: &mut Vec<Fault>) {
    let Some(gated) = said.method.and_then(Gated::read) else { return };
    if said.kind() == Kind::Notification {
        faults.push(Fault::Notification);
    }
    if let Err(fault) = repeats::check(said).and_then(|()| named(said, gated))
        && !faults.contains(&fault)
    {
        faults.push(fault);
    }
}

/// Checks that a call names what it calls, in a form that all readers parse alike.
fn named(said: &Envelope<'_>, gated: Gated) -> Result<(), Fault> {
    match (gated, said.name) {
        // Without escapes there is only one way to read it.
        (Gated::Call | Gated::Prompt, Some(name)) if !name.escaped => Ok(()),
        _ => targets(said, gated).map(drop),
    }
}

impl Fault {
    /// The JSON-RPC error code sent to the sender.
    pub fn code(self) -> i32 {
        match self {
            Self::NotUtf8 | Self::NotJson | Self::Trailing => -32700,
            Self::Nameless => -32602,
            _ => -32600,
        }
    }

    /// Its label in logs and metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::NotUtf8 => "invalid_utf8",
            Self::NotJson => "malformed_json",
            Self::Version => "missing_version",
            Self::Batch => "unsupported_batch",
            Self::LongBatch => "long_batch",
            Self::NotAnObject | Self::Shapeless => "unclassifiable",
            Self::Ambiguous => "ambiguous",
            Self::Id => "invalid_id",
            Self::Repeated => "duplicate_member",
            Self::Twin => "confusable_member",
            Self::Prototype => "prototype_member",
            Self::Surrogate => "unpaired_surrogate",
            Self::Deep => "too_deep",
            Self::Notification => "gated_notification",
            Self::Nameless => "missing_name",
            Self::InputRequests => "invalid_input_requests",
            Self::OwnFileMention => "own_file_mention",
            Self::Trailing | Self::Nul | Self::CarriageReturn | Self::Embedded => "smuggling",
        }
    }

    /// The error type sent to the sender.
    pub fn error_type(self) -> &'static str {
        match self.code() {
            -32700 => "parse_error",
            -32602 => "invalid_params",
            _ => "invalid_request",
        }
    }

    /// What production would do with such a message, as the development profile logs it.
    pub fn would(self) -> LoggedDecision {
        match self {
            Self::Shapeless | Self::NotAnObject | Self::Notification => LoggedDecision::WouldDrop,
            _ => LoggedDecision::WouldReject,
        }
    }

    /// A description of the fault for the sender.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotUtf8 => "the message is not UTF-8",
            Self::NotJson => "the message is not JSON",
            Self::Trailing => "there are bytes after the message",
            Self::Nul => "there is a NUL in the message",
            Self::CarriageReturn => "there is a carriage return inside the line",
            Self::NotAnObject => "the message is not a JSON object",
            Self::Batch => "batches are not accepted on stdio",
            Self::LongBatch => "the batch has more than 1000 elements",
            Self::Version => "the message does not have \"jsonrpc\":\"2.0\"",
            Self::Shapeless => "the message is not a request, a notification or an answer",
            Self::Ambiguous => "the message is both a request and an answer",
            Self::Id => "the id is neither a string nor a number",
            Self::Repeated => "a member of the message occurs twice",
            Self::Twin => "members of the message have names that parsers may confuse",
            Self::Prototype => {
                "the message has a member `__proto__`, which JavaScript merges into the object around it"
            }
            Self::Embedded => "a string in the message contains another message after a line break",
            Self::Surrogate => "a name in the message has an unpaired surrogate",
            Self::Deep => "the message is nested too deeply",
            Self::Notification => "this method takes a request, not a notification",
            Self::Nameless => "the params do not name the item to call",
            Self::InputRequests => "`inputRequests` is not a map of requests",
            Self::OwnFileMention => "a text in the message mentions one of Tapegate's own files",
        }
    }
}
