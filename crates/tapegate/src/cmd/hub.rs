//! `tapegate hub`: the governance service that many shims share.

mod args;
mod policy;

pub(crate) use args::Args;

use std::path::Path;
use std::rc::Rc;

use tapegate_hub::corner::{ClaimError, Corner};
use tapegate_hub::limits::Limits;
use tapegate_hub::serve::{self, Ended, Signals};
use tapegate_hub::service::{Hub, Level as Care, Options, StartError};
use tapegate_hub::token::Tokens;
use tapegate_store::state_dir;
use tapegate_wire::http::listen::{ListenError, Listener};

use crate::called;
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::logs::{Level, Log};
use crate::person::Attempt;
use crate::runtime;
use crate::settings::Surroundings;
use crate::watching::Watch;
use policy::Shelf;

pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    let around = Surroundings::ours()?;
    let log = Rc::new(open_log()?);
    let state = match &args.state {
        Some(state) => around.folder.join(state),
        None => around.state_folder(args.project.config.as_deref())?,
    };
    let changed = state_dir::secure(&state).map_err(|error| Failure::new(Exit::Io, error))?;
    changed.iter().for_each(|words| log.say(Level::Warn, words));
    let user_state = around.user_state_dir()?;
    around.note_user_state(&state);
    if args.state.is_none() {
        let warnings = around.chosen_state(args.project.config.as_deref())?.warnings(&around);
        warnings.iter().for_each(|words| log.say(Level::Warn, words));
    }
    let corner = Corner::claim(&state, &user_state, args.token_files(&around)).map_err(claimed)?;
    warn_of_tokens(&corner, &around, &log);
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let listener = runtime.block_on(listen(&args))?;
    let required = around.policy_required(args.require_policy)?;
    let own_files = [corner.token_path(), corner.approver_token_path()].map(Path::to_owned);
    let shelf = Rc::new(Shelf::new(&args.project, required, &around, own_files.to_vec())?);
    if required && shelf.path().is_none() {
        let words = "no policy found, and one is required";
        let hint = format!("write one with `{}`, or pass --config FILE", called::command("init"));
        return Err(Failure::new(Exit::Invalid, words).hint(hint).into());
    }
    if args.state.is_none() {
        around.remember_state(args.project.config.as_deref(), shelf.path().as_deref());
    }
    let undecided = undecided(&args, &state)?;
    undecided.iter().for_each(|words| log.announce(words));
    let (address, tokens) = (listener.address()?, Tokens::fresh()?);
    let notice = Rc::clone(&log);
    let loading = Rc::clone(&shelf);
    let hub = start(Options {
        state_folder: state,
        user_state,
        address,
        tokens: tokens.clone(),
        own_files: own_files.map(|path| path.to_string_lossy().into_owned()).to_vec(),
        undecided,
        load: Box::new(move || loading.load()),
        notice: Box::new(move |care, words| tell(&notice, care, words)),
        profile: shelf.wanted(),
        limits: Limits::default(),
    })?;
    // Start watching first: a client may change the policy as soon as the hub announces itself.
    let watch = Watch::new(shelf.files());
    let endpoint = format!("http://{address}");
    corner.announce(&endpoint, &tokens).map_err(claimed)?;
    let policy = hub.governed();
    let (name, profile) = (policy.name(), policy.profile.name());
    let (token, approver_token) = (corner.token_path(), corner.approver_token_path());
    log.announce(&format!(
        "listening on {endpoint}; the shims' token is in {}; the approvers' token is in {}; \
         policy {name}, profile {profile}",
        token.display(),
        approver_token.display()
    ));
    let ended = runtime.block_on(serve::serve(
        Rc::clone(&hub),
        listener,
        signals,
        reload(&hub, &shelf, watch),
    ));
    Ok(match ended {
        Ended::Signal(number) => Exit::of_signal(number),
        Ended::Asked => Exit::Ok,
    })
}

