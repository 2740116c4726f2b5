//! Asks for approval through the approvals folder, and passes decisions on to the wire.
//!
//! The request file is written before the call is held, so that no call waits for a request that
//! was never made. The folder is read whenever it changes. Identical calls share one request: its
//! approval sends the newest of them, once. If no caller waits any more, the approval lets the same
//! call pass once later.

mod asking;
mod settling;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapegate_core::gate::{Settlement, Ticket};
use tapegate_policy::redact::Key;
use tapegate_policy::refuse::Subject;
use tapegate_policy::warden::Reins;
use tapegate_store::Watcher;
use tapegate_store::activity::Event;
use tapegate_store::approvals::{Approvals, Request};
use tapegate_wire::clock::Clock;
use tapegate_wire::port::Port;
use tokio::io::Interest;
use tokio::sync::{Notify, mpsc};

use super::journal::Journal;
use crate::settings::user_state::user_state_dir;
use crate::state::log_event;

/// How long requests are kept after they can no longer be decided.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often the folder is searched for unmasked values that must be removed.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// How many decisions may be queued; more than the relay ever holds calls.
pub(super) const SETTLEMENTS_MAX: usize = 128;

/// The channel that decisions are sent to.
pub(super) type Settle = mpsc::Sender<(Ticket, Settlement)>;

/// Approvals through files in a folder. Clones share the same state.
#[derive(Clone)]
pub(super) struct Desk(Arc<Inner>);

struct Inner {
    /// The state folder, which holds the activity log.
    state: PathBuf,
    /// The approvals folder, or why it cannot be used.
    approvals: Result<Approvals, String>,
    open: Mutex<HashMap<Ticket, Open>>,
    settle: Settle,
    journal: Journal,
    reins: Reins,
    key: Key,
    connection_id: String,
    folder: String,
    policy: String,
    clock: Clock,
    /// Wakes the task that watches for decisions.
    news: Notify,
}

/// A call that waits for a decision. Several calls may wait for the same one.
#[derive(Clone)]
struct Open {
    /// The request as this process made it: the file may have been changed since.
    request: Request,
    subject: Subject,
    method: String,
}

/// What is needed to open the approvals.
pub(super) struct Begin {
    pub(super) settle: Settle,
    pub(super) journal: Journal,
    pub(super) reins: Reins,
    pub(super) key: Key,
    pub(super) connection_id: String,
    /// The folder that the session works in.
    pub(super) folder: String,
    /// The policy's file.
    pub(super) policy: String,
    pub(super) clock: Clock,
}

impl Desk {
    /// Opens the approvals of the project with this state folder. If they cannot be opened, calls
    /// that need approval are refused.
    pub(super) fn open(state: &Path, begin: Begin) -> Self {
        let approvals = user_state_dir().map_err(|failure| failure.words).and_then(|user_state| {
            Approvals::of_project(&user_state, state).map_err(|error| error.to_string())
        });
        if let Ok(approvals) = &approvals {
            // Failures are ignored: the next cleanup removes what is left.
            let now_us = begin.clock.now().wall_us;
            approvals.remove_left_over();
            approvals.clean_hourly(now_us, KEPT).ok();
            approvals.forget_stale_unmasked(now_us).ok();
        }
        let Begin { settle, journal, reins, key, connection_id, folder, policy, clock } = begin;
        let state = state.to_owned();
        let desk = Self(Arc::new(Inner {
            state,
            approvals,
            open: Mutex::default(),
            settle,
            journal,
            reins,
            key,
            connection_id,
            folder,
            policy,
            clock,
            news: Notify::new(),
        }));
        desk.0.log_unlogged();
        desk
    }

    /// Watches for decisions; never returns.
    pub(super) async fn watch(&self) {
        let Ok(approvals) = &self.0.approvals else { return std::future::pending().await };
        let watcher = approvals.watch();
        let told = watcher.handle().and_then(|fd| fd.try_clone_to_owned().ok());
        let told = told.and_then(|fd| Port::own(fd, Interest::READABLE).ok());
        loop {
            self.look(approvals);
            if self.0.open().is_empty() {
                // No call is waiting; read the folder again when one is.
                self.0.news.notified().await;
                continue;
            }
            changed(&watcher, told.as_ref()).await;
        }
    }

    /// Removes the unmasked values of expired requests for as long as the session lasts. Their
    /// callers may be gone without having cancelled them.
    pub(super) async fn forget_stale(&self) {
        let Ok(approvals) = &self.0.approvals else { return };
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            // Failures are ignored: the next cleanup removes what is left.
            approvals.forget_stale_unmasked(self.0.clock.now().wall_us).ok();
            self.0.log_unlogged();
        }
    }
}

impl Inner {
    fn open(&self) -> MutexGuard<'_, HashMap<Ticket, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, ticket: Ticket, settlement: Settlement) {
        if let Settlement::Refused(_) = &settlement {
            self.journal.forget(ticket);
        }
        // The channel has room for more than are ever held; if the wire is gone, no caller waits.
        self.settle.try_send((ticket, settlement)).ok();
    }

    /// Logs decisions of deciders that were killed before they could log them.
    fn log_unlogged(&self) {
        let Ok(approvals) = &self.approvals else { return };
        approvals.log_unlogged(&self.state, |request, decided| {
            let extra = "\"recovered\":true".into();
            let event = Event { component: "shim", extra, ..Event::settled(request, decided) };
            log_event(&self.state, &event).is_ok()
        });
    }

    /// Logs every approval file that was set aside.
    fn report_refused(&self, approvals: &Approvals) {
        for file in approvals.take_refused() {
            self.journal.keep(Event::refused(&file, self.clock.now().wall_us));
        }
    }
}

/// Waits until the folder may have changed.
async fn changed(watcher: &Watcher, told: Option<&Port>) {
    let mut news = [0; 4096];
    match (told, watcher.pause()) {
        (Some(told), None) if told.read(&mut news).await.is_ok_and(|bytes| bytes > 0) => {}
        (_, pause) => tokio::time::sleep(pause.unwrap_or(FALLBACK)).await,
    }
}

/// How often the folder is read if the system does not report changes.
const FALLBACK: Duration = Duration::from_millis(200);
