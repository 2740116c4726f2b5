//! The HTTP service: authentication, routing and the answers.
//!
//! Everything runs on one thread, so a policy is replaced between two requests and never during
//! one. A request passes the listener's Host and Origin check, then must present a token that
//! allows the route, and only then is its body read.

mod answer;
mod attempts;
mod body;
mod case;
mod door;
mod evaluate;
mod export;
mod follow;
mod journal;
mod probes;
mod question;
mod reload;
mod route;
mod shims;
mod stream;
mod tasks;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use tapegate_policy::model::Profile;
use tapegate_store::activity::{ActivityError, Shipped};
use tapegate_store::approvals::ApprovalError;
use tapegate_wire::clock::Clock;
use tapegate_wire::http::BodyBudget;
use tokio::sync::{broadcast, watch};

use crate::api::Push;
use crate::governed::{Governed, Loading};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::otlp::Exporter;
use crate::token::Tokens;
use attempts::Attempts;
use follow::Follow;
use journal::Journal;
pub use route::ROUTES;
use shims::Shims;
use tasks::Tasks;

/// How many pushes may queue for a client that does not read. A client that misses one is
/// disconnected and must fetch the current state again.
const PUSHES_MAX: usize = 256;

/// The API as an OpenAPI 3.1 description.
pub const OPENAPI: &str = include_str!("openapi.json");

/// The configuration of a hub.
pub struct Options {
    /// The folder with the activity log.
    pub state_folder: PathBuf,
    /// The user's own state folder, which holds the approvals.
    pub user_state: PathBuf,
    /// The profile to use without a policy.
    pub profile: Option<Profile>,
    /// The address it listens on, and the only one for which it proves its identity.
    pub address: SocketAddr,
    /// The secrets of this run.
    pub tokens: Tokens,
    /// Files of the hub that calls may not name; shims are told about them.
    pub own_files: Vec<String>,
    /// Why calls cannot be approved or denied through this hub, if they cannot.
    pub undecided: Option<String>,
    /// Loads the policy; called again for each reload.
    pub load: Load,
    /// Receives messages for the user.
    pub notice: Notice,
    /// Limits on connections and requests.
    pub limits: Limits,
}

/// Loads the policy.
pub type Load = Box<dyn Fn() -> Loading>;

/// Receives messages for the user.
pub type Notice = Box<dyn Fn(Level, &str)>;

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For information.
    Info,
    /// Something is wrong.
    Warn,
    /// Something does not work.
    Error,
}

/// A hub.
pub struct Hub {
    options: Options,
    clock: Clock,
    /// The memory budget for request bodies.
    bodies: BodyBudget,
    governed: RefCell<Rc<Governed>>,
    journal: Journal,
    follow: RefCell<Follow>,
    tasks: Tasks,
    metrics: RefCell<Metrics>,
    /// Exports telemetry, if the policy enables it.
    exporter: RefCell<Option<Rc<Exporter>>>,
    /// The faults of the policy that was last loaded, if it had any.
    trouble: RefCell<Vec<String>>,
    shims: RefCell<Shims>,
    attempts: Attempts,
    /// The ids of the most recent event batches, to recognise resent ones.
    batches: RefCell<VecDeque<String>>,
    /// What has been logged from the logs of remote shims.
    shipped: RefCell<Shipped>,
    pushes: broadcast::Sender<Push>,
    stopping: watch::Sender<bool>,
    /// Streams end when this becomes true.
    closing: watch::Sender<bool>,
    /// The number of requests being answered.
    busy: Cell<usize>,
}

