//! What to govern, and how: combines the command line, the environment and the policy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tapegate_policy::decide::PolicyPrincipal;
use tapegate_policy::model::Profile;
use tapegate_policy::redact::RedactionKey;
use tapegate_wire::clock::Clock;

use super::args::Args;
use super::settings_errors::SettingsFaults;
use super::shim_policy::{ShimPolicy, ShimPolicyLoad};
use super::tapes;
use crate::environment::{self, UnknownVariable};
use crate::exit::{Exit, Failure};
use crate::logs::{Logger, VerbosityLevel};
use crate::program_name;
use crate::redaction;
use crate::settings::{self, HUB_VARIABLES, SearchContext};
use crate::trust::{LoadTrigger, PolicyNotice, PolicyTrust, TrustStatus};
use crate::upstream::UpstreamTarget;

/// Variables the server must not see: our own, and the client's private channel.
const HIDDEN: [&str; 3] = ["TAPEGATE_", "THOUGHTGATE_", "CLAUDE_CODE_MESSAGING_"];

/// Everything a session needs to start.
pub(super) struct ShimPlan {
    pub(super) args: Args,
    /// What is wrong with the environment or the command line, if anything.
    pub(super) settings_failure: Option<Failure>,
    pub(super) server_id: String,
    /// The policy file, if there is one.
    pub(super) config: Option<PathBuf>,
    /// Why the policy file cannot be used, if so.
    config_failure: Option<Failure>,
    pub(super) trust: PolicyTrust,
    /// Whether the session may start only with a policy.
    pub(super) policy_required: bool,
    /// The profile, if one was given.
    pub(super) wanted: Option<Profile>,
    pub(super) state: PathBuf,
    /// Why there is no usable state folder, if so.
    pub(super) state_failure: Option<Failure>,
    /// The folder that the session works in.
    pub(super) folder: String,
    /// The hub to join.
    pub(super) hub: Option<HubAddress>,
    /// Files of ours that calls must not name, besides those that every policy covers.
    pub(super) own_files: Vec<PathBuf>,
    pub(super) connection_id: String,
    /// The name of the session's tape, by which events refer to it.
    pub(super) session_id: String,
    /// The key for the placeholders of secrets.
    pub(super) key: RedactionKey,
    pub(super) clock: Clock,
    pub(super) log: Logger,
    /// The principal's name if the policy does not give one.
    pub(super) user: String,
    /// Variables that look like ours but are not known.
    pub(super) unknown_variables: Vec<UnknownVariable>,
    /// Variables that are removed from the server's environment.
    pub(super) without: Vec<OsString>,
}

/// The policy that a session starts with.
pub(super) struct StartPolicy {
    pub(super) rule: ShimPolicy,
    /// The files to watch for changes.
    pub(super) files: Vec<PathBuf>,
    /// Notices about its acceptance to log.
    pub(super) notices: Vec<PolicyNotice>,
}

/// How to reach a hub.
pub(super) struct HubAddress {
    pub(super) endpoint: String,
    pub(super) token_file: PathBuf,
}

impl ShimPlan {
    /// Makes the plan for a command line.
    pub(super) fn new(args: Args) -> anyhow::Result<Self> {
        // A wrong setting does not end the start here. Agents show no reason for a server that
        // exits, so a shim must run and answer with it.
        let mut faults = SettingsFaults::default();
        let nowhere = SearchContext { folder: PathBuf::from("/"), variable: &|_| None };
        let search =
            faults.unwrap_or(SearchContext::current().map_err(missing_folder_failure), nowhere);
        let named = faults.unwrap_or(args.upstream.optional(), None);
        let server_id = match (&args.server_id, named) {
            (Some(id), _) => id.clone(),
            (None, named) => {
                let given = search.first(&["TAPEGATE_SERVER_ID", "THOUGHTGATE_SERVER_ID"]);
                let made = || named.map(|server| settings::server_id(&server));
                given.and_then(|id| id.into_string().ok()).or_else(made).unwrap_or_default()
            }
        };
        let log = Logger::new("shim", &server_id);
        let log = faults.unwrap_or(log, Logger::ignoring_environment("shim", &server_id));
        let (state, no_state) = match search.state_folder(args.project.config.as_deref()) {
            Ok(state) => (state, None),
            Err(failure) => (PathBuf::new(), Some(failure)),
        };
        let (hub, no_hub) = match hub_place(&args, &search, &state) {
            Ok(hub) => (hub, None),
            Err(failure) => (None, Some(failure)),
        };
        let user = search.user();
        let (connection_id, clock) = (fresh_id()?, Clock::start());
        let trust = PolicyTrust::new();
        let (config, config_failure) = match trust.locate(&search, args.project.config.as_deref()) {
            Ok(config) => (config, None),
            Err(failure) => (None, Some(failure)),
        };
        let unknown_variables = environment::unknown(std::env::vars_os());
        faults.unwrap_or(environment::require_known(&unknown_variables), ());
        // The strict fallback: a misspelt value must not turn the requirement off.
        let policy_required = faults.unwrap_or(search.policy_required(args.require_policy), true);
        let wanted = faults.unwrap_or(search.profile(args.project.profile), None);
        Ok(Self {
            settings_failure: faults.into_failure(),
            config,
            config_failure,
            trust,
            policy_required,
            wanted,
            own_files: hub.iter().map(|hub| hub.token_file.clone()).collect(),
            hub,
            state_failure: no_state.or(no_hub),
            server_id,
            state,
            folder: search.folder.to_string_lossy().into_owned(),
            // Chosen before the tape is opened, so that the first events name it too.
            session_id: tapes::session_id(&connection_id, clock.now()),
            connection_id,
            key: RedactionKey::for_tape(redaction::random()?),
            clock,
            log,
            user,
            unknown_variables,
            without: hidden_variables(std::env::vars_os().map(|(name, _)| name)),
            args,
        })
    }

