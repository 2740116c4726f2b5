//! A shim that has joined a hub: the hub supplies the policy and handles approvals.
//!
//! Decisions are still made here, with the same loader and the same gate. A policy is valid for one
//! lease: if the hub is gone, the session ends in an orderly way; if it hangs, the session ends
//! with the lease. No call passes under a policy that the hub no longer confirms.

mod desk;
mod mail;
mod pulse;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tapegate_hub::api::Snapshot;
use tapegate_hub::client::{Client, ClientError};
use tapegate_policy::model::Profile;
use tapegate_policy::warden::Reins;
use tapegate_store::activity;
use tapegate_wire::signals::Signals;
use tapegate_yaml::files::Held;
use tokio::sync::{Notify, mpsc};

use super::absent::{self, FailureKind, StartFailure};
use super::desk::SETTLEMENTS_MAX;
use super::guard::Guard;
use super::heard::Heard;
use super::journal::Sink;
use super::plan::{HubPlace, Plan};
use super::refusal::{log_failure, refuse_to_start, stand_in};
use super::reload::Reload;
use super::rulebook::{self, Found, Options, Rule, TelemetryFate};
use super::session::{self, serve};
use crate::called;
use crate::exit::{Exit, Failure};
use crate::logs::Level;
use desk::Counter;
use mail::Mail;
use pulse::Pulse;

/// How long requests the client has already sent are answered if there is no hub.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long to try to tell the hub that the session has ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// The hint for a hub that does not answer.
fn no_hub_hint() -> String {
    let line = called::command("hub");
    format!("start one with `{line}`, and check --governance-endpoint and --token-file")
}

/// Runs a session under the policy of a hub.
pub(super) async fn run(plan: Plan, place: HubPlace) -> anyhow::Result<Exit> {
    let client = match Client::new(&place.endpoint, &place.token_file) {
        Ok(client) => Arc::new(client),
        Err(error) => {
            let failure = Failure::new(Exit::Usage, error).hint(no_hub_hint());
            return refuse_to_start(&plan, FailureKind::Settings, failure).await;
        }
    };
    let hang_up = Arc::new(Notify::new());
    let (stop, stopped) = mpsc::channel(1);
    let mut signals = Signals::listen()?.with_reload(Arc::clone(&hang_up)).with_stop(stopped);
    let joined = tokio::select! {
        joined = join(&client) => joined,
        number = signals.next() => return Ok(Exit::of_signal(number)),
    };
    let snapshot = match joined {
        Ok(snapshot) => snapshot,
        Err(error) => return no_hub(&plan, &error, (&stop, signals)).await,
    };
    let found = load(&snapshot, &plan);
    found.warnings.iter().for_each(|words| plan.log.say(Level::Warn, words));
    let Some(rule) = found.rule else {
        let words = format!("{}\nthe policy of the hub does not load", found.faults.join("\n"));
        let failure = Failure::new(Exit::Invalid, words);
        return refuse_to_start(&plan, FailureKind::Policy, failure).await;
    };
    if plan.policy_required && rule.regime.policy.is_none() {
        let words = format!("the hub at {} has no policy, and one is required", place.endpoint);
        let line = called::command("init");
        let hint = format!("write a tapegate.yaml where the hub runs; `{line}` does");
        let failure = Failure::new(Exit::Invalid, words).hint(hint);
        return refuse_to_start(&plan, FailureKind::Policy, failure).await;
    }
    let (plan, sink, mail) = at_home(plan, &snapshot, &rule, &client);
    if let Err(failure) = session::secure(&plan, &rule) {
        return refuse_to_start(&plan, FailureKind::State, failure).await;
    }
    let joined = Joined { client, snapshot, rule, sink, mail, hang_up, stop };
    joined.govern(&plan, signals).await
}

/// What is known once the hub has answered.
struct Joined {
    client: Arc<Client>,
    snapshot: Snapshot,
    rule: Rule,
    sink: Sink,
    /// Uploads events to the hub, if they are not written to its log directly.
    mail: Option<Mail>,
    hang_up: Arc<Notify>,
    /// Asks the session to end.
    stop: mpsc::Sender<()>,
}

impl Joined {
    async fn govern(self, plan: &Plan, signals: Signals) -> anyhow::Result<Exit> {
        let Self { client, snapshot, rule, sink, mail, hang_up, stop } = self;
        let upstream = match plan.upstream(&rule) {
            Ok(upstream) => upstream,
            Err(failure) => return refuse_to_start(plan, FailureKind::Settings, failure).await,
        };
        let journal = session::journal(plan, &rule, sink);
        let reins = Reins::new(rule.regime.clone());
        let (settle, settlements) = mpsc::channel(SETTLEMENTS_MAX);
        let (counter, clerk) = Counter::new(&client, settle, &journal, &reins, plan);
        let reload = Reload::new(plan, &reins, &journal, hang_up);
        reload.note(&rule, "loaded");
        let trimmed = session::trim(reins.clone());
        let mut guard = Guard {
            plan,
            rule: &rule,
            upstream: &upstream,
            reins,
            journal: journal.clone(),
            people: Some(Box::new(counter)),
            settlements: Some(settlements),
            tape: None,
            counts: true,
            heard: Heard::default(),
            unheard: None,
        };
        let pulse = Pulse { client: &client, plan, reload: &reload, journal: &journal, stop };
        let besides = async {
            tokio::join!(clerk.run(), pulse.run(&snapshot), trimmed);
            std::future::pending::<Infallible>().await
        };
        let exit = tokio::select! {
            exit = serve(plan, &upstream, signals, &mut guard) => exit,
            never = besides => match never {},
        };
        if let Some(mail) = mail {
            mail.last().await;
        }
        tokio::time::timeout(FAREWELL, pulse.farewell(exit.as_ref().ok())).await.ok();
        exit
    }
}