/// Why a hub cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The policy has faults.
    #[error("the policy does not load:\n{}", .0.join("\n"))]
    Policy(Vec<String>),
    /// The activity log cannot be opened.
    #[error(transparent)]
    Log(#[from] ActivityError),
    /// The approvals folder cannot be opened.
    #[error(transparent)]
    Approvals(#[from] ApprovalError),
}

impl Hub {
    /// The limits on connections and requests.
    pub fn limits(&self) -> Limits {
        self.options.limits
    }

    /// Loads the policy and opens the log and the approvals. Fails if the policy has faults.
    pub fn new(options: Options) -> Result<Rc<Self>, StartError> {
        let clock = Clock::start();
        let loading = (options.load)();
        if !loading.faults.is_empty() {
            return Err(StartError::Policy(loading.faults));
        }
        for warning in &loading.warnings {
            (options.notice)(Level::Warn, warning);
        }
        let governed = Governed::new(loading, options.profile);
        let journal = Journal::open(&options.state_folder, governed.policy.as_deref())?;
        let state = &options.state_folder;
        let shipped = Shipped::open(state)
            .map_err(|source| ActivityError::Open { path: state.clone(), source })?;
        let hub = Self {
            bodies: BodyBudget::new(),
            journal,
            follow: RefCell::new(Follow::new(&options.state_folder)),
            tasks: Tasks::open(&options.user_state, &options.state_folder)?,
            metrics: RefCell::default(),
            exporter: RefCell::default(),
            governed: RefCell::new(Rc::new(governed)),
            trouble: RefCell::default(),
            shims: RefCell::default(),
            attempts: Attempts::default(),
            batches: RefCell::default(),
            shipped: RefCell::new(shipped),
            pushes: broadcast::Sender::new(PUSHES_MAX),
            stopping: watch::Sender::new(false),
            closing: watch::Sender::new(false),
            busy: Cell::new(0),
            options,
            clock,
        };
        hub.journal.heed(hub.governed().policy.as_deref(), &hub.tasks.key);
        hub.catch_up_tasks();
        hub.refit();
        hub.log("info", "hub", "started");
        hub.loaded("success", "info", &format!("policy {}", hub.governed().name()));
        let took = hub.clock.now().mono_ns as f64 / 1e9;
        hub.metrics.borrow_mut().set("thoughtgate_startup_duration_seconds", &[], took);
        Ok(Rc::new(hub))
    }

    /// The policy in force.
    pub fn governed(&self) -> Rc<Governed> {
        Rc::clone(&self.governed.borrow())
    }

    /// Tells every shim to shut down.
    pub fn stop(&self) {
        if !self.stopping.send_replace(true) {
            self.push(Push::Shutdown);
        }
    }

    /// Waits until a shutdown has been requested.
    pub async fn stopped(&self) {
        // The sender is a field of `self`, so it cannot be dropped meanwhile.
        self.stopping.subscribe().wait_for(|stopping| *stopping).await.ok();
    }

    /// Runs the background work. Never returns.
    pub async fn work(&self) {
        tokio::join!(self.watch_tasks(), self.follow_log(), self.export());
    }

    /// Reports that shims are still connected at the end of the wait.
    pub(crate) fn left_behind(&self) {
        let (count, _) = self.shims.borrow_mut().active(self.clock.now());
        let words = format!("{count} shims did not shut down within ten seconds");
        (self.options.notice)(Level::Warn, &words);
        self.metrics.borrow_mut().count("thoughtgate_drain_timeout_total", &[]);
    }

    /// Ends every stream. Pending approvals stay pending, for the next hub.
    pub fn close(&self) {
        if self.closing.send_replace(true) {
            return;
        }
        let open = self.tasks.pending() as u64;
        let name = "thoughtgate_approvals_cancelled_shutdown_total";
        self.metrics.borrow_mut().add(name, &[], open);
        self.log("info", "hub", "ended");
    }

    /// Waits until no shim is left.
    pub async fn deserted(&self) {
        let mut news = self.shims.borrow().news();
        loop {
            let (left, until) = self.shims.borrow_mut().active(self.clock.now());
            if left == 0 {
                return;
            }
            tokio::select! {
                _ = news.changed() => {}
                () = tokio::time::sleep(until) => {}
            }
        }
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn push(&self, push: Push) {
        // Sending fails only if no stream is open.
        self.pushes.send(push).ok();
    }
}
