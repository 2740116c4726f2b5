//! Asks people through the approvals folder, and tells the wire what they have decided.
//!
//! The request is a file before the call waits, so that no call waits for a question that was never
//! asked. The folder is looked at whenever it changes. Identical calls share one request: its
//! approval sends the newest of them, once. If no caller waits any more, it lets the same call pass
//! once later.

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

/// How long requests are kept after they could no longer be decided about.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often the folder is looked through for what must not be kept any longer.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// How many decisions may be on their way; more than the relay ever holds.
pub(super) const SETTLEMENTS_MAX: usize = 128;

/// Where decisions go.
pub(super) type Settle = mpsc::Sender<(Ticket, Settlement)>;

/// The desk at which people are asked. Clones are the same desk.
#[derive(Clone)]
pub(super) struct Desk(Arc<Inner>);

struct Inner {
    /// The folder with the activity log.
    state: PathBuf,
    /// The folder, or why there is none.
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
    /// Wakes whoever looks for decisions.
    news: Notify,
}

/// A call that waits for a decision. Several may wait for the same.
#[derive(Clone)]
struct Open {
    /// What was asked, as this process asked it: the file could have been changed since.
    request: Request,
    subject: Subject,
    method: String,
}

/// What a desk begins with.
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
    /// A desk over the approvals of the project with this state folder. If there can be none,
    /// whoever asks is refused.
    pub(super) fn open(state: &Path, begin: Begin) -> Self {
        let approvals = user_state_dir().map_err(|failure| failure.words).and_then(|user_state| {
            Approvals::of_project(&user_state, state).map_err(|error| error.to_string())
        });
        if let Ok(approvals) = &approvals {
            // What cannot be removed now is found again later.
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

    /// Looks for decisions for ever.
    pub(super) async fn watch(&self) {
        let Ok(approvals) = &self.0.approvals else { return std::future::pending().await };
        let watcher = approvals.watch();
        let told = watcher.handle().and_then(|fd| fd.try_clone_to_owned().ok());
        let told = told.and_then(|fd| Port::own(fd, Interest::READABLE).ok());
        loop {
            self.look(approvals);
            if self.0.open().is_empty() {
                // Nothing is waited for; the folder is looked at again when something is.
                self.0.news.notified().await;
                continue;
            }
            changed(&watcher, told.as_ref()).await;
        }
    }

    /// Removes, as long as the session lasts, what is kept unmasked of requests that have expired. Their
    /// callers may be gone without a word.
    pub(super) async fn forget_stale(&self) {
        let Ok(approvals) = &self.0.approvals else { return };
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            // What cannot be removed now is found again later.
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
        // There is room for more than are ever held; and if the wire is gone, nobody waits.
        self.settle.try_send((ticket, settlement)).ok();
    }

    /// Writes down decisions whose deciders were killed before they did.
    fn log_unlogged(&self) {
        let Ok(approvals) = &self.approvals else { return };
        approvals.log_unlogged(&self.state, |request, decided| {
            let extra = "\"recovered\":true".into();
            let event = Event { component: "shim", extra, ..Event::settled(request, decided) };
            log_event(&self.state, &event).is_ok()
        });
    }

    /// Writes down every approval file that was set aside.
    fn report_refused(&self, approvals: &Approvals) {
        for file in approvals.take_refused() {
            self.journal.keep(Event::refused(&file, self.clock.now().wall_us));
        }
    }
}

/// Waits until something may have changed in the folder.
async fn changed(watcher: &Watcher, told: Option<&Port>) {
    let mut news = [0; 4096];
    match (told, watcher.pause()) {
        (Some(told), None) if told.read(&mut news).await.is_ok_and(|bytes| bytes > 0) => {}
        (_, pause) => tokio::time::sleep(pause.unwrap_or(FALLBACK)).await,
    }
}

/// How often the folder is looked at if the system tells nothing.
const FALLBACK: Duration = Duration::from_millis(200);
