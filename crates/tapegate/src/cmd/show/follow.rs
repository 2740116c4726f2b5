//! Shows a tape while it is being written.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use tapegate_core::tape::timeline::Timeline;
use tapegate_core::tape::{BashCommand, Line, LineFault, Session, entry_bytes_max};
use tapegate_store::followed::{FollowedLine, FollowedTape};
use tapegate_store::writer;

use super::Printer;

/// How long a line waits for its answer before it is printed without one.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows a tape until its recording has ended.
pub(super) fn run(
    path: &Path,
    timeline: Timeline,
    printer: &mut Printer<'_, '_>,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot read `{}`", path.display());
    let mut following = Following { timeline, has_ended: false };
    let mut tape = FollowedTape::new(path);
    let mut beside = FollowedTape::new(&writer::beside(path));
    let mut quiet_since = Instant::now();
    loop {
        let mut grown = false;
        while let Some((number, line)) = tape.next_line().with_context(cannot)? {
            following.line(number, &line);
            following.print(printer)?;
            grown = true;
        }
        while let Some((number, line)) = beside.next_line().with_context(cannot)? {
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
            if following.has_ended && !tape.has_writer() {
                return Ok(());
            }
        }
        printer.out.flush()?;
        tape.wait(PATIENCE)?;
    }
}

struct Following {
    timeline: Timeline,
    /// Whether the last line is a footer.
    has_ended: bool,
}

impl Following {
    fn line(&mut self, number: u64, line: &FollowedLine) {
        let FollowedLine::Whole(line) = line else {
            let fault = LineFault::TooLong(entry_bytes_max());
            return self.timeline.fault(number, fault.to_string());
        };
        let text = line.trim_ascii();
        if text.is_empty() {
            return;
        }
        match Line::read(text) {
            Ok(entry) => {
                self.has_ended = matches!(entry, Line::Footer(_));
                self.timeline.entry(number, &entry);
            }
            Err(_) if Session::is_entry(text) => match BashCommand::read(text) {
                Ok(command) => self.timeline.command(number, &command),
                Err(fault) => self.timeline.fault(number, fault.to_string()),
            },
            Err(fault) => self.timeline.fault(number, fault.to_string()),
        }
    }

    fn anomaly(&mut self, number: u64, line: &FollowedLine) {
        if let FollowedLine::Whole(line) = line
            && let Ok(entry @ Line::Bad(_)) = Line::read(line.trim_ascii())
            && !matches!(&entry, Line::Bad(bad) if bad.reason == "batch")
        {
            self.timeline.entry(number, &entry);
        }
    }

    fn print(&mut self, printer: &mut Printer<'_, '_>) -> std::io::Result<()> {
        while let Some(row) = self.timeline.next_row() {
            printer.row(row)?;
        }
        Ok(())
    }
}
