//! Runs a recording, from its start to its exit code.

use std::io::{self, ErrorKind};
use std::rc::Rc;

use tapegate_store::tape_writer::{AnomalyCounts, TapeWriter};
use tapegate_wire::http::bridge_in::OnServerEnd;
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{EndCause, SessionOutcome, ShutdownTimeouts};

use super::plan::RecordPlan;
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::session::{self, SessionEnd, SessionHandler, SessionRoute};
use crate::terminal_output;
use crate::verbosity;
use crate::views::visible_text;
use tapegate_store::new_tape::SharedTape;

/// How many characters of a line on the server's standard error are shown.
const STDERR_LINE_CHARS_MAX: usize = 300;

/// Records until the session ends.
pub(super) fn run(plan: RecordPlan) -> anyhow::Result<Exit> {
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    // Before the server starts, or an early Ctrl-C would leave it behind.
    let signals = Signals::listen()?;
    let headers = plan.wire.upstream.headers();
    let route = SessionRoute {
        upstream: &plan.upstream,
        headers: &headers,
        http: plan.wire.http.as_deref(),
        // A recorder changes nothing: the server has the same environment as without it.
        with: Vec::new(),
        without: Vec::new(),
        message_bytes_max: plan.wire.max_message_bytes,
        patience: ShutdownTimeouts::default(),
        // Most clients hide standard error, so its last lines are shown if the server dies.
        keeps_stderr: true,
        quiet: verbosity::is_quiet(),
    };
    let mut recording = RecordSession { plan: &plan, tape: None };
    match runtime.block_on(session::run(&route, signals, &mut recording))? {
        SessionEnd::Exit(exit) => Ok(exit),
        SessionEnd::NoServer(error, _) => {
            let hint = start_hint(&error.program);
            Err(Failure::new(Exit::Transport, error).hint(hint).into())
        }
    }
}

/// What to do about a program that cannot be started.
fn start_hint(program: &str) -> &'static str {
    match program.split_once('=') {
        // As a shell has it, which is not used here.
        Some((name, _)) if !name.is_empty() && !name.contains('/') => {
            "variables are set by `env`: write `env NAME=VALUE` in front of the command"
        }
        _ => "check its spelling and `PATH`; a client's `PATH` may be shorter than a shell's",
    }
}

struct RecordSession<'a> {
    plan: &'a RecordPlan,
    tape: Option<SharedTape>,
}

impl SessionHandler for RecordSession<'_> {
    fn open(&mut self) -> anyhow::Result<RecordedSession> {
        let tape = SharedTape::new(self.plan.open_tape()?);
        self.tape = Some(tape.clone());
        let on_error = self.plan.wire.on_tape_error.into();
        Ok(RecordedSession::new(Box::new(tape), self.plan.clock, on_error))
    }

    fn discard(&mut self) {
        if let Some(tape) = self.tape.take() {
            // No server was started, so an empty tape would only be in the way.
            tape.discard();
        }
    }

    fn on_server_end(&self) -> Option<OnServerEnd> {
        let quiet = verbosity::is_quiet();
        Some(Rc::new(move |outcome| report_server_end(outcome, quiet)))
    }

    fn finish(&mut self, session: &mut RecordedSession, outcome: SessionOutcome) -> Exit {
        finish_session(session, self.tape.as_ref(), outcome, verbosity::is_quiet())
    }
}

/// Ends the tape, prints a summary, and determines the exit code.
fn finish_session(
    session: &mut RecordedSession,
    tape: Option<&SharedTape>,
    outcome: SessionOutcome,
    quiet: bool,
) -> Exit {
    let closed = session.close();
    if let Some(error) = session.tape_error() {
        let message = format!("the session was not recorded to its end: {error}");
        // With --quiet only errors are printed, and a lost recording is one.
        if quiet { terminal_output::error(&message, None) } else { terminal_output::warn(&message) }
    }
    if let (false, Some(tape)) = (quiet, tape) {
        print_summary(&tape.0.borrow());
    }
    if ended_unexpectedly(&outcome) {
        report_server_end(&outcome, quiet);
    }
    if let EndCause::Tape(error) = &outcome.cause {
        let hint = match is_full(error.as_ref()) {
            true => "free some space, or pass --on-tape-error continue to continue without a tape",
            false => "pass --on-tape-error continue to continue without a tape",
        };
        terminal_output::error(&format!("the session was stopped: {error}"), Some(hint));
        return Exit::Io;
    }
    // A tape that was lost earlier has been reported above.
    if let (Err(error), None) = (closed, session.tape_error()) {
        terminal_output::error(&error.to_string(), None);
        return Exit::Io;
    }
    session::exit_of(&outcome)
}

/// Whether there was no room for what a tape should hold.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|error| {
        use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    })
}

/// Whether the server ended by itself, and not as a server does whose client has left.
fn ended_unexpectedly(outcome: &SessionOutcome) -> bool {
    match (&outcome.cause, outcome.status) {
        (EndCause::Server, _) => true,
        (EndCause::Client, Some(status)) => {
            !outcome.was_terminated && (!status.success() || outcome.unanswered > 0)
        }
        _ => false,
    }
}

/// Reports that the server exited by itself, and how. The client only sees its input end, as it
/// would without us.
fn report_server_end(outcome: &SessionOutcome, quiet: bool) {
    let how = match outcome.status {
        Some(status) => format!("the MCP server ended ({status})"),
        None => "the MCP server ended".to_owned(),
    };
    // A server that leaves requests unanswered has failed, even with code 0.
    let failed = outcome.unanswered > 0 || outcome.status.is_none_or(|status| !status.success());
    if !failed && !quiet {
        terminal_output::info(&how);
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
        .map(|line| format!("\n  {}", visible_text::inline(line, STDERR_LINE_CHARS_MAX)))
        .collect();
    let last = if lines.is_empty() { "" } else { "; its last lines on standard error:" };
    terminal_output::error(&format!("{how}{unanswered}{last}{lines}"), None);
}

fn print_summary(tape: &TapeWriter) {
    let (client, server) = tape.messages();
    let path = tape.path().display();
    let total = client + server;
    let noun = if total == 1 { "message" } else { "messages" };
    terminal_output::info(&format!(
        "recorded {total} {noun} ({client} client, {server} server) to {path}"
    ));
    let AnomalyCounts { frames, batches, path } = tape.anomalies();
    let mut parts = Vec::new();
    if frames > 0 {
        let are = if frames == 1 { "1 frame was" } else { &format!("{frames} frames were") };
        parts.push(format!("{are} not a JSON-RPC message, or not delivered"));
    }
    if batches > 0 {
        let are = if batches == 1 { "1 batch is" } else { &format!("{batches} batches are") };
        parts.push(format!("{are} also kept as sent"));
    }
    if !parts.is_empty() {
        terminal_output::warn(&format!("{}; see {}", parts.join("; "), path.display()));
    }
}
