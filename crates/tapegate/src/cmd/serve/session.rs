//! Runs a scenario, from its start to its exit code.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_scenario::engine::{Engine, EngineSetup};
use tapegate_scenario::expect::{ExpectationJudge, ExpectationOutcome, ExpectationReport};
use tapegate_wire::actor_host::{self, ActorHost, ActorHostOptions};
use tapegate_wire::clock::Clock;
use tapegate_wire::http::bridge_in::{InboundBridge, ServerProvider};
use tapegate_wire::http::{self, SharedSession};
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{EndCause, ShutdownTimeouts};

use super::args::Args;
use super::observer::ServeObserver;
use super::plan::{ScenarioOrigin, ServePlan};
use crate::client_transport::{client_ports, listen, print_address, print_waiting_notice};
use crate::exit::{Exit, Failure};
use crate::report_files::{self, Registration};
use crate::runtime;
use crate::terminal_output;
use crate::verbosity;
use crate::views::report::RunReport;
use crate::views::report::serve::fill;
use crate::views::verdict;
use tapegate_shim::file_watch::FileWatch;

/// Runs the scenario until the client is gone, a signal arrives, or the scenario gives up.
pub(super) fn run(plan: ServePlan) -> anyhow::Result<Exit> {
    let clock = Clock::start();
    let observer = Rc::new(observer(&plan)?);
    let engine = Rc::new(RefCell::new(engine(&plan, clock, &observer)));
    let ServePlan { args, origin, files, .. } = plan;
    // Before anything is served: a start that is killed must be in the report.
    let registration = register(&args, &origin, observer.verdict().as_ref(), clock)?;
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let actor: Rc<RefCell<dyn Actor>> = engine.clone();
    let host = ActorHost::new(actor, clock, host_options(&args));
    let cause = runtime.block_on(async {
        let reloads = reload(&args, &origin, files, (&engine, &host, &observer));
        tokio::select! {
            cause = serve(&args, &host, &observer, (clock, signals)) => cause,
            never = reloads => match never {},
        }
    })?;
    finish_session(
        &args,
        &origin,
        &engine.borrow(),
        observer.verdict(),
        &cause,
        (clock, &registration),
    )
}

/// The observer of the scenario's events.
fn observer(plan: &ServePlan) -> anyhow::Result<ServeObserver> {
    let ServePlan { args, scenario, .. } = plan;
    let judge = args.expect.then(|| ExpectationJudge::new(&scenario.expect));
    let volume = (verbosity::is_verbose(), verbosity::is_quiet());
    Ok(ServeObserver::new(judge, args.events_file.as_deref(), &scenario.logging, volume)?)
}

/// An engine that reports events to the observer.
fn engine(plan: &ServePlan, clock: Clock, observer: &Rc<ServeObserver>) -> Engine {
    let observer = Rc::clone(observer);
    let setup = EngineSetup {
        // Without a seed, each run differs; with one, answers are reproducible.
        seed: plan.args.seed.unwrap_or(clock.now().wall_us as u64),
        env: Rc::new(|name| std::env::var(name).ok()),
        delivery: plan.delivery(),
        handlers: plan.args.allow_external_handlers,
        reloads: plan.args.watch,
        watch: Rc::new(move |at, actor_session, note| observer.observe(at, actor_session, &note)),
    };
    Engine::new(Rc::clone(&plan.scenario), setup)
}

/// Serves one client on standard input and output, or any number of clients over HTTP.
async fn serve(
    args: &Args,
    host: &Rc<ActorHost>,
    observer: &ServeObserver,
    (clock, signals): (Clock, Signals),
) -> anyhow::Result<EndCause> {
    let Some(address) = &args.http else {
        print_waiting_notice(verbosity::is_quiet());
        return Ok(actor_host::run_stdio(host, client_ports()?, None, signals).await);
    };
    let listener = listen(address).await?.with_allowed(args.listen.allowed());
    let session =
        SharedSession::new(RecordedSession::without_recording(clock), args.max_message_bytes);
    let servers = ServerProvider::Stage(Rc::clone(host));
    let bridge = InboundBridge::new(Rc::clone(&session), servers, ShutdownTimeouts::default());
    print_address(&listener, verbosity::is_quiet())?;
    let cause = http::serve(listener, bridge, &session, signals).await;
    // The bridge refuses them before the engine sees them.
    observer.note_oversize(session.oversize_messages());
    Ok(cause)
}

