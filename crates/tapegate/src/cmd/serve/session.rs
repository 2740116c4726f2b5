//! Runs a scenario, from its start to its exit code.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_scenario::engine::{Engine, Setup};
use tapegate_scenario::expect::{Judge, Outcome, Verdict};
use tapegate_wire::clock::Clock;
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::{Bridge, Servers};
use tapegate_wire::http::{self, Station};
use tapegate_wire::signals::Signals;
use tapegate_wire::stage::{self, Stage, StageOptions};
use tapegate_wire::stdio::{Cause, Patience};

use super::args::Args;
use super::observer::Observer;
use super::plan::{Origin, Plan};
use crate::exit::{Exit, Failure};
use crate::reporting::{self, Registration};
use crate::runtime;
use crate::talk;
use crate::verbosity;
use crate::views::report::Report;
use crate::views::report::serve::fill;
use crate::views::verdict;
use crate::watching::Watch;
use crate::wiring::{announce, client_ports, greet, listen};

/// Runs the scenario until the client is gone, a signal arrives, or the scenario gives up.
pub(super) fn run(plan: Plan) -> anyhow::Result<Exit> {
    let clock = Clock::start();
    let observer = Rc::new(observer(&plan)?);
    let engine = Rc::new(RefCell::new(engine(&plan, clock, &observer)));
    let Plan { args, origin, files, .. } = plan;
    let registration = register(&args, &origin, observer.verdict().as_ref(), clock)?;
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let actor: Rc<RefCell<dyn Actor>> = engine.clone();
    let stage = Stage::new(actor, clock, stage_options(&args));
    let cause = runtime.block_on(async {
        let reloads = reload(&args, &origin, files, (&engine, &stage, &observer));
        tokio::select! {
            cause = serve(&args, &stage, &observer, (clock, signals)) => cause,
            never = reloads => match never {},
        }
    })?;
    conclude(&args, &origin, &engine.borrow(), observer.verdict(), &cause, (clock, &registration))
}

/// The observer of the scenario's events.
fn observer(plan: &Plan) -> anyhow::Result<Observer> {
    let Plan { args, scenario, .. } = plan;
    let judge = args.expect.then(|| Judge::new(&scenario.expect));
    let volume = (verbosity::is_verbose(), verbosity::is_quiet());
    Ok(Observer::new(judge, args.events_file.as_deref(), &scenario.logging, volume)?)
}

/// An engine that reports events to the observer.
fn engine(plan: &Plan, clock: Clock, observer: &Rc<Observer>) -> Engine {
    let observer = Rc::clone(observer);
    let setup = Setup {
        seed: plan.args.seed.unwrap_or(clock.now().wall_us as u64),
        env: Rc::new(|name| std::env::var(name).ok()),
        delivery: plan.delivery(),
        handlers: plan.args.allow_external_handlers,
        reloads: plan.args.watch,
        watch: Rc::new(move |at, seat, note| observer.note(at, seat, &note)),
    };
    Engine::new(Rc::clone(&plan.scenario), setup)
}

/// Serves one client on standard input and output, or any number of clients over HTTP.
async fn serve(
    args: &Args,
    stage: &Rc<Stage>,
    observer: &Observer,
    (clock, signals): (Clock, Signals),
) -> anyhow::Result<Cause> {
    let Some(address) = &args.http else {
        greet(verbosity::is_quiet());
        return Ok(stage::run_stdio(stage, client_ports()?, None, signals).await);
    };
    let listener = listen(address).await?.allowing(args.listen.allowed());
    let station = Station::new(Deck::silent(clock), args.max_message_bytes);
    let servers = Servers::Stage(Rc::clone(stage));
    let bridge = Bridge::new(Rc::clone(&station), servers, Patience::default());
    announce(&listener, verbosity::is_quiet())?;
    let cause = http::serve(listener, bridge, &station, signals).await;
    observer.missed(station.unread());
    Ok(cause)
}

/// Reloads the scenario whenever it changes, if --watch is given. Never returns.
async fn reload(
    args: &Args,
    origin: &Origin,
    files: Vec<std::path::PathBuf>,
    (engine, stage, observer): (&Rc<RefCell<Engine>>, &Rc<Stage>, &Rc<Observer>),
) -> Infallible {
    if !args.watch {
        return std::future::pending().await;
    }
    let mut watch = Watch::new(files);
    loop {
        watch.changed().await;
        let found = origin.load(args);
        found.tell(verbosity::is_quiet());
        watch.also(found.files);
        match found.scenario {
            Some(scenario) => {
                observer.relog(&scenario.logging);
                engine.borrow_mut().reload(Rc::new(scenario));
                stage.wake();
                if !verbosity::is_quiet() {
                    talk::say("reloaded the scenario");
                }
            }
            None => talk::warn("the scenario continues unchanged"),
        }
    }
}

fn stage_options(args: &Args) -> StageOptions {
    StageOptions {
        message_bytes_max: args.max_message_bytes,
        behind: None,
        patience: Patience::default(),
        notice: if verbosity::is_quiet() { Rc::new(|_| ()) } else { Rc::new(talk::warn) },
        farewell: "the scenario has ended".to_owned(),
    }
}

/// Registers this start in the requested reports, before anything is served.
fn register(
    args: &Args,
    origin: &Origin,
    verdict: Option<&Verdict>,
    clock: Clock,
) -> Result<Registration, Failure> {
    let Some(verdict) = verdict else { return Ok(Registration::default()) };
    reporting::register(
        report(args, origin, verdict, clock),
        &args.report,
        &args.run,
        verbosity::is_quiet(),
    )
}

/// The report of how the expectations were met.
fn report(args: &Args, origin: &Origin, verdict: &Verdict, clock: Clock) -> Report {
    let report = Report::new("serve", &origin.path(), clock.now());
    fill(verdict, report.of_start(args.run.run_id.as_deref()))
}

/// Prints and reports the result, and determines the exit code.
fn conclude(
    args: &Args,
    origin: &Origin,
    engine: &Engine,
    verdict: Option<Verdict>,
    cause: &Cause,
    (clock, registration): (Clock, &Registration),
) -> anyhow::Result<Exit> {
    let failure = engine.failure();
    if let Some(words) = &failure {
        talk::error(words, None);
    }
    let judged = verdict.as_ref().map(Verdict::outcome);
    if let Some(verdict) = verdict {
        if !verbosity::is_quiet() || judged == Some(Outcome::Broken) {
            talk::say(verdict::text(&verdict, talk::palette()).trim_end());
        }
        let mut report = report(args, origin, &verdict, clock);
        reporting::add_to_all(
            &mut report,
            &args.report,
            &args.run,
            registration,
            verbosity::is_quiet(),
        )?;
    }
    Ok(match (judged, failure, cause) {
        (Some(Outcome::Broken), ..) => Exit::Diverged,
        (_, Some(_), _) => Exit::Aborted,
        (Some(Outcome::Untested), ..) => Exit::Findings,
        (Some(Outcome::Kept), ..) => Exit::Ok,
        (None, None, Cause::Signal(number)) => Exit::of_signal(*number),
        (None, None, _) => Exit::Ok,
    })
}
