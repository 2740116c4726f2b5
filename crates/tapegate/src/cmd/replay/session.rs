//! Runs a replay, from its start to its exit code.

use std::cell::RefCell;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_core::player::{Notice, Options, Player, Summary};
use tapegate_store::loaded::Loaded;
use tapegate_wire::clock::Clock;
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::{Bridge, Servers};
use tapegate_wire::http::{self, Station};
use tapegate_wire::signals::Signals;
use tapegate_wire::stage::{self, Stage, StageOptions};
use tapegate_wire::stdio::{Cause, Patience};

use super::args::{Args, OnUnmatchedWord};
use super::copy;
use super::plan::Plan;
use super::telling::Teller;
use crate::exit::{Exit, Failure};
use crate::reporting::{self, Registration};
use crate::runtime;
use crate::talk;
use crate::taping::SharedTape;
use crate::upstream::Upstream;
use crate::verbosity;
use crate::views::report::Report;
use crate::views::report::replay::{break_off, fill};
use crate::views::summary;
use crate::wiring::{announce, client_ports, greet, listen};

/// Plays the tape until the client is gone, a signal arrives, or a request is not on the tape.
pub(super) fn run(plan: Plan) -> anyhow::Result<Exit> {
    let clock = Clock::start();
    let copy = copy::open(&plan, clock)?;
    let options = plan.options();
    let registration = register(&plan.args, clock)?;
    let Plan { args, tape, upstream, .. } = plan;
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let player = Rc::new(RefCell::new(player(&args, tape, options)));
    let actor: Rc<RefCell<dyn Actor>> = player.clone();
    let stage = Stage::new(actor, clock, stage_options(&args, upstream));
    let show =
        Show { stage, copy: copy.as_ref(), clock, message_bytes_max: args.max_message_bytes };
    let end = |cause: &Cause, deck: Option<&mut Deck>| {
        conclude(&args, &mut player.borrow_mut(), deck, cause, (clock, &registration))
    };
    let exit = match &args.http {
        Some(address) => runtime.block_on(show.by_http(address, signals, &args, end))?,
        None => {
            greet(verbosity::is_quiet());
            runtime.block_on(show.on_stdio(signals, end))?
        }
    };
    copy.iter().filter(|_| !verbosity::is_quiet()).for_each(copy::say);
    Ok(exit)
}

/// A player and the clients it serves.
struct Show<'a> {
    stage: Rc<Stage>,
    copy: Option<&'a SharedTape>,
    clock: Clock,
    message_bytes_max: usize,
}

impl Show<'_> {
    /// Serves one client on standard input and output, then calls `end`.
    async fn on_stdio(
        self,
        signals: Signals,
        end: impl FnOnce(&Cause, Option<&mut Deck>) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let mut deck = self.copy.map(|copy| copy::deck(copy, self.clock));
        // The client's session is the first one of the new tape.
        deck.iter_mut().for_each(|deck| _ = deck.open_session());
        let cause = stage::run_stdio(&self.stage, client_ports()?, deck.as_mut(), signals).await;
        end(&cause, deck.as_mut())
    }

    /// Serves clients over HTTP, then calls `end`.
    async fn by_http(
        self,
        address: &str,
        signals: Signals,
        args: &Args,
        end: impl FnOnce(&Cause, Option<&mut Deck>) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let listener = listen(address).await?.allowing(args.listen.allowed());
        let deck = self.copy.map(|copy| copy::deck(copy, self.clock));
        let recorded = deck.is_some();
        let deck = deck.unwrap_or_else(|| Deck::silent(self.clock));
        let station = Station::new(deck, self.message_bytes_max);
        let servers = Servers::Stage(self.stage);
        let bridge = Bridge::new(Rc::clone(&station), servers, Patience::default());
        announce(&listener, verbosity::is_quiet())?;
        let cause = http::serve(listener, bridge, &station, signals).await;
        end(&cause, recorded.then_some(&mut *station.deck()))
    }
}

fn stage_options(args: &Args, upstream: Option<Upstream>) -> StageOptions {
    let headers = args.upstream.headers();
    StageOptions {
        message_bytes_max: args.max_message_bytes,
        behind: upstream.map(|upstream| upstream.link(headers)),
        patience: Patience::default(),
        notice: Rc::new(talk::warn),
        farewell: "the replay has ended".to_owned(),
    }
}

/// A player of the tape that reports what happens.
fn player(args: &Args, tape: Loaded, options: Options) -> Player {
    let mut teller = Teller::new(args);
    let notice = Box::new(move |notice: Notice<'_>| teller.tell(&notice));
    Player::new(tape.index, Box::new(tape.reel), options, notice)
}

/// Registers this start in the requested reports, before anything is played.
fn register(args: &Args, clock: Clock) -> Result<Registration, Failure> {
    let report = report(args, &Summary::default(), clock);
    reporting::register(report, &args.report, &args.run, verbosity::is_quiet())
}

/// The report of the replay's result.
fn report(args: &Args, summary: &Summary, clock: Clock) -> Report {
    let report = Report::new("replay", &args.recording, clock.now());
    let report = report.of_start(args.run.run_id.as_deref());
    fill(summary, &Teller::new(args).divergence(), report)
}

/// Prints and reports the result of the replay, and determines the exit code.
fn conclude(
    args: &Args,
    player: &mut Player,
    deck: Option<&mut Deck>,
    cause: &Cause,
    (clock, registration): (Clock, &Registration),
) -> anyhow::Result<Exit> {
    let summary = player.summary();
    if !verbosity::is_quiet() {
        talk::say(summary::text(&summary).trim_end());
    }
    let copied = deck.map_or(Ok(()), |deck| copy::finish(player, deck));
    let broken = player.failure().map(|error| {
        let words = format!("cannot continue reading `{}`: {error}", args.recording.display());
        Failure::new(Exit::Io, words)
    });
    if !args.report.is_empty() {
        let mut report = report(args, &summary, clock);
        broken.iter().for_each(|failure| break_off(&mut report, &failure.words));
        reporting::locate(&mut report);
        reporting::add_to_all(
            &mut report,
            &args.report,
            &args.run,
            registration,
            verbosity::is_quiet(),
        )?;
    }
    if let Some(failure) = broken {
        return Err(failure.into());
    }
    copied.map_err(|error| Failure::new(Exit::Io, error))?;
    let goes_on = matches!(args.on_unmatched, OnUnmatchedWord::Warn);
    Ok(match cause {
        // Whatever ended the replay, the server behind the tape did not answer.
        Cause::Client | Cause::Signal(_) | Cause::Actor if summary.server_failed > 0 => {
            Exit::Transport
        }
        // The client's replies differ from the tape, so this is another session although it went
        // on.
        Cause::Client | Cause::Signal(_) if summary.failed_replies > 0 && !goes_on => {
            Exit::Diverged
        }
        Cause::Signal(number) => Exit::of_signal(*number),
        Cause::Actor => Exit::Diverged,
        Cause::Tape(error) => {
            talk::error(&format!("the session was stopped: {error}"), None);
            Exit::Io
        }
        _ => Exit::Ok,
    })
}
