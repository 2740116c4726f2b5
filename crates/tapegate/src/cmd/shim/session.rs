//! Runs a governed session, from its start to its exit code.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tapegate_policy::warden::Reins;
use tapegate_store::activity::{ActivityLog, Event, Options};
use tapegate_wire::memory;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::Patience;
use tokio::sync::{Notify, mpsc};

use super::absent::{self, FailureKind, StartFailure};
use super::desk::{self, Desk, SETTLEMENTS_MAX};
use super::guard::Guard;
use super::heard::Heard;
use super::joined;
use super::journal::{self, Journal, Sink};
use super::plan::{Plan, StartPolicy};
use super::refusal::{note_failure, refuse_to_start, stand_in};
use super::reload::Reload;
use super::rulebook::Rule;
use super::tapes;
use crate::called;
use crate::exit::{Exit, Failure};
use crate::logs::Level;
use crate::runtime;
use crate::session::{self, Ended, Route};
use crate::settings::Surroundings;
use crate::settings::state_folder::StateChoice;
use crate::talk;
use crate::upstream::Upstream;
use crate::verbosity;
use crate::watching::Watch;

/// How often unused memory is released.
const TRIM_EVERY: Duration = Duration::from_secs(1);
/// How much of the program may stay resident after that.
const RESIDENT_CODE_KB_MAX: u64 = 6 << 10;

/// Hints for a server that does not run.
const NO_SERVER_HINT: &str = "check the server's command in the client's configuration";
const SERVER_ENDED_HINT: &str = "run the server's command in a terminal to see why";

/// Runs the session until it ends.
pub(super) fn run(mut plan: Plan) -> anyhow::Result<Exit> {
    let runtime = runtime::start()?;
    if let Some(failure) = plan.settings_failure.take() {
        return runtime.block_on(refuse_to_start(&plan, FailureKind::Settings, failure));
    }
    if let Some(failure) = plan.state_failure.take() {
        return runtime.block_on(refuse_to_start(&plan, FailureKind::State, failure));
    }
    if let Some(place) = plan.hub.take() {
        return runtime.block_on(joined::run(plan, place));
    }
    let policy = match plan.policy() {
        Ok(policy) => policy,
        Err(failure) => {
            return runtime.block_on(refuse_to_start(&plan, FailureKind::Policy, failure));
        }
    };
    if let Err(failure) = secure(&plan, &policy.rule) {
        return runtime.block_on(refuse_to_start(&plan, FailureKind::State, failure));
    }
    let watch = Watch::new(policy.files.clone());
    let upstream = match plan.upstream(&policy.rule) {
        Ok(upstream) => upstream,
        Err(failure) => {
            return runtime.block_on(refuse_to_start(&plan, FailureKind::Settings, failure));
        }
    };
    runtime.block_on(alone(&plan, &policy, watch, &upstream))
}

/// Rejects folders that other users could write to, or that are not where they appear to be.
pub(super) fn secure(plan: &Plan, rule: &Rule) -> Result<(), Failure> {
    let changed = tapes::secure(plan, rule).map_err(|error| {
        Failure::new(Exit::Io, error)
            .hint("tapes and logs are stored only in folders that you own; remove or rename it")
    })?;
    changed.iter().for_each(|words| plan.log.say(Level::Warn, words));
    Ok(())
}

