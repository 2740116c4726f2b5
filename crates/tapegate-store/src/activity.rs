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
mod read;
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
pub use read::{EventReadError, is_event_key, read_event};
pub(crate) use shipped_positions::new_log_id;
pub use shipped_positions::{ShippedPositions, is_log_id, log_id};
pub use verify::{ChainFault, ChainFinding, LogReport, LogVerifier, verify};

use std::borrow::Cow;

use crate::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, RefusedFile};
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel, GateName};
use tapegate_core::decision::LoggedDecision;
use tapegate_core::side::Side;

/// The event for an approval request that has ended.
pub fn settled_event<'a>(
    request: &'a ApprovalRecord,
    decided: &'a ApprovalDecision,
) -> ActivityEvent<'a> {
    let text = Cow::<'a, str>::Borrowed;
    let is_approved = decided.ruling == ApprovalOutcome::Approved;
    ActivityEvent {
        wall_us: decided.at_us,
        level: if is_approved { EventLevel::Info } else { EventLevel::Warn },
        kind: ActivityKind::Approval,
        server_id: text(&request.server_id),
        direction: Some(Side::Client),
        method: Some(text(&request.method)),
        tool: Some(text(&request.tool)),
        governance_decision: Some(decided.ruling.logged()),
        gate: Some(GateName::Approval),
        policy_reason: decided.reason.as_deref().map(text),
        principal: Some(text(&request.principal)).filter(|name| !name.is_empty()),
        approval_id: Some(text(&request.id)),
        decided_by: Some(text(&decided.by)),
        connection_id: text(&request.connection_id),
        request_id: Some(text(&request.request_id)).filter(|id| !id.is_empty()),
        ..ActivityEvent::default()
    }
}

/// The event for an approval file that was set aside because it is not authentic.
pub fn refused_file_event(file: &RefusedFile, wall_us: i64) -> ActivityEvent<'_> {
    let reason = format!("refused the approval file `{}`: {}", file.name, file.reason);
    let mut kept = Vec::new();
    tapegate_core::json::write_str(&mut kept, &file.kept.to_string_lossy());
    let extra = format!("\"outcome\":\"forged\",\"kept\":{}", String::from_utf8_lossy(&kept));
    ActivityEvent {
        wall_us,
        level: EventLevel::Error,
        kind: ActivityKind::Approval,
        governance_decision: Some(LoggedDecision::Forged),
        gate: Some(GateName::Approval),
        policy_reason: Some(reason.into()),
        forwarded: Some(false),
        approval_id: Some(Cow::Borrowed(file.id.as_str())).filter(|id| !id.is_empty()),
        extra: extra.into(),
        ..ActivityEvent::default()
    }
}

/// An event as one JSON object, like its line in the log but without the chain links.
pub fn event_json(event: &ActivityEvent<'_>) -> String {
    let mut out = Vec::new();
    line::write(event, &mut out);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}
