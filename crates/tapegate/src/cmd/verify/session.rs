//! Runs a verification, from its start to its exit code.

use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::verifier::{Verifier, VerifierOptions, VerifyReport};
use tapegate_store::loaded_tape::LoadedTape;
use tapegate_wire::clock::Clock;
use tapegate_wire::link::{LinkError, LinkOptions, LinkTarget};
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::ShutdownTimeouts;
use tapegate_wire::verifier_loop::{self, VerificationEnd, VerifyConfig, VerifyError};
use tokio::task::LocalSet;

use super::args::{Args, VerifyFormat};
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::verbosity;
use crate::views::report::RunReport;
use crate::views::report::verify::fill;
use crate::views::{json_report, junit, sarif, verification, visible_text};
use crate::{report_files, terminal_output};

/// How long a server has to exit by itself.
const GRACE: Duration = Duration::from_secs(1);

/// How many characters of an error from the server are shown.
const WHY_CHARS_MAX: usize = 600;

/// Verifies the tape and prints the result.
pub(super) fn run(
    args: &Args,
    upstream: &LinkTarget,
    tape: LoadedTape,
    options: VerifierOptions,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let mut signals = Signals::listen()?;
    let clock = Clock::start();
    let mut verifier = Verifier::new(&tape.index, Box::new(tape.body_reader), options);
    let mut watch: Box<dyn FnMut(u64, u64)> = if verbosity::is_quiet() {
        Box::new(|_, _| ())
    } else {
        terminal_output::progress(&args.recording)
    };
    let timeout = args.timeout;
    let terms =
        VerifyConfig { upstream, link: link_options(args), clock, timeout, watch: &mut *watch };
    let played = verifier_loop::run(&mut verifier, terms, &mut signals);
    let ended = runtime.block_on(LocalSet::new().run_until(played));
    // Clear the progress line.
    watch(1, 1);
    match ended.map_err(verify_failure)? {
        VerificationEnd::Signal(number) => Ok(Exit::from_signal(number)),
        VerificationEnd::Unheard(reason) => {
            // The text may come from the server, so escape it.
            Err(Failure::new(Exit::Transport, visible_text::inline(&reason, WHY_CHARS_MAX)).into())
        }
        VerificationEnd::Played => finish_session(args, &verifier.finish(), clock, out),
    }
}

fn link_options(args: &Args) -> LinkOptions {
    let notice: Rc<dyn Fn(&str)> =
        if verbosity::is_quiet() { Rc::new(|_| ()) } else { Rc::new(terminal_output::warn) };
    // All requests are done by then, so stopping the server early loses nothing.
    let patience = ShutdownTimeouts { grace: GRACE, ..ShutdownTimeouts::default() };
    LinkOptions { message_bytes_max: args.tape.max_message_bytes, patience, notice }
}

/// Prints and reports the result, and determines the exit code.
fn finish_session(
    args: &Args,
    found: &VerifyReport,
    clock: Clock,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let mut report = fill(found, RunReport::new("verify", &args.recording, clock.now()));
    if !args.report.is_empty() || args.format != VerifyFormat::Text {
        report_files::locate_lines(&mut report);
    }
    report_files::write_all(&report, &args.report)?;
    match args.format {
        VerifyFormat::Text => print(args, found, out)?,
        VerifyFormat::Json => out.write_all(&json_report::write(&report))?,
        VerifyFormat::Junit => out.write_all(&junit::write(&report))?,
        VerifyFormat::Sarif => out.write_all(&sarif::write(&report))?,
    }
    out.flush()?;
    // Also if nothing was compared: a job that checked nothing must not be green.
    Ok(if report.outcome().is_ok() { Exit::Ok } else { Exit::Findings })
}

fn print(args: &Args, found: &VerifyReport, out: &mut dyn Write) -> std::io::Result<()> {
    let changes = verification::changes(found, terminal_output::palette_of_output(), args.details);
    out.write_all(changes.as_bytes())?;
    if verbosity::is_quiet() {
        return Ok(());
    }
    let between = if changes.is_empty() { "" } else { "\n" };
    write!(out, "{between}{}", verification::summary(found))
}

fn verify_failure(error: VerifyError) -> Failure {
    match error {
        VerifyError::Link(error) => Failure::new(exit_of(&error), error),
        VerifyError::Tape(_) => Failure::new(Exit::Io, error),
    }
}

/// The exit code for a server that cannot be connected to.
pub(super) fn exit_of(error: &LinkError) -> Exit {
    match error {
        LinkError::Spawn(_) | LinkError::Pipe(_) => Exit::Transport,
        LinkError::Upstream(_) => Exit::Usage,
    }
}
