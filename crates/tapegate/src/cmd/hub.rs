//! `tapegate hub`: the governance service that many shims share.

mod args;
mod policy;
pub(crate) mod session_pipe;
pub(crate) mod session_processes;

pub(crate) use args::Args;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use tapegate_core::activity::ActivityKind;
use tapegate_hub::api::AgentSession;
use tapegate_hub::hub_lock::{ClaimError, HubLock};
use tapegate_hub::hub_policy::HubPolicy;
use tapegate_hub::lifecycle::{self, HubExit, HubSignals};
use tapegate_hub::limits::HubLimits;
use tapegate_hub::service::{Hub, HubOptions, NoticeLevel, StartError};
use tapegate_hub::token::HubTokens;
use tapegate_store::{random, state_dir};
use tapegate_wire::http::listener::{HttpListener, ListenError};

use super::init;
use crate::approver_check::PersonAttempt;
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::logs::{Logger, VerbosityLevel};
use crate::program_name;
use crate::runtime;
use crate::settings::SearchContext;
use policy::PolicySource;
use session_pipe::{DeferredNotices, HubReport, SessionPipe};
use tapegate_shim::file_watch::FileWatch;

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    let search = SearchContext::current()?;
    let log = Rc::new(open_log()?);
    let session = args.session.as_ref().map(|_| SessionPipe::open()).transpose()?;
    let (state, user_state) = prepare_state(&args, &search, &log)?;
    // Before the port is bound: the second hub of a folder must not take an address.
    let hub_lock = acquire_lock(&args, &search, &state, &user_state)?;
    warn_of_tokens(&hub_lock, &search, &log);
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = HubSignals::listen()?;
    let listener = runtime.block_on(listen(&args))?;
    let required = search.policy_required(args.require_policy)?;
    let own_files = [hub_lock.token_path(), hub_lock.approver_token_path()].map(Path::to_owned);
    let policy_source =
        Rc::new(PolicySource::new(&args.project, required, &search, own_files.to_vec())?);
    if required && policy_source.path().is_none() {
        return Err(no_policy_failure().into());
    }
    if args.state.is_none() {
        search.remember_state(args.project.config.as_deref(), policy_source.path().as_deref());
    }
    let undecided = decisions_unavailable_reason(&args, &state)?;
    // A session's hub was not asked for by its user, and `approvals` works without it.
    undecided.iter().filter(|_| session.is_none()).for_each(|message| log.log_always(message));
    let agent_session = agent_session(&args)?;
    let (address, tokens) = (listener.address()?, HubTokens::generate()?);
    let notices = Rc::new(DeferredNotices::new(Rc::clone(&log)));
    let notice = Rc::clone(&notices);
    let loading = Rc::clone(&policy_source);
    let hub = start(HubOptions {
        state_folder: state,
        user_state,
        address,
        tokens: tokens.clone(),
        own_files: own_files.map(|path| path.to_string_lossy().into_owned()).to_vec(),
        undecided,
        load: Box::new(move || loading.load()),
        notice: Box::new(move |care, message| notice.post(care, message)),
        profile: policy_source.requested_profile(),
        limits: HubLimits::default(),
        session: agent_session.clone(),
    })?;
    // Start watching first: a client may change the policy as soon as the hub announces itself.
    let watch = FileWatch::new(policy_source.files());
    let endpoint = format!("http://{address}");
    // Last, when the hub can answer: shims connect as soon as they see this.
    hub_lock.publish_endpoint(&endpoint, &tokens).map_err(|error| lock_failure(error, None))?;
    let policy = hub.active_policy();
    if let (Some(pipe), Some(session)) = (session, agent_session) {
        let ready = HubReport {
            session: session.id,
            endpoint,
            token_file: hub_lock.token_path().to_owned(),
            policy: policy.policy.is_some().then(|| policy.name().to_owned()),
            profile: policy.profile,
        };
        let beside = reload(&hub, &policy_source, watch);
        return runtime.block_on(pipe.serve(ready, &notices, &hub, (listener, signals), beside));
    }
    log.log_always(&announcement(&endpoint, &hub_lock, &policy));
    let ended = runtime.block_on(lifecycle::serve(
        Rc::clone(&hub),
        listener,
        signals,
        reload(&hub, &policy_source, watch),
        lifecycle::wait_for_shims(&hub),
    ));
    Ok(match ended {
        HubExit::Signal(number) => Exit::from_signal(number),
        HubExit::Asked => Exit::Ok,
    })
}

