//! Runs a recording, from its start to its exit code.

use std::rc::Rc;

use tapegate_store::writer::TapeWriter;
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::OnServerEnd;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{Cause, Outcome, Patience};

use super::plan::Plan;
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::session::{self, Ended, Keeper, Route};
use crate::talk;
use crate::taping::SharedTape;
use crate::verbosity;
use crate::views::visible;

/// How many characters of a line on the server's standard error are shown.
const STDERR_LINE_CHARS_MAX: usize = 300;

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
        keeps_stderr: true,
        quiet: verbosity::is_quiet(),
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

    fn on_server_end(&self) -> Option<OnServerEnd> {
        let quiet = verbosity::is_quiet();
        Some(Rc::new(move |outcome| tell_of_server(outcome, quiet)))
    }

    fn conclude(&mut self, deck: &mut Deck, outcome: Outcome) -> Exit {
        conclude(deck, self.tape.as_ref(), outcome, verbosity::is_quiet())
    }
}

/// Ends the tape, prints a summary, and determines the exit code.
fn conclude(deck: &mut Deck, tape: Option<&SharedTape>, outcome: Outcome, quiet: bool) -> Exit {
    let closed = deck.close();
    if let Some(error) = deck.lost() {
        let words = format!("the session was not recorded to its end: {error}");
        // With --quiet only errors are printed, and a lost recording is one.
        if quiet { talk::error(&words, None) } else { talk::warn(&words) }
    }
    if let (false, Some(tape)) = (quiet, tape) {
        summarise(&tape.0.borrow());
    }
    if let Cause::Server = outcome.cause {
        tell_of_server(&outcome, quiet);
    }
    if let Cause::Tape(error) = &outcome.cause {
        let hint = "free some space, or pass --on-tape-error continue to continue without a tape";
        talk::error(&format!("the session was stopped: {error}"), Some(hint));
        return Exit::Io;
    }
    if let (Err(error), None) = (closed, deck.lost()) {
        talk::error(&error.to_string(), None);
        return Exit::Io;
    }
    session::exit_of(&outcome)
}

/// Reports that the server exited by itself, and how. The client only sees its input end, as it
/// would without us.
fn tell_of_server(outcome: &Outcome, quiet: bool) {
    let how = match outcome.status {
        Some(status) => format!("the MCP server ended ({status})"),
        None => "the MCP server ended".to_owned(),
    };
    let failed = outcome.unanswered > 0 || outcome.status.is_none_or(|status| !status.success());
    if !failed && !quiet {
        talk::say(&how);
    }
    if !failed {
        return;
    }
    let unanswered = match outcome.unanswered {
        0 => String::new(),
        1 => " and left 1 request unanswered".to_owned(),
        count => format!(" and left {count} requests unanswered"),
    };
    let lines: String = outcome
        .stderr_tail
        .iter()
        .map(|line| format!("\n  {}", visible::inline(line, STDERR_LINE_CHARS_MAX)))
        .collect();
    let last = if lines.is_empty() { "" } else { "; its last lines on standard error:" };
    talk::error(&format!("{how}{unanswered}{last}{lines}"), None);
}

fn summarise(tape: &TapeWriter) {
    let (client, server) = tape.messages();
    let path = tape.path().display();
    let total = client + server;
    let noun = if total == 1 { "message" } else { "messages" };
    talk::say(&format!("recorded {total} {noun} ({client} client, {server} server) to {path}"));
    let (anomalies, place) = tape.anomalies();
    if anomalies > 0 {
        let frames =
            if anomalies == 1 { "1 frame was" } else { &format!("{anomalies} frames were") };
        talk::warn(&format!(
            "{frames} not a plain JSON-RPC message, or not delivered; see {}",
            place.display()
        ));
    }
}