    /// Loads the policy in force. Fails if it does not load, or if there is none and one is
    /// required.
    pub(super) fn policy(&mut self) -> Result<StartPolicy, Failure> {
        if let Some(failure) = self.config_failure.take() {
            return Err(failure);
        }
        let Some(path) = &self.config else {
            if self.policy_required {
                return Err(missing_policy_failure());
            }
            let rule = ShimPolicy::observe_only(self.wanted);
            return Ok(StartPolicy { rule, files: Vec::new(), notices: Vec::new() });
        };
        let governing = self.trust.load(path, self.wanted, &self.key, LoadTrigger::Start);
        // Otherwise each start would be a first use, and trust whatever an agent has written.
        if self.policy_required {
            governing.require_stored()?;
        }
        let notices = PolicyNotice::of(path, &governing).into_iter().collect();
        let never_accepted = governing.standing == TrustStatus::NeverAccepted;
        let ShimPolicyLoad { rule, faults, warnings, files } = governing.policy_load;
        warnings.iter().for_each(|message| self.log.log(VerbosityLevel::Warn, message));
        match rule {
            Some(rule) => Ok(StartPolicy { rule, files, notices }),
            None if never_accepted => Err(unaccepted_policy_failure(path, &faults)),
            None => Err(policy_failure(path, &faults)),
        }
    }

    /// The path of the policy file as text; empty if there is none.
    pub(super) fn policy_name(&self) -> String {
        let path = self.config.as_deref().unwrap_or(Path::new(""));
        path.to_string_lossy().into_owned()
    }

    /// The server given on the command line, or else the URL in the policy.
    pub(super) fn upstream(&self, rule: &ShimPolicy) -> Result<UpstreamTarget, Failure> {
        if let Some(named) = self.args.upstream.optional()? {
            return Ok(named);
        }
        let policy = rule.active_policy.policy.as_ref();
        let source = policy.and_then(|policy| policy.source(&self.server_id));
        match source.and_then(|source| source.url.clone()) {
            Some(url) if !self.server_id.is_empty() => Ok(UpstreamTarget::Http(url)),
            _ => self.args.upstream.required("to govern"),
        }
    }

    /// The principal, as far as it is known before the first call.
    pub(super) fn principal(&self, rule: &ShimPolicy) -> PolicyPrincipal {
        let configured = rule.active_policy.policy.as_ref().map(|policy| policy.principal.clone());
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

/// The folder we were started in is gone or cannot be read.
fn missing_folder_failure(error: std::io::Error) -> Failure {
    Failure::new(Exit::Io, format!("cannot find the current folder: {error}"))
        .hint("start the client again in a folder that exists")
}

/// No policy was found, but one is required.
fn missing_policy_failure() -> Failure {
    let here = std::env::current_dir().unwrap_or_default();
    let message = format!(
        "no policy found, and one is required: no tapegate.yaml in `{}`, in a folder above it, or in \
         the user's config folder",
        here.display()
    );
    Failure::new(Exit::Invalid, message).hint(format!(
        "write one with `{}` in the project, or name one with --config FILE; without \
         --require-policy, calls are only recorded",
        program_name::command("init")
    ))
}

/// The policy would replace an accepted one, but no person has accepted it.
fn unaccepted_policy_failure(path: &Path, faults: &[String]) -> Failure {
    Failure::new(Exit::Invalid, faults.join("\n")).hint(format!(
        "a person runs `{}` in a terminal, or removes the file",
        program_name::command(format!("policy accept {}", path.display()))
    ))
}

fn policy_failure(path: &Path, faults: &[String]) -> Failure {
    let message = format!("{}\nthe policy `{}` does not load", faults.join("\n"), path.display());
    Failure::new(Exit::Invalid, message).hint(format!(
        "a policy with errors is never enforced in part; `{}` shows the same errors",
        program_name::command(format!("check {}", path.display()))
    ))
}

fn hub_place(
    args: &Args,
    search: &SearchContext<'_>,
    state: &Path,
) -> Result<Option<HubAddress>, Failure> {
    let by_variable = || search.first(&HUB_VARIABLES).and_then(|value| value.into_string().ok());
    let Some(endpoint) = args.governance_endpoint.clone().or_else(by_variable) else {
        return Ok(None);
    };
    let token_file = match search.token_file(args.token_file.as_deref()) {
        Some(named) => named,
        None => tapegate_hub::hub_lock::token_file(&search.user_state_dir()?, state),
    };
    Ok(Some(HubAddress { endpoint, token_file }))
}

fn hidden_variables(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let ours = |name: &OsString| {
        let name = name.as_encoded_bytes();
        HIDDEN.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
    };
    names.filter(ours).collect()
}

/// A unique id: 16 random hexadecimal digits.
fn fresh_id() -> std::io::Result<String> {
    let bytes = redaction::random()?;
    Ok(bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}
