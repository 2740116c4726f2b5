//! What to govern, and how: combines the command line, the environment and the policy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_core::activity::EventLevel;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_policy::redact::RedactionKey;
use tapegate_shim::plan::{ShimPlan, ShimProject, StartPolicy, StartWarning};
use tapegate_shim::reload::ReloadedPolicy;
use tapegate_shim::shim_policy::ShimPolicyLoad;
use tapegate_shim::tapes;
use tapegate_store::random;
use tapegate_wire::clock::Clock;

use super::args::Args;
use super::settings_errors::SettingsFaults;
use crate::cmd::wrap::stored_entries;
use crate::environment::{self, UnknownVariable};
use crate::exit::{Exit, Failure};
use crate::logs::Logger;
use crate::program_name;
use crate::redaction;
use crate::settings::state_folder::StateChoice;
use crate::settings::{self, HUB_VARIABLES, SearchContext};
use crate::trust::{LoadTrigger, PolicyTrust, TrustStatus};
use crate::upstream::UpstreamTarget;

/// Variables the server must not see: our own, the client's private channel, and the entries of
/// all servers with their secrets, as `wrap --overlay` passes them to opencode.
const HIDDEN: [&str; 4] =
    ["TAPEGATE_", "THOUGHTGATE_", "CLAUDE_CODE_MESSAGING_", "OPENCODE_CONFIG_CONTENT"];

/// A session to start, as the command line and the environment describe it.
pub(super) struct StartPlan {
    pub(super) args: Args,
    pub(super) shim: ShimPlan,
    /// What is wrong with the environment or the command line, if anything.
    pub(super) settings_failure: Option<Failure>,
    /// Why the policy file cannot be used, if so.
    config_failure: Option<Failure>,
    trust: PolicyTrust,
    /// Whether the session may start only with a policy.
    pub(super) policy_required: bool,
    /// Why there is no usable state folder, if so.
    pub(super) state_failure: Option<Failure>,
    /// The hub to join.
    pub(super) hub: Option<HubAddress>,
    /// Variables that look like ours but are not known.
    unknown_variables: Vec<UnknownVariable>,
    /// Variables that are removed from the server's environment.
    pub(super) without: Vec<OsString>,
}

/// How to reach a hub.
pub(super) struct HubAddress {
    pub(super) endpoint: String,
    pub(super) token_file: PathBuf,
}

