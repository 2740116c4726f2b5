//! A recording, from its start to its exit code.

use tapegate_store::writer::TapeWriter;
use tapegate_wire::deck::Deck;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{Cause, Outcome, Patience};

use super::plan::Plan;
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::session::{self, Ended, Keeper, Route};
use crate::talk;
use crate::taping::SharedTape;

/// Records until the session ends.
pub(super) fn run(plan: Plan) -> anyhow::Result<Exit> {
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let headers = plan.wire.upstream.headers();
    let route = Route {
        upstream: &plan.upstream,
        headers: &headers,
        http: plan.wire.http.as_deref(),
        without: Vec::new(),
        message_bytes_max: plan.wire.max_message_bytes,
        patience: Patience::default(),
        quiet: plan.wire.quiet,
    };
    let mut recording = Recording { plan: &plan, tape: None };
    match runtime.block_on(session::run(&route, signals, &mut recording))? {
        Ended::Exit(exit) => Ok(exit),
        Ended::NoServer(error, _) => Err(Failure::new(Exit::Transport, error).into()),
    }
}

/// A session that is recorded.
struct Recording<'a> {
    plan: &'a Plan,
    tape: Option<SharedTape>,
}

impl Keeper for Recording<'_> {
    fn open(&mut self) -> anyhow::Result<Deck> {
        let tape = SharedTape::new(self.plan.open_tape()?);
        self.tape = Some(tape.clone());
        let on_error = self.plan.wire.on_tape_error.into();
        Ok(Deck::new(Box::new(tape), self.plan.clock, on_error))
    }

    fn discard(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.discard();
        }
    }

    fn conclude(&mut self, deck: &mut Deck, outcome: Outcome) -> Exit {
        conclude(deck, self.tape.as_ref(), outcome, self.plan.wire.quiet)
    }
}

/// Ends the tape, says what was recorded, and finds the exit code.
fn conclude(deck: &mut Deck, tape: Option<&SharedTape>, outcome: Outcome, quiet: bool) -> Exit {
    let closed = deck.close();
    if let Some(error) = deck.lost() {
        talk::warn(&format!("the session was not recorded to its end: {error}"));
    }
    if let (false, Some(tape)) = (quiet, tape) {
        summarise(&tape.0.borrow());
    }
    if let Cause::Tape(error) = &outcome.cause {
        let hint = "free some space, or pass --on-tape-error continue to go on without a tape";
        talk::error(&format!("the session was stopped because {error}"), Some(hint));
        return Exit::Io;
    }
    if let (Err(error), None) = (closed, deck.lost()) {
        talk::error(&error.to_string(), None);
        return Exit::Io;
    }
    session::exit_of(&outcome)
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
