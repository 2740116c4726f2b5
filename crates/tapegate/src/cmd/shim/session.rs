//! A governed session, from its start to its exit code.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

use tapegate_core::actor::Actor;
use tapegate_policy::warden::Reins;
use tapegate_store::activity::{ActivityLog, Options};
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::{Bridge, Servers};
use tapegate_wire::http::{self, Station};
use tapegate_wire::signals::Signals;
use tapegate_wire::stage::{self, Stage, StageOptions};
use tapegate_wire::stdio::{Cause, Patience};
use tokio::sync::{Notify, mpsc};

use super::absent::Absent;
use super::desk::{self, Desk, SETTLEMENTS_MAX};
use super::guard::Guard;
use super::joined;
use super::journal::{self, Journal, Sink};
use super::plan::Plan;
use super::reload::Reload;
use super::rulebook::Rule;
use super::tapes;
use crate::exit::{Exit, Failure};
use crate::logs::Level;
use crate::session::{self, Ended, Route};
use crate::talk;
use crate::upstream::Upstream;
use crate::watching::Watch;
use crate::wiring::{announce, client_ports, listen};

/// Governs until the session ends.
pub(super) fn run(mut plan: Plan) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(place) = plan.hub.take() {
        return runtime.block_on(joined::run(plan, place));
    }
    let (rule, files) = plan.rule()?;
    secure(&plan, &rule)?;
    let watch = Watch::new(files);
    let upstream = plan.upstream(&rule)?;
    runtime.block_on(alone(&plan, &rule, watch, &upstream))
}

/// Refuses folders that others could write to, or that lie elsewhere than it seems.
pub(super) fn secure(plan: &Plan, rule: &Rule) -> anyhow::Result<()> {
    let changed = tapes::secure(plan, rule).map_err(|error| {
        Failure::new(Exit::Io, error)
            .hint("tapes and logs are kept only in folders of your own; remove or rename it")
    })?;
    changed.iter().for_each(|words| plan.log.say(Level::Warn, words));
    Ok(())
}

/// Governs by the policy's files, without a hub.
async fn alone(
    plan: &Plan,
    rule: &Rule,
    watch: Watch,
    upstream: &Upstream,
) -> anyhow::Result<Exit> {
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
            clock: plan.clock,
        },
    );
    let reload = Reload { plan, reins: reins.clone(), journal: journal.clone(), hang_up };
    reload.note(rule, "loaded");
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
    };
    let besides = async {
        tokio::join!(desk.watch(), reload.run(watch));
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        exit = serve(plan, upstream, signals, &mut guard) => exit,
        never = besides => match never {},
    }
}

/// The activity log in the state folder, or why there is none.
pub(super) fn activity(plan: &Plan, rule: &Rule) -> Result<ActivityLog, String> {
    let kept = rule.regime.policy.as_ref().map(|policy| policy.activity.clone());
    let options = kept.map_or_else(Options::default, |kept| Options {
        rotate_bytes: kept.rotate_bytes,
        retention: kept.retention,
    });
    let opened = ActivityLog::open(&plan.state, options);
    opened.map_err(|error| format!("there is no activity log: {error}"))
}

/// The journal of the session. If events go nowhere, that is said at once.
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

/// Runs the session; where there is no server, every request is answered with the reason.
pub(super) async fn serve(
    plan: &Plan,
    upstream: &Upstream,
    signals: Signals,
    guard: &mut Guard<'_>,
) -> anyhow::Result<Exit> {
    let route = Route {
        upstream,
        headers: &plan.args.upstream.header,
        http: plan.args.http.as_deref(),
        without: plan.without.clone(),
        message_bytes_max: plan.args.max_message_bytes,
        patience: Patience::orderly(),
        quiet: plan.args.log.quiet,
    };
    match session::run(&route, signals, guard).await? {
        Ended::Exit(exit) => Ok(exit),
        Ended::NoServer(error, signals) => {
            guard.journal.say(Level::Error, &error.to_string());
            stand_in(plan, error.to_string(), signals).await
        }
    }
}

/// Answers every request with the reason why there is no server, until the client leaves.
pub(super) async fn stand_in(
    plan: &Plan,
    why: String,
    mut signals: Signals,
) -> anyhow::Result<Exit> {
    let bytes_max = plan.args.max_message_bytes;
    let farewell = why.clone();
    let actor: Rc<RefCell<dyn Actor>> = Rc::new(RefCell::new(Absent::new(why)));
    let options = StageOptions {
        message_bytes_max: bytes_max,
        behind: None,
        patience: Patience::default(),
        notice: Rc::new(talk::warn),
        farewell,
    };
    let stage = Stage::new(actor, plan.clock, options);
    let cause = match &plan.args.http {
        None => stage::run_stdio(&stage, client_ports()?, None, signals).await,
        Some(address) => {
            let listener = tokio::select! {
                listener = listen(address) => listener?,
                number = signals.next() => return Ok(Exit::of_signal(number)),
            };
            let station = Station::new(Deck::silent(plan.clock), bytes_max);
            let bridge =
                Bridge::new(Rc::clone(&station), Servers::Stage(stage), Patience::default());
            announce(&listener, plan.args.log.quiet)?;
            http::serve(listener, bridge, &station, signals).await
        }
    };
    Ok(match cause {
        Cause::Signal(number) if number > 0 => Exit::of_signal(number),
        _ => Exit::Transport,
    })
}