/// Reloads the scenario whenever it changes, if --watch is given. Never returns.
async fn reload(
    args: &Args,
    origin: &ScenarioOrigin,
    files: Vec<std::path::PathBuf>,
    (engine, host, observer): (&Rc<RefCell<Engine>>, &Rc<ActorHost>, &Rc<ServeObserver>),
) -> Infallible {
    if !args.watch {
        return std::future::pending().await;
    }
    let mut watch = FileWatch::new(files);
    loop {
        watch.changed().await;
        let found = origin.load(args);
        found.report_findings();
        // Also after an error: the file that must be corrected may be a new one.
        watch.add_files(found.files);
        match found.scenario {
            Some(scenario) => {
                observer.set_logging(&scenario.logging);
                engine.borrow_mut().reload(Rc::new(scenario));
                host.wake_all();
                if !verbosity::is_quiet() {
                    terminal_output::info("reloaded the scenario");
                }
            }
            // An editor may save half a file, so a broken scenario never ends a session.
            None => terminal_output::warn("the scenario continues unchanged"),
        }
    }
}

fn host_options(args: &Args) -> ActorHostOptions {
    ActorHostOptions {
        message_bytes_max: args.max_message_bytes,
        passthrough: None,
        patience: ShutdownTimeouts::default(),
        notice: if verbosity::is_quiet() {
            Rc::new(|_| ())
        } else {
            Rc::new(terminal_output::warn)
        },
        farewell: "the scenario has ended".to_owned(),
    }
}

/// Registers this start in the requested reports, before anything is served.
fn register(
    args: &Args,
    origin: &ScenarioOrigin,
    verdict: Option<&ExpectationReport>,
    clock: Clock,
) -> Result<Registration, Failure> {
    let Some(verdict) = verdict else { return Ok(Registration::default()) };
    report_files::register(report(args, origin, verdict, clock), &args.report, &args.run)
}

/// The report of how the expectations were met.
fn report(
    args: &Args,
    origin: &ScenarioOrigin,
    verdict: &ExpectationReport,
    clock: Clock,
) -> RunReport {
    let report = RunReport::new("serve", &origin.path(), clock.now());
    fill(verdict, report.with_start(args.run.run_id.as_deref()))
}

/// Prints and reports the result, and determines the exit code.
fn finish_session(
    args: &Args,
    origin: &ScenarioOrigin,
    engine: &Engine,
    verdict: Option<ExpectationReport>,
    cause: &EndCause,
    (clock, registration): (Clock, &Registration),
) -> anyhow::Result<Exit> {
    let failure = engine.failure();
    if let Some(message) = &failure {
        terminal_output::error(message, None);
    }
    let judged = verdict.as_ref().map(ExpectationReport::outcome);
    if let Some(verdict) = verdict {
        if !verbosity::is_quiet() || judged == Some(ExpectationOutcome::Broken) {
            terminal_output::info(verdict::text(&verdict, terminal_output::palette()).trim_end());
        }
        let mut report = report(args, origin, &verdict, clock);
        report_files::add_to_all(&mut report, &args.report, &args.run, registration)?;
    }
    Ok(match (judged, failure, cause) {
        // The verdict comes before the signal: over HTTP a signal is the normal end of a server.
        (Some(ExpectationOutcome::Broken), ..) => Exit::Diverged,
        (_, Some(_), _) => Exit::Aborted,
        (Some(ExpectationOutcome::Untested), ..) => Exit::Findings,
        (Some(ExpectationOutcome::Kept), ..) => Exit::Ok,
        (None, None, EndCause::Signal(number)) => Exit::from_signal(*number),
        (None, None, _) => Exit::Ok,
    })
}