/// Runs a session under the policy files, without a hub.
async fn alone(
    plan: &Plan,
    policy: &StartPolicy,
    mut watch: Watch,
    upstream: &Upstream,
) -> anyhow::Result<Exit> {
    let rule = &policy.rule;
    let hang_up = Arc::new(Notify::new());
    let signals = Signals::listen()?.with_reload(Arc::clone(&hang_up));
    let sink = activity(plan, rule).map_or_else(Sink::Nowhere, Sink::file);
    let journal = journal(plan, rule, sink);
    let reins = Reins::new(rule.regime.clone());
    let (settle, settlements) = mpsc::channel(SETTLEMENTS_MAX);
    let desk = Desk::open(
        &plan.state,
        desk::Begin {
            settle,
            journal: journal.clone(),
            reins: reins.clone(),
            key: plan.key.clone(),
            connection_id: plan.connection_id.clone(),
            folder: plan.folder.clone(),
            policy: plan.policy_name(),
            clock: plan.clock,
        },
    );
    let reload = Reload::new(plan, &reins, &journal, hang_up);
    reload.note(rule, "loaded");
    policy.notices.iter().for_each(|notice| reload.note_acceptance(notice));
    warn_of_exposure(plan, &journal);
    warn_of_unsent_telemetry(plan, rule, &journal);
    if let Ok(around) = Surroundings::ours() {
        around.note_user_state(&plan.state);
        remember_state(plan);
    }
    let trimmed = trim(reins.clone());
    let mut guard = Guard {
        plan,
        rule,
        upstream,
        reins,
        journal,
        people: Some(Box::new(desk.clone())),
        settlements: Some(settlements),
        tape: None,
        counts: false,
        heard: Heard::default(),
        unheard: None,
    };
    let besides = async {
        tokio::join!(desk.watch(), desk.forget_stale(), reload.run(&mut watch), trimmed);
        std::future::pending::<Infallible>().await
    };
    let exit = tokio::select! {
        exit = serve(plan, upstream, signals, &mut guard) => exit,
        never = besides => match never {},
    };
    reload.finish(&mut watch);
    exit
}

/// Releases the memory left over from loading Cedar policies and from bursts of calls, for as long
/// as such policies are in force. Calls do not wait for it.
pub(super) async fn trim(reins: Reins) {
    loop {
        tokio::time::sleep(TRIM_EVERY).await;
        if reins.get().policy.is_some_and(|policy| policy.cedar.is_some()) {
            memory::release_code_above(RESIDENT_CODE_KB_MAX);
        }
    }
}

/// Remembers where the log of this session is, so that a folder created later does not replace it.
pub(super) fn remember_state(plan: &Plan) {
    if let Ok(around) = Surroundings::ours() {
        around.remember_state(plan.args.project.config.as_deref(), plan.config.as_deref());
    }
}

/// Warns, on standard error and in the log, if an agent may be able to write the user's own state
/// or has created a folder that could be taken for the project's, or if a variable is unknown.
fn warn_of_exposure(plan: &Plan, journal: &Journal) {
    let Ok(around) = Surroundings::ours() else { return };
    let project = plan.config.as_deref().and_then(Path::parent).unwrap_or(&around.folder);
    let choice = around.chosen_state(plan.args.project.config.as_deref()).ok();
    let unused = choice.as_ref().and_then(|choice| choice.unused_warning(&around));
    let gone = choice.as_ref().and_then(StateChoice::gone_warning);
    let exposed = around.exposed_user_state(project);
    let unknown = plan.unknown_variables.iter().map(|variable| Some(variable.words()));
    let unknown = unknown.map(|words| (words, "unknown_variable"));
    let state = [(exposed, "exposed_state"), (unused, "unused_state"), (gone, "state_gone")];
    for (words, event) in state.into_iter().chain(unknown) {
        let Some(words) = words else { continue };
        journal.keep(Event {
            wall_us: plan.clock.now().wall_us,
            level: "warn",
            kind: "session",
            policy_reason: Some(words.into()),
            extra: format!("\"event\":\"{event}\"").into(),
            ..Event::default()
        });
    }
}

