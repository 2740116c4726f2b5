//! Follows the activity log and counts what is written there, by any process.
//!
//! Shims decide and log by themselves. Their decisions are counted from the log, unless a connection
//! reports its own totals with its heartbeats.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::value::RawValue;
use tapegate_core::activity::ActivityEvent;
use tapegate_store::activity::{CURRENT, LoggedEvent, ShippedPositions, is_log_id};

use super::Hub;
use super::response::ApiRefusal;
use crate::api::{
    EventsAnswer, EventsRequest, GovernanceEvaluateRequest, GovernanceEvaluateResponse,
    UploadedEvent,
};
use crate::metrics::MetricName;

/// How often the log is checked.
const EVERY: Duration = Duration::from_millis(500);
/// The most to read at once; more than the longest line.
const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// How many event batches are remembered.
const BATCHES_MAX: usize = 1024;

/// A log that is being followed.
pub(super) struct LogCounter {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
    /// Connections that report their own totals with heartbeats.
    pub(super) counting: BTreeSet<String>,
}

impl LogCounter {
    /// Follows the log of a state folder from its current end.
    pub(super) fn new(state: &Path) -> Self {
        let path = state.join(CURRENT);
        // From the end: lines of earlier runs were counted by an earlier hub.
        let mut file = open(&path);
        if let Some(file) = &mut file {
            // If seeking fails, old lines are counted too.
            file.seek(SeekFrom::End(0)).ok();
        }
        Self { path, file, rest: Vec::new(), counting: BTreeSet::new() }
    }

    /// The lines written since the last call.
    fn lines(&mut self) -> Vec<LoggedEvent> {
        let mut lines = Vec::new();
        self.read(&mut lines);
        let number = |file: &File| file.metadata().ok().map(|data| (data.dev(), data.ino()));
        let there = open(&self.path);
        let same = self.file.as_ref().and_then(number) == there.as_ref().and_then(number);
        if !same {
            // The log was rotated: read the rest of the old file before the new one.
            self.read(&mut lines);
            (self.file, self.rest) = (there, Vec::new());
            self.read(&mut lines);
        }
        lines
    }

    fn read(&mut self, lines: &mut Vec<LoggedEvent>) {
        let Some(file) = &mut self.file else { return };
        while matches!(file.take(READ_BYTES_MAX).read_to_end(&mut self.rest), Ok(1..)) {
            let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let whole = self.rest[..end].split(|byte| *byte == b'\n');
            lines.extend(whole.filter_map(|line| LoggedEvent::read(0, line).ok()));
            self.rest.drain(..end);
            // A line this long is not an event, and its remains are not either.
            if self.rest.len() as u64 > READ_BYTES_MAX {
                self.rest.clear();
            }
        }
    }
}

