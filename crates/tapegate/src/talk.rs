//! What is said to a person: on standard error, never on standard output, which belongs to the
//! protocol or to data.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::views::palette::{Palette, Surroundings};

/// Says what went wrong, and the way out after a blank line.
pub(crate) fn error(words: &str, hint: Option<&str>) {
    let hint = hint.map(|hint| format!("\nhint: {hint}\n")).unwrap_or_default();
    say_raw(&format!("error: {words}\n{hint}"));
}

/// Says the way out of what went wrong.
pub(crate) fn hint(words: &str) {
    say_raw(&format!("\nhint: {words}\n"));
}

/// Says something worth knowing.
pub(crate) fn say(words: &str) {
    say_raw(&format!("tapegate: {words}\n"));
}

/// Says a line as it is, for a log that has a form of its own.
pub(crate) fn line(text: &str) {
    say_raw(&format!("{text}\n"));
}

/// Says that something is amiss.
pub(crate) fn warn(words: &str) {
    say_raw(&format!("tapegate: warning: {words}\n"));
}

/// Whether what is said may be in colour.
pub(crate) fn palette() -> Palette {
    palette_for(std::io::stderr().is_terminal())
}

/// Whether what is printed may be in colour.
pub(crate) fn palette_of_output() -> Palette {
    palette_for(std::io::stdout().is_terminal())
}

fn palette_for(terminal: bool) -> Palette {
    let read = |name: &str| std::env::var(name).ok();
    let (no_color, force, term) = (read("NO_COLOR"), read("CLICOLOR_FORCE"), read("TERM"));
    Palette::decide(Surroundings {
        terminal,
        no_color: no_color.as_deref(),
        clicolor_force: force.as_deref(),
        term: term.as_deref(),
    })
}

/// Shows how far the reading of `name` has come, once it takes longer than a second and if a
/// person is looking.
pub(crate) fn progress(name: &Path) -> Box<dyn FnMut(u64, u64)> {
    let (started, name) = (Instant::now(), name.display().to_string());
    let watched = std::io::stderr().is_terminal();
    let mut shown = 0;
    Box::new(move |done, total| {
        let percent = done * 100 / total.max(1);
        if !watched || percent == shown || started.elapsed() < Duration::from_secs(1) {
            return;
        }
        shown = percent;
        // The line is rubbed out when all is read.
        let line =
            if done < total { format!("\r{name}: {percent}%") } else { "\r\x1b[K".to_owned() };
        say_raw(&line);
    })
}

fn say_raw(text: &str) {
    // If standard error is gone, there is nobody left to tell.
    std::io::stderr().write_all(text.as_bytes()).ok();
}
