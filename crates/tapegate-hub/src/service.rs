//! The HTTP service: authentication, routing and the answers.
//!
//! Everything runs on one thread, so a policy is replaced between two requests and never during
//! one. A request passes the listener's Host and Origin check, then must present a token that
//! allows the route, and only then is its body read.

mod attempt_limiter;
mod auth;
mod body;
mod channel_posts;
mod channel_set;
mod decision_links;
mod evaluate;
mod evaluation_context;
mod evaluation_query;
mod export;
mod grants;
mod health;
mod journal;
mod link_page;
mod log_counter;
mod push_body;
mod reload;
mod response;
mod route;
mod session_tally;
mod shim_registry;
mod tasks;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;

use tapegate_core::activity::{ActivityKind, EventLevel};
use tapegate_policy::model::Profile;
use tapegate_store::activity::{ActivityError, ShippedPositions};
use tapegate_store::approvals::ApprovalError;
use tapegate_wire::clock::Clock;
use tapegate_wire::http::BodyBudget;
use tokio::sync::{broadcast, watch};

use crate::api::{AgentSession, HubPush};
use crate::hub_policy::{HubPolicy, HubPolicyLoad};
use crate::limits::HubLimits;
use crate::metrics::{MetricName, Metrics};
use crate::otlp::OtlpExporter;
use crate::token::HubTokens;
use attempt_limiter::AttemptLimiter;
use channel_set::ChannelSet;
use journal::HubJournal;
use log_counter::LogCounter;
pub use route::ROUTES;
use session_tally::SessionTally;
pub use session_tally::SessionTotals;
use shim_registry::ShimRegistry;
use tasks::ApprovalTasks;

/// How many pushes may queue for a client that does not read. A client that misses one is
/// disconnected and must fetch the current state again.
const PUSHES_MAX: usize = 256;

/// The API as an OpenAPI 3.1 description.
pub const OPENAPI: &str = include_str!("openapi.json");

/// The configuration of a hub.
pub struct HubOptions {
    /// The folder with the activity log.
    pub state_folder: PathBuf,
    /// The user's own state folder, which holds the approvals.
    pub user_state: PathBuf,
    /// The profile to use without a policy.
    pub profile: Option<Profile>,
    /// The address it listens on, and the only one for which it proves its identity.
    pub address: SocketAddr,
    /// The secrets of this run.
    pub tokens: HubTokens,
    /// Files of the hub that calls may not name; shims are told about them.
    pub own_files: Vec<String>,
    /// Why calls cannot be approved or denied through this hub, if they cannot.
    pub undecided: Option<String>,
    /// Loads the policy; called again for each reload.
    pub load: PolicyLoadFn,
    /// Receives messages for the user.
    pub notice: HubNotice,
    /// Limits on connections and requests.
    pub limits: HubLimits,
    /// The session of an agent that it serves, if it serves only one.
    pub session: Option<AgentSession>,
}

pub type PolicyLoadFn = Box<dyn Fn() -> HubPolicyLoad>;

/// Receives messages for the user.
pub type HubNotice = Box<dyn Fn(NoticeLevel, &str)>;

/// The severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// For information.
    Info,
    /// Something is wrong.
    Warn,
    /// Something does not work.
    Error,
}

pub struct Hub {
    options: HubOptions,
    clock: Clock,
    /// The memory budget for request bodies.
    bodies: BodyBudget,
    /// The same for requests of channels, whose senders have no token.
    channel_bodies: BodyBudget,
    governed: RefCell<Rc<HubPolicy>>,
    journal: HubJournal,
    follow: RefCell<LogCounter>,
    tasks: ApprovalTasks,
    channels: ChannelSet,
    metrics: RefCell<Metrics>,
    /// Exports telemetry, if the policy enables it.
    exporter: RefCell<Option<Rc<OtlpExporter>>>,
    /// The faults of the policy that was last loaded, if it had any.
    trouble: RefCell<Vec<String>>,
    shims: RefCell<ShimRegistry>,
    /// What the shims of this hub have done.
    tally: RefCell<SessionTally>,
    attempts: AttemptLimiter,
    /// The ids of the most recent event batches, to recognise resent ones.
    batches: RefCell<VecDeque<String>>,
    /// What has been logged from the logs of remote shims.
    shipped: RefCell<ShippedPositions>,
    pushes: broadcast::Sender<HubPush>,
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
    pub fn limits(&self) -> HubLimits {
        self.options.limits
    }

