//! A parsed and checked `tapegate.yaml`, in the form that is evaluated.
//!
//! There is no second form. Loading produces this type, with globs and expressions compiled and
//! names resolved, and decisions use it directly.

mod channels;
mod profiles;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tapegate_cedar::CedarPolicies;

use crate::decide::{NameReading, PolicyPrincipal};
use crate::glob::Glob;
use crate::own_files::OwnFiles;
use crate::pins::{HintTest, PinLock};
use crate::predicate::ArgumentTest;
pub use channels::{
    CHANNEL_PROTOCOLS, ChannelKind, ChannelProtocol, ChannelSecret, ChannelSettings, LinkUse,
};
pub use profiles::ProfileOverrides;
pub(crate) use profiles::ProfileSettings;
pub use tapegate_core::activity::Profile;

#[derive(Debug)]
pub struct Policy {
    /// The policy's version: a hash over everything it was loaded from.
    pub version: String,
    /// The servers it covers. `id: "*"` stands for all others.
    pub sources: Vec<ServerSource>,
    /// The rules, in order of evaluation.
    pub rules: Vec<PolicyRule>,
    /// The action when no rule matches.
    pub default: RuleAction,
    /// Which files are Tapegate's own, and whether calls that name them are refused.
    pub own_files: OwnFiles,
    /// The action for a message that holds another one in a string.
    pub embedded_messages: EmbeddedMessages,
    /// The approval workflows, by name.
    pub workflows: BTreeMap<String, Workflow>,
    /// The channels of a hub, by name.
    pub channels: BTreeMap<String, ChannelSettings>,
    /// The Cedar policies, if there are any.
    pub cedar: Option<CedarPolicies>,
    /// What is redacted in tapes, approvals, logs and, if enabled, results.
    pub redaction: RedactionSettings,
    /// How definitions are compared with the accepted ones.
    pub pins: PinSettings,
    /// What is recorded on tape.
    pub recording: RecordingSettings,
    /// How the activity log is kept.
    pub activity: ActivitySettings,
    /// What telemetry is exported.
    pub telemetry: TelemetrySettings,
    /// The caller, as far as the policy describes it; other fields are empty.
    pub principal: PolicyPrincipal,
    /// The default profile.
    pub profile: Option<Profile>,
    /// Settings that a profile overrides; see [`Policy::settle`].
    pub profiles: BTreeMap<Profile, ProfileOverrides>,
}

impl Policy {
    /// Says in which folder a shell tool runs a command line that names none, for the tests that do
    /// not say so themselves. The folder must be certain, or relative paths would be misjudged.
    pub fn set_command_folder(&mut self, folder: &str) {
        let tests = self.rules.iter_mut().flat_map(|rule| &mut rule.arguments);
        tests.filter_map(ArgumentTest::command_mut).for_each(|test| test.default_folder(folder));
    }

    /// The workflow for questions that no rule names one for.
    pub(crate) fn default_workflow(&self) -> Option<&str> {
        let default = self.workflows.keys().find(|name| *name == "default");
        default.or(self.workflows.keys().next()).map(String::as_str)
    }
}

#[derive(Debug)]
pub struct ServerSource {
    /// Its name, or `*`.
    pub id: String,
    /// Whether anything on it may be used.
    pub enabled: bool,
    /// Which tools are visible and callable.
    pub tools: Exposure,
    /// Which prompts are.
    pub prompts: Exposure,
    /// Which resources are, by URI.
    pub resources: Exposure,
    /// The server's URL, for a shim that is not given one.
    pub url: Option<String>,
}

/// Which items of a kind are visible and callable.
#[derive(Debug)]
pub enum Exposure {
    /// All items.
    All,
    /// Items that one of these matches.
    Only(Vec<Glob>),
    /// Items that none of these matches.
    Except(Vec<Glob>),
}

#[derive(Debug)]
pub struct PolicyRule {
    /// Its name in logs and explanations: its `id`, or `rules[3]`.
    pub name: Arc<str>,
    /// The reason logged for a call that this rule decides.
    pub reason: Arc<str>,
    /// Its line in the policy file, for messages to people.
    pub line: u32,
    /// Names (of tools, prompts) and URIs; one of these must match.
    pub matches: Vec<Glob>,
    /// Methods it applies to; empty for all gated methods.
    pub methods: Vec<Glob>,
    /// Servers it applies to; empty for all.
    pub sources: Vec<Glob>,
    /// Tests on the arguments; all must hold.
    pub arguments: Vec<ArgumentTest>,
    /// Tests on the tool's accepted definition; all must hold. A rule that has any applies to tools
    /// only.
    pub hints: Vec<HintTest>,
    pub act: RuleAction,
    /// Why the rule exists, for people.
    pub description: Option<String>,
}

/// The action for a message that holds another one in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbeddedMessages {
    /// Logged, then judged like any other: logs and READMEs often contain messages.
    #[default]
    Log,
    /// Refused.
    Refuse,
}

/// The action for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleAction {
    /// The call is sent on.
    Forward,
    /// The call is refused.
    Deny,
    /// The call waits for approval by this workflow.
    Approve {
        /// The name of the workflow; `None` only in a default that can never be reached.
        workflow: Option<String>,
    },
    /// Cedar decides.
    Policy {
        /// The value of `context.policy_id`.
        policy_id: String,
        /// The workflow that must also approve once Cedar permits.
        workflow: Option<String>,
    },
}

