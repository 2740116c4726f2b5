//! What is said to a hub and what it says, as JSON.
//!
//! Names, fields and words are those that shims of this kind are documented with; what we add is
//! optional, so that a client which knows only the documented fields is understood. Unknown fields
//! are ignored, and a field that must be there and is not is an error that names it.

mod event;
mod id;
mod shim;
mod task;

pub use event::{EventLine, EventsAnswer, EventsRequest, StrangeWord};
pub use id::JsonRpcId;
pub use shim::{
    Counters, DecisionCount, FramingCount, HeartbeatRequest, HeartbeatResponse, MessageCount, Push,
    ShutdownResponse, Snapshot,
};
pub use task::{ApprovalItem, ApprovalsAnswer, SettleRequest, TaskAnswer, TaskStatus};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tapegate_core::side::Side;
use tapegate_policy::model;

/// A message to be decided about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GovernanceEvaluateRequest {
    /// The server it is for, by the name it goes by in the policy.
    pub server_id: String,
    /// Which way it goes.
    pub direction: StreamDirection,
    /// Its method.
    pub method: String,
    /// Its id, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<JsonRpcId>,
    /// Its parameters, in the very bytes they were sent in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
    /// What kind of message it is.
    pub message_type: MessageType,
    /// The profile that whoever asks works under. The stricter one of this and the hub's own holds.
    pub profile: Profile,
    /// One connection of one shim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    /// What the caller is told as `correlation_id`; made by the hub if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Who calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// How the definition of what is called differs from what was accepted, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// Whoever asks has decided and logged this itself, and wants people to be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// The name that the request for approval is to have, if one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// How people are to be asked, if it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// W3C trace context, as the caller sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The tape the message is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape_session_id: Option<String>,
    /// Its number on that tape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tape_seq: Option<u64>,
    /// The folder that the caller works in. An approval holds for calls from there alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// Parameters in the very bytes they were sent in; nothing if they are no JSON.
pub fn raw(params: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(params).ok()?;
    RawValue::from_string(text.to_owned()).ok()
}

/// Who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The application or user.
    pub name: String,
    /// Where it runs.
    #[serde(default)]
    pub namespace: String,
    /// What it runs as.
    #[serde(default)]
    pub service_account: String,
    /// What it may act as.
    #[serde(default)]
    pub roles: Vec<String>,
    /// The agent, as it called itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamDirection {
    /// From the agent to the server.
    AgentToServer,
    /// From the server to the agent.
    ServerToAgent,
}

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageType {
    /// It wants an answer.
    Request,
    /// It is one.
    Response,
    /// It wants none.
    Notification,
}

/// How strictly the policy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// What is refused goes nowhere.
    Production,
    /// What would be refused is logged, and sent on.
    Development,
}

/// What is to be done with a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GovernanceEvaluateResponse {
    /// The decision.
    pub decision: GovernanceDecision,
    /// What to ask for at `/governance/task/{task_id}`, if people were asked.
    #[serde(default)]
    pub task_id: Option<String>,
    /// The Cedar policy or the rule that decided.
    #[serde(default)]
    pub policy_id: Option<String>,
    /// Why, in words for logs and people; what a caller may see is in `error`.
    #[serde(default)]
    pub reason: Option<String>,
    /// How often to ask for the task, in milliseconds; with `wait_ms` there is no need to.
    #[serde(default)]
    pub poll_interval_ms: Option<u64>,
    /// Whether the shim must come to its end.
    pub shutdown: bool,
    /// The gate that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// What the caller is told if it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<DenyError>,
    /// What the stricter profile would have done, such as `WOULD_BLOCK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would: Option<String>,
    /// Whether nobody was asked because the profile does not ask.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub auto_approved: bool,
    /// How long an answer of people may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the call is sent on when nobody has answered in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forward_on_timeout: bool,
    /// What the caller is told as `correlation_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The policy that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GovernanceDecision {
    /// The message is sent on.
    Forward,
    /// It goes nowhere.
    Deny,
    /// People were asked.
    PendingApproval,
}

/// The JSON-RPC error that a caller gets in the place of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DenyError {
    /// Its code.
    pub code: i32,
    /// Its message.
    pub message: String,
    /// `data.error_type`.
    pub error_type: String,
    /// Its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

/// What is said of a request that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// The error.
    pub error: ErrorBody,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What kind, for programs: `bad_request`, `unauthorized`, `forbidden`, `not_found` and the like.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
}

impl StreamDirection {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::AgentToServer => "agent_to_server",
            Self::ServerToAgent => "server_to_agent",
        }
    }
}

impl From<Side> for StreamDirection {
    fn from(sender: Side) -> Self {
        match sender {
            Side::Client => Self::AgentToServer,
            Side::Server => Self::ServerToAgent,
        }
    }
}

impl GovernanceDecision {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Deny => "deny",
            Self::PendingApproval => "pending_approval",
        }
    }
}

impl From<model::Profile> for Profile {
    fn from(profile: model::Profile) -> Self {
        match profile {
            model::Profile::Production => Self::Production,
            model::Profile::Development => Self::Development,
        }
    }
}

impl From<Profile> for model::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Production => Self::Production,
            Profile::Development => Self::Development,
        }
    }
}

#[cfg(test)]
mod tests;
