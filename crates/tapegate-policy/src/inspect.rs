//! Checks that every reader parses a message the same way.
//!
//! A decision is worthless if the receiver reads a different message than the gate did. So anything
//! that parsers disagree about is a fault: bytes after the value, duplicate members, member names
//! that lenient parsers confuse, misplaced line ends, calls that are not requests or have no name.
//! An ordinary message costs one search over its bytes; only unusual bytes or params are parsed a
//! second time.

mod duplicate_members;
mod embedded;
mod prototype;
mod target;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::{Envelope, Frame, FrameBody, FrameError, MessageKind, is_long_batch};
use tapegate_core::json;
use tapegate_core::side::Side;

use crate::gated_requests::GatedMethod;

pub use target::{CallTarget, find_targets};

/// How the messages of one side arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportKind {
    /// One message per line.
    #[default]
    Lines,
    /// HTTP bodies and events: line ends are allowed between values, and an array may hold several
    /// messages.
    Http,
}

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessageFault {
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
pub fn inspect(frame: &Frame<'_>, from: Side, carrier: TransportKind) -> Vec<MessageFault> {
    let mut faults = Vec::new();
    match frame.body() {
        // No reader finds a message in an empty line, so there is nothing to disagree about.
        FrameBody::Garbage(FrameError::Empty) => {}
        FrameBody::Garbage(FrameError::NotAnObject) => faults.push(MessageFault::NotAnObject),
        FrameBody::Garbage(FrameError::NotJson(fault)) => {
            faults.push(non_json_fault(frame.bytes(), fault))
        }
        FrameBody::Batch if carrier == TransportKind::Lines => faults.push(MessageFault::Batch),
        FrameBody::Batch => {
            check_line_ends(frame.bytes(), carrier, &mut faults);
            // JSON-RPC answers an empty batch with an error, so it must not pass as zero harmless
            // messages.
            if is_empty_array(frame.text()) {
                faults.push(MessageFault::Shapeless);
            }
            // A batch of 300,000 `{}` is 914 compressed bytes. Without a limit it costs 8 s and 183
            // MB of log.
            if is_long_batch(frame.bytes()) {
                faults.push(MessageFault::LongBatch);
            }
        }
        FrameBody::Message(msg) => {
            // Most messages have neither line ends nor escapes; one search rules both out.
            let odd = memchr::memchr2(b'\r', b'\\', frame.bytes()).is_some();
            if odd {
                check_line_ends(frame.bytes(), carrier, &mut faults);
            }
            check_envelope(msg, &mut faults);
            // From either side: the SDK of a client merges `__proto__` of a result in the same way.
            if prototype::contains_prototype_key(frame.bytes(), odd) {
                faults.push(MessageFault::Prototype);
            }
            if odd && embedded::contains_message(frame.bytes()) {
                faults.push(MessageFault::Embedded);
            }
            // Only servers run gated methods.
            if from == Side::Client {
                check_call(msg, &mut faults);
            }
        }
    }
    faults
}

/// The faults of arguments that did not arrive in a message.
pub(crate) fn inspect_arguments(arguments: &[u8]) -> Vec<MessageFault> {
    if prototype::contains_prototype_key(arguments, true) {
        vec![MessageFault::Prototype]
    } else {
        Vec::new()
    }
}

fn non_json_fault(bytes: &[u8], fault: &json::JsonFault) -> MessageFault {
    // The most specific fault first: bytes with a NUL are often not UTF-8 or JSON either.
    if memchr::memchr(0, bytes).is_some() {
        MessageFault::Nul
    } else if std::str::from_utf8(bytes).is_err() {
        MessageFault::NotUtf8
    } else if fault.is_trailing() {
        MessageFault::Trailing
    } else {
        MessageFault::NotJson
    }
}

/// A carriage return is white space in JSON, but some readers end a line there.
fn check_line_ends(bytes: &[u8], carrier: TransportKind, faults: &mut Vec<MessageFault>) {
    // A final one belongs to a CRLF line end, which every reader accepts.
    let line = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if carrier == TransportKind::Lines && memchr::memchr(b'\r', line).is_some() {
        faults.push(MessageFault::CarriageReturn);
    }
}

/// Whether the text of an array has no elements.
fn is_empty_array(array: &[u8]) -> bool {
    let inside = array.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

fn check_envelope(msg: &Envelope<'_>, faults: &mut Vec<MessageFault>) {
    let there = |value: Option<&[u8]>| value.is_some_and(|value| value != b"null");
    let answers = there(msg.result) || there(msg.error);
    let kind = msg.kind();
    // Only a request needs an id that can be answered; an error may have the id `null`.
    let odd_id = msg.id.is_some_and(|id| !matches!(id.first(), Some(b'"' | b'-' | b'0'..=b'9')));
    let is_unaddressed = kind == MessageKind::Error && msg.id == Some(b"null");
    let odd_method =
        msg.method.is_some_and(|method| method.escaped && target::has_lone_surrogate(method));
    for (fault, is) in [
        (MessageFault::Version, !msg.version_ok),
        (MessageFault::Shapeless, kind == MessageKind::Other),
        (MessageFault::Ambiguous, msg.method.is_some() && answers),
        (MessageFault::Id, odd_id && !is_unaddressed),
        (MessageFault::Repeated, msg.repeated),
        (MessageFault::Twin, msg.twisted),
        (MessageFault::Surrogate, odd_method),
    ] {
        if is {
            faults.push(fault);
        }
    }
}

/// The faults of a call with a gated method.
fn check_call(msg: &Envelope<'_>, faults: &mut Vec<MessageFault>) {
    let Some(gated) = msg.method.and_then(GatedMethod::read) else { return };
    // A server would run it unanswered and unseen.
    if msg.kind() == MessageKind::Notification {
        faults.push(MessageFault::Notification);
    }
    if let Err(fault) = duplicate_members::check(msg).and_then(|()| check_target(msg, gated))
        // `check_envelope` may have found the same fault one level up.
        && !faults.contains(&fault)
    {
        faults.push(fault);
    }
}

/// Checks that a call names what it calls, in a form that all readers parse alike.
fn check_target(msg: &Envelope<'_>, gated: GatedMethod) -> Result<(), MessageFault> {
    match (gated, msg.name) {
        // Without escapes there is only one way to read it.
        (GatedMethod::Call | GatedMethod::Prompt, Some(name)) if !name.escaped => Ok(()),
        _ => find_targets(msg, gated).map(drop),
    }
}

impl MessageFault {
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
    pub fn production_outcome(self) -> LoggedDecision {
        match self {
            Self::Shapeless | Self::NotAnObject | Self::Notification => LoggedDecision::WouldDrop,
            _ => LoggedDecision::WouldReject,
        }
    }

    /// A description of the fault for the sender.
    pub fn message(self) -> &'static str {
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
