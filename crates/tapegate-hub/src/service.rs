//! The service: who may ask what, and who answers.
//!
//! Everything runs on one thread, so that a policy is swapped between two questions and never
//! within one. A request passes the listener's guard (Host and Origin), then must show the token,
//! and only then is its body read.

mod answer;
mod body;
mod evaluate;
mod export;
mod follow;
mod journal;
mod probes;
mod question;
mod route;
mod shims;
mod stream;
mod tasks;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tapegate_policy::model::Profile;
use tapegate_store::activity::ActivityError;
use tapegate_store::approvals::ApprovalError;
use tapegate_wire::clock::Clock;
use tapegate_wire::http::ReplyBody;
use tapegate_wire::http::listen::{Cord, Handler, Reply};
use tokio::sync::{broadcast, watch};

use crate::api::{GovernanceEvaluateRequest, Push, ShutdownResponse};
use crate::governed::{Governed, Loading};
use crate::metrics::Metrics;
use crate::otlp::Exporter;
use crate::token::Token;
use answer::{Refusal, json};
use follow::Follow;
use journal::Journal;
pub use route::ROUTES;
use route::{Found, Route};
use shims::Shims;
use stream::parameter;
use tasks::Tasks;

/// How many pushes may wait for somebody who does not read. Who misses one is cut off, and asks for
/// everything anew.
const PUSHES_MAX: usize = 256;

/// What can be asked for and what is answered, as OpenAPI 3.1 describes it.
pub const OPENAPI: &str = include_str!("openapi.json");

/// How a hub is to be.
pub struct Options {
    /// Where the activity log and approvals lie.
    pub state_folder: PathBuf,
    /// The profile that holds where there is no policy.
    pub profile: Option<Profile>,
    /// The secret of this run.
    pub token: Token,
    /// Loads the policy, as often as it is asked to.
    pub load: Load,
    /// Is told what a person should know.
    pub notice: Notice,
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
        let hub = Self {
            journal,
            follow: RefCell::new(Follow::new(&options.state_folder)),
            tasks: Tasks::open(&options.state_folder)?,
            metrics: RefCell::default(),
            exporter: RefCell::default(),
            governed: RefCell::new(Rc::new(governed)),
            trouble: RefCell::default(),
            shims: RefCell::default(),
            pushes: broadcast::Sender::new(PUSHES_MAX),
            stopping: watch::Sender::new(false),
            closing: watch::Sender::new(false),
            busy: Cell::new(0),
            options,
            clock,
        };
        hub.journal.mask(hub.governed().policy.as_deref(), &hub.tasks.key);
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

    /// Loads the policy anew. One with faults changes nothing, and is loudly complained of.
    pub fn reload(&self) {
        let loading = (self.options.load)();
        if !loading.faults.is_empty() {
            let name = self.governed().name().to_owned();
            let faults = loading.faults.join("\n");
            let words = format!("the new policy does not load, and {name} goes on:\n{faults}");
            (self.options.notice)(Level::Error, &words);
            self.trouble.replace(loading.faults);
            return self.loaded("failure", "error", &words);
        }
        for warning in &loading.warnings {
            (self.options.notice)(Level::Warn, warning);
        }
        let recovered = !self.trouble.take().is_empty();
        let new = Rc::new(Governed::new(loading, self.options.profile));
        let old = self.governed.replace(Rc::clone(&new));
        self.journal.mask(new.policy.as_deref(), &self.tasks.key);
        self.refit();
        if old.version() != new.version() || recovered {
            let words = format!("policy {} holds from now on", new.name());
            (self.options.notice)(Level::Info, &words);
            self.loaded("success", "info", &words);
            self.push(Push::Policy { version: new.version().to_owned() });
        }
    }

    /// Counts and writes down that a policy was loaded, or was not.
    fn loaded(&self, status: &str, level: &'static str, words: &str) {
        let (now, governed) = (self.clock.now(), self.governed());
        let mut metrics = self.metrics.borrow_mut();
        metrics.count("thoughtgate_config_load_total", &[status]);
        if let Some(cedar) = governed.policy.as_ref().and_then(|policy| policy.cedar.as_ref()) {
            metrics.count("thoughtgate_cedar_reload_total", &[status]);
            metrics.set("thoughtgate_cedar_policies_loaded", &[], cedar.len() as f64);
        }
        if status == "success" {
            let seconds = (now.wall_us / 1_000_000) as f64;
            metrics.set("thoughtgate_config_reload_timestamp", &[], seconds);
        }
        drop(metrics);
        self.log(level, "policy", words);
    }

