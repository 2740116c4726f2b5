//! What is noted about messages, for the activity log, for people and for metrics.

use std::sync::Arc;

use tapegate_core::gate::{HoldEnd, Ticket};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::At;

use crate::decide::GateName;
use crate::gated::Offer;
use crate::inspect::Fault;
use crate::model::Profile;

/// Takes what is noted.
pub trait Notes: Send {
    /// Takes one note. It is kept at the latest when [`Notes::commit`] is over.
    fn note(&mut self, note: Note);

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// When the message came.
    pub at: At,
    /// The conversation.
    pub lane: Lane,
    /// Who sent it.
    pub from: Side,
    /// What happened.
    pub kind: NoteKind,
    /// Its method.
    pub method: Option<String>,
    /// The name of the tool or prompt, or the URI.
    pub name: Option<String>,
    /// Its id as it was written.
    pub id: Option<String>,
    /// `forward`, `deny`, `pending_approval`, `filter`, or `WOULD_BLOCK` and the like.
    pub word: &'static str,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<String>,
    /// The Cedar policies that decided.
    pub policies: Vec<String>,
    /// Why, in words.
    pub reason: Option<String>,
    /// The version of the policy that held; none if there is no policy.
    pub policy_version: Option<Arc<str>>,
    /// The profile that held.
    pub profile: Profile,
    /// Whether the message was sent on.
    pub forwarded: Option<bool>,
    /// Whether nobody was asked because the profile does not ask.
    pub auto_approved: bool,
    /// How long the decision took.
    pub latency_ns: Option<u64>,
    /// Who called.
    pub principal: Option<String>,
    /// What the caller was told.
    pub correlation_id: Option<String>,
    /// W3C trace context, as the caller sent it.
    pub traceparent: Option<String>,
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
    /// The server asks the agent for something.
    ServerRequest,
    /// Secrets in it were masked.
    Redaction {
        /// How many.
        count: usize,
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
    },
}

impl NoteKind {
    /// What the activity log calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Decision | Self::ServerRequest => "decision",
            Self::Framing { .. } | Self::Oversized { .. } => "framing",
            Self::Filter { .. } => "filter",
            Self::Drift { .. } => "drift",
            Self::Redaction { .. } => "redaction",
            Self::HoldOpened { .. } | Self::HoldApproved { .. } | Self::HoldEnded { .. } => {
                "approval"
            }
        }
    }
}