/// Opens the hub's own log, once the environment is known to be valid.
fn open_log() -> Result<Log, Failure> {
    let log = Log::new("hub", "")?;
    let unknown = environment::unknown(std::env::vars_os());
    environment::require_known(&unknown)?;
    unknown.iter().for_each(|variable| log.say(Level::Warn, &variable.words()));
    Ok(log)
}

/// Why decisions through this hub are disabled, if they are: otherwise an agent that starts a hub
/// could approve its own calls through the API. A wrong key is an error.
fn undecided(args: &Args, state: &Path) -> Result<Option<String>, Failure> {
    match args.key.authorize("deciding about calls through a hub", state) {
        Ok(()) => Ok(None),
        Err(failure) if args.key.is_given() => {
            let command = args.key.typed("hub");
            let attempt = Attempt { kind: "approval", command: &command, approval_id: None };
            attempt.log_refusal(state, &failure.words);
            Err(failure)
        }
        Err(failure) => Ok(Some(format!(
            "this hub does not accept approvals: {}; use `{}`, or start the hub with \
             --non-interactive and --key-file",
            failure.words,
            called::command("approvals")
        ))),
    }
}

/// Warns of problems with the location of the token files.
fn warn_of_tokens(corner: &Corner, around: &Surroundings<'_>, log: &Log) {
    let exposed = [
        around.exposed_token(corner.token_path(), "--token-file"),
        around.exposed_token(corner.approver_token_path(), "--approver-token-file"),
    ];
    let old = corner.old_token().map(str::to_owned);
    old.into_iter()
        .chain(exposed.into_iter().flatten())
        .for_each(|words| log.say(Level::Warn, &words));
}

fn tell(log: &Log, care: Care, words: &str) {
    match care {
        Care::Info => log.announce(words),
        Care::Warn => log.say(Level::Warn, words),
        Care::Error => log.say(Level::Error, words),
    }
}

fn start(options: Options) -> Result<Rc<Hub>, Failure> {
    Hub::new(options).map_err(|error| {
        let words = error.to_string();
        match error {
            StartError::Policy(_) => Failure::new(Exit::Invalid, words).hint(format!(
                "a policy with errors is never enforced in part; `{}` shows the same errors",
                called::command("check")
            )),
            StartError::Log(error) => match error.hint() {
                Some(hint) => Failure::new(Exit::Io, words).hint(hint),
                None => Failure::new(Exit::Io, words),
            },
            StartError::Approvals(_) => Failure::new(Exit::Io, words),
        }
    })
}

async fn listen(args: &Args) -> Result<Listener, Failure> {
    let host = args.host.as_deref().unwrap_or("127.0.0.1");
    Listener::bind(&format!("{host}:{}", args.port)).await.map_err(|error| match &error {
        ListenError::Bind { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            let words = format!("port {} is already in use", args.port);
            Failure::new(Exit::Transport, words)
                .hint("without --port, the hub picks a free one; shims find it in the state folder")
        }
        ListenError::Address(_) => Failure::new(Exit::Usage, error),
        ListenError::Bind { .. } => Failure::new(Exit::Transport, error),
    })
}

/// Reloads the policy whenever one of its files changes.
async fn reload(hub: &Rc<Hub>, shelf: &Rc<Shelf>, mut watch: Watch) {
    loop {
        watch.changed().await;
        hub.reload();
        watch.also(shelf.files());
    }
}

fn claimed(error: ClaimError) -> Failure {
    match &error {
        ClaimError::Taken { .. } => Failure::new(Exit::Findings, error)
            .hint("one hub serves every shim of a state folder; --state names another folder"),
        ClaimError::OneFile(_) => Failure::new(Exit::Usage, error).hint(
            "shims must not approve; name two files with --token-file and --approver-token-file",
        ),
        ClaimError::Io { .. } | ClaimError::Private(_) => Failure::new(Exit::Io, error),
    }
}
