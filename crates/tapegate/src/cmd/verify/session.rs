//! Runs a verification, from its start to its exit code.

use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::verifier::{Options, Report as Found, Verifier};
use tapegate_store::loaded::Loaded;
use tapegate_wire::clock::Clock;
use tapegate_wire::link::{LinkError, LinkOptions, Upstream};
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::Patience;
use tapegate_wire::verifying::{self, End, Terms, VerifyError};
use tokio::task::LocalSet;

use super::args::{Args, Format};
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::verbosity;
use crate::views::report::Report;
use crate::views::report::verify::fill;
use crate::views::{json_report, junit, sarif, verified, visible};
use crate::{reporting, talk};

/// How long a server has to exit by itself.
const GRACE: Duration = Duration::from_secs(1);

/// How many characters of an error from the server are shown.
const WHY_CHARS_MAX: usize = 600;

/// Verifies the tape and prints the result.
pub(super) fn run(
    args: &Args,
    upstream: &Upstream,
    tape: Loaded,
    options: Options,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let mut signals = Signals::listen()?;
    let clock = Clock::start();
    let mut verifier = Verifier::new(&tape.index, Box::new(tape.reel), options);
    let mut watch: Box<dyn FnMut(u64, u64)> =
        if verbosity::is_quiet() { Box::new(|_, _| ()) } else { talk::progress(&args.recording) };
    let timeout = args.timeout;
    let terms = Terms { upstream, link: link(args), clock, timeout, watch: &mut *watch };
    let played = verifying::run(&mut verifier, terms, &mut signals);
    let ended = runtime.block_on(LocalSet::new().run_until(played));
    // Clear the progress line.
    watch(1, 1);
    match ended.map_err(refused)? {
        End::Signal(number) => Ok(Exit::of_signal(number)),
        End::Unheard(why) => {
            // The text may come from the server, so escape it.
            Err(Failure::new(Exit::Transport, visible::inline(&why, WHY_CHARS_MAX)).into())
        }
        End::Played => conclude(args, &verifier.finish(), clock, out),
    }
}

fn link(args: &Args) -> LinkOptions {
    let notice: Rc<dyn Fn(&str)> =
        if verbosity::is_quiet() { Rc::new(|_| ()) } else { Rc::new(talk::warn) };
    // All requests are done by then, so stopping the server early loses nothing.
    let patience = Patience { grace: GRACE, ..Patience::default() };
    LinkOptions { message_bytes_max: args.max_message_bytes, patience, notice }
}

/// Prints and reports the result, and determines the exit code.
fn conclude(args: &Args, found: &Found, clock: Clock, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut report = fill(found, Report::new("verify", &args.recording, clock.now()));
    if !args.report.is_empty() || args.format != Format::Text {
        reporting::locate(&mut report);
    }
    reporting::write_all(&report, &args.report)?;
    match args.format {
        Format::Text => print(args, found, out)?,
        Format::Json => out.write_all(&json_report::write(&report))?,
        Format::Junit => out.write_all(&junit::write(&report))?,
        Format::Sarif => out.write_all(&sarif::write(&report))?,
    }
    out.flush()?;
    Ok(if found.has_findings() { Exit::Findings } else { Exit::Ok })
}

fn print(args: &Args, found: &Found, out: &mut dyn Write) -> std::io::Result<()> {
    let changes = verified::changes(found, talk::palette_of_output(), args.details);
    out.write_all(changes.as_bytes())?;
    if verbosity::is_quiet() {
        return Ok(());
    }
    let between = if changes.is_empty() { "" } else { "\n" };
    write!(out, "{between}{}", verified::summary(found))
}

fn refused(error: VerifyError) -> Failure {
    match error {
        VerifyError::Link(error) => Failure::new(exit_of(&error), error),
        VerifyError::Tape(_) => Failure::new(Exit::Io, error),
    }
}

/// The exit code for a server that cannot be connected to.
pub(super) fn exit_of(error: &LinkError) -> Exit {
    match error {
        LinkError::Spawn(_) => Exit::Transport,
        LinkError::Upstream(_) => Exit::Usage,
    }
}
