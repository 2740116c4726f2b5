//! The service: who may ask what, and who answers.
//!
//! Everything runs on one thread, so that a policy is swapped between two questions and never
//! within one. A request passes the listener's guard (Host and Origin), then must show a token that
//! allows what it asks for, and only then is its body read.

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

/// How many pushes may wait for somebody who does not read. Who misses one is cut off, and asks for
/// everything anew.
const PUSHES_MAX: usize = 256;

/// What can be asked for and what is answered, as OpenAPI 3.1 describes it.
pub const OPENAPI: &str = include_str!("openapi.json");

/// How a hub is to be.
pub struct Options {
    /// Where the activity log lies.
    pub state_folder: PathBuf,
    /// The user's own state folder, where approvals lie.
    pub user_state: PathBuf,
    /// The profile that holds where there is no policy.
    pub profile: Option<Profile>,
    /// Where it listens. It proves that it is the hub for this address alone.
    pub address: SocketAddr,
    /// The secrets of this run.
    pub tokens: Tokens,
    /// Files of the hub that calls may not name, which shims are told.
    pub own_files: Vec<String>,
    /// Why nobody decides about calls through this hub, if nobody does.
    pub undecided: Option<String>,
    /// Loads the policy, as often as it is asked to.
    pub load: Load,
    /// Is told what a person should know.
    pub notice: Notice,
    /// What it bears of those who talk to it.
    pub limits: Limits,
}

/// Loads the policy.
pub type Load = Box<dyn Fn() -> Loading>;

/// Is told what a person should know.
pub type Notice = Box<dyn Fn(Level, &str)>;

/// How much a person should care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// It is good to know.
    Info,
    /// Something is amiss.
    Warn,
    /// Something does not work.
    Error,
}

/// A hub.
pub struct Hub {
    options: Options,
    clock: Clock,
    /// The memory for bodies of requests.
    bodies: BodyBudget,
    governed: RefCell<Rc<Governed>>,
    journal: Journal,
    follow: RefCell<Follow>,
    tasks: Tasks,
    metrics: RefCell<Metrics>,
    /// What exports, if anything is to be exported.
    exporter: RefCell<Option<Rc<Exporter>>>,
    /// What was wrong when the policy was last loaded, if something was.
    trouble: RefCell<Vec<String>>,
    shims: RefCell<Shims>,
    attempts: Attempts,
    /// The names of what shims have sent last for the log.
    batches: RefCell<VecDeque<String>>,
    /// What was written down of the logs of shims elsewhere.
    shipped: RefCell<Shipped>,
    pushes: broadcast::Sender<Push>,
    stopping: watch::Sender<bool>,
    /// Streams end when this is true.
    closing: watch::Sender<bool>,
    /// Requests that are being answered.
    busy: Cell<usize>,
}

/// Why a hub does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Something is wrong with its policy.
    #[error("the policy does not load:\n{}", .0.join("\n"))]
    Policy(Vec<String>),
    /// What happens could not be written down.
    #[error(transparent)]
    Log(#[from] ActivityError),
    /// Nobody could be asked.
    #[error(transparent)]
    Approvals(#[from] ApprovalError),
}

impl Hub {
    /// What it bears of those who talk to it.
    pub fn limits(&self) -> Limits {
        self.options.limits
    }

    /// A hub, with its policy loaded. A policy with faults is no policy.
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

    /// The policy that holds.
    pub fn governed(&self) -> Rc<Governed> {
        Rc::clone(&self.governed.borrow())
    }

    /// Tells every shim to come to its end.
    pub fn stop(&self) {
        if !self.stopping.send_replace(true) {
            self.push(Push::Shutdown);
        }
    }

    /// Waits until somebody has asked for the end.
    pub async fn stopped(&self) {
        // The sender is ours, so it cannot be gone.
        self.stopping.subscribe().wait_for(|stopping| *stopping).await.ok();
    }

    /// What goes on beside the questions. Never ends.
    pub async fn work(&self) {
        tokio::join!(self.watch_tasks(), self.follow_log(), self.export());
    }

    /// Shims are still there, and are waited for no longer.
    pub(crate) fn left_behind(&self) {
        let (count, _) = self.shims.borrow_mut().active(self.clock.now());
        let words = format!("{count} shims have not ended within ten seconds");
        (self.options.notice)(Level::Warn, &words);
        self.metrics.borrow_mut().count("thoughtgate_drain_timeout_total", &[]);
    }

    /// Ends every stream. What waits for people goes on waiting, for the next hub.
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
        // Nobody may be listening.
        self.pushes.send(push).ok();
    }
}
