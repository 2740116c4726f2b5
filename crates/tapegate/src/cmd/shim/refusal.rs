//! Reports why a session cannot start: to the client, in the log, and on standard error.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_store::activity::Event;
use tapegate_wire::clock::Clock;
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
use super::session::{activity, journal, remember_state};
use crate::exit::{Exit, Failure};
use crate::talk;
use crate::verbosity;
use crate::wiring::{announce, client_ports, listen};

/// Reports why the session cannot start: on standard error, in the log, and to the client.
pub(super) async fn refuse_to_start(
    plan: &Plan,
    kind: FailureKind,
    failure: Failure,
) -> anyhow::Result<Exit> {
    let Failure { exit, words, hint } = failure;
    talk::error(&words, hint.as_deref());
    log_failure(plan, kind, &words);
    if plan.args.http.is_none() && std::io::stdin().is_terminal() {
        // A person started this by hand and has read the reason.
        return Ok(exit);
    }
    let message = absent::shortened(&words, hint.as_deref());
    stand_in(plan, StartFailure { message, kind, exit }, Signals::listen()?).await
}

/// Logs why the session cannot start, before a journal exists.
pub(super) fn log_failure(plan: &Plan, kind: FailureKind, why: &str) {
    let observing = Rule::observing(plan.wanted);
    let sink = activity(plan, &observing).map_or_else(Sink::Nowhere, Sink::file);
    remember_state(plan);
    note_failure(plan, &journal(plan, &observing, sink), kind, why);
}

/// Logs why the session cannot start.
pub(super) fn note_failure(plan: &Plan, journal: &Journal, kind: FailureKind, why: &str) {
    let event = start_failed(plan.clock.now().wall_us, kind, why);
    journal.keep_quietly(event);
}

/// The event for a session that cannot start.
pub(super) fn start_failed(wall_us: i64, kind: FailureKind, why: &str) -> Event<'static> {
    let faults: Vec<String> = why.lines().take(20).map(quoted).collect();
    Event {
        wall_us,
        level: "error",
        kind: kind.event(),
        component: "shim",
        policy_reason: Some(format!("the session cannot start: {why}").into()),
        extra: format!("\"event\":\"start_failed\",\"faults\":[{}]", faults.join(",")).into(),
        ..Event::default()
    }
}

/// Answers every request with the reason why the session cannot start, until the client leaves.
pub(super) async fn stand_in(
    plan: &Plan,
    failure: StartFailure,
    signals: Signals,
) -> anyhow::Result<Exit> {
    let stand_in = StandIn {
        http: plan.args.http.as_deref(),
        message_bytes_max: plan.args.max_message_bytes,
        quiet: verbosity::is_quiet(),
        clock: plan.clock,
    };
    stand_in.run(failure, signals).await
}

/// How to reach the clients of a session that cannot start.
pub(super) struct StandIn<'a> {
    /// The address to listen on; `None` for one client on standard input and output.
    pub(super) http: Option<&'a str>,
    pub(super) message_bytes_max: usize,
    pub(super) quiet: bool,
    pub(super) clock: Clock,
}

impl StandIn<'_> {
    /// Answers until the client leaves.
    pub(super) async fn run(
        &self,
        failure: StartFailure,
        mut signals: Signals,
    ) -> anyhow::Result<Exit> {
        let bytes_max = self.message_bytes_max;
        let (farewell, exit) = (failure.message.clone(), failure.exit);
        let actor: Rc<RefCell<dyn Actor>> = Rc::new(RefCell::new(Absent(failure)));
        let options = StageOptions {
            message_bytes_max: bytes_max,
            behind: None,
            patience: Patience::default(),
            notice: Rc::new(talk::warn),
            farewell,
        };
        let stage = Stage::new(actor, self.clock, options);
        let cause = match self.http {
            None => stage::run_stdio(&stage, client_ports()?, None, signals).await,
            Some(address) => {
                let listener = tokio::select! {
                    listener = listen(address) => listener?,
                    number = signals.next() => return Ok(Exit::of_signal(number)),
                };
                let station = Station::new(Deck::silent(self.clock), bytes_max);
                let bridge =
                    Bridge::new(Rc::clone(&station), Servers::Stage(stage), Patience::default());
                announce(&listener, self.quiet)?;
                http::serve(listener, bridge, &station, signals).await
            }
        };
        Ok(match cause {
            Cause::Signal(number) if number > 0 => Exit::of_signal(number),
            _ => exit,
        })
    }
}
