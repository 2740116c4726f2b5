//! Prints on standard error what the wire and the hub report about their work (`tracing` events).
//!
//! All of these events have the levels `debug` and `trace`. Unless one of them was chosen, nothing is
//! installed, and an event costs one comparison.

use std::fmt::{self, Write};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::logs::{LogLine, timestamp};
use crate::program_name;
use crate::terminal_output;
use crate::verbosity::{self, VerbosityLevel};

/// Prints every event up to a level.
struct EventPrinter {
    least: LevelFilter,
}

/// The message of an event, and its fields in order.
#[derive(Default)]
struct EventFields {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

/// Starts printing events, if the chosen level includes any.
pub(crate) fn install(chosen: Option<VerbosityLevel>) {
    let least = match chosen {
        Some(VerbosityLevel::Debug) => LevelFilter::DEBUG,
        Some(VerbosityLevel::Trace) => LevelFilter::TRACE,
        _ => return,
    };
    // Fails only if it is installed already.
    tracing::subscriber::set_global_default(EventPrinter { least }).ok();
}

impl Subscriber for EventPrinter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries may report too, and know nothing of what must not be shown.
        !metadata.is_span()
            && *metadata.level() <= self.least
            && metadata.target().starts_with("tapegate")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.least)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let level = match *metadata.level() {
            Level::TRACE => VerbosityLevel::Trace,
            _ => VerbosityLevel::Debug,
        };
        let target = metadata.target().trim_start_matches("tapegate_");
        terminal_output::line(&match verbosity::is_detail_json() {
            true => fields.json(level, target),
            false => terminal_output::sanitize(&fields.text(level, target)),
        });
    }

    // There are no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl EventFields {
    fn json(mut self, level: VerbosityLevel, target: &str) -> String {
        self.fields.insert(0, ("target", target.into()));
        let (component, message) = (verbosity::component(), self.message.as_str());
        let (server_id, hint, fields) = (None, None, self.fields.as_slice());
        LogLine { level, component, server_id, message, hint, fields }.json()
    }

    fn text(&self, level: VerbosityLevel, target: &str) -> String {
        // The server writes to the same standard error, so our name comes first.
        let (name, time, level) = (program_name::name(), timestamp(), level.name());
        let mut text = format!("{name}: {time} {level} {target}: {}", self.message);
        for (field, value) in &self.fields {
            // Writing to a `String` cannot fail.
            let _ = match value {
                Value::String(word) if is_plain(word) => write!(text, " {field}={word}"),
                Value::String(words) => write!(text, " {field}={words:?}"),
                value => write!(text, " {field}={value}"),
            };
        }
        text
    }

    fn add(&mut self, field: &Field, value: Value) {
        self.fields.push((field.name(), value));
    }
}

/// Whether a value can stand without quotes.
fn is_plain(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:*[]".contains(&byte);
    !word.is_empty() && word.bytes().all(plain)
}

impl Visit for EventFields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            _ => self.add(field, format!("{value:?}").into()),
        }
    }
}
