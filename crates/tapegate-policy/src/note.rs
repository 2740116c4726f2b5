//! Records of what happened to messages, for the activity log, for people and for metrics.

use std::borrow::Cow;

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_core::decision::LoggedDecision;
use tapegate_core::gate::{GateInput, HoldEnd, HoldId};
use tapegate_core::json;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;

use crate::gated_requests::OfferKind;
use crate::inspect::MessageFault;

/// How much of an id or a name goes into a note: more than the log stores, because secrets must be
/// redacted before truncating.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// How much of a malformed message goes into a note; more than the log stores, likewise.
const RAW_BYTES_MAX: usize = 4096;

/// Receives notes.
pub trait NoteSink: Send {
    /// Takes one note. It is durable at the latest when [`NoteSink::commit`] returns.
    fn note(&mut self, note: &Note<'_>);

    /// Learns of each message before it is judged.
    fn note_message(&mut self, _input: &GateInput<'_>) {}

    /// Learns that the server has answered a request of the gate's own.
    fn note_own_answer(&mut self) {}

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
    /// The event to log. Its receiver adds what only the session knows, masks the texts, and adds
    /// the members of [`Note::kind`].
    pub event: ActivityEvent<'a>,
    /// The session and HTTP exchange of the message.
    pub lane: Lane,
    /// What happened.
    pub kind: NoteKind,
    /// The first bytes of a malformed message.
    pub raw: Option<Cow<'a, [u8]>>,
}

impl<'a> Note<'a> {
    /// An otherwise empty note about a message that was sent on.
    pub(crate) fn new(at: Timestamp, lane: Lane, from: Side) -> Self {
        let event = ActivityEvent {
            wall_us: at.wall_us,
            direction: Some(from),
            governance_decision: Some(LoggedDecision::Forward),
            ..ActivityEvent::default()
        };
        Self { event, lane, kind: NoteKind::Decision, raw: None }
    }

    /// What was decided about the message.
    pub fn decision(&self) -> LoggedDecision {
        self.event.governance_decision.unwrap_or(LoggedDecision::Forward)
    }

    /// How much attention it needs.
    pub(crate) fn level(&self) -> EventLevel {
        let quiet = match &self.kind {
            NoteKind::Decision | NoteKind::ServerRequest => {
                self.decision() == LoggedDecision::Forward
            }
            NoteKind::Filter { .. } | NoteKind::Http => true,
            _ => false,
        };
        if quiet { EventLevel::Info } else { EventLevel::Warn }
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

    /// The part of a raw id that goes into a note: text without its quotes.
    pub(crate) fn truncated_id(id: Option<&'a [u8]>) -> Option<Cow<'a, str>> {
        let id = id?;
        let id = &id[..id.len().min(TEXT_BYTES_MAX)];
        let text = id.starts_with(b"\"").then(|| json::string(id)).flatten();
        Some(text.unwrap_or_else(|| String::from_utf8_lossy(id)))
    }

    /// The same note without borrowed data.
    pub fn into_owned(self) -> Note<'static> {
        let Self { event, lane, kind, raw } = self;
        let raw = raw.map(|raw| Cow::Owned(raw.into_owned()));
        Note { event: event.into_owned(), lane, kind, raw }
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
    /// The hold that it is about.
    pub(crate) fn hold_id(&self) -> Option<HoldId> {
        match self {
            Self::HoldOpened { hold_id, .. }
            | Self::HoldApproved { hold_id, .. }
            | Self::HoldEnded { hold_id, .. } => Some(*hold_id),
            _ => None,
        }
    }

    /// Who decided about it, if that was an approver or a timeout.
    pub fn decided_by(&self) -> Option<&str> {
        match self {
            Self::HoldApproved { by, .. } => Some(by),
            Self::HoldEnded { decided_by, .. } => decided_by.as_deref(),
            _ => None,
        }
    }

    /// Its kind in the activity log.
    pub fn event(&self) -> ActivityKind {
        match self {
            Self::Decision | Self::ServerRequest => ActivityKind::Decision,
            Self::Http => ActivityKind::Http,
            Self::Framing { .. } | Self::Oversized { .. } => ActivityKind::Framing,
            Self::Filter { .. } => ActivityKind::Filter,
            Self::Drift { .. } => ActivityKind::Drift,
            Self::Redaction { .. } => ActivityKind::Redaction,
            Self::OrphanReply { .. } | Self::OrphanRequest { .. } => ActivityKind::Orphan,
            Self::HoldOpened { .. } | Self::HoldApproved { .. } | Self::HoldEnded { .. } => {
                ActivityKind::Approval
            }
        }
    }
}