impl Hub {
    /// Counts what is written to the log. Never returns.
    pub(super) async fn follow_log(&self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.count_new_lines();
        }
    }

    /// Counts what has been written to the log since the last call.
    pub(super) fn count_new_lines(&self) {
        let lines = self.follow.borrow_mut().lines();
        let exporter = self.exporter.borrow().clone();
        for line in &lines {
            self.tally.borrow_mut().note_line(line);
            self.count_line(line);
            if let Some(exporter) = &exporter {
                exporter.add_line(line);
            }
        }
    }

    /// Logs events of a shim, all or none, and only once even if they are resent.
    pub(super) fn events(&self, sent: EventsRequest) -> Result<EventsAnswer, ApiRefusal> {
        if let Some(from) = sent.shipped_from {
            return self.import_lines(&from, &sent.events);
        }
        if sent.batch.as_ref().is_some_and(|name| self.batches.borrow().contains(name)) {
            return Ok(EventsAnswer { written: sent.events.len() });
        }
        let events = read_all(&sent.events)?.into_iter().map(|sent| sent.event);
        let events: Vec<ActivityEvent<'_>> = events.collect();
        self.journal.write(&events).map_err(|reason| self.log_write_refusal(&reason))?;
        if let Some(name) = sent.batch {
            let mut batches = self.batches.borrow_mut();
            batches.push_back(name);
            if batches.len() > BATCHES_MAX {
                batches.pop_front();
            }
        }
        Ok(EventsAnswer { written: events.len() })
    }

    /// Logs lines of another log, all or none, each once. The lines carry their origin, so
    /// duplicates are recognised even after a crash.
    fn import_lines(&self, from: &str, sent: &[Box<RawValue>]) -> Result<EventsAnswer, ApiRefusal> {
        if !is_log_id(from) {
            return Err(ApiRefusal::bad_request("`shipped_from` must be the name of a log"));
        }
        let written = sent.len();
        let sent = read_all(sent)?;
        let numbers: Option<Vec<u64>> = sent.iter().map(|line| line.shipped_seq).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.is_sorted_by(|one, two| one < two))
        else {
            let message = "`shipped_seq` must be in every event, and must increase";
            return Err(ApiRefusal::bad_request(message));
        };
        // Numbers up to this one are in the log, even if an earlier answer was lost.
        let last = self.shipped.borrow().last(from);
        let is_new = |seq: &u64| *seq > last;
        let events = sent.into_iter().zip(&numbers).filter(|(_, seq)| is_new(seq));
        let with_origin = |(sent, seq): (UploadedEvent, &u64)| {
            (sent.event, ShippedPositions::members(from, *seq))
        };
        let events: Vec<(ActivityEvent<'_>, String)> = events.map(with_origin).collect();
        if let Some(end) = numbers.last().filter(|seq| is_new(seq)) {
            let head = self
                .journal
                .import_events(&events)
                .map_err(|reason| self.log_write_refusal(&reason))?;
            // After the lines are in the log. If the hub is killed in between, the next start finds
            // their numbers there.
            self.shipped.borrow_mut().note_imported(from, *end, head);
        }
        Ok(EventsAnswer { written })
    }

    fn log_write_refusal(&self, reason: &str) -> ApiRefusal {
        (self.options.notice)(super::NoticeLevel::Error, reason);
        ApiRefusal::new(http::StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
    }

    /// Counts a request to the hub itself.
    pub(super) fn count_evaluation(
        &self,
        request: &GovernanceEvaluateRequest,
        answer: &GovernanceEvaluateResponse,
        latency_ns: u64,
    ) {
        let mut metrics = self.metrics.borrow_mut();
        let (direction, method) = (request.direction.name(), request.method.as_str());
        let bytes = request.params.as_ref().map_or(0, |params| params.get().len());
        metrics.observe(MetricName::RequestPayloadSizeBytes, &[direction, method], bytes as f64);
        let key = request.connection_id.as_deref().unwrap_or_default();
        // Its heartbeats report this message too.
        if !self.follow.borrow().counting.contains(key) {
            let labels = [request.server_id.as_str(), direction, method];
            metrics.count(MetricName::StdioMessages, &labels);
        }
        if answer.gate.as_deref() == Some("policy") {
            let allowed = answer.error.is_none() && answer.would.is_none();
            let word = if allowed { "allow" } else { "deny" };
            metrics.observe(
                MetricName::CedarEvaluationDurationMs,
                &[word],
                latency_ns as f64 / 1e6,
            );
        }
    }

    fn count_line(&self, line: &LoggedEvent) {
        let text = |key| line.str(key).unwrap_or_default();
        let (kind, word) = (text("kind"), text("governance_decision"));
        let held = word == "pending_approval";
        if word.is_empty() || !(kind == "decision" || kind == "framing" || held) {
            return;
        }
        let (server, gate) = (text("server_id"), text("gate"));
        let (method, tool) = (text("method"), text("tool"));
        let counts_itself = self.follow.borrow().counting.contains(&*text("connection_id"));
        let mut metrics = self.metrics.borrow_mut();
        metrics.count(MetricName::Decisions, &[&gate, &word]);
        if !counts_itself {
            let labels = [&*server, &*word, &*text("profile")];
            metrics.count(MetricName::StdioGovernanceDecisions, &labels);
        }
        if kind == "framing" {
            for fault in texts(line, "faults") {
                metrics.count(MetricName::Errors, &[&fault, &method]);
                if !counts_itself {
                    let labels = [&*server, &*fault];
                    metrics.count(MetricName::StdioFramingErrors, &labels);
                }
            }
            return;
        }
        metrics.count(MetricName::Requests, &[&method, &tool, &word]);
        if let Some(latency_us) = line.number("latency_us") {
            metrics.observe(
                MetricName::RequestDurationMs,
                &[&method, &tool],
                latency_us as f64 / 1e3,
            );
        }
        if line.raw("rule").is_some() {
            metrics.count(MetricName::RuleMatches, &[&word]);
        }
        let allowed = if gate == "policy" && word != "forward" { "deny" } else { "allow" };
        for policy in texts(line, "policies") {
            metrics.count(MetricName::CedarEvaluations, &[allowed, &policy]);
        }
    }
}

/// Reads events that were sent, all or none.
fn read_all(sent: &[Box<RawValue>]) -> Result<Vec<UploadedEvent>, ApiRefusal> {
    let read = sent.iter().enumerate().map(|(place, object)| {
        let message = |error| ApiRefusal::bad_request(&format!("events[{place}]: {error}"));
        UploadedEvent::read(object).map_err(message)
    });
    read.collect()
}

/// The strings of a list in a line.
fn texts(line: &LoggedEvent, key: &str) -> Vec<String> {
    let list = line.raw(key).and_then(|list| serde_json::from_slice(list).ok());
    list.unwrap_or_default()
}

fn open(path: &Path) -> Option<File> {
    let no_link = OFlags::NOFOLLOW.bits() as i32;
    std::fs::OpenOptions::new().read(true).custom_flags(no_link).open(path).ok()
}