    /// Loads the policy and opens the log and the approvals. Fails if the policy has faults.
    pub fn new(options: HubOptions) -> Result<Rc<Self>, StartError> {
        let clock = Clock::start();
        let loading = (options.load)();
        // In any profile: a hub without its policy would tell every shim to observe only.
        if !loading.faults.is_empty() {
            return Err(StartError::Policy(loading.faults));
        }
        for warning in &loading.warnings {
            (options.notice)(NoticeLevel::Warn, warning);
        }
        let governed = HubPolicy::new(loading, options.profile);
        let journal = HubJournal::open(&options.state_folder, governed.policy.as_deref())?;
        let state = &options.state_folder;
        let shipped = ShippedPositions::open(state)
            .map_err(|source| ActivityError::Open { path: state.clone(), source })?;
        let hub = Self {
            bodies: BodyBudget::new(),
            channel_bodies: BodyBudget::new(),
            journal,
            follow: RefCell::new(LogCounter::new(&options.state_folder)),
            tasks: ApprovalTasks::open(&options.user_state, &options.state_folder)?,
            channels: ChannelSet::default(),
            metrics: RefCell::default(),
            exporter: RefCell::default(),
            governed: RefCell::new(Rc::new(governed)),
            trouble: RefCell::default(),
            shims: RefCell::default(),
            tally: RefCell::default(),
            attempts: AttemptLimiter::default(),
            batches: RefCell::default(),
            shipped: RefCell::new(shipped),
            pushes: broadcast::Sender::new(PUSHES_MAX),
            stopping: watch::Sender::new(false),
            closing: watch::Sender::new(false),
            busy: Cell::new(0),
            options,
            clock,
        };
        // Before the first event is logged, which must be masked already.
        hub.journal.apply_policy(hub.active_policy().policy.as_deref(), &hub.tasks.key);
        // Before the first look at the requests, so that the channels are told of them.
        hub.update_channels();
        hub.load_existing_tasks();
        hub.update_exporter();
        hub.log(EventLevel::Info, ActivityKind::Hub, "started");
        hub.report_first_load();
        let took = hub.clock.now().mono_ns as f64 / 1e9;
        hub.metrics.borrow_mut().set(MetricName::StartupDurationSeconds, &[], took);
        Ok(Rc::new(hub))
    }

    /// The policy in force.
    pub fn active_policy(&self) -> Rc<HubPolicy> {
        Rc::clone(&self.governed.borrow())
    }

    /// Tells every shim to shut down.
    pub fn stop(&self) {
        // Once, even if a signal and a request arrive together.
        if !self.stopping.send_replace(true) {
            self.shims.borrow_mut().end_without_streams();
            self.push(HubPush::Shutdown);
        }
    }

    /// Waits until a shutdown has been requested.
    pub async fn stop_requested(&self) {
        // The sender is a field of `self`, so it cannot be dropped meanwhile.
        self.stopping.subscribe().wait_for(|stopping| *stopping).await.ok();
    }

    /// Runs the background work. Never returns.
    pub async fn run_background(&self) {
        tokio::join!(
            self.watch_tasks(),
            self.watch_shims(),
            self.follow_log(),
            self.export(),
            self.run_channels()
        );
    }

    /// Reports that shims are still connected at the end of the wait.
    pub(crate) fn report_remaining_shims(&self) {
        let servers = self.shims.borrow().active_servers().join("`, `");
        let message = format!("shims did not shut down within ten seconds: `{servers}`");
        (self.options.notice)(NoticeLevel::Warn, &message);
        self.metrics.borrow_mut().count(MetricName::DrainTimeout, &[]);
    }

    /// The processes of the shims that have not ended.
    pub fn active_processes(&self) -> Vec<u32> {
        self.shims.borrow().active_processes()
    }

    /// What the shims of this hub have done so far.
    pub fn session_totals(&self) -> SessionTotals {
        // The log has events that were written since it was last read.
        self.count_new_lines();
        self.tally.borrow().totals()
    }

    /// Ends every stream. Pending approvals stay pending, for the next hub.
    pub fn close(&self) {
        // `ended` is logged once.
        if self.closing.send_replace(true) {
            return;
        }
        self.forget_faults();
        let open = self.tasks.pending_count() as u64;
        self.metrics.borrow_mut().add(MetricName::ApprovalsCancelledShutdown, &[], open);
        self.log(EventLevel::Info, ActivityKind::Hub, "ended");
    }

    /// Waits until no shim is left.
    pub async fn wait_until_no_shims(&self) {
        let mut news = self.shims.borrow().subscribe();
        loop {
            let (left, until) = self.shims.borrow_mut().count_active(self.clock.now());
            if left == 0 {
                return;
            }
            tokio::select! {
                _ = news.changed() => {}
                // A killed shim sends nothing; its lease ends the wait.
                () = tokio::time::sleep(until) => {}
            }
        }
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    fn push(&self, push: HubPush) {
        // Sending fails only if no stream is open.
        self.pushes.send(push).ok();
    }
}
