//! The activity log: everything decided, asked and done in a project, in an append-only file.
//!
//! Each write ends in a hash of itself and of the write before it, so `tapegate check` notices when
//! lines are changed, removed or inserted. Several processes write to the same file. A file that
//! has grown large is rotated to a numbered name, and the chain continues in a new one.

mod chain;
mod events;
mod files;
mod follower;
mod line;
mod log;
mod notice;
mod rotation;
mod shipped_positions;
mod tail;
mod verify;

pub use chain::ChainLink;
pub use events::{LoggedEvent, LoggedEvents, NotAnEvent};
pub use files::{CURRENT, LogFile, is_line, open_file, parts};
pub use follower::LogFollower;
pub use line::EXTRA_BYTES_MAX;
pub use log::{ActivityError, ActivityLog, ActivityLogOptions};
pub(crate) use shipped_positions::new_log_id;
pub use shipped_positions::{ShippedPositions, is_log_id, log_id};
pub use verify::{ChainFault, ChainFinding, LogReport, LogVerifier, verify};

use std::borrow::Cow;

use crate::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, RefusedFile};
use tapegate_core::decision::LoggedDecision;

/// The kinds of events; `log` is for what the log records about itself.
pub const KINDS: &[&str] = &[
    "decision",
    "approval",
    "framing",
    "filter",
    "drift",
    "redaction",
    "orphan",
    "http",
    "session",
    "policy",
    "hub",
    "log",
];

/// One event.
///
/// Empty and `None` members are left out of the line. Borrows, because every call creates an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityEvent<'a> {
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// `info`, `warn` or `error`.
    pub level: &'static str,
    /// The kind of event: one of [`KINDS`].
    pub kind: &'static str,
    /// The component that logs it: `shim`, `hub` or `cli`.
    pub component: &'static str,
    /// The name of the server.
    pub server_id: Cow<'a, str>,
    /// `agent_to_server` or `server_to_agent`.
    pub direction: Option<&'static str>,
    /// The method.
    pub method: Option<Cow<'a, str>>,
    /// The name of the tool or prompt, or the URI.
    pub tool: Option<Cow<'a, str>>,
    /// The raw id of the message.
    pub message_id: Option<Cow<'a, str>>,
    /// The decision.
    pub governance_decision: Option<LoggedDecision>,
    /// The gate that decided.
    pub gate: Option<&'static str>,
    /// The rule that matched.
    pub rule: Option<Cow<'a, str>>,
    /// The Cedar policies that decided.
    pub policies: Cow<'a, [String]>,
    /// The reason, for people.
    pub policy_reason: Option<Cow<'a, str>>,
    /// The version of the policy in force.
    pub policy_version: Option<Cow<'a, str>>,
    /// `production` or `development`.
    pub profile: &'static str,
    /// Whether the message was forwarded.
    pub forwarded: Option<bool>,
    /// Whether approval was skipped because the profile does not require it.
    pub auto_approved: bool,
    /// How long the decision took.
    pub latency_us: Option<u64>,
    /// The caller.
    pub principal: Option<Cow<'a, str>>,
    /// The approval request that this is about.
    pub approval_id: Option<Cow<'a, str>>,
    /// Who approved or denied.
    pub decided_by: Option<Cow<'a, str>>,
    /// Identifies one connection of one shim.
    pub connection_id: Cow<'a, str>,
    /// Reported to the caller as `correlation_id`.
    pub request_id: Option<Cow<'a, str>>,
    /// The tape with the messages that this is about.
    pub tape_session_id: Option<Cow<'a, str>>,
    /// The number of the message on that tape.
    pub tape_seq: Option<u64>,
    /// W3C trace context, as the caller sent it.
    pub traceparent: Option<Cow<'a, str>>,
    /// Anything else, as JSON members: `"a":1,"b":2`.
    pub extra: Cow<'a, str>,
}

impl<'a> ActivityEvent<'a> {
    /// The event for an approval request that has ended.
    pub fn from_settled(request: &'a ApprovalRecord, decided: &'a ApprovalDecision) -> Self {
        let text = Cow::<'a, str>::Borrowed;
        Self {
            wall_us: decided.at_us,
            level: if decided.ruling == ApprovalOutcome::Approved { "info" } else { "warn" },
            kind: "approval",
            server_id: text(&request.server_id),
            direction: Some("agent_to_server"),
            method: Some(text(&request.method)),
            tool: Some(text(&request.tool)),
            governance_decision: Some(decided.ruling.logged()),
            gate: Some("approval"),
            policy_reason: decided.reason.as_deref().map(text),
            principal: Some(text(&request.principal)).filter(|name| !name.is_empty()),
            approval_id: Some(text(&request.id)),
            decided_by: Some(text(&decided.by)),
            connection_id: text(&request.connection_id),
            request_id: Some(text(&request.request_id)).filter(|id| !id.is_empty()),
            ..Self::default()
        }
    }

    /// The event for an approval file that was set aside because it is not authentic.
    pub fn from_refused(file: &'a RefusedFile, wall_us: i64) -> Self {
        let reason = format!("refused the approval file `{}`: {}", file.name, file.reason);
        let mut kept = Vec::new();
        tapegate_core::json::write_str(&mut kept, &file.kept.to_string_lossy());
        let extra = format!("\"outcome\":\"forged\",\"kept\":{}", String::from_utf8_lossy(&kept));
        Self {
            wall_us,
            level: "error",
            kind: "approval",
            governance_decision: Some(LoggedDecision::Forged),
            gate: Some("approval"),
            policy_reason: Some(reason.into()),
            forwarded: Some(false),
            approval_id: Some(Cow::Borrowed(file.id.as_str())).filter(|id| !id.is_empty()),
            extra: extra.into(),
            ..Self::default()
        }
    }

    /// The event as one JSON object, like its line in the log but without the chain links.
    pub fn json(&self) -> String {
        let mut out = Vec::new();
        line::write(self, &mut out);
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}
