//! Requests for approval.

use serde::{Deserialize, Serialize};

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Nobody has decided yet.
    Pending,
    /// A person said yes.
    Approved,
    /// A person said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// The caller took it back.
    Cancelled,
}

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswer {
    /// The task.
    pub task_id: String,
    /// How it stands.
    pub status: TaskStatus,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    /// Why, if they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it is too late, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// How often to ask while it is pending; with `wait_ms` there is no need to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
    /// Whether the shim must come to its end.
    #[serde(default)]
    pub shutdown: bool,
}

/// Every request that nobody has decided about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalsAnswer {
    /// The requests, oldest first.
    pub approvals: Vec<ApprovalItem>,
}

/// A request for approval, as people see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalItem {
    /// Its name.
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
    /// How often the same call was made while this request was open.
    #[serde(default)]
    pub asked: u32,
    /// How many of these calls still wait.
    #[serde(default)]
    pub waiting: u32,
    /// Who calls.
    pub principal: String,
    /// The workflow.
    pub workflow: String,
    /// Why a person is asked.
    pub reason: String,
    /// Who may decide; nobody named means anybody.
    #[serde(default)]
    pub approvers: Vec<String>,
    /// When it was asked, as RFC 3339.
    pub created_at: String,
    /// When it is too late, as RFC 3339.
    pub expires_at: String,
    /// What the caller is told as `correlation_id`.
    pub request_id: String,
}

/// Who decides about a request, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleRequest {
    /// Who decides.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl TaskStatus {
    /// As it is written.
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