impl RuleAction {
    /// What it does with a call, as a verb phrase whose subject is the rule or default.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Forward => "sends it on",
            Self::Deny => "denies it",
            Self::Approve { .. } => "requires approval",
            Self::Policy { .. } => "asks Cedar",
        }
    }
}

/// An approval workflow.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// How long an approver may take.
    pub timeout: Duration,
    /// How long a call over HTTP is held.
    pub blocking_timeout: Duration,
    /// Whether the call is sent on if no approver answers in time.
    pub forward_on_timeout: bool,
    /// Paths whose values are hidden from approvers.
    pub redact_fields: Vec<String>,
    /// Who may approve; empty for any approver.
    pub approvers: Vec<String>,
    /// How many approvers must approve.
    pub quorum: u32,
    /// The names of the channels that a hub tells of calls.
    pub channels: Vec<String>,
    /// The names of the clients whose user may answer in the client.
    pub in_agent: Vec<Glob>,
    /// When a call that still waits goes to a second workflow, if it does.
    pub escalation: Option<WorkflowEscalation>,
}

/// When a call that still waits goes to a second workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowEscalation {
    /// How long it waits before.
    pub after: Duration,
    /// The name of the second workflow.
    pub to: String,
}

/// What is redacted before anything is stored.
#[derive(Debug, Default)]
pub struct RedactionSettings {
    /// The rules, if redaction is on; shared with `record --redact`.
    pub rules: Option<crate::redact::RedactionRules>,
    /// Whether results are redacted on the wire too.
    pub on_wire: bool,
}

/// How definitions are compared with the accepted ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinSettings {
    /// Whether pins are checked, and what happens to a call whose definition has drifted.
    pub on_drift: OnDrift,
    /// The approval workflow, if `on_drift` asks for approval.
    pub workflow: Option<String>,
    /// The path of the lock file, relative to the policy's folder.
    pub lock_file: String,
    /// The accepted definitions; empty if there is no lock file.
    pub lock: PinLock,
}

/// The action for something whose definition has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDrift {
    /// Pins are not checked.
    Ignore,
    /// The drift is logged.
    Warn,
    /// The call is refused.
    #[default]
    Deny,
    /// The call waits for approval.
    Approve,
}

/// What is recorded on tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSettings {
    /// Whether sessions are recorded.
    pub enabled: bool,
    /// The folder of the tapes, if not the state folder.
    pub folder: Option<String>,
    /// The age at which tapes are deleted.
    pub retention: Option<Duration>,
}

/// How the activity log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivitySettings {
    /// The size at which a new file is started.
    pub rotate_bytes: u64,
    /// The age at which full files are deleted.
    pub retention: Option<Duration>,
}

/// What telemetry is exported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TelemetrySettings {
    /// Whether telemetry is exported.
    pub enabled: bool,
    /// The URL of the collector.
    pub endpoint: Option<String>,
    /// Whether to send JSON rather than protobuf.
    pub json: bool,
    /// Headers sent with each export.
    pub headers: Vec<(String, String)>,
    /// The share of successful calls that are traced.
    pub sample_rate: f64,
    /// How long spans are collected before a batch is sent.
    pub delay: Duration,
    /// How long an export may take.
    pub timeout: Duration,
    /// How many spans may be queued.
    pub queue_max: usize,
    /// How many spans are sent in one batch.
    pub batch_max: usize,
    /// Resource attributes that describe this process.
    pub resource: Vec<(String, String)>,
}

impl Policy {
    /// The entry of a server: the one with its name, or else `*`.
    pub fn source(&self, id: &str) -> Option<&ServerSource> {
        let named = self.sources.iter().find(|source| source.id == id);
        named.or_else(|| self.sources.iter().find(|source| source.id == "*"))
    }
}

impl Policy {
    /// When calls of a workflow go to a second one, and who its approvers are.
    pub fn escalation_of<'a>(
        &'a self,
        workflow: &'a Workflow,
    ) -> Option<(&'a WorkflowEscalation, &'a [String])> {
        let escalation = workflow.escalation.as_ref()?;
        Some((escalation, &self.workflows.get(&escalation.to)?.approvers))
    }
}

impl Default for Workflow {
    /// The defaults of a workflow: ask at the terminal, for ten minutes.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            blocking_timeout: Duration::from_secs(300),
            forward_on_timeout: false,
            redact_fields: Vec::new(),
            approvers: Vec::new(),
            quorum: 1,
            channels: Vec::new(),
            in_agent: Vec::new(),
            escalation: None,
        }
    }
}

impl Workflow {
    /// Whether the user of a client that introduced itself with this name may answer in it.
    pub fn allows_answers_in(&self, client: &str) -> bool {
        // A user without a name is not on any list, and would decide about their own call.
        let is_open = self.approvers.is_empty() && self.quorum <= 1;
        is_open && self.in_agent.iter().any(|glob| glob.matches(client))
    }
}

impl Exposure {
    /// Whether an item with this name is visible and callable.
    pub fn is_visible(&self, name: &str) -> bool {
        self.is_name_visible(&NameReading::new(name, name, true))
    }

    /// Like [`Self::is_visible`] for one reading of a name: an allowlist must match it exactly, a
    /// blocklist matches it in any spelling.
    pub(crate) fn is_name_visible(&self, name: &NameReading<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Only(globs) => globs.iter().any(|glob| name.must_match(glob)),
            Self::Except(globs) => !globs.iter().any(|glob| name.may_match(glob)),
        }
    }
}
