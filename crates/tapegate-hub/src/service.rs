//! The service: who may ask what, and who answers.
//!
//! Everything runs on one thread, so that a policy is swapped between two questions and never
//! within one. A request passes the listener's guard (Host and Origin), then must show the token,
//! and only then is its body read.

mod answer;
mod body;
mod evaluate;
mod probes;
mod route;
mod shims;
mod stream;
mod subject;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tapegate_policy::model::Profile;
use tapegate_wire::clock::Clock;
use tapegate_wire::http::ReplyBody;
use tapegate_wire::http::listen::{Cord, Handler, Reply};
use tokio::sync::{broadcast, watch};

use crate::api::{Push, ShutdownResponse};
use crate::governed::{Governed, Loading};
use crate::token::Token;
use answer::{Refusal, json};
pub use route::ROUTES;
use route::{Found, Route};
use shims::Shims;

/// How many pushes may wait for somebody who does not read. Who misses one is cut off, and asks for
/// everything anew.
const PUSHES_MAX: usize = 256;

/// How a hub is to be.
pub struct Options {
    /// Where the activity log and approvals lie.
    pub state_folder: PathBuf,
    /// The profile that holds, whatever the policy says.
    pub profile: Option<Profile>,
    /// The secret of this run.
    pub token: Token,
    /// Loads the policy, as often as it is asked to.
    pub load: Box<dyn Fn() -> Loading>,
    /// Is told what a person should know.
    pub notice: Rc<dyn Fn(Level, &str)>,
}

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
    /// What was wrong when the policy was last loaded, if something was.
    trouble: RefCell<Vec<String>>,
    shims: RefCell<Shims>,
    pushes: broadcast::Sender<Push>,
    stopping: watch::Sender<bool>,
    asked: Cell<u64>,
}

/// Why a hub does not start: what is wrong with its policy.
#[derive(Debug, thiserror::Error)]
#[error("the policy does not load:\n{}", .0.join("\n"))]
pub struct BadPolicy(pub Vec<String>);

impl Hub {
    /// A hub, with its policy loaded. A policy with faults is no policy.
    pub fn new(options: Options) -> Result<Rc<Self>, BadPolicy> {
        let loading = (options.load)();
        if !loading.faults.is_empty() {
            return Err(BadPolicy(loading.faults));
        }
        for warning in &loading.warnings {
            (options.notice)(Level::Warn, warning);
        }
        let governed = Governed::new(loading, options.profile);
        Ok(Rc::new(Self {
            clock: Clock::start(),
            governed: RefCell::new(Rc::new(governed)),
            trouble: RefCell::default(),
            shims: RefCell::default(),
            pushes: broadcast::Sender::new(PUSHES_MAX),
            stopping: watch::Sender::new(false),
            asked: Cell::new(0),
            options,
        }))
    }

    /// The policy that holds.
    pub fn governed(&self) -> Rc<Governed> {
        Rc::clone(&self.governed.borrow())
    }

    /// Loads the policy anew. One with faults changes nothing, and is loudly complained of.
    pub fn reload(&self) {
        let loading = (self.options.load)();
        if !loading.faults.is_empty() {
            let words = format!(
                "the new policy does not load, and the old one ({}) goes on:\n{}",
                self.governed().version(),
                loading.faults.join("\n")
            );
            (self.options.notice)(Level::Error, &words);
            self.trouble.replace(loading.faults);
            return;
        }
        for warning in &loading.warnings {
            (self.options.notice)(Level::Warn, warning);
        }
        self.trouble.take();
        let new = Rc::new(Governed::new(loading, self.options.profile));
        let old = self.governed.replace(Rc::clone(&new));
        if old.version() != new.version() {
            let version = new.version().to_owned();
            (self.options.notice)(Level::Info, &format!("policy {version} holds from now on"));
            self.push(Push::Policy { version });
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
        self.asked.set(self.asked.get() + 1);
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
        let done = match body::read(route, &head.headers, body).await {
            Ok(body) => self.act(route, &id, query, body).await,
            Err(refusal) => Err(refusal),
        };
        done.unwrap_or_else(Into::into)
    }

    async fn act(
        self: &Rc<Self>,
        route: Route,
        id: &str,
        query: &str,
        body: Bytes,
    ) -> Result<Response<ReplyBody>, Refusal> {
        let _ = id;
        match route {
            Route::Evaluate => self.evaluate(parse(&body)?).map(|answer| json(&answer)),
            Route::Heartbeat => Ok(json(&self.heartbeat(parse(&body)?))),
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
        Box::pin(self.answer(request))
    }
}

/// Reads a body, or says what is missing.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::bad_request(&format!("the body does not fit: {error}")))
}
