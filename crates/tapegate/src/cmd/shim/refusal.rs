//! Tells a client, the log and whoever started it why a session cannot start.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_store::activity::Event;
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::{Bridge, Servers};
use tapegate_wire::http::{self, Station};
use tapegate_wire::signals::Signals;
use tapegate_wire::stage::{self, Stage, StageOptions};
use tapegate_wire::stdio::{Cause, Patience};

use super::absent::{self, Absent, FailureKind, StartFailure};
use super::journal::{Journal, Sink, quoted};
use super::plan::Plan;
use super::rulebook::Rule;
use super::session::{activity, journal};
use crate::exit::{Exit, Failure};
use crate::talk;
use crate::wiring::{announce, client_ports, listen};

/// Tells why the session cannot start: on standard error, in the log, and to the client.
pub(super) async fn refuse_to_start(
    plan: &Plan,
    kind: FailureKind,
    failure: Failure,
) -> anyhow::Result<Exit> {
    let Failure { exit, words, hint } = failure;
    talk::error(&words, hint.as_deref());
    let observing = Rule::observing(plan.wanted);
    let sink = activity(plan, &observing).map_or_else(Sink::Nowhere, Sink::file);
    let journal = journal(plan, &observing, sink);
    note_failure(plan, &journal, kind, &words);
    if plan.args.http.is_none() && std::io::stdin().is_terminal() {
        // A person started this by hand and has read the reason.
        return Ok(exit);
    }
    let message = absent::shortened(&words, hint.as_deref());
    stand_in(plan, StartFailure { message, kind, exit }, Signals::listen()?).await
}

/// Logs why the session cannot start.
pub(super) fn note_failure(plan: &Plan, journal: &Journal, kind: FailureKind, why: &str) {
    let faults: Vec<String> = why.lines().take(20).map(quoted).collect();
    journal.keep_quietly(Event {
        wall_us: plan.clock.now().wall_us,
        level: "error",
        kind: kind.event(),
        policy_reason: Some(format!("the session cannot start: {why}").into()),
        extra: format!("\"event\":\"start_failed\",\"faults\":[{}]", faults.join(",")).into(),
        ..Event::default()
    });
}

/// Answers every request with the reason why the session cannot start, until the client leaves.
pub(super) async fn stand_in(
    plan: &Plan,
    failure: StartFailure,
    mut signals: Signals,
) -> anyhow::Result<Exit> {
    let bytes_max = plan.args.max_message_bytes;
    let (farewell, exit) = (failure.message.clone(), failure.exit);
    let actor: Rc<RefCell<dyn Actor>> = Rc::new(RefCell::new(Absent(failure)));
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
        _ => exit,
    })
}
