//! Runs a replay, from its start to its exit code.

use std::cell::RefCell;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_core::player::{Player, PlayerOptions, ReplayNotice, ReplaySummary};
use tapegate_store::loaded_tape::LoadedTape;
use tapegate_wire::actor_host::{self, ActorHost, ActorHostOptions};
use tapegate_wire::clock::Clock;
use tapegate_wire::http::bridge_in::{InboundBridge, ServerProvider};
use tapegate_wire::http::{self, SharedSession};
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{EndCause, ShutdownTimeouts};

use super::args::{Args, OnUnmatchedArg};
use super::plan::ReplayPlan;
use super::reporter::ReplayReporter;
use super::tape_copy;
use crate::client_transport::{client_ports, listen, print_address, print_waiting_notice};
use crate::exit::{Exit, Failure};
use crate::report_files::{self, Registration};
use crate::runtime;
use crate::terminal_output;
use crate::upstream::UpstreamTarget;
use crate::verbosity;
use crate::views::report::RunReport;
use crate::views::report::replay::{add_read_failure, fill};
use crate::views::summary;
use tapegate_store::new_tape::SharedTape;

/// Plays the tape until the client is gone, a signal arrives, or a request is not on the tape.
pub(super) fn run(plan: ReplayPlan) -> anyhow::Result<Exit> {
    let clock = Clock::start();
    let copy = tape_copy::open(&plan, clock)?;
    let options = plan.options();
    // Before anything is played: a start that is killed must be in the report.
    let registration = register(&plan.args, clock)?;
    let ReplayPlan { args, tape, upstream, .. } = plan;
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let player = Rc::new(RefCell::new(player(&args, tape, options)));
    let actor: Rc<RefCell<dyn Actor>> = player.clone();
    let host = ActorHost::new(actor, clock, host_options(&args, upstream));
    let show = ReplayServer {
        host,
        copy: copy.as_ref(),
        clock,
        message_bytes_max: args.tape.max_message_bytes,
    };
    let end = |cause: &EndCause, session: Option<&mut RecordedSession>| {
        finish_session(&args, &mut player.borrow_mut(), session, cause, (clock, &registration))
    };
    let exit = match &args.http {
        Some(address) => runtime.block_on(show.serve_http(address, signals, &args, end))?,
        None => {
            print_waiting_notice(verbosity::is_quiet());
            runtime.block_on(show.serve_stdio(signals, end))?
        }
    };
    copy.iter().filter(|_| !verbosity::is_quiet()).for_each(tape_copy::report_written);
    Ok(exit)
}

/// A player and the clients it serves.
struct ReplayServer<'a> {
    host: Rc<ActorHost>,
    copy: Option<&'a SharedTape>,
    clock: Clock,
    message_bytes_max: usize,
}

impl ReplayServer<'_> {
    /// Serves one client on standard input and output, then calls `end`.
    async fn serve_stdio(
        self,
        signals: Signals,
        end: impl FnOnce(&EndCause, Option<&mut RecordedSession>) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let mut session = self.copy.map(|copy| tape_copy::recorded_session(copy, self.clock));
        // The client's session is the first one of the new tape.
        session.iter_mut().for_each(|session| _ = session.open_session());
        let cause =
            actor_host::run_stdio(&self.host, client_ports()?, session.as_mut(), signals).await;
        end(&cause, session.as_mut())
    }

    /// Serves clients over HTTP, then calls `end`.
    async fn serve_http(
        self,
        address: &str,
        signals: Signals,
        args: &Args,
        end: impl FnOnce(&EndCause, Option<&mut RecordedSession>) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let listener = listen(address).await?.with_allowed(args.listen.allowed());
        let session = self.copy.map(|copy| tape_copy::recorded_session(copy, self.clock));
        let recorded = session.is_some();
        let session = session.unwrap_or_else(|| RecordedSession::without_recording(self.clock));
        let shared_session = SharedSession::new(session, self.message_bytes_max);
        let servers = ServerProvider::Stage(self.host);
        let bridge =
            InboundBridge::new(Rc::clone(&shared_session), servers, ShutdownTimeouts::default());
        print_address(&listener, verbosity::is_quiet())?;
        let cause = http::serve(listener, bridge, &shared_session, signals).await;
        end(&cause, recorded.then_some(&mut *shared_session.recorded_session()))
    }
}

fn host_options(args: &Args, upstream: Option<UpstreamTarget>) -> ActorHostOptions {
    let headers = args.upstream.headers();
    ActorHostOptions {
        message_bytes_max: args.tape.max_message_bytes,
        passthrough: upstream.map(|upstream| upstream.link(headers)),
        patience: ShutdownTimeouts::default(),
        notice: Rc::new(terminal_output::warn),
        farewell: "the replay has ended".to_owned(),
    }
}

/// A player of the tape that reports what happens.
fn player(args: &Args, tape: LoadedTape, options: PlayerOptions) -> Player {
    let mut teller = ReplayReporter::new(args);
    let notice = Box::new(move |notice: ReplayNotice<'_>| teller.report(&notice));
    Player::new(tape.index, Box::new(tape.body_reader), options, notice)
}

/// Registers this start in the requested reports, before anything is played.
fn register(args: &Args, clock: Clock) -> Result<Registration, Failure> {
    let report = report(args, &ReplaySummary::default(), clock);
    report_files::register(report, &args.report, &args.run)
}

/// The report of the replay's result.
fn report(args: &Args, summary: &ReplaySummary, clock: Clock) -> RunReport {
    let report = RunReport::new("replay", &args.recording, clock.now());
    let report = report.with_start(args.run.run_id.as_deref());
    fill(summary, &ReplayReporter::new(args).divergence(), report)
}

/// Prints and reports the result of the replay, and determines the exit code.
fn finish_session(
    args: &Args,
    player: &mut Player,
    session: Option<&mut RecordedSession>,
    cause: &EndCause,
    (clock, registration): (Clock, &Registration),
) -> anyhow::Result<Exit> {
    let summary = player.summary();
    if !verbosity::is_quiet() {
        terminal_output::info(summary::text(&summary).trim_end());
    }
    let copied = session.map_or(Ok(()), |session| tape_copy::finish(player, session));
    let broken = player.failure().map(|error| {
        let message = format!("cannot continue reading `{}`: {error}", args.recording.display());
        Failure::new(Exit::Io, message)
    });
    if !args.report.is_empty() {
        let mut report = report(args, &summary, clock);
        broken.iter().for_each(|failure| add_read_failure(&mut report, &failure.message));
        report_files::locate_lines(&mut report);
        report_files::add_to_all(&mut report, &args.report, &args.run, registration)?;
    }
    // After the report is written, which has the failure too.
    if let Some(failure) = broken {
        return Err(failure.into());
    }
    copied.map_err(|error| Failure::new(Exit::Io, error))?;
    let goes_on = matches!(args.on_unmatched, OnUnmatchedArg::Warn);
    Ok(match cause {
        // Whatever ended the replay, the server behind the tape did not answer.
        EndCause::Client | EndCause::Signal(_) | EndCause::Actor if summary.server_failed > 0 => {
            Exit::Transport
        }
        // The client's replies differ from the tape, so this is another session although it went
        // on.
        EndCause::Client | EndCause::Signal(_) if summary.failed_replies > 0 && !goes_on => {
            Exit::Diverged
        }
        EndCause::Signal(number) => Exit::from_signal(*number),
        EndCause::Actor => Exit::Diverged,
        EndCause::Tape(error) => {
            terminal_output::error(&format!("the session was stopped: {error}"), None);
            Exit::Io
        }
        _ => Exit::Ok,
    })
}
