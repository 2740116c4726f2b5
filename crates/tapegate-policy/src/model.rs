//! What a `tapegate.yaml` says, read and checked: the form that runs.
//!
//! There is no second form. Whatever loads a policy makes this, with globs and expressions
//! compiled and names resolved; whatever decides takes this.

mod profiles;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tapegate_cedar::Cedar;

use crate::decide::{Name, Principal};
use crate::glob::Glob;
use crate::own_files::OwnFiles;
use crate::pins::{HintTest, Lock};
use crate::predicate::ArgumentTest;
pub(crate) use profiles::Settled;
pub use profiles::{Overrides, Profile};

/// A policy.
#[derive(Debug)]
pub struct Policy {
    /// What this policy goes by: a hash over everything it was made from.
    pub version: String,
    /// The servers it is about. `id: "*"` stands for all others.
    pub sources: Vec<Source>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// What is done when no rule matches.
    pub default: Act,
    /// Which files are Tapegate's own, and whether calls that name them are refused.
    pub own_files: OwnFiles,
    /// What is done with a message that holds another one in a string.
    pub embedded_messages: EmbeddedMessages,
    /// The ways of asking people, by name.
    pub workflows: BTreeMap<String, Workflow>,
    /// The Cedar policies, if there are any.
    pub cedar: Option<Cedar>,
    /// What is taken out of tapes, approvals, logs and, if so wished, results.
    pub redaction: Redaction,
    /// How definitions of servers are held to what was accepted.
    pub pins: Pins,
    /// What is kept on tape.
    pub recording: Recording,
    /// How the activity log is kept.
    pub activity: Activity,
    /// What is exported.
    pub telemetry: Telemetry,
    /// Who calls, as far as the policy says so; what it leaves out is empty.
    pub principal: Principal,
    /// The profile that holds if nobody names one.
    pub profile: Option<Profile>,
    /// What is otherwise under a profile; see [`Policy::settle`].
    pub profiles: BTreeMap<Profile, Overrides>,
}

/// A server.
#[derive(Debug)]
pub struct Source {
    /// Its name, or `*`.
    pub id: String,
    /// Whether anything on it may be used.
    pub enabled: bool,
    /// Which tools may be seen and used.
    pub tools: Expose,
    /// Which prompts.
    pub prompts: Expose,
    /// Which resources, by URI.
    pub resources: Expose,
    /// Where it is reached, for a shim that is not told.
    pub url: Option<String>,
}

/// What of a kind may be seen and used.
#[derive(Debug)]
pub enum Expose {
    /// Everything.
    All,
    /// What one of these matches.
    Only(Vec<Glob>),
    /// What none of these matches.
    Except(Vec<Glob>),
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// What it goes by in logs and explanations: its `id`, or `rules[3]`.
    pub name: Arc<str>,
    /// What logs say of a call that it has decided about.
    pub reason: Arc<str>,
    /// The line of the file it stands on, for people.
    pub line: u32,
    /// The names (of tools, prompts) and URIs it is about; one of these matches.
    pub matches: Vec<Glob>,
    /// The methods it is about; none for all that are gated.
    pub methods: Vec<Glob>,
    /// The servers it is about; none for all.
    pub sources: Vec<Glob>,
    /// What the arguments must be like; all of these hold.
    pub arguments: Vec<ArgumentTest>,
    /// What the accepted definition of the tool must say about it; all of these hold. A rule that has
    /// any is about tools only.
    pub hints: Vec<HintTest>,
    /// What is done.
    pub act: Act,
    /// Why it is there, for people.
    pub description: Option<String>,
}

/// What is done with a message that holds another one in a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmbeddedMessages {
    /// It is logged and judged like any other: logs and READMEs have messages in them.
    #[default]
    Log,
    /// It is refused.
    Refuse,
}

/// What is done with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// It is sent on.
    Forward,
    /// It goes nowhere.
    Deny,
    /// People are asked by this workflow.
    Approve {
        /// The name of the workflow; `None` only in a default that can never be reached.
        workflow: Option<String>,
    },
    /// Cedar decides.
    Policy {
        /// What `context.policy_id` says.
        policy_id: String,
        /// People are asked too if Cedar permits.
        workflow: Option<String>,
    },
}

