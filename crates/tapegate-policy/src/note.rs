//! What is noted about messages, for the activity log, for people and for metrics.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::gate::{HoldEnd, Ticket};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::At;

use crate::decide::GateName;
use crate::gated::Offer;
use crate::inspect::Fault;
use crate::model::Profile;

/// How much of an id or a name is noted: more than is kept, so that secrets can be masked before
/// they are cut.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// How much of a message is noted that is not written as it must be: more than is kept, too.
const RAW_BYTES_MAX: usize = 4096;

/// Takes what is noted.
pub trait Notes: Send {
    /// Takes one note. It is kept at the latest when [`Notes::commit`] is over.
    fn note(&mut self, note: &Note<'_>);

    /// Why notes cannot be kept, if they cannot: production then refuses calls.
    fn trouble(&self) -> Option<&str> {
        None
    }

    /// Has everything kept that was noted. An error means that nothing may be sent because of it.
    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

/// Something that happened to a message.
///
/// Every call makes one, and most are forgotten as soon as they are written down: so it borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note<'a> {
    /// When the message came.
    pub at: At,
    /// The conversation.
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
    /// Its id as it was written.
    pub id: Option<Cow<'a, str>>,
    /// What was decided.
    pub decision: LoggedDecision,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<Cow<'a, str>>,
    /// The Cedar policies that decided.
    pub policies: Cow<'a, [String]>,
    /// Why, in words.
    pub reason: Option<Cow<'a, str>>,
    /// The version of the policy that held; none if there is no policy.
    pub policy_version: Option<Cow<'a, str>>,
    /// The profile that held.
    pub profile: Profile,
    /// Whether the message was sent on.
    pub forwarded: Option<bool>,
    /// Whether nobody was asked because the profile does not ask.
    pub auto_approved: bool,
    /// How long the decision took.
    pub latency_ns: Option<u64>,
    /// Who called.
    pub principal: Option<Cow<'a, str>>,
    /// What the caller was told.
    pub correlation_id: Option<Cow<'a, str>>,
    /// W3C trace context, as the caller sent it.
    pub traceparent: Option<Cow<'a, str>>,
    /// How a message begins that is not written as it must be.
    pub raw: Option<Cow<'a, [u8]>>,
}

impl<'a> Note<'a> {
    /// A note about a message, of which nothing is said yet.
    pub(crate) fn new(at: At, lane: Lane, from: Side) -> Self {
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

    /// Whether another note says the same of another message. When that came, its number, its id,
    /// how long it took and what its caller was told make no difference.
    pub fn is_like(&self, other: &Note<'_>) -> bool {
        self.kind == other.kind
            && self.decision == other.decision
            && (self.lane, self.from) == (other.lane, other.from)
            && self.name == other.name
            && self.method == other.method
            && (self.gate, self.profile) == (other.gate, other.profile)
            && (self.forwarded, self.auto_approved) == (other.forwarded, other.auto_approved)
            && self.rule == other.rule
            && self.policies == other.policies
            && self.reason == other.reason
            && self.policy_version == other.policy_version
            && self.principal == other.principal
            && self.traceparent == other.traceparent
    }

    /// As much of a text as is noted.
    pub(crate) fn text(text: &'a str) -> Option<Cow<'a, str>> {
        let end = text.len().min(TEXT_BYTES_MAX);
        Some(Cow::Borrowed(&text[..text.floor_char_boundary(end)]))
    }

    /// As much of the bytes of a message as is noted.
    pub(crate) fn start(bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        Some(Cow::Borrowed(&bytes[..bytes.len().min(RAW_BYTES_MAX)]))
    }

    /// As much of the raw text of an id as is noted.
    pub(crate) fn raw(id: Option<&'a [u8]>) -> Option<Cow<'a, str>> {
        let id = id?;
        Some(String::from_utf8_lossy(&id[..id.len().min(TEXT_BYTES_MAX)]))
    }

    /// The same, to be kept.
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
    /// It was decided about.
    Decision,
    /// It is not written as it must be.
    Framing {
        /// What is wrong with it.
        faults: Vec<Fault>,
    },
    /// It is over the size limit.
    Oversized {
        /// How large it is.
        bytes_total: u64,
    },
    /// A list in it shows less than it did.
    Filter {
        /// What is listed.
        offer: Offer,
        /// How many stay.
        kept: usize,
        /// The names of what was hidden, the first of them if there are many.
        hidden: Vec<String>,
        /// How many were hidden.
        hidden_total: usize,
    },
    /// What it defines is not what was accepted.
    Drift {
        /// What it is.
        offer: Offer,
    },
    /// It is an HTTP request that carries no message.
    Http,
    /// The server asks the agent for something.
    ServerRequest,
    /// Secrets in it were masked.
    Redaction {
        /// How many.
        count: usize,
    },
    /// It answers nothing that was asked.
    OrphanReply {
        /// How many such answers there were in the session, this one included.
        count: u64,
    },
    /// It was sent and is not answered.
    OrphanRequest {
        /// How long it has waited.
        waited_ms: u64,
        /// How many such requests there were in the session, this one included.
        count: u64,
    },
    /// It waits for a person.
    HoldOpened {
        /// The workflow.
        workflow: String,
        /// How long it may wait.
        timeout_ms: u64,
        /// Its name.
        ticket: Ticket,
    },
    /// A person has approved it.
    HoldApproved {
        /// Its name.
        ticket: Ticket,
        /// Who.
        by: String,
    },
    /// It waits no more, though nobody has decided.
    HoldEnded {
        /// Its name.
        ticket: Ticket,
        /// Why.
        how: HoldEnd,
        /// The workflow by which people were asked.
        workflow: String,
        /// What decided in place of a person, if anything did: a timeout that approves.
        decided_by: Option<String>,
    },
}

impl NoteKind {
    /// What the activity log calls it.
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
