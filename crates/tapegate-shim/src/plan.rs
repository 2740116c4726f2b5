//! What to govern, and how.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_hub::api::AgentSession;
use tapegate_policy::decide::PolicyPrincipal;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_policy::redact::RedactionKey;
use tapegate_wire::clock::Clock;

use crate::message_log::MessageLog;
use crate::reload::{PolicyNotice, ReloadedPolicy};

/// Everything a session needs to start, besides its policy and its server.
pub struct ShimPlan {
    /// The name of the server in the policy and in the logs.
    pub server_id: String,
    /// The policy file, if there is one.
    pub config: Option<PathBuf>,
    /// The profile, if one was given.
    pub wanted: Option<Profile>,
    /// The state folder, which holds the activity log and the tapes.
    pub state: PathBuf,
    /// The folder for tapes, if it is not the policy's; then there is a tape whatever the policy
    /// says.
    pub tapes: Option<PathBuf>,
    /// The user's own state folder, or why there is none.
    pub user_state: Result<PathBuf, String>,
    /// The folder that the session works in.
    pub folder: String,
    /// Files of ours that calls must not name, besides those that every policy covers.
    pub own_files: Vec<PathBuf>,
    /// The folder in which the server runs a command line that names none, if that is certain.
    pub command_folder: Option<String>,
    /// The name of this shim in events.
    pub connection_id: String,
    /// The name of the session's tape, by which events refer to it.
    pub session_id: String,
    /// The session of an agent that the hub serves, if it serves only one.
    pub agent_session: Option<AgentSession>,
    /// The key for the placeholders of secrets.
    pub key: RedactionKey,
    /// The clock of the session.
    pub clock: Clock,
    /// Where messages for people go.
    pub log: Arc<dyn MessageLog>,
    /// The principal's name if the policy does not give one.
    pub user: String,
    /// How the client is connected.
    pub client: TransportKind,
    /// When a request that is not answered is logged as an orphan; 0 for never.
    pub answer_timeout_ms: u64,
    /// The program that the session is part of.
    pub program: ProgramContext,
}

/// What texts and policies say about the program that a session is part of.
#[derive(Debug, Clone, Copy)]
pub struct ProgramContext {
    /// The command line for a subcommand, under the name by which the program was started.
    pub command: fn(&str) -> String,
    /// Our own folders and files on this machine, which calls under this policy must not name.
    pub own_places: fn(&Path) -> Vec<PathBuf>,
}

/// The server of a session.
#[derive(Debug, Clone)]
pub struct ServerDescription {
    /// Its command line or URL.
    pub text: String,
    /// How it is connected.
    pub transport: TransportKind,
}

/// The policy that a session starts with.
pub struct StartPolicy {
    pub active_policy: ActivePolicy,
    /// The files to watch for changes.
    pub files: Vec<PathBuf>,
    /// Notices about its acceptance to log.
    pub notices: Vec<PolicyNotice>,
}

/// A fault of the surroundings that the log should name at the start.
#[derive(Debug, Clone)]
pub struct StartWarning {
    /// The name of the event in the activity log.
    pub event: &'static str,
    /// What is wrong.
    pub text: String,
}

/// The project that a session works in, with the policy that a person has accepted for it.
pub trait ShimProject {
    /// The policy file, which may have been created since the start.
    fn policy_file(&self) -> Option<PathBuf>;
    /// Loads the policy in force for this policy file, which may have changed.
    fn reload(&self, path: &Path) -> ReloadedPolicy;
    /// Remembers that a session has started here, and returns what may endanger it.
    fn note_start(&self) -> Vec<StartWarning>;
}

impl ShimPlan {
    /// The path of the policy file as text; empty if there is none.
    pub fn policy_name(&self) -> String {
        let path = self.config.as_deref().unwrap_or(Path::new(""));
        path.to_string_lossy().into_owned()
    }

    /// Whether the session is recorded.
    pub(crate) fn is_recording(&self, active_policy: &ActivePolicy) -> bool {
        let policy = active_policy.policy.as_ref();
        self.tapes.is_some() || policy.is_none_or(|policy| policy.recording.enabled)
    }

    /// The principal, as far as it is known before the first call.
    pub(crate) fn principal(&self, active_policy: &ActivePolicy) -> PolicyPrincipal {
        let configured = active_policy.policy.as_ref().map(|policy| policy.principal.clone());
        let configured = configured.unwrap_or_default();
        let or = |configured: String, other: &str| {
            if configured.is_empty() { other.to_owned() } else { configured }
        };
        PolicyPrincipal {
            name: or(configured.name, &self.user),
            namespace: or(configured.namespace, "local"),
            service_account: or(configured.service_account, "local"),
            ..configured
        }
    }
}
