//! What a shim and its hub tell each other besides calls.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Profile, StreamDirection, TaskStatus};

/// That a shim is alive, and what it has seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HeartbeatRequest {
    /// The server behind the shim.
    pub server_id: String,
    /// One connection of one shim. Without it, shims of one server are taken for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<String>,
    /// The process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How the server is: `starting`, `running`, `stopping`, `stopped` or `crashed`. A shim whose
    /// server is `stopped` or `crashed` is not heard of again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The policy the shim decides by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    /// What it has counted since it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
}

/// What a shim has counted since it was started. Never what is new since the last heartbeat: a
/// heartbeat that is lost, or counted and not answered, must change nothing. For a shim that sends
/// this, nothing of it is counted from the activity log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageCount>,
    /// Messages that were not well-formed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub framing_errors: Vec<FramingCount>,
    /// Decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionCount>,
}

/// Messages of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCount {
    /// Which way they went.
    pub direction: StreamDirection,
    /// Their method; empty for answers.
    #[serde(default)]
    pub method: String,
    /// How many.
    pub count: u64,
}

/// Messages with one kind of fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramingCount {
    /// The fault, such as `malformed_json`.
    pub error_type: String,
    /// How many.
    pub count: u64,
}

/// Decisions of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionCount {
    /// The decision, such as `deny` or `WOULD_BLOCK`.
    pub decision: String,
    /// The profile.
    pub profile: Profile,
    /// How many.
    pub count: u64,
}

/// What a hub has to say to a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatResponse {
    /// Whether the shim must come to its end.
    pub shutdown: bool,
    /// The policy that holds; empty if there is none.
    #[serde(default)]
    pub policy_version: String,
    /// Whether tapes are kept.
    #[serde(default = "yes")]
    pub recording: bool,
    /// How long the policy may be used without another word from the hub.
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
}

/// That every shim was told to come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownResponse {
    /// Always true.
    pub shutdown: bool,
    /// How many shims are still there.
    pub active_servers: usize,
}

/// A policy as it was read: everything that is needed to make it once more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What it goes by; empty if there is none and everything is only observed.
    pub version: String,
    /// How long it may be used without another word from the hub.
    pub lease_ms: u64,
    /// The profile that holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The text of `tapegate.yaml`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Where that lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_path: Option<String>,
    /// Every other file that belongs to it, by the name it is asked for by.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Every variable that it names and that is set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where the activity log, approvals and tapes lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_folder: Option<String>,
    /// The name of the activity log there. A folder with that path is the hub's if its log has this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_id: Option<String>,
    /// Files of the hub that calls may not name, beside those that every shim knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_files: Vec<String>,
    /// Whether tapes are kept.
    #[serde(default = "yes")]
    pub recording: bool,
}

/// What a hub says without being asked, on `/governance/stream`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Push {
    /// Another policy holds, or this one, if it is the first thing said.
    Policy {
        /// What it goes by.
        version: String,
    },
    /// Every shim must come to its end.
    Shutdown,
    /// A task has come to an end.
    Task {
        /// The task.
        task_id: String,
        /// How it ended.
        status: TaskStatus,
    },
}

impl Push {
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
