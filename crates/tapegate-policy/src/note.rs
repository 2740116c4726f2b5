//! Records of what happened to messages, for the activity log, for people and for metrics.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::gate::{HoldEnd, HoldId};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;

use crate::decide::GateName;
use crate::gated_requests::OfferKind;
use crate::inspect::MessageFault;
use crate::model::Profile;

/// How much of an id or a name goes into a note: more than the log stores, because secrets must be
/// redacted before truncating.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// How much of a malformed message goes into a note; more than the log stores, likewise.
const RAW_BYTES_MAX: usize = 4096;

/// Receives notes.
pub trait NoteSink: Send {
    /// Takes one note. It is durable at the latest when [`NoteSink::commit`] returns.
    fn note(&mut self, note: &Note<'_>);

    /// Why notes cannot be stored, if they cannot: production then refuses calls.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Makes all notes so far durable. On an error, no message that depends on them may be sent.
    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Something that happened to a message.
///
/// Every call creates a note, and most are dropped as soon as they are written, so it borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    /// When the message came.
    pub at: Timestamp,
    /// Its session and HTTP exchange.
    pub lane: Lane,
    /// Who sent it.
    pub from: Side,
    /// Its number on the tape, if it has one.
    pub n: Option<u64>,
    /// What happened.
    pub kind: NoteKind,
    /// Its method.
    pub method: Option<Cow<'a, str>>,
    /// The name of the tool or prompt, or the URI.
    pub name: Option<Cow<'a, str>>,
    /// Its id as written.
    pub id: Option<Cow<'a, str>>,
    /// What was decided.
    pub decision: LoggedDecision,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<Cow<'a, str>>,
    /// The Cedar policies that decided.
    pub policies: Cow<'a, [String]>,
    /// The reason, as text.
    pub reason: Option<Cow<'a, str>>,
    /// The version of the active policy; `None` without a policy.
    pub policy_version: Option<Cow<'a, str>>,
    /// The active profile.
    pub profile: Profile,
    /// Whether the message was sent on.
    pub forwarded: Option<bool>,
    /// Whether approval was skipped because of the profile.
    pub auto_approved: bool,
    /// How long the decision took.
    pub latency_ns: Option<u64>,
    /// The caller.
    pub principal: Option<Cow<'a, str>>,
    /// The correlation id given to the caller.
    pub correlation_id: Option<Cow<'a, str>>,
    /// W3C trace context, as the caller sent it.
    pub traceparent: Option<Cow<'a, str>>,
    /// The first bytes of a malformed message.
    pub raw: Option<Cow<'a, [u8]>>,
}

impl<'a> Note<'a> {
    /// An otherwise empty note about a message.
    pub(crate) fn new(at: Timestamp, lane: Lane, from: Side) -> Self {
        Self {
            at,
            lane,
            from,
            n: None,
            kind: NoteKind::Decision,
            method: None,
            name: None,
            id: None,
            decision: LoggedDecision::Forward,
            gate: None,
            rule: None,
            policies: Cow::Borrowed(&[]),
            reason: None,
            policy_version: None,
            profile: Profile::default(),
            forwarded: None,
            auto_approved: false,
            latency_ns: None,
            principal: None,
            correlation_id: None,
            traceparent: None,
            raw: None,
        }
    }

    /// The part of a text that goes into a note.
    pub(crate) fn text(text: &'a str) -> Option<Cow<'a, str>> {
        let end = text.len().min(TEXT_BYTES_MAX);
        Some(Cow::Borrowed(&text[..text.floor_char_boundary(end)]))
    }

    /// The part of a message's bytes that goes into a note.
    pub(crate) fn start(bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        Some(Cow::Borrowed(&bytes[..bytes.len().min(RAW_BYTES_MAX)]))
    }

    /// The part of a raw id that goes into a note.
    pub(crate) fn truncated_id(id: Option<&'a [u8]>) -> Option<Cow<'a, str>> {
        let id = id?;
        Some(String::from_utf8_lossy(&id[..id.len().min(TEXT_BYTES_MAX)]))
    }

    /// The same note without borrowed data.
    pub fn into_owned(self) -> Note<'static> {
        let owned = |text: Option<Cow<'a, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Note {
            method: owned(self.method),
            name: owned(self.name),
            id: owned(self.id),
            rule: owned(self.rule),
            policies: Cow::Owned(self.policies.into_owned()),
            reason: owned(self.reason),
            policy_version: owned(self.policy_version),
            principal: owned(self.principal),
            correlation_id: owned(self.correlation_id),
            traceparent: owned(self.traceparent),
            raw: self.raw.map(|raw| Cow::Owned(raw.into_owned())),
            at: self.at,
            lane: self.lane,
            from: self.from,
            n: self.n,
            kind: self.kind,
            decision: self.decision,
            gate: self.gate,
            profile: self.profile,
            forwarded: self.forwarded,
            auto_approved: self.auto_approved,
            latency_ns: self.latency_ns,
        }
    }
}

/// What happened to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteKind {
    /// A decision was made about it.
    Decision,
    /// It is malformed.
    Framing {
        /// What is wrong with it.
        faults: Vec<MessageFault>,
    },
    /// It is over the size limit.
    Oversized {
        /// Its size.
        bytes_total: u64,
    },
    /// Items were hidden from a list in it.
    Filter {
        /// The kind of item listed.
        offer: OfferKind,
        /// The number of visible items.
        kept: usize,
        /// The names of the hidden items, or the first of them if there are many.
        hidden: Vec<String>,
        /// The number of hidden items.
        hidden_total: usize,
    },
    /// It contains a definition that differs from the accepted one.
    Drift {
        /// The kind of item defined.
        offer: OfferKind,
    },
    /// It is an HTTP request without a message.
    Http,
    /// It is a request from the server to the client.
    ServerRequest,
    /// Secrets in it were masked.
    Redaction {
        /// The number of secrets.
        count: usize,
    },
    /// It is a response to no known request.
    OrphanReply {
        /// The number of such responses in the session so far, this one included.
        count: u64,
    },
    /// It was sent but not answered.
    OrphanRequest {
        /// How long it has waited.
        waited_ms: u64,
        /// The number of such requests in the session so far, this one included.
        count: u64,
    },
    /// It waits for approval.
    HoldOpened {
        /// The workflow.
        workflow: String,
        /// How long it may wait.
        timeout_ms: u64,
        /// The ticket of the hold.
        hold_id: HoldId,
    },
    /// An approver has approved it.
    HoldApproved {
        /// The ticket of the hold.
        hold_id: HoldId,
        /// The approver.
        by: String,
    },
    /// The hold ended without a decision by an approver.
    HoldEnded {
        /// The ticket of the hold.
        hold_id: HoldId,
        /// How it ended.
        how: HoldEnd,
        /// The workflow that asked for approval.
        workflow: String,
        /// What decided in place of an approver, if anything: a timeout that approves.
        decided_by: Option<String>,
    },
}

impl NoteKind {
    /// Its event name in the activity log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Decision | Self::ServerRequest => "decision",
            Self::Http => "http",
            Self::Framing { .. } | Self::Oversized { .. } => "framing",
            Self::Filter { .. } => "filter",
            Self::Drift { .. } => "drift",
            Self::Redaction { .. } => "redaction",
            Self::OrphanReply { .. } | Self::OrphanRequest { .. } => "orphan",
            Self::HoldOpened { .. } | Self::HoldApproved { .. } | Self::HoldEnded { .. } => {
                "approval"
            }
        }
    }
}