/// Makes this the hub of the state folder.
fn acquire_lock(
    args: &Args,
    search: &SearchContext<'_>,
    state: &Path,
    user_state: &Path,
) -> Result<HubLock, Failure> {
    let hub_lock = match args.session {
        Some(_) => HubLock::acquire_for_session(state, user_state),
        None => HubLock::acquire(state, user_state, args.token_files(search)),
    };
    hub_lock.map_err(|error| {
        let is_named = args.state.is_some() || search.first(&["TAPEGATE_HOME"]).is_some();
        let is_shared = !is_named && state == user_state;
        lock_failure(error, is_shared.then(|| own_state_hint(args, search)))
    })
}

/// The session of an agent, if this hub serves only one.
fn agent_session(args: &Args) -> anyhow::Result<Option<AgentSession>> {
    let session = |agent: &String| random::id().map(|id| AgentSession { id, agent: agent.clone() });
    Ok(args.session.as_ref().map(session).transpose()?)
}

/// Makes the state folder private, with warnings about where it is; returns it and the user's.
fn prepare_state(
    args: &Args,
    search: &SearchContext<'_>,
    log: &Logger,
) -> anyhow::Result<(PathBuf, PathBuf)> {
    let state = match &args.state {
        Some(state) => search.folder.join(state),
        None => search.state_folder(args.project.config.as_deref())?,
    };
    let changed = state_dir::secure(&state).map_err(|error| Failure::new(Exit::Io, error))?;
    changed.iter().for_each(|message| log.log(VerbosityLevel::Warn, message));
    let user_state = search.user_state_dir()?;
    search.note_user_state(&state);
    if args.state.is_none() {
        let warnings = search.chosen_state(args.project.config.as_deref())?.warnings(search);
        warnings.iter().for_each(|message| log.log(VerbosityLevel::Warn, message));
    }
    Ok((state, user_state))
}

/// What a hub that was started by itself prints when it can be used.
fn announcement(endpoint: &str, hub_lock: &HubLock, policy: &HubPolicy) -> String {
    format!(
        "listening on {endpoint}; the shims' token is in {}; the approvers' token is in {}; \
         policy {}, profile {}",
        hub_lock.token_path().display(),
        hub_lock.approver_token_path().display(),
        policy.name(),
        policy.profile.as_str()
    )
}

/// The failure of a hub that must have a policy and finds none.
fn no_policy_failure() -> Failure {
    let hint = format!("write one with `{}`, or pass --config FILE", program_name::command("init"));
    Failure::new(Exit::Invalid, "no policy found, and one is required").hint(hint)
}

/// Opens the hub's own log, once the environment is known to be valid.
fn open_log() -> Result<Logger, Failure> {
    let log = Logger::new("hub", "")?;
    let unknown = environment::unknown(std::env::vars_os());
    environment::require_known(&unknown)?;
    unknown.iter().for_each(|variable| log.log(VerbosityLevel::Warn, &variable.warning_text()));
    Ok(log)
}

/// Why decisions through this hub are disabled, if they are: otherwise an agent that starts a hub
/// could approve its own calls through the API. A wrong key is an error.
fn decisions_unavailable_reason(args: &Args, state: &Path) -> Result<Option<String>, Failure> {
    match args.key.authorize("deciding about calls through a hub", state) {
        Ok(()) => Ok(None),
        Err(failure) if args.key.is_given() => {
            let command = args.key.command_text("hub");
            let attempt = PersonAttempt {
                kind: ActivityKind::Approval,
                command: &command,
                approval_id: None,
            };
            attempt.log_refusal(state, &failure.message);
            Err(failure)
        }
        Err(failure) => Ok(Some(format!(
            "this hub does not accept approvals: {}; use `{}`, or start the hub with \
             --non-interactive and --key-file",
            failure.message,
            program_name::command("approvals")
        ))),
    }
}

