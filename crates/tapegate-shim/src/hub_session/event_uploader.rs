//! Uploads events to a hub whose activity log cannot be written from here.
//!
//! Events are first written to an outbox on this machine, like to any log, and are sent from there
//! in order, repeatedly until the hub has accepted them; the hub ignores duplicates. Shims of one
//! state folder share an outbox, and one of them sends for all. While the hub does not accept
//! events, production lets no call pass. When a session ends, the rest has a short time to arrive;
//! what remains is left in the outbox for the next shim.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tapegate_core::activity::EventLevel;
use tapegate_hub::api::{EventsRequest, upload_object};
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_store::activity::LoggedEvent;
use tapegate_store::outbox::{Outbox, OutboxSender};
use tapegate_store::user_state::PrivateDir;
use tokio::sync::Notify;

use crate::journal::{EventSink, ShippedLog};
use crate::message_log::MessageLog;
use crate::plan::ShimPlan;

/// How much is sent to the hub at once.
const EVENTS_MAX: usize = 256;
const BYTES_MAX: usize = 256 * 1024;
/// The first and the longest pause before the hub is tried again.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often to check for lines of other shims, and whether this shim should send.
const LOOK: Duration = Duration::from_millis(500);
/// How long to wait for the rest at the end, and how often to check.
const LAST: Duration = Duration::from_secs(2);
const LAST_LOOK: Duration = Duration::from_millis(10);

/// The folder of outboxes, in the private folder of the project.
const OUTBOXES: &str = "to-hub";
/// The outbox for hubs that do not identify their log.
const UNNAMED: &str = "hub";

/// A handle to wait for events to arrive.
pub(super) struct EventUploader {
    outbox: Arc<Outbox>,
    notify: Arc<Notify>,
    log: Arc<dyn MessageLog>,
}

/// Sends events to the hub.
struct UploadWorker {
    client: Arc<HubClient>,
    outbox: Arc<Outbox>,
    notify: Arc<Notify>,
    trouble: Arc<Mutex<Option<String>>>,
    log: Arc<dyn MessageLog>,
}

/// Sends events to the hub with this log, through the outbox of a state folder.
pub(super) fn start_upload(
    client: &Arc<HubClient>,
    plan: &ShimPlan,
    state: &Path,
    log_id: Option<&str>,
) -> Result<(EventSink, EventUploader), String> {
    let path = outbox_path(plan, state, log_id)?;
    let message = |error: &dyn std::fmt::Display| {
        format!("cannot store events for the hub in `{}`: {error}", path.display())
    };
    let outbox = Arc::new(Outbox::open(&path).map_err(|error| message(&error))?);
    let written = outbox.log().map_err(|error| message(&error))?;
    let (trouble, news) = (Arc::new(Mutex::new(None)), Arc::new(Notify::new()));
    let carrier = UploadWorker {
        client: Arc::clone(client),
        outbox: Arc::clone(&outbox),
        notify: Arc::clone(&news),
        trouble: Arc::clone(&trouble),
        log: Arc::clone(&plan.log),
    };
    tokio::spawn(carrier.run());
    let sink =
        EventSink::Shipped(Box::new(ShippedLog { log: written, trouble, notify: news.clone() }));
    Ok((sink, EventUploader { outbox, notify: news, log: Arc::clone(&plan.log) }))
}

fn outbox_path(plan: &ShimPlan, state: &Path, log_id: Option<&str>) -> Result<PathBuf, String> {
    let user_state = plan.user_state.as_ref().map_err(Clone::clone)?;
    let private = PrivateDir::open(user_state, state).map_err(|error| error.to_string())?;
    // The hub chooses the id, which becomes a folder name: it must not lead elsewhere.
    let name = log_id.filter(|id| tapegate_store::activity::is_log_id(id)).unwrap_or(UNNAMED);
    Ok(private.path().join(OUTBOXES).join(name))
}