/// Warns that telemetry is configured but only sent by a hub, which this session has not joined.
fn warn_of_unsent_telemetry(plan: &Plan, rule: &Rule, journal: &Journal) {
    if rule.regime.policy.as_ref().is_some_and(|policy| policy.telemetry.enabled) {
        let words = format!(
            "the policy has `telemetry`, which only a hub sends, and this session has no hub: \
             nothing is sent; start one with `{}`, or remove `telemetry` from the policy",
            called::command("hub")
        );
        journal.keep(Event {
            wall_us: plan.clock.now().wall_us,
            level: "warn",
            kind: "session",
            policy_reason: Some(words.into()),
            extra: "\"event\":\"unsent_telemetry\"".into(),
            ..Event::default()
        });
    }
}

/// Opens the activity log in the state folder.
pub(super) fn activity(plan: &Plan, rule: &Rule) -> Result<ActivityLog, String> {
    let kept = rule.regime.policy.as_ref().map(|policy| policy.activity.clone());
    let options = kept.map_or_else(Options::default, |kept| Options {
        rotate_bytes: kept.rotate_bytes,
        retention: kept.retention,
    });
    let opened = ActivityLog::open(&plan.state, options);
    opened.map_err(|error| format!("there is no activity log: {error}"))
}

/// Creates the journal of the session. If events cannot be logged, that is reported immediately.
pub(super) fn journal(plan: &Plan, rule: &Rule, sink: Sink) -> Journal {
    if let Sink::Nowhere(words) = &sink {
        plan.log.say(Level::Error, words);
    }
    let journal = Journal::new(journal::Begin {
        log: plan.log.clone(),
        sink,
        server_id: plan.server_id.clone(),
        connection_id: plan.connection_id.clone(),
        session_id: plan.session_id.clone(),
    });
    journal.mask(rule.masking.clone(), rule.regime.profile);
    journal
}

/// Runs the session; without a server, every request is answered with the reason.
pub(super) async fn serve(
    plan: &Plan,
    upstream: &Upstream,
    signals: Signals,
    guard: &mut Guard<'_>,
) -> anyhow::Result<Exit> {
    let headers = plan.args.upstream.headers();
    let route = Route {
        upstream,
        headers: &headers,
        http: plan.args.http.as_deref(),
        without: plan.without.clone(),
        message_bytes_max: plan.args.max_message_bytes,
        patience: Patience::orderly(),
        keeps_stderr: false,
        quiet: verbosity::is_quiet(),
    };
    let ended = match session::run(&route, signals, guard).await {
        Ok(ended) => ended,
        Err(error) => return unopened(plan, guard, error).await,
    };
    let (words, hint, exit, signals) = match ended {
        Ended::Exit(exit) => match guard.unheard.take() {
            // The client may not have sent a request yet, or may try again in another way.
            Some(why) => (why, SERVER_ENDED_HINT, exit, Signals::listen()?),
            None => return Ok(exit),
        },
        Ended::NoServer(error, signals) => {
            (error.to_string(), NO_SERVER_HINT, Exit::Transport, signals)
        }
    };
    guard.journal.say(Level::Error, &words);
    note_failure(plan, &guard.journal, FailureKind::Server, &words);
    let message = absent::shortened(&words, Some(hint));
    let failure = StartFailure { message, kind: FailureKind::Server, exit };
    stand_in(plan, failure, signals).await
}

/// Tells the client why its session does not start although the policy has loaded: the tape cannot
/// be written, a header or the server's URL is wrong, or the address is in use.
async fn unopened(plan: &Plan, guard: &Guard<'_>, error: anyhow::Error) -> anyhow::Result<Exit> {
    let failure = error.downcast::<Failure>()?;
    let kind = match failure.exit {
        Exit::Io => FailureKind::Tape,
        _ => FailureKind::Settings,
    };
    note_failure(plan, &guard.journal, kind, &failure.words);
    if plan.args.http.is_some() {
        // There may be no listener, and so no client to tell.
        return Err(failure.into());
    }
    let Failure { exit, words, hint } = failure;
    talk::error(&words, hint.as_deref());
    let message = absent::shortened(&words, hint.as_deref());
    stand_in(plan, StartFailure { message, kind, exit }, Signals::listen()?).await
}
