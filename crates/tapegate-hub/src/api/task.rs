//! Approval requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tapegate_store::approvals::ApprovalState;

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// No approver has decided yet.
    Pending,
    /// An approver approved it.
    Approved,
    /// An approver denied it.
    Rejected,
    /// No approver decided in time.
    Expired,
    /// The caller withdrew it.
    Cancelled,
}

/// The status of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswer {
    pub task_id: String,
    /// Its state.
    pub status: TaskStatus,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    /// The reason, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it expires, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// The grant that was given with this decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<String>,
    /// How often to poll while it is pending; not needed with `wait_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// Whether the shim must shut down.
    #[serde(default)]
    pub shutdown: bool,
}

/// All pending approval requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalsAnswer {
    /// The requests, oldest first.
    pub approvals: Vec<ApprovalItem>,
}

/// An approval request, as approvers see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalItem {
    pub id: String,
    pub server_id: String,
    pub method: String,
    /// The tool, prompt or URI.
    pub tool: String,
    /// The arguments as JSON text, with secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The whole params as JSON text, with secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// How many times the same call was made while this request was open.
    #[serde(default)]
    pub asked: u32,
    /// How many of these calls are still waiting.
    #[serde(default)]
    pub waiting: u32,
    /// The caller.
    pub principal: String,
    pub workflow: String,
    /// Why approval is needed.
    pub reason: String,
    /// Who may decide; if empty, any approver may.
    #[serde(default)]
    pub approvers: Vec<String>,
    /// The second workflow that the request goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalates_to: Option<String>,
    /// When it goes there, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalates_at: Option<String>,
    /// When it was created, as RFC 3339.
    pub created_at: String,
    /// When it expires, as RFC 3339.
    pub expires_at: String,
    /// Reported to the caller as `correlation_id`.
    pub request_id: String,
}

/// An approval request and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    /// The request.
    pub approval: ApprovalItem,
    /// Its state, and who decided.
    pub task: TaskAnswer,
    /// Who has approved a request that needs several approvals.
    pub approved_by: Vec<String>,
    /// Whether the approved call has been sent.
    pub used: bool,
}

/// What is granted besides the call that is approved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantRequest {
    /// For how many seconds; without it, for the session, 24 hours at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_s: Option<u64>,
    /// Whether the grant ends with the session of the caller.
    #[serde(default)]
    pub session: bool,
    /// Arguments that may be other paths in a folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub under: BTreeMap<String, String>,
    /// Arguments that may be other texts that a glob matches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub matching: BTreeMap<String, String>,
}

/// All grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantsAnswer {
    /// Oldest first, with those that have ended.
    pub grants: Vec<GrantItem>,
}

/// An approval for more than one call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantItem {
    pub id: String,
    /// `active`, `expired` or `revoked`.
    pub state: String,
    /// Which calls it covers, for people.
    pub covers: String,
    /// The request with which it was given.
    pub request: String,
    /// Who gave it.
    pub granted_by: String,
    pub server_id: String,
    /// The tool, prompt or URI.
    pub tool: String,
    pub workflow: String,
    /// When it was given, as RFC 3339.
    pub created_at: String,
    /// When it expires, as RFC 3339.
    pub expires_at: String,
}

/// The channels of a request's workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelsAnswer {
    /// One for each.
    pub channels: Vec<ChannelState>,
    /// Whether the policy in force has the workflow.
    #[serde(default)]
    pub known: bool,
    /// The clients whose users are asked in the client, as globs.
    #[serde(default)]
    pub in_agent: Vec<String>,
    /// Through what the request was decided, if that was through this hub: a channel, `client` or
    /// `api`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
}

/// How a channel stands to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelState {
    /// Its name in the policy.
    pub name: String,
    /// Its protocol.
    #[serde(rename = "type")]
    pub kind: String,
    /// `waiting`, `told` or `failed`.
    pub state: String,
    /// Why it does not work, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A decision about a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleRequest {
    /// Who decides.
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What is granted, if the call is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantRequest>,
}

/// What the user of a client has answered in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// Whether the call may be sent.
    pub approve: bool,
    /// The client, as it introduced itself.
    pub client: String,
}

impl From<ApprovalState> for TaskStatus {
    fn from(state: ApprovalState) -> Self {
        match state {
            ApprovalState::Pending => Self::Pending,
            ApprovalState::Approved | ApprovalState::Used => Self::Approved,
            ApprovalState::Denied => Self::Rejected,
            ApprovalState::Expired => Self::Expired,
            ApprovalState::Cancelled => Self::Cancelled,
        }
    }
}

impl TaskStatus {
    /// The name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}