/// Waits for the hub and fetches its policy.
async fn join(client: &Client) -> Result<Snapshot, ClientError> {
    client.ready().await?;
    client.snapshot().await
}

/// Without a hub, only answers the requests that the client has already sent, with the error.
async fn no_hub(
    plan: &Plan,
    error: &ClientError,
    (stop, signals): (&mpsc::Sender<()>, Signals),
) -> anyhow::Result<Exit> {
    let words = format!("the governance service is not available: {error}");
    let old = tapegate_hub::corner::old_token_file(&plan.state);
    let hint = match old.exists() {
        false => no_hub_hint(),
        true => format!("{}; `{}` is not read: agents can read it", no_hub_hint(), old.display()),
    };
    log_failure(plan, FailureKind::Hub, &words);
    if plan.args.http.is_none() {
        let (message, exit) = (absent::shortened(&words, Some(&hint)), Exit::Transport);
        let failure = StartFailure { message, kind: FailureKind::Hub, exit };
        let soon = async {
            tokio::time::sleep(LAST_WORDS).await;
            stop.send(()).await.ok();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            told = stand_in(plan, failure, signals) => { told?; },
            never = soon => match never {},
        }
    }
    Err(Failure::new(Exit::Transport, words).hint(hint).into())
}

/// Loads the policy of a snapshot.
pub(super) fn load(snapshot: &Snapshot, plan: &Plan) -> Found {
    let theirs = snapshot.profile.map(Profile::from);
    let profile = stricter(theirs, plan.wanted);
    let Some(config) = &snapshot.config else {
        let rule = Some(Rule::observing(profile));
        return Found { rule, faults: Vec::new(), warnings: Vec::new(), files: Vec::new() };
    };
    let main = snapshot.config_path.as_deref().unwrap_or("tapegate.yaml");
    let mut held = Held::default().with(main, config.as_bytes());
    for (path, text) in &snapshot.files {
        held = held.with(path, text.as_bytes());
    }
    held.variables.extend(snapshot.env.clone());
    let theirs = snapshot.own_files.iter().map(PathBuf::from);
    let own: Vec<PathBuf> = plan.own_files.iter().cloned().chain(theirs).collect();
    let telemetry = TelemetryFate::LeftToHub;
    let options = Options { wanted: profile, key: &plan.key, own_files: &own, telemetry };
    rulebook::found(main, rulebook::read(main, &held, telemetry), options)
}

/// The stricter of two profiles: an agent's config must not loosen what the hub enforces.
fn stricter(hub: Option<Profile>, own: Option<Profile>) -> Option<Profile> {
    match (hub, own) {
        (Some(Profile::Production), _) | (_, Some(Profile::Production)) => {
            Some(Profile::Production)
        }
        (hub, own) => hub.or(own),
    }
}

/// Switches to the hub's state folder if it is reachable; otherwise events are written to our own
/// folder and uploaded to the hub over HTTP.
fn at_home(
    mut plan: Plan,
    snapshot: &Snapshot,
    rule: &Rule,
    client: &Arc<Client>,
) -> (Plan, Sink, Option<Mail>) {
    plan.config = snapshot.config_path.as_ref().map(PathBuf::from);
    let own = plan.state.clone();
    let theirs = snapshot.state_folder.as_ref().map(PathBuf::from);
    // On another machine, a folder may have the same path without being the hub's.
    let is_theirs = |folder: &PathBuf| {
        let there = || activity::log_id(folder);
        folder.is_dir() && snapshot.log_id.as_ref().is_none_or(|id| there().as_ref() == Some(id))
    };
    let opened = theirs.filter(is_theirs).map(|folder| {
        plan.state.clone_from(&folder);
        session::activity(&plan, rule)
    });
    match opened {
        Some(Ok(log)) => return (plan, Sink::file(log), None),
        Some(Err(words)) => {
            plan.log.say(Level::Warn, &format!("{words}; events are sent to the hub"));
        }
        None => {}
    }
    match mail::posted(client, &own, snapshot.log_id.as_deref(), &plan.log) {
        Ok((sink, mail)) => (plan, sink, Some(mail)),
        Err(words) => (plan, Sink::Nowhere(words), None),
    }
}