impl Act {
    /// What it does with a call, in words that follow those for who says so.
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Self::Forward => "sends it on",
            Self::Deny => "denies it",
            Self::Approve { .. } => "wants it approved",
            Self::Policy { .. } => "has Cedar asked",
        }
    }
}

/// A way of asking people.
#[derive(Debug, Clone)]
pub struct Workflow {
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long a call over HTTP is held.
    pub blocking_timeout: Duration,
    /// Whether the call is sent on when nobody has answered.
    pub forward_on_timeout: bool,
    /// Paths whose values are not shown to people.
    pub redact_fields: Vec<String>,
    /// Who may answer; nobody named means anybody.
    pub approvers: Vec<String>,
}

/// What is taken out before something is written down.
#[derive(Debug, Default)]
pub struct Redaction {
    /// The rules, if redaction is on; shared with `record --redact`.
    pub rules: Option<crate::redact::Rules>,
    /// Whether results are redacted on the wire too.
    pub on_wire: bool,
}

/// How definitions are held to what was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pins {
    /// Whether pins are held to at all, and what becomes of a call when they do not hold.
    pub on_drift: OnDrift,
    /// The workflow by which people are asked, if they are.
    pub workflow: Option<String>,
    /// Where the accepted definitions are kept, from the policy's folder.
    pub lock_file: String,
    /// What was accepted; nothing if there is no such file.
    pub lock: Lock,
}

/// What becomes of something whose definition has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDrift {
    /// Pins are not looked at.
    Ignore,
    /// It is logged.
    Warn,
    /// It goes nowhere.
    #[default]
    Deny,
    /// People are asked.
    Approve,
}

/// What is kept on tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Whether anything is.
    pub enabled: bool,
    /// The folder, if not that of the state.
    pub folder: Option<String>,
    /// After how long tapes are cleaned away.
    pub retention: Option<Duration>,
}

/// How the activity log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// How large the file gets before a new one is begun.
    pub rotate_bytes: u64,
    /// After how long files that are full are cleaned away.
    pub retention: Option<Duration>,
}

/// What is exported.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Telemetry {
    /// Whether anything is.
    pub enabled: bool,
    /// Where to, as a URL.
    pub endpoint: Option<String>,
    /// Whether by JSON rather than protobuf.
    pub json: bool,
    /// Headers that go with it.
    pub headers: Vec<(String, String)>,
    /// The share of calls that went well of which a trace is kept.
    pub sample_rate: f64,
    /// How long a batch may gather.
    pub delay: Duration,
    /// How long an export may take.
    pub timeout: Duration,
    /// How many spans may wait.
    pub queue_max: usize,
    /// How many go at once.
    pub batch_max: usize,
    /// What is said of ourselves.
    pub resource: Vec<(String, String)>,
}

impl Policy {
    /// What is said about a server: by its name, or else by `*`.
    pub fn source(&self, id: &str) -> Option<&Source> {
        let named = self.sources.iter().find(|source| source.id == id);
        named.or_else(|| self.sources.iter().find(|source| source.id == "*"))
    }
}

impl Default for Workflow {
    /// What a workflow is that says nothing: people are asked at the terminal, for ten minutes.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(600),
            blocking_timeout: Duration::from_secs(300),
            forward_on_timeout: false,
            redact_fields: Vec::new(),
            approvers: Vec::new(),
        }
    }
}

impl Expose {
    /// Whether something with this name may be seen and used.
    pub fn shows(&self, name: &str) -> bool {
        self.exposes(&Name::new(name, name, true))
    }

    /// The same of a name as somebody may read it: an allowlist must have it to the letter, a
    /// blocklist has it in any spelling.
    pub(crate) fn exposes(&self, name: &Name<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Only(globs) => globs.iter().any(|glob| name.must_match(glob)),
            Self::Except(globs) => !globs.iter().any(|glob| name.may_match(glob)),
        }
    }
}