/// Warns of problems with the location of the token files.
fn warn_of_tokens(hub_lock: &HubLock, search: &SearchContext<'_>, log: &Logger) {
    let exposed = [
        search.token_warning(hub_lock.token_path(), "--token-file"),
        search.token_warning(hub_lock.approver_token_path(), "--approver-token-file"),
    ];
    let old = hub_lock.old_token_notice().map(str::to_owned);
    old.into_iter()
        .chain(exposed.into_iter().flatten())
        .for_each(|message| log.log(VerbosityLevel::Warn, &message));
}

pub(super) fn log_message(log: &Logger, care: NoticeLevel, message: &str) {
    match care {
        NoticeLevel::Info => log.log_always(message),
        NoticeLevel::Warn => log.log(VerbosityLevel::Warn, message),
        NoticeLevel::Error => log.log(VerbosityLevel::Error, message),
    }
}

fn start(options: HubOptions) -> Result<Rc<Hub>, Failure> {
    Hub::new(options).map_err(|error| {
        let message = error.to_string();
        match error {
            StartError::Policy(_) => Failure::new(Exit::Invalid, message).hint(format!(
                "a policy with errors is never enforced in part; `{}` shows the same errors",
                program_name::command("check")
            )),
            StartError::Log(error) => match error.hint() {
                Some(hint) => Failure::new(Exit::Io, message).hint(hint),
                None => Failure::new(Exit::Io, message),
            },
            StartError::Approvals(_) => Failure::new(Exit::Io, message),
        }
    })
}

async fn listen(args: &Args) -> Result<HttpListener, Failure> {
    let host = args.host.as_deref().unwrap_or("127.0.0.1");
    HttpListener::bind(&format!("{host}:{}", args.port)).await.map_err(|error| match &error {
        ListenError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            let message = format!("port {} is already in use", args.port);
            Failure::new(Exit::Transport, message).hint(match args.session.is_some() {
                true => "without --governance-port, the system picks a free one",
                false => {
                    "without --port, the hub picks a free one; shims find it in the state folder"
                }
            })
        }
        ListenError::Address(_) => Failure::new(Exit::Usage, error),
        ListenError::Bind { .. } => Failure::new(Exit::Transport, error),
    })
}

/// Reloads the policy whenever one of its files changes.
async fn reload(hub: &Rc<Hub>, policy_source: &Rc<PolicySource>, mut watch: FileWatch) {
    loop {
        watch.changed().await;
        hub.reload();
        watch.add_files(policy_source.files());
    }
}

/// How a project that uses the user's state folder gets one of its own.
fn own_state_hint(args: &Args, search: &SearchContext<'_>) -> String {
    let policy = search.config(args.project.config.as_deref()).ok().flatten();
    // The policy for all projects has its state in the user's folder.
    let policy = policy.filter(|policy| search.user_config().as_ref() != Some(policy));
    let command = match &policy {
        Some(policy) => {
            let shown = policy.strip_prefix(&search.folder).unwrap_or(policy);
            init::state_only::command_text(shown)
        }
        None => program_name::command("init"),
    };
    format!(
        "this project has no state folder of its own, so it shares the user's with other projects: \
         `{command}` makes one; or name one with --state"
    )
}

/// `own` is the hint for a project without a state folder of its own.
fn lock_failure(error: ClaimError, own: Option<String>) -> Failure {
    let shared = "one hub serves every shim of a state folder; --state names another folder";
    match &error {
        ClaimError::Taken { .. } => {
            Failure::new(Exit::Findings, error).hint(own.as_deref().unwrap_or(shared))
        }
        ClaimError::OneFile(_) => Failure::new(Exit::Usage, error).hint(
            "shims must not approve; name two files with --token-file and --approver-token-file",
        ),
        ClaimError::Io { .. } | ClaimError::Private(_) => Failure::new(Exit::Io, error),
    }
}
