//! Receives the events of a running scenario: for the log, for an events file, and for the judge.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use tapegate_core::actor::Seat;
use tapegate_core::json::compact;
use tapegate_core::time::{At, SubSecond, write_rfc3339};
use tapegate_scenario::engine::Note;
use tapegate_scenario::expect::{Judge, Verdict};
use tapegate_scenario::model::{LogLevel, LogOutput, Logging};

use crate::exit::{Exit, Failure};
use crate::talk;
use crate::views::json::Writer;
use crate::views::visible;

/// How many characters of a message are printed.
const WORDS_MAX: usize = 1000;

/// Receives events and passes them to the log, the events file and the judge.
pub(super) struct Observer {
    judge: Option<RefCell<Judge>>,
    events: Option<RefCell<Events>>,
    log: RefCell<Log>,
}

/// Where log messages go, and how many of them.
struct Log {
    logging: Logging,
    verbose: bool,
    quiet: bool,
    file: Option<File>,
}

/// An events file, with one event per line, written immediately.
struct Events {
    file: File,
    number: u64,
    failed: bool,
}

impl Observer {
    /// An observer that logs as `logging` says.
    pub(super) fn new(
        judge: Option<Judge>,
        events: Option<&Path>,
        logging: &Logging,
        (verbose, quiet): (bool, bool),
    ) -> Result<Self, Failure> {
        let events = events.map(create).transpose()?;
        let events = events.map(|file| RefCell::new(Events { file, number: 0, failed: false }));
        let file = match &logging.output {
            LogOutput::File(path) => Some(append(Path::new(path))?),
            LogOutput::Stderr | LogOutput::Stdout => None,
        };
        let log = RefCell::new(Log { logging: logging.clone(), verbose, quiet, file });
        Ok(Self { judge: judge.map(RefCell::new), events, log })
    }

    /// Handles an event.
    pub(super) fn note(&self, at: At, seat: Seat, note: &Note<'_>) {
        if let Some(judge) = &self.judge {
            match note {
                Note::Said { bytes, phase } => judge.borrow_mut().hear(at, seat, bytes, phase),
                Note::Asked { id, method } => judge.borrow_mut().asked(seat, id, method),
                Note::Unread => self.missed(1),
                _ => {}
            }
        }
        if let Some(events) = &self.events {
            events.borrow_mut().add(at, seat, note);
        }
        self.log.borrow_mut().note(seat, note);
    }

    /// Changes the log settings from now on, except the output.
    pub(super) fn relog(&self, logging: &Logging) {
        let mut log = self.log.borrow_mut();
        let output = log.logging.output.clone();
        log.logging = Logging { output, ..logging.clone() };
    }

    /// Notes that client messages were too large to be read.
    pub(super) fn missed(&self, messages: u64) {
        if let Some(judge) = &self.judge {
            judge.borrow_mut().missed(messages);
        }
    }

    /// The verdict on the expectations, if they are judged.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.judge.as_ref().map(|judge| judge.borrow().verdict())
    }
}

impl Log {
    fn note(&mut self, seat: Seat, note: &Note<'_>) {
        let Logging { level, on_phase_change, on_trigger_match, .. } = self.logging;
        let wanted = |wanted: LogLevel| self.verbose || wanted >= level;
        let words = match note {
            Note::Log { level, words } if wanted(*level) => (*words).to_owned(),
            Note::Phase { from, to, why }
                if self.verbose || on_phase_change || on_trigger_match =>
            {
                let change = format!("session {}: phase `{from}` ended, `{to}` begins", seat.0);
                if on_trigger_match || self.verbose { format!("{change} ({why})") } else { change }
            }
            Note::Effect { name, left_out: Some(why) } if wanted(LogLevel::Warn) => {
                format!("session {}: skipped side effect {name}: {why}", seat.0)
            }
            Note::Effect { name, left_out: None } if self.verbose => {
                format!("session {}: side effect {name} begins", seat.0)
            }
            Note::Asked { method, .. } if self.verbose => {
                format!("session {}: the client is asked by {method}", seat.0)
            }
            _ => return,
        };
        // These texts may come from clients and scenarios, so escape them.
        self.say(&visible::inline(&words, WORDS_MAX));
    }

    fn say(&mut self, words: &str) {
        match (&mut self.file, &self.logging.output) {
            // A failed write to the log does not end the session.
            (Some(file), _) => drop(writeln!(file, "{words}")),
            (None, LogOutput::Stdout) => drop(writeln!(std::io::stdout(), "{words}")),
            (None, _) if !self.quiet => talk::say(words),
            (None, _) => {}
        }
    }
}

impl Events {
    fn add(&mut self, at: At, seat: Seat, note: &Note<'_>) {
        self.number += 1;
        let mut time = Vec::new();
        write_rfc3339(&mut time, at.wall_us, SubSecond::Millis);
        let object = Writer::object(|json| {
            json.number("number", self.number);
            json.text("at", &String::from_utf8_lossy(&time));
            json.number("session", u64::from(seat.0));
            describe(json, note);
        });
        let line = [&compact(&object)[..], b"\n"].concat();
        if self.file.write_all(&line).is_err() {
            self.fail();
        }
    }

    /// Warns once that events are lost. The session goes on without them.
    fn fail(&mut self) {
        if !std::mem::replace(&mut self.failed, true) {
            talk::warn("cannot write to the events file any more");
        }
    }
}

fn describe(json: &mut Writer, note: &Note<'_>) {
    match note {
        Note::Said { bytes, phase } => {
            json.text("event", "said");
            json.text("phase", phase);
            json.raw("message", bytes);
        }
        Note::Unread => json.text("event", "unread"),
        Note::Phase { from, to, why } => {
            json.text("event", "phase");
            json.text("from", from);
            json.text("to", to);
            json.text("why", why);
        }
        Note::Log { level, words } => {
            json.text("event", "log");
            json.text("level", level_word(*level));
            json.text("words", words);
        }
        Note::Effect { name, left_out } => {
            json.text("event", "effect");
            json.text("name", name);
            left_out.iter().for_each(|why| json.text("left_out", why));
        }
        Note::Asked { id, method } => {
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
