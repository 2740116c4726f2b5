//! The activity log: everything decided, asked and done in a project, in an append-only file.
//!
//! Each write ends in a hash of itself and of the write before it, so `tapegate check` notices when
//! lines are changed, removed or inserted. Several processes write to the same file. A file that
//! has grown large is rotated to a numbered name, and the chain continues in a new one.

mod call_tally;
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

pub use call_tally::CallTally;
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
use std::path::Path;

use serde_json::{Value, json};

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

/// The event for an approval of a request that needs others, which `text` says.
pub fn vote_event<'a>(
    request: &'a ApprovalRecord,
    decided: &'a ApprovalDecision,
    text: &'a str,
) -> ActivityEvent<'a> {
    ActivityEvent {
        // Nothing is decided yet.
        governance_decision: None,
        policy_reason: Some(text.into()),
        extra: "\"event\":\"voted\"".into(),
        ..settled_event(request, decided)
    }
}

/// The event for a request that has gone to its second workflow.
pub fn escalated_event(request: &ApprovalRecord, wall_us: i64) -> ActivityEvent<'_> {
    let second = request.escalation.as_ref().map(|second| second.workflow.as_str());
    let members = serde_json::json!({
        "event": "escalated",
        "workflow": request.workflow,
        "escalated_to": second,
    });
    ActivityEvent {
        wall_us,
        level: EventLevel::Warn,
        kind: ActivityKind::Approval,
        server_id: request.server_id.as_str().into(),
        direction: Some(Side::Client),
        method: Some(request.method.as_str().into()),
        tool: Some(request.tool.as_str().into()),
        gate: Some(GateName::Approval),
        principal: Some(request.principal.as_str().into())
            .filter(|_| !request.principal.is_empty()),
        approval_id: Some(request.id.as_str().into()),
        connection_id: request.connection_id.as_str().into(),
        extra: extra(&members),
        ..ActivityEvent::default()
    }
}

/// The event for an approval file that was set aside because it is not authentic.
pub fn refused_file_event(file: &RefusedFile, wall_us: i64) -> ActivityEvent<'_> {
    let reason = format!("refused the approval file `{}`: {}", file.name, file.reason);
    ActivityEvent {
        wall_us,
        level: EventLevel::Error,
        kind: ActivityKind::Approval,
        governance_decision: Some(LoggedDecision::Forged),
        gate: Some(GateName::Approval),
        policy_reason: Some(reason.into()),
        forwarded: Some(false),
        approval_id: Some(Cow::Borrowed(file.id.as_str())).filter(|id| !id.is_empty()),
        extra: extra(&json!({ "outcome": "forged", "kept": file.kept.to_string_lossy() })),
        ..ActivityEvent::default()
    }
}

/// Appends an event to the activity log of a state folder.
pub fn log_event(state_folder: &Path, event: &ActivityEvent<'_>) -> Result<(), ActivityError> {
    // Rotation is left to writers that know the policy.
    let options = ActivityLogOptions { rotate_bytes: u64::MAX, retention: None };
    let mut log = ActivityLog::open(state_folder, options)?;
    log.append(event);
    log.commit()
}

/// The members that only some events have, from an object with them, or from null.
pub fn extra(members: &Value) -> Cow<'static, str> {
    // Most events have none, and every call has an event.
    if members.is_null() {
        return Cow::Borrowed("");
    }
    let text = members.to_string();
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    Cow::Owned(inner.unwrap_or_default().to_owned())
}

/// An event as one JSON object, like its line in the log but without the chain links.
pub fn event_json(event: &ActivityEvent<'_>) -> String {
    let mut out = Vec::new();
    line::write(event, &mut out);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}
