//! Approval requests.

use serde::{Deserialize, Serialize};

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
    /// The task.
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
    /// Its id.
    pub id: String,
    /// The server.
    pub server_id: String,
    /// The method.
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
    /// The workflow.
    pub workflow: String,
    /// Why approval is needed.
    pub reason: String,
    /// Who may decide; if empty, any approver may.
    #[serde(default)]
    pub approvers: Vec<String>,
    /// When it was created, as RFC 3339.
    pub created_at: String,
    /// When it expires, as RFC 3339.
    pub expires_at: String,
    /// Reported to the caller as `correlation_id`.
    pub request_id: String,
}

/// A decision about a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleRequest {
    /// Who decides.
    pub by: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