impl EventUploader {
    /// Waits until everything that was written has arrived, up to a time limit.
    pub(super) async fn last(&self) {
        let began = Instant::now();
        // Other shims may go on writing.
        let Ok(end) = self.outbox.last_line_number() else { return };
        loop {
            let count = self.outbox.waiting_count(end);
            if count == 0 {
                return;
            }
            self.notify.notify_one();
            if began.elapsed() >= LAST {
                let path = self.outbox.path().display();
                let message = format!(
                    "{count} events could not be sent to the hub; they wait in `{path}` for the next shim"
                );
                return self.log.message(EventLevel::Warn, &message);
            }
            tokio::time::sleep(LAST_LOOK).await;
        }
    }
}

impl UploadWorker {
    async fn run(self) {
        loop {
            match self.outbox.sender() {
                Ok(Some(sender)) => self.upload(sender).await,
                // Another shim sends for this one too.
                Ok(None) => {}
                Err(error) => self.note_failure(Some(format!("events cannot be sent: {error}"))),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends current and new lines until the outbox cannot be read.
    async fn upload(&self, mut sender: OutboxSender) {
        loop {
            let lines = match sender.next_lines(EVENTS_MAX, BYTES_MAX) {
                Ok(lines) => lines,
                Err(error) => {
                    return self.note_failure(Some(format!("events cannot be sent: {error}")));
                }
            };
            if lines.is_empty() {
                // Other shims append to this outbox without notifying this process.
                tokio::time::timeout(LOOK, self.notify.notified()).await.ok();
                continue;
            }
            if let Err(error) = self.send_all(&mut sender, lines).await {
                return self.note_failure(Some(format!("events cannot be sent: {error}")));
            }
        }
    }

    /// Sends lines until the hub has accepted them. Lines that it rejects are reported and skipped.
    async fn send_all(
        &self,
        sender: &mut OutboxSender,
        lines: Vec<(u64, LoggedEvent)>,
    ) -> std::io::Result<()> {
        let mut rest = &lines[..];
        let mut count = rest.len();
        while !rest.is_empty() {
            count = count.min(rest.len());
            let (now, later) = rest.split_at(count);
            let last = now.last().map_or(0, |(seq, _)| *seq);
            match self.send(sender.id(), now).await {
                Ok(()) => {}
                Err(error) if count == 1 => {
                    let path = self.outbox.path().display();
                    let message = format!("the hub refuses line {last} of `{path}`: {error}");
                    self.log.message(EventLevel::Error, &message);
                }
                Err(_) => {
                    // One line that the hub rejects must not hold back the others of its batch.
                    count = 1;
                    continue;
                }
            }
            // After the hub has the lines: if we are killed in between, they are sent again, and
            // the hub drops them by their numbers.
            sender.confirm(last)?;
            rest = later;
        }
        Ok(())
    }

    /// Sends lines repeatedly until the hub accepts them or rejects them for good.
    async fn send(&self, from: &str, lines: &[(u64, LoggedEvent)]) -> Result<(), ClientError> {
        let events = lines.iter().map(|(seq, line)| upload_object(line, Some(*seq))).collect();
        let ends = [lines.first(), lines.last()].map(|line| line.map_or(0, |(seq, _)| *seq));
        // A hub of an earlier version recognizes duplicates by this name.
        let batch = Some(format!("{from}-{}-{}", ends[0], ends[1]));
        let letter = EventsRequest { batch, shipped_from: Some(from.to_owned()), events };
        let mut pause = AGAIN.0;
        loop {
            match self.client.events(&letter).await {
                Ok(_) => {
                    self.note_failure(None);
                    return Ok(());
                }
                // Sending the same lines again cannot help here; after any other error it may.
                Err(error @ ClientError::Status { status: 400 | 413 | 422, .. }) => {
                    return Err(error);
                }
                Err(error) => self.note_failure(Some(format!("events cannot be sent: {error}"))),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    /// Records trouble, or its end. The start of trouble is printed.
    fn note_failure(&self, message: Option<String>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(message), None) = (&message, &*trouble) {
            self.log.message(EventLevel::Error, message);
        }
        *trouble = message;
    }
}
