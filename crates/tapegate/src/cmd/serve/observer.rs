//! Receives the events of a running scenario: for the log, for an events file, and for the judge.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use tapegate_core::actor::ActorSessionId;
use tapegate_core::json::compact;
use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};
use tapegate_scenario::engine::EngineNote;
use tapegate_scenario::expect::{ExpectationJudge, ExpectationReport};
use tapegate_scenario::model::{LogLevel, LogOutput, LogSettings};

use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::views::json::JsonWriter;
use crate::views::visible_text;

/// How many characters of a message are printed.
const WORDS_MAX: usize = 1000;

/// Receives events and passes them to the log, the events file and the judge.
pub(super) struct ServeObserver {
    judge: Option<RefCell<ExpectationJudge>>,
    events: Option<RefCell<EventFile>>,
    log: RefCell<ServeLog>,
}

/// Where log messages go, and how many of them.
struct ServeLog {
    logging: LogSettings,
    verbose: bool,
    quiet: bool,
    file: Option<File>,
}

/// An events file, with one event per line, written immediately.
struct EventFile {
    file: File,
    number: u64,
    failed: bool,
}

impl ServeObserver {
    /// An observer that logs as `logging` says.
    pub(super) fn new(
        judge: Option<ExpectationJudge>,
        events: Option<&Path>,
        logging: &LogSettings,
        (verbose, quiet): (bool, bool),
    ) -> Result<Self, Failure> {
        let events = events.map(create).transpose()?;
        let events = events.map(|file| RefCell::new(EventFile { file, number: 0, failed: false }));
        let file = match &logging.output {
            LogOutput::File(path) => Some(append(Path::new(path))?),
            LogOutput::Stderr | LogOutput::Stdout => None,
        };
        let log = RefCell::new(ServeLog { logging: logging.clone(), verbose, quiet, file });
        Ok(Self { judge: judge.map(RefCell::new), events, log })
    }

    /// Handles an event.
    pub(super) fn observe(&self, at: Timestamp, session: ActorSessionId, note: &EngineNote<'_>) {
        if let Some(judge) = &self.judge {
            match note {
                EngineNote::Said { bytes, phase } => {
                    judge.borrow_mut().receive_line(at, session, bytes, phase)
                }
                EngineNote::Asked { id, method } => {
                    judge.borrow_mut().note_client_request(session, id, method)
                }
                // A message that was not read may have broken an expectation.
                EngineNote::Unread => self.note_oversize(1),
                _ => {}
            }
        }
        if let Some(events) = &self.events {
            // After the judge, so that a full disk cannot cost a verdict.
            events.borrow_mut().add(at, session, note);
        }
        self.log.borrow_mut().log_note(session, note);
    }

    /// Changes the log settings from now on, except the output.
    pub(super) fn set_logging(&self, logging: &LogSettings) {
        let mut log = self.log.borrow_mut();
        // The output was checked and opened at the start, and stays.
        let output = log.logging.output.clone();
        log.logging = LogSettings { output, ..logging.clone() };
    }

    /// Notes that client messages were too large to be read.
    pub(super) fn note_oversize(&self, messages: u64) {
        if let Some(judge) = &self.judge {
            judge.borrow_mut().note_oversize(messages);
        }
    }

    /// The verdict on the expectations, if they are judged.
    pub(super) fn verdict(&self) -> Option<ExpectationReport> {
        self.judge.as_ref().map(|judge| judge.borrow().verdict())
    }
}

impl ServeLog {
    fn log_note(&mut self, session: ActorSessionId, note: &EngineNote<'_>) {
        let LogSettings { level, on_phase_change, on_trigger_match, .. } = self.logging;
        let wanted = |wanted: LogLevel| self.verbose || wanted >= level;
        let message = match note {
            EngineNote::Log { level, message: words } if wanted(*level) => (*words).to_owned(),
            EngineNote::Phase { from, to, reason: why }
                if self.verbose || on_phase_change || on_trigger_match =>
            {
                let change = format!("session {}: phase `{from}` ended, `{to}` begins", session.0);
                if on_trigger_match || self.verbose { format!("{change} ({why})") } else { change }
            }
            EngineNote::Effect { name, left_out: Some(reason) } if wanted(LogLevel::Warn) => {
                format!("session {}: skipped side effect {name}: {reason}", session.0)
            }
            EngineNote::Effect { name, left_out: None } if self.verbose => {
                format!("session {}: side effect {name} begins", session.0)
            }
            EngineNote::Asked { method, .. } if self.verbose => {
                format!("session {}: the client is asked by {method}", session.0)
            }
            _ => return,
        };
        // These texts may come from clients and scenarios, so escape them.
        self.log_message(&visible_text::inline(&message, WORDS_MAX));
    }

    fn log_message(&mut self, message: &str) {
        match (&mut self.file, &self.logging.output) {
            // A failed write to the log does not end the session.
            (Some(file), _) => drop(writeln!(file, "{message}")),
            (None, LogOutput::Stdout) => drop(writeln!(std::io::stdout(), "{message}")),
            (None, _) if !self.quiet => terminal_output::info(message),
            (None, _) => {}
        }
    }
}

impl EventFile {
    fn add(&mut self, at: Timestamp, session: ActorSessionId, note: &EngineNote<'_>) {
        self.number += 1;
        let mut time = Vec::new();
        write_rfc3339(&mut time, at.wall_us, SubSecond::Millis);
        let object = JsonWriter::object(|json| {
            json.number("number", self.number);
            json.text("at", &String::from_utf8_lossy(&time));
            json.number("session", u64::from(session.0));
            describe(json, note);
        });
        let line = [&compact(&object)[..], b"\n"].concat();
        // The session goes on: its client is not responsible for the disk.
        if self.file.write_all(&line).is_err() {
            self.report_lost();
        }
    }

    /// Warns once that events are lost. The session goes on without them.
    fn report_lost(&mut self) {
        if !std::mem::replace(&mut self.failed, true) {
            terminal_output::warn("cannot write to the events file any more");
        }
    }
}

fn describe(json: &mut JsonWriter, note: &EngineNote<'_>) {
    match note {
        EngineNote::Said { bytes, phase } => {
            json.text("event", "said");
            json.text("phase", phase);
            json.raw("message", bytes);
        }
        EngineNote::Unread => json.text("event", "unread"),
        EngineNote::Phase { from, to, reason } => {
            json.text("event", "phase");
            json.text("from", from);
            json.text("to", to);
            json.text("why", reason);
        }
        EngineNote::Log { level, message: words } => {
            json.text("event", "log");
            json.text("level", level_word(*level));
            json.text("words", words);
        }
        EngineNote::Effect { name, left_out } => {
            json.text("event", "effect");
            json.text("name", name);
            left_out.iter().for_each(|reason| json.text("left_out", reason));
        }
        EngineNote::Asked { id, method } => {
            json.text("event", "asked");
            json.raw("id", id);
            json.text("method", method);
        }
    }
}

fn level_word(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

/// Opens a file named in a scenario for appending.
fn append(path: &Path) -> Result<File, Failure> {
    let mut options = File::options();
    options.append(true).create(true).open(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Io, format!("cannot write `{}`: {error}", path.display()))
}
