//! Shows a tape while it is being written.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use tapegate_core::tape::timeline::Timeline;
use tapegate_core::tape::{
    BashCommand, BashSession, LineFault, LineProblem, TapeLine, entry_bytes_max,
};
use tapegate_store::followed_tape::{FollowedLine, FollowedTape};
use tapegate_store::tape_writer;

use super::RowPrinter;
use crate::{tape_loader, terminal_output, verbosity};

/// How long a line waits for its answer before it is printed without one.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows a tape until its recording has ended.
pub(super) fn run(
    path: &Path,
    timeline: Timeline,
    printer: &mut RowPrinter<'_, '_>,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot read `{}`", path.display());
    if !path.exists() && !verbosity::is_quiet() {
        terminal_output::info(&format!("waiting for {}, which does not exist yet", path.display()));
    }
    let mut following = FollowState { timeline, has_ended: false };
    let mut tape = FollowedTape::new(path);
    let mut anomaly_file = FollowedTape::new(&tape_writer::anomaly_path(path));
    let mut quiet_since = Instant::now();
    loop {
        let mut grown = false;
        while let Some((number, line)) = tape.next_line().with_context(cannot)? {
            following.line(&path.display().to_string(), number, &line)?;
            following.print(printer)?;
            grown = true;
        }
        while let Some((number, line)) = anomaly_file.next_line().with_context(cannot)? {
            following.anomaly(number, &line);
            grown = true;
        }
        following.print(printer)?;
        let now = Instant::now();
        if grown {
            quiet_since = now;
        } else if now.duration_since(quiet_since) >= PATIENCE {
            following.timeline.flush();
            following.print(printer)?;
            // A footer alone is not the end: a recorder overwrites it while its session is ending.
            if following.has_ended && !tape.has_writer() {
                return Ok(());
            }
        }
        printer.out.flush()?;
        tape.wait(PATIENCE)?;
    }
}

struct FollowState {
    timeline: Timeline,
    /// Whether the last line is a footer.
    has_ended: bool,
}

impl FollowState {
    fn line(&mut self, tape: &str, number: u64, line: &FollowedLine) -> anyhow::Result<()> {
        let FollowedLine::Whole(line) = line else {
            let fault = LineFault::TooLong(entry_bytes_max());
            self.timeline.line(&Err(LineProblem::Line { line: number, fault }));
            return Ok(());
        };
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        match TapeLine::read(text) {
            Ok(entry) => {
                tape_loader::check_version(tape, number, &entry)?;
                self.has_ended = matches!(entry, TapeLine::Footer(_));
                self.timeline.entry(number, &entry);
            }
            Err(_) if BashSession::is_entry(text) => match BashCommand::read(text) {
                Ok(command) => self.timeline.command(number, &command),
                Err(fault) => self.timeline.add_unreadable(number, fault.to_string()),
            },
            Err(fault) => self.timeline.add_unreadable(number, fault.to_string()),
        }
        Ok(())
    }

    fn anomaly(&mut self, number: u64, line: &FollowedLine) {
        if let FollowedLine::Whole(line) = line
            && let Ok(entry @ TapeLine::Bad(_)) = TapeLine::read(line.trim_ascii())
            && !matches!(&entry, TapeLine::Bad(bad) if bad.reason == "batch")
        {
            self.timeline.entry(number, &entry);
        }
    }

    fn print(&mut self, printer: &mut RowPrinter<'_, '_>) -> std::io::Result<()> {
        while let Some(row) = self.timeline.next_row() {
            printer.row(row)?;
        }
        Ok(())
    }
}
