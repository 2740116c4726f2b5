//! A recording, from its start to its exit code.

use std::rc::Rc;

use tapegate_store::writer::TapeWriter;
use tapegate_wire::child::{Child, Launch};
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::{Bridge, Servers};
use tapegate_wire::http::proxy::Proxy;
use tapegate_wire::http::{self, Station, bridge_out};
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{self, Cause, Outcome, Patience};
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use super::plan::Plan;
use crate::exit::{Exit, Failure};
use crate::talk;
use crate::taping::SharedTape;
use crate::upstream::Upstream;
use crate::wiring::{announce, client_ports, listen};

fn deck(plan: &Plan, tape: &SharedTape) -> Deck {
    Deck::new(Box::new(tape.clone()), plan.clock, plan.wire.on_tape_error.into())
}

/// Records until the session ends.
pub(super) fn run(plan: Plan) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    match (&plan.wire.http, &plan.upstream) {
        (None, Upstream::Command(argv)) => run_stdio(&plan, argv, &runtime, signals),
        (Some(address), Upstream::Http(url)) => {
            runtime.block_on(run_proxy(&plan, address, url, signals))
        }
        (Some(address), Upstream::Command(argv)) => {
            runtime.block_on(run_bridge_in(&plan, address, argv, signals))
        }
        (None, Upstream::Http(url)) => runtime.block_on(run_bridge_out(&plan, url, signals)),
    }
}

fn run_stdio(
    plan: &Plan,
    argv: &[String],
    runtime: &Runtime,
    signals: Signals,
) -> anyhow::Result<Exit> {
    Child::look_for(argv).map_err(|error| Failure::new(Exit::Transport, error))?;
    let tape = plan.open_tape()?;
    let server = match Child::spawn(argv) {
        Ok(server) => server,
        Err(error) => {
            tape.discard();
            return Err(Failure::new(Exit::Transport, error).into());
        }
    };
    let tape = SharedTape::new(tape);
    let mut deck = deck(plan, &tape);
    let session = stdio::run(
        &mut deck,
        client_ports()?,
        server,
        signals,
        plan.wire.max_message_bytes,
        Patience::default(),
    );
    let outcome = runtime.block_on(session);
    Ok(conclude(&mut deck, &tape, outcome, plan.wire.quiet))
}

async fn run_proxy(
    plan: &Plan,
    address: &str,
    url: &str,
    signals: Signals,
) -> anyhow::Result<Exit> {
    let upstream = Upstream::connect(url, &plan.wire.upstream.header)?;
    let listener = listen(address).await?;
    let tape = SharedTape::new(plan.open_tape()?);
    let station = Station::new(deck(plan, &tape), plan.wire.max_message_bytes);
    let proxy = Proxy::new(Rc::clone(&station), upstream);
    announce(&listener, plan.wire.quiet)?;
    let cause = http::serve(listener, proxy, &station, signals).await;
    let outcome = Outcome { cause, status: None };
    Ok(conclude(&mut station.deck(), &tape, outcome, plan.wire.quiet))
}

async fn run_bridge_in(
    plan: &Plan,
    address: &str,
    argv: &[String],
    signals: Signals,
) -> anyhow::Result<Exit> {
    Child::look_for(argv).map_err(|error| Failure::new(Exit::Transport, error))?;
    let listener = listen(address).await?;
    let tape = SharedTape::new(plan.open_tape()?);
    let station = Station::new(deck(plan, &tape), plan.wire.max_message_bytes);
    let servers = Servers::Processes(Launch { argv: argv.to_vec(), without: Vec::new() });
    let bridge = Bridge::new(Rc::clone(&station), servers, Patience::default());
    announce(&listener, plan.wire.quiet)?;
    let cause = http::serve(listener, bridge, &station, signals).await;
    let outcome = Outcome { cause, status: None };
    Ok(conclude(&mut station.deck(), &tape, outcome, plan.wire.quiet))
}

async fn run_bridge_out(plan: &Plan, url: &str, signals: Signals) -> anyhow::Result<Exit> {
    let upstream = Upstream::connect(url, &plan.wire.upstream.header)?;
    let client = client_ports()?;
    let tape = SharedTape::new(plan.open_tape()?);
    let station = Station::new(deck(plan, &tape), plan.wire.max_message_bytes);
    let notice = Box::new(talk::warn);
    let patience = Patience::default();
    let session = bridge_out::run(Rc::clone(&station), client, upstream, signals, patience, notice);
    let outcome = LocalSet::new().run_until(session).await;
    Ok(conclude(&mut station.deck(), &tape, outcome, plan.wire.quiet))
}

/// Ends the tape, says what was recorded, and finds the exit code.
fn conclude(deck: &mut Deck, tape: &SharedTape, outcome: Outcome, quiet: bool) -> Exit {
    let closed = deck.close();
    if let Some(error) = deck.lost() {
        talk::warn(&format!("the session was not recorded to its end: {error}"));
    }
    if !quiet {
        summarise(&tape.0.borrow());
    }
    match (outcome.cause, closed) {
        (Cause::Tape(error), _) => {
            let hint = "free some space, or pass --on-tape-error continue to go on without a tape";
            talk::error(&format!("the session was stopped because {error}"), Some(hint));
            Exit::Io
        }
        (_, Err(error)) if deck.lost().is_none() => {
            talk::error(&error.to_string(), None);
            Exit::Io
        }
        (Cause::Signal(signal), _) => Exit::of_signal(signal),
        (Cause::Unreachable(why), _) => {
            talk::error(&why, None);
            Exit::Transport
        }
        // Without a child there is nothing to hand on when the client leaves.
        (Cause::Client, _) if outcome.status.is_none() => Exit::Ok,
        (Cause::Server | Cause::Actor | Cause::Client, _) => Exit::of_child(outcome.status),
    }
}

fn summarise(tape: &TapeWriter) {
    let (client, server) = tape.messages();
    let path = tape.path().display();
    talk::say(&format!(
        "recorded {} messages ({client} client, {server} server) to {path}",
        client + server
    ));
    let (anomalies, place) = tape.anomalies();
    if anomalies > 0 {
        talk::warn(&format!(
            "{anomalies} frames were no plain JSON-RPC messages or not delivered; see {}",
            place.display()
        ));
    }
}