    /// Writes down something about the hub itself.
    fn log(&self, level: &'static str, kind: &'static str, words: &str) {
        let (now, governed) = (self.clock.now(), self.governed());
        let version = governed.version();
        let event = tapegate_store::activity::Event {
            policy_version: Some(version.to_owned()).filter(|version| !version.is_empty()),
            policy_reason: Some(words.to_owned()),
            ..journal::event(now.wall_us, level, kind, governed.profile)
        };
        if let Err(why) = self.journal.write(&[event]) {
            (self.options.notice)(Level::Error, &why);
        }
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

    async fn answer(self: Rc<Self>, request: Request<Incoming>) -> Response<ReplyBody> {
        let (head, body) = request.into_parts();
        let found = route::find(&head.method, head.uri.path());
        let open = matches!(found, Found::Route(Route::Healthz, _));
        if !open && !self.knows(&head.headers) {
            tapegate_wire::http::linger(body);
            return Refusal::unauthorized().into();
        }
        let (route, id) = match found {
            Found::Route(route, id) => (route, id.to_owned()),
            Found::Method(allowed) => {
                tapegate_wire::http::linger(body);
                return answer::not_allowed(&head.method, allowed);
            }
            Found::Nothing => {
                tapegate_wire::http::linger(body);
                return Refusal::not_found(&format!("there is no `{}`", head.uri.path())).into();
            }
        };
        let query = head.uri.query().unwrap_or_default();
        let trace = head.headers.get("traceparent").and_then(|value| value.to_str().ok());
        let done = match body::read(route, &head.headers, body).await {
            Ok(body) => self.act(route, &Asked { id: &id, query, trace, body }).await,
            Err(refusal) => Err(refusal),
        };
        done.unwrap_or_else(|refusal| {
            let labels = [refusal.code(), head.method.as_str()];
            self.metrics.borrow_mut().count("thoughtgate_errors_total", &labels);
            refusal.into()
        })
    }

    async fn act(
        self: &Rc<Self>,
        route: Route,
        asked: &Asked<'_>,
    ) -> Result<Response<ReplyBody>, Refusal> {
        let Asked { id, query, trace, body } = asked;
        match route {
            Route::Evaluate => {
                let mut request: GovernanceEvaluateRequest = parse(body)?;
                if request.traceparent.is_none() {
                    request.traceparent = trace.map(str::to_owned);
                }
                self.evaluate(&request).map(|answer| json(&answer))
            }
            Route::Task => {
                let wait = parameter(query, "wait_ms").unwrap_or("0").parse();
                let wait_ms = wait.map_err(|_| Refusal::bad_request("`wait_ms` is a number"))?;
                Ok(json(&self.task(id, wait_ms).await?))
            }
            Route::Revalidate => Ok(json(&self.revalidate(id, &parse(body)?)?)),
            Route::Cancel => Ok(json(&self.cancel(id)?)),
            Route::Events => Ok(json(&self.events(parse(body)?)?)),
            Route::Approvals => Ok(json(&self.pending_approvals()?)),
            Route::Approve => Ok(json(&self.settle(id, true, parse(body)?)?)),
            Route::Deny => Ok(json(&self.settle(id, false, parse(body)?)?)),
            Route::Metrics => Ok(self.metrics_text()),
            Route::OpenApi => {
                Ok(answer::text_reply("application/json", OPENAPI.as_bytes().to_vec()))
            }
            Route::Heartbeat => Ok(json(&self.heartbeat(parse(body)?))),
            Route::Snapshot => {
                let folder = self.options.state_folder.to_string_lossy().into_owned();
                Ok(json(&self.governed().snapshot(folder)))
            }
            Route::Stream => Ok(self.stream(query)),
            Route::Shutdown => {
                self.stop();
                let (active_servers, _) = self.shims.borrow_mut().active(self.clock.now());
                Ok(json(&ShutdownResponse { shutdown: true, active_servers }))
            }
            Route::Healthz => Ok(self.healthz()),
            Route::Readyz => Ok(self.readyz()),
        }
    }

    /// Whether a request shows the token.
    fn knows(&self, headers: &HeaderMap) -> bool {
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (shown.next(), shown.next()) else { return false };
        let Some((scheme, secret)) = value.as_bytes().split_first_chunk::<7>() else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer ") && self.options.token.is(secret.trim_ascii())
    }
}

impl Handler for Hub {
    fn handle(self: Rc<Self>, request: Request<Incoming>, _: &Rc<Cord>) -> Reply {
        Box::pin(async move {
            let _busy = Busy::new(&self);
            Rc::clone(&self).answer(request).await
        })
    }
}

/// What is asked of a route.
struct Asked<'a> {
    /// What stands for `{id}` in its path.
    id: &'a str,
    query: &'a str,
    /// W3C trace context, from its header.
    trace: Option<&'a str>,
    body: Bytes,
}

/// A request that is being answered, until it is or its caller has gone.
struct Busy<'a>(&'a Hub);

impl<'a> Busy<'a> {
    fn new(hub: &'a Hub) -> Self {
        hub.busy.set(hub.busy.get() + 1);
        Self(hub)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}

/// Reads a body, or says what is missing.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(&format!("the body does not fit: {error}")))
}
