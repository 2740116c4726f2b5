//! Messages for the user, on standard error: standard output belongs to the protocol or to data.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tapegate_yaml::finding::{Finding, Severity};

use crate::logs::LogLine;
use crate::program_name;
use crate::verbosity::{self, VerbosityLevel};
use crate::views::palette::{ColorEnvironment, Palette};
use crate::views::visible_text;

/// Prints an error, and its hint after a blank line.
pub(crate) fn error(message_text: &str, hint: Option<&str>) {
    if verbosity::is_json() {
        return print_json(VerbosityLevel::Error, message_text, hint);
    }
    let hint = hint.map(|hint| format!("\nhint: {}\n", sanitize(hint))).unwrap_or_default();
    print_raw(&format!("error: {}\n{hint}", sanitize(message_text)));
}

/// Prints a hint for an error.
pub(crate) fn hint(message_text: &str) {
    if verbosity::is_json() {
        return print_json(VerbosityLevel::Error, "", Some(message_text));
    }
    print_raw(&format!("\nhint: {}\n", sanitize(message_text)));
}

/// Prints a suggestion for the next step, when nothing went wrong.
pub(crate) fn suggest(message_text: &str) {
    if verbosity::is_enabled(VerbosityLevel::Info) {
        match verbosity::is_json() {
            true => print_json(VerbosityLevel::Info, message_text, None),
            false => hint(message_text),
        }
    }
}

/// Prints an error in a command line, as formatted by clap.
pub(crate) fn usage_error(text: &str, hint: Option<&str>) {
    if verbosity::is_json() {
        let message_text = text.trim_end();
        return print_json(
            VerbosityLevel::Error,
            message_text.strip_prefix("error: ").unwrap_or(message_text),
            hint,
        );
    }
    print_raw(&sanitize(text));
    hint.into_iter().for_each(self::hint);
}

/// Prints an informational message.
pub(crate) fn info(message_text: &str) {
    print_at(VerbosityLevel::Info, message_text);
}

/// Prints a detail, with --verbose only.
pub(crate) fn detail(message_text: &str) {
    // Among the lines of a JSON log, a detail is JSON too.
    match verbosity::is_verbose() && verbosity::is_detail_json() {
        true => print_json(VerbosityLevel::Debug, message_text, None),
        false => print_at(VerbosityLevel::Debug, message_text),
    }
}

fn print_at(level: VerbosityLevel, message_text: &str) {
    if !verbosity::is_enabled(level) {
        return;
    }
    if verbosity::is_json() {
        return print_json(level, message_text, None);
    }
    let warning = if level == VerbosityLevel::Warn { "warning: " } else { "" };
    print_raw(&format!("{}: {warning}{}\n", program_name::name(), sanitize(message_text)));
}

/// Prints a message as one JSON object on a line.
fn print_json(level: VerbosityLevel, message_text: &str, hint: Option<&str>) {
    let component = verbosity::component();
    let line =
        LogLine { level, component, server_id: None, message: message_text, hint, fields: &[] };
    print_raw(&format!("{}\n", line.json()));
}

/// Prints a line that the log has already formatted. It is dropped if standard error is not being
/// read: a client that does not read our log must not block its own calls.
pub(crate) fn line(text: &str) {
    let text = format!("{text}\n");
    for (at, piece) in text.as_bytes().chunks(SURE_BYTES).enumerate() {
        // Once a line has been started, wait briefly to finish it.
        let patience = if at == 0 { Duration::ZERO } else { Duration::from_millis(20) };
        // Poll before each piece: standard error may be shared, so its flags are not changed.
        if !is_writable(patience) || std::io::stderr().write_all(piece).is_err() {
            return;
        }
    }
}

/// How many bytes a pipe takes without blocking once it is writable.
const SURE_BYTES: usize = 4096;

/// Whether standard error can take more within this time.
fn is_writable(patience: Duration) -> bool {
    let errors = rustix::stdio::stderr();
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    let polled = poll(&mut [PollFd::new(&errors, PollFlags::OUT)], Some(&timeout));
    polled.is_ok_and(|ready| ready > 0)
}

/// Reports that a pipe has delivered nothing for a second.
pub(crate) fn report_waiting(pipe: &Path) {
    info(&format!("waiting for data in {}", pipe.display()));
}

/// Prints a warning.
pub(crate) fn warn(message_text: &str) {
    print_at(VerbosityLevel::Warn, message_text);
}

/// Prints findings in YAML files, each with its position.
pub(crate) fn report_findings(findings: &[Finding], sources: &[String], main: &str) {
    for one in findings {
        let line = one.line(sources, main);
        match one.severity {
            Severity::Error => error(&line, None),
            Severity::Warning => warn(&line),
        }
    }
}

/// Prints which file is being read, with --verbose only.
pub(crate) fn report_reading(path: &Path) {
    detail(&format!("reading {}", visible_text::path(path)));
}

/// Whether messages on standard error may be in colour.
pub(crate) fn palette() -> Palette {
    palette_for(std::io::stderr().is_terminal())
}

/// Whether standard output may be in colour.
pub(crate) fn palette_of_output() -> Palette {
    palette_for(std::io::stdout().is_terminal())
}

/// Whether text that is written to the terminal itself may be in colour.
pub(crate) fn palette_of_terminal() -> Palette {
    palette_for(true)
}

fn palette_for(terminal: bool) -> Palette {
    let read = |name: &str| std::env::var(name).ok();
    let (no_color, force, term) = (read("NO_COLOR"), read("CLICOLOR_FORCE"), read("TERM"));
    Palette::decide(ColorEnvironment {
        terminal,
        no_color: no_color.as_deref(),
        clicolor_force: force.as_deref(),
        term: term.as_deref(),
    })
}

/// Shows the progress of reading `name`, if it takes longer than a second and standard error is a
/// terminal.
pub(crate) fn progress(name: &Path) -> Box<dyn FnMut(u64, u64)> {
    let (started, name) = (Instant::now(), visible_text::path(name));
    let watched =
        std::io::stderr().is_terminal() && !verbosity::is_quiet() && !verbosity::is_json();
    let mut shown = 0;
    Box::new(move |done, total| {
        let percent = done * 100 / total.max(1);
        if !watched || percent == shown || started.elapsed() < Duration::from_secs(1) {
            return;
        }
        shown = percent;
        // Clear the line when everything is read.
        let line =
            if done < total { format!("\r{name}: {percent}%") } else { "\r\x1b[K".to_owned() };
        print_raw(&line);
    })
}

/// Escapes anything a terminal would interpret. Our messages may have several lines, so line breaks
/// are kept unless they come from our own command line, where they are part of a name.
pub(crate) fn sanitize(message_text: &str) -> String {
    let mut message_text = message_text.to_owned();
    for argument in std::env::args_os()
        .filter_map(|word| word.into_string().ok())
        .filter(|word| word.contains('\n'))
    {
        message_text =
            message_text.replace(&argument, &visible_text::inline(&argument, usize::MAX));
    }
    visible_text::lines(&message_text)
}

fn print_raw(text: &str) {
    // If standard error is gone, the message is lost.
    std::io::stderr().write_all(text.as_bytes()).ok();
}
