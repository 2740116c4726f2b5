//! Messages between a shim and its hub other than decisions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ApiProfile, StreamDirection, TaskStatus};

/// A sign of life from a shim, and what it has counted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeartbeatRequest {
    /// The server behind the shim.
    pub server_id: String,
    /// Identifies one connection of one shim. Without it, shims of one server are treated as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The state of the server: `starting`, `running`, `stopping`, `stopped` or `crashed`. A shim
    /// reports `stopped` or `crashed` in its last heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The version of the policy that the shim uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// What it has counted since it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
}

/// Totals since the shim started, not increments since the last heartbeat: a heartbeat that is
/// lost, or counted but not acknowledged, must not change the result. For a shim that sends totals,
/// the same numbers are not also counted from the activity log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageCount>,
    /// Messages that were not well-formed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub framing_errors: Vec<FramingCount>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionCount>,
}

/// The number of messages of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCount {
    pub direction: StreamDirection,
    /// Their method; empty for responses.
    #[serde(default)]
    pub method: String,
    pub count: u64,
}

/// The number of messages with one kind of fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramingCount {
    /// The fault, such as `malformed_json`.
    pub error_type: String,
    pub count: u64,
}

/// The number of decisions of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionCount {
    /// The decision, such as `deny` or `WOULD_BLOCK`.
    pub decision: String,
    pub profile: ApiProfile,
    pub count: u64,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatResponse {
    /// Whether the shim must shut down.
    pub shutdown: bool,
    /// The version of the policy in force; empty if there is none.
    #[serde(default)]
    pub policy_version: String,
    /// Whether tapes are recorded.
    #[serde(default = "yes")]
    pub recording: bool,
    /// How long the policy may be used without hearing from the hub again.
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
}

/// The acknowledgement that every shim was told to shut down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownResponse {
    /// Always true.
    pub shutdown: bool,
    /// How many shims are still connected.
    pub active_servers: usize,
}

/// A policy as the hub read it: everything needed to build it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The version of the policy; empty if there is none and everything is only observed.
    pub version: String,
    /// How long it may be used without hearing from the hub again.
    pub lease_ms: u64,
    /// The profile in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ApiProfile>,
    /// The text of `tapegate.yaml`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The path of `tapegate.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_path: Option<String>,
    /// Every other file that belongs to the policy, by the name it is requested under.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Every environment variable that the policy names and that is set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The folder with the activity log, approvals and tapes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_folder: Option<String>,
    /// The id of the activity log there. A folder at that path is the hub's only if its log has
    /// this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_id: Option<String>,
    /// Files of the hub that calls may not name, besides those that every shim knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_files: Vec<String>,
    /// Whether tapes are recorded.
    #[serde(default = "yes")]
    pub recording: bool,
    /// The session of an agent that this hub serves, if it serves only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<AgentSession>,
}

/// A session of an agent under `wrap`. The headers of its tapes name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSession {
    pub id: String,
    /// The kind of agent, such as `claude-code`.
    pub agent: String,
}

/// A message that a hub pushes to shims on `/governance/stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HubPush {
    /// A new policy is in force; the first push of a stream names the current one.
    Policy { version: String },
    /// Every shim must shut down.
    Shutdown,
    /// A task is no longer pending.
    Task {
        task_id: String,
        /// How it ended.
        status: TaskStatus,
    },
}

impl HubPush {
    /// The name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Policy { .. } => "policy",
            Self::Shutdown => "shutdown",
            Self::Task { .. } => "task",
        }
    }
}

fn yes() -> bool {
    true
}

fn lease_ms() -> u64 {
    crate::LEASE.as_millis() as u64
}
