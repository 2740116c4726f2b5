//! What is said to a person: on standard error, never on standard output, which belongs to the
//! protocol or to data.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::called;
use crate::logs::LogLine;
use crate::verbosity::{self, Level};
use crate::views::palette::{Palette, Surroundings};
use crate::views::visible;

/// Says what went wrong, and the way out after a blank line.
pub(crate) fn error(words: &str, hint: Option<&str>) {
    if verbosity::is_json() {
        return say_object(Level::Error, words, hint);
    }
    let hint = hint.map(|hint| format!("\nhint: {}\n", shown(hint))).unwrap_or_default();
    say_raw(&format!("error: {}\n{hint}", shown(words)));
}

/// Says the way out of what went wrong.
pub(crate) fn hint(words: &str) {
    if verbosity::is_json() {
        return say_object(Level::Error, "", Some(words));
    }
    say_raw(&format!("\nhint: {}\n", shown(words)));
}

/// Says what may be done next, where nothing went wrong.
pub(crate) fn advise(words: &str) {
    if verbosity::says(Level::Info) {
        match verbosity::is_json() {
            true => say_object(Level::Info, words, None),
            false => hint(words),
        }
    }
}

/// Says what is wrong with a command line, in a text that has a form of its own.
pub(crate) fn misuse(text: &str, hint: Option<&str>) {
    if verbosity::is_json() {
        let words = text.trim_end();
        return say_object(Level::Error, words.strip_prefix("error: ").unwrap_or(words), hint);
    }
    say_raw(&shown(text));
    hint.into_iter().for_each(self::hint);
}

/// Says something worth knowing.
pub(crate) fn say(words: &str) {
    say_at(Level::Info, words);
}

/// Says a detail, to whoever asked for details.
pub(crate) fn detail(words: &str) {
    // Among the lines of a log a detail has their form.
    let is_log = ["shim", "hub"].contains(&verbosity::component());
    match verbosity::is_verbose() && is_log && verbosity::is_log_json() {
        true => say_object(Level::Debug, words, None),
        false => say_at(Level::Debug, words),
    }
}

fn say_at(level: Level, words: &str) {
    if !verbosity::says(level) {
        return;
    }
    if verbosity::is_json() {
        return say_object(level, words, None);
    }
    let warning = if level == Level::Warn { "warning: " } else { "" };
    say_raw(&format!("{}: {warning}{}\n", called::name(), shown(words)));
}

/// Says something as one JSON object on a line.
fn say_object(level: Level, words: &str, hint: Option<&str>) {
    let component = verbosity::component();
    let line = LogLine { level, component, server_id: None, message: words, hint };
    say_raw(&format!("{}\n", line.json()));
}

/// Says a line as it is, for a log that has a form of its own. If whoever should read it does not, it
/// is lost: a client that does not read our log must not hold up its own calls.
pub(crate) fn line(text: &str) {
    let text = format!("{text}\n");
    for (at, piece) in text.as_bytes().chunks(SURE_BYTES).enumerate() {
        // The rest of a line that was begun is worth a moment.
        let patience = if at == 0 { Duration::ZERO } else { Duration::from_millis(20) };
        if !is_writable(patience) || std::io::stderr().write_all(piece).is_err() {
            return;
        }
    }
}

/// What a pipe surely takes once it is writable.
const SURE_BYTES: usize = 4096;

/// Whether standard error takes something now.
fn is_writable(patience: Duration) -> bool {
    let errors = rustix::stdio::stderr();
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    let polled = poll(&mut [PollFd::new(&errors, PollFlags::OUT)], Some(&timeout));
    polled.is_ok_and(|ready| ready > 0)
}

/// Says that a pipe is waited for, which has given nothing for a second.
pub(crate) fn waiting_for(pipe: &Path) {
    say(&format!("waiting for something to be written to {}", pipe.display()));
}

/// Says that something is amiss.
pub(crate) fn warn(words: &str) {
    say_at(Level::Warn, words);
}

/// Says which file is read, to whoever asked for details.
pub(crate) fn reading(path: &Path) {
    detail(&format!("reading {}", visible::path(path)));
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
    let (started, name) = (Instant::now(), visible::path(name));
    let watched =
        std::io::stderr().is_terminal() && !verbosity::is_quiet() && !verbosity::is_json();
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

/// Text without anything that a terminal would obey. What we say has several lines at times, so a line break stays,
/// unless it comes from our own command line, where it is part of a name.
pub(crate) fn shown(words: &str) -> String {
    let mut words = words.to_owned();
    for argument in std::env::args_os()
        .filter_map(|word| word.into_string().ok())
        .filter(|word| word.contains('\n'))
    {
        words = words.replace(&argument, &visible::inline(&argument, usize::MAX));
    }
    visible::lines(&words)
}

fn say_raw(text: &str) {
    // If standard error is gone, there is nobody left to tell.
    std::io::stderr().write_all(text.as_bytes()).ok();
}