impl StartPlan {
    /// Makes the plan for a command line.
    pub(super) fn new(args: Args) -> anyhow::Result<Self> {
        // A wrong setting does not end the start here. Agents show no reason for a server that
        // exits, so a shim must run and answer with it.
        let mut faults = SettingsFaults::default();
        let nowhere = SearchContext { folder: PathBuf::from("/"), variable: &|_| None };
        let search =
            faults.unwrap_or(SearchContext::current().map_err(missing_folder_failure), nowhere);
        faults.unwrap_or(refuse_entry(&args, &search), ());
        let named = faults.unwrap_or(args.upstream.optional(), None);
        let server_id = args.server_id.clone().unwrap_or_else(|| {
            let given = search.first(&["TAPEGATE_SERVER_ID", "THOUGHTGATE_SERVER_ID"]);
            let made = || named.map(|server| settings::server_id(&server));
            given.and_then(|id| id.into_string().ok()).or_else(made).unwrap_or_default()
        });
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
        let (connection_id, clock) = (random::id()?, Clock::start());
        let trust = PolicyTrust::of_session(args.own_files.clone(), args.command_folder.clone());
        let (config, config_failure) = match trust.locate(&search, args.project.config.as_deref()) {
            Ok(config) => (config, None),
            Err(failure) => (None, Some(failure)),
        };
        let unknown_variables = environment::unknown(std::env::vars_os());
        faults.unwrap_or(environment::require_known(&unknown_variables), ());
        // The strict fallback: a misspelt value must not turn the requirement off.
        let policy_required = faults.unwrap_or(search.policy_required(args.require_policy), true);
        let wanted = faults.unwrap_or(search.profile(args.project.profile), None);
        let user_state = search.user_state_dir().map_err(|failure| failure.message);
        let shim = ShimPlan {
            server_id,
            config,
            wanted,
            state,
            tapes: args.record_to.as_ref().map(|tapes| search.folder.join(tapes)),
            user_state,
            folder: search.folder.to_string_lossy().into_owned(),
            own_files: own_files(hub.as_ref(), &args),
            command_folder: args.command_folder.clone(),
            // Chosen before the tape is opened, so that the first events name it too.
            session_id: tapes::session_id(&connection_id, clock.now()),
            connection_id,
            agent_session: None,
            key: RedactionKey::for_tape(redaction::random()?),
            clock,
            log: Arc::new(log),
            user: search.user(),
            client: match args.http {
                Some(_) => TransportKind::Http,
                None => TransportKind::Lines,
            },
            answer_timeout_ms: args.answer_timeout.saturating_mul(1000),
            program: settings::PROGRAM,
        };
        Ok(Self {
            shim,
            settings_failure: faults.into_failure(),
            config_failure,
            trust,
            policy_required,
            state_failure: no_state.or(no_hub),
            hub,
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
        let Some(path) = &self.shim.config else {
            if self.policy_required {
                return Err(missing_policy_failure(self.args.policy_option));
            }
            let active_policy = ActivePolicy::observe_only(self.shim.wanted);
            return Ok(StartPolicy { active_policy, files: Vec::new(), notices: Vec::new() });
        };
        let governing = self.trust.load(path, self.shim.wanted, &self.shim.key, LoadTrigger::Start);
        // Otherwise each start would be a first use, and trust whatever an agent has written.
        if self.policy_required {
            governing.require_stored()?;
        }
        let notices = governing.notice(path).into_iter().collect();
        let never_accepted = governing.standing == TrustStatus::NeverAccepted;
        let ShimPolicyLoad { active_policy, faults, warnings, files } = governing.policy_load;
        warnings.iter().for_each(|message| self.shim.log.message(EventLevel::Warn, message));
        match active_policy {
            Some(active_policy) => Ok(StartPolicy { active_policy, files, notices }),
            None if never_accepted => Err(unaccepted_policy_failure(path, &faults)),
            None => Err(policy_failure(path, &faults)),
        }
    }

    /// The server given on the command line, or else the URL in the policy.
    pub(super) fn upstream(&self, active_policy: &ActivePolicy) -> Result<UpstreamTarget, Failure> {
        if let Some(named) = self.args.upstream.optional()? {
            return Ok(named);
        }
        let policy = active_policy.policy.as_ref();
        let source = policy.and_then(|policy| policy.source(&self.shim.server_id));
        match source.and_then(|source| source.url.clone()) {
            Some(url) if !self.shim.server_id.is_empty() => Ok(UpstreamTarget::Http(url)),
            _ => self.args.upstream.required("to govern"),
        }
    }

    /// Remembers where the log of this session is, so that a folder created later does not replace
    /// it.
    pub(super) fn remember_state(&self) {
        if let Ok(search) = SearchContext::current() {
            search.remember_state(self.args.project.config.as_deref(), self.shim.config.as_deref());
        }
    }
}

/// Refuses an entry that is still there: it would have taken the place of the command line, unless it
/// cannot be read or names another one.
fn refuse_entry(args: &Args, search: &SearchContext<'_>) -> Result<(), Failure> {
    let Some(id) = &args.entry else { return Ok(()) };
    let stored = stored_entries::read(&search.user_state_dir()?, id);
    stored.and(Err(Failure::new(Exit::Invalid, "an entry names another entry")))
}

/// The files that no call may read or change.
fn own_files(hub: Option<&HubAddress>, args: &Args) -> Vec<PathBuf> {
    let tokens = hub.iter().map(|hub| hub.token_file.clone());
    tokens.chain(args.own_files.iter().cloned()).collect()
}

impl ShimProject for StartPlan {
    fn policy_file(&self) -> Option<PathBuf> {
        let found = || self.trust.locate(&SearchContext::current().ok()?, None).ok()?;
        self.shim.config.clone().or_else(found)
    }

    fn reload(&self, path: &Path) -> ReloadedPolicy {
        let plan = &self.shim;
        let governing = self.trust.load(path, plan.wanted, &plan.key, LoadTrigger::Reload);
        ReloadedPolicy {
            notice: governing.notice(path),
            is_accepted: governing.standing == TrustStatus::Accepted,
            policy_load: governing.policy_load,
            texts: governing.texts,
        }
    }

    /// Warns if an agent may be able to write the user's own state or has created a folder that
    /// could be taken for the project's, or if a variable is unknown.
    fn note_start(&self) -> Vec<StartWarning> {
        let Ok(search) = SearchContext::current() else { return Vec::new() };
        let config = self.shim.config.as_deref();
        let project = config.and_then(Path::parent).unwrap_or(&search.folder);
        let choice = search.chosen_state(self.args.project.config.as_deref()).ok();
        let unused = choice.as_ref().and_then(|choice| choice.unused_warning(&search));
        let gone = choice.as_ref().and_then(StateChoice::gone_warning);
        let exposed = search.user_state_warning(project);
        let state = [(exposed, "exposed_state"), (unused, "unused_state"), (gone, "state_gone")];
        let state = state.into_iter().filter_map(|(text, event)| Some((text?, event)));
        let unknown = self.unknown_variables.iter().map(UnknownVariable::warning_text);
        let all = state.chain(unknown.map(|text| (text, "unknown_variable")));
        let warnings = all.map(|(text, event)| StartWarning { event, text }).collect();
        // Clients may start shims with another HOME or TAPEGATE_HOME than a terminal has. The note
        // lets `approvals` and `policy accept` warn about that.
        search.note_user_state(&self.shim.state);
        self.remember_state();
        warnings
    }
}

/// The folder we were started in is gone or cannot be read.
fn missing_folder_failure(error: std::io::Error) -> Failure {
    Failure::new(Exit::Io, format!("cannot find the current folder: {error}"))
        .hint("start the client again in a folder that exists")
}

/// No policy was found, but one is required.
fn missing_policy_failure(option: &str) -> Failure {
    let here = std::env::current_dir().unwrap_or_default();
    let message = format!(
        "no policy found, and one is required: no tapegate.yaml in `{}`, in a folder above it, or in \
         the user's config folder",
        here.display()
    );
    Failure::new(Exit::Invalid, message).hint(format!(
        "write one with `{}` in the project, or name one with {option} FILE; without \
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
