//! What a shim needs to talk to a hub.
//!
//! Every call has an end: a connection must come about within half a second, and each kind of
//! question has its time. What went wrong is told apart by [`ClientError`], so that a shim can tell
//! a hub that is gone from one that hangs. Nothing here decides what a shim does then.
//!
//! The token is sent to nobody who has not shown, on the same connection, that it holds it.
//!
//! Tasks are spawned on the runtime that is current; none of them needs a `LocalSet`.

mod error;
mod exchange;
mod pushes;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use http::uri::Authority;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::api::{
    EventsAnswer, EventsRequest, GovernanceEvaluateRequest, GovernanceEvaluateResponse,
    HeartbeatRequest, HeartbeatResponse, SettleRequest, ShutdownResponse, Snapshot, TaskAnswer,
    TaskStatus,
};
use crate::corner;
use crate::token::Token;
pub use error::ClientError;
use exchange::{Asked, Exchange};
pub use pushes::Pushes;

/// How long an evaluation may take, its connection included.
const EVALUATE: Duration = Duration::from_secs(2);
/// How long one question for a task may take.
const TASK: Duration = Duration::from_secs(5);
/// How long the hub is asked to keep such a question; the rest is for the way.
const TASK_WAIT: Duration = Duration::from_secs(4);
/// How long anything else may take.
const OTHER: Duration = Duration::from_secs(5);
/// How often a hub is looked for before a shim gives up, and how long it waits in between.
const READY_TRIES: u32 = 20;
const READY_FIRST: Duration = Duration::from_millis(50);
const READY_MOST: Duration = Duration::from_secs(2);

/// A hub, from outside.
#[derive(Debug)]
pub struct Client {
    authority: Authority,
    token_file: PathBuf,
    /// The token as it was last read: a hub that was started anew has another.
    token: Mutex<Option<Token>>,
}

impl Client {
    /// The hub at `endpoint`, such as `http://127.0.0.1:19090`; one of its tokens is in `token_file`.
    /// Neither is looked at before it is needed.
    pub fn new(endpoint: &str, token_file: &Path) -> Result<Self, ClientError> {
        let bare = endpoint.trim().trim_end_matches('/');
        let host = match bare.split_once("://") {
            Some(("http", host)) => host,
            Some(_) => return Err(ClientError::Endpoint(endpoint.to_owned())),
            None => bare,
        };
        let authority: Option<Authority> = host.parse().ok();
        let usable =
            authority.filter(|host| host.port_u16().is_some() && !host.as_str().contains('@'));
        let authority = usable.ok_or_else(|| ClientError::Endpoint(endpoint.to_owned()))?;
        Ok(Self { authority, token_file: token_file.to_owned(), token: Mutex::new(None) })
    }

    /// Where the hub is.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// Waits until somebody answers, for half a minute at most. Whether that is the hub is made sure
    /// of with the first question that needs the token.
    pub async fn ready(&self) -> Result<(), ClientError> {
        let mut pause = READY_FIRST;
        let mut tries = 1;
        loop {
            match self.exchange(Asked::new(Method::GET, "/healthz", OTHER.min(READY_MOST))).await {
                Ok(_) => return Ok(()),
                Err(error) if tries == READY_TRIES => return Err(error),
                Err(_) => tokio::time::sleep(pause).await,
            }
            tries += 1;
            pause = (pause * 2).min(READY_MOST);
        }
    }

    /// The policy that holds.
    pub async fn snapshot(&self) -> Result<Snapshot, ClientError> {
        self.get("/governance/snapshot", OTHER).await
    }

    /// Says that a shim is alive.
    pub async fn heartbeat(
        &self,
        beat: &HeartbeatRequest,
    ) -> Result<HeartbeatResponse, ClientError> {
        self.post("/governance/heartbeat", beat, OTHER).await
    }

    /// Has a message decided about; if people are asked, the answer names the task.
    pub async fn evaluate(
        &self,
        request: &GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, ClientError> {
        self.post("/governance/evaluate", request, EVALUATE).await
    }

    /// How a task stands now, or as soon as it is not pending any more, within a few seconds.
    pub async fn task(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        let wait_ms = TASK_WAIT.as_millis();
        self.get(&format!("/governance/task/{}?wait_ms={wait_ms}", word(id)?), TASK).await
    }

    /// Waits until a task is not pending any more, or the hub is ending. There is no limit but the
    /// task's own.
    pub async fn settled(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        loop {
            let asked = Instant::now();
            let answer = self.task(id).await?;
            if answer.status != TaskStatus::Pending || answer.shutdown {
                return Ok(answer);
            }
            // A hub that does not wait is not asked without end.
            tokio::time::sleep_until(asked + Duration::from_millis(100)).await;
        }
    }

    /// Whether an approved call may still be sent, under the policy that holds now.
    pub async fn revalidate(
        &self,
        id: &str,
        request: &GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, ClientError> {
        self.post(&format!("/governance/task/{}/revalidate", word(id)?), request, EVALUATE).await
    }

    /// Takes a task back.
    pub async fn cancel(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        self.post(&format!("/governance/task/{}/cancel", word(id)?), &(), OTHER).await
    }

    /// Says that a caller has given up. The task can still be decided about; then the same call is
    /// sent once.
    pub async fn abandon(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        let path = format!("/governance/task/{}/cancel?abandoned=true", word(id)?);
        self.post(&path, &(), OTHER).await
    }

    /// Has events written to the activity log.
    pub async fn events(&self, events: &EventsRequest) -> Result<EventsAnswer, ClientError> {
        self.post("/governance/events", events, OTHER).await
    }

    /// Says yes to a request for approval.
    pub async fn approve(&self, id: &str, who: &SettleRequest) -> Result<TaskAnswer, ClientError> {
        self.post(&format!("/approvals/{}/approve", word(id)?), who, OTHER).await
    }

    /// Says no to a request for approval.
    pub async fn deny(&self, id: &str, who: &SettleRequest) -> Result<TaskAnswer, ClientError> {
        self.post(&format!("/approvals/{}/deny", word(id)?), who, OTHER).await
    }

    /// Ends the hub and every shim.
    pub async fn shutdown(&self) -> Result<ShutdownResponse, ClientError> {
        self.post("/governance/shutdown", &(), OTHER).await
    }

    /// What the hub says without being asked, to this connection of this shim.
    pub async fn pushes(&self, connection_id: &str) -> Result<Pushes, ClientError> {
        let path = format!("/governance/stream?connection_id={}", word(connection_id)?);
        let answer = self.authorised(Asked::new(Method::GET, &path, OTHER).stream()).await?;
        Ok(Pushes::new(answer))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        patience: Duration,
    ) -> Result<T, ClientError> {
        self.authorised(Asked::new(Method::GET, path, patience)).await?.json()
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<T, ClientError> {
        let text = serde_json::to_vec(body).map_err(|error| ClientError::Answer(error.to_string()));
        let asked = Asked::new(Method::POST, path, patience).body(text?);
        self.authorised(asked).await?.json()
    }

    /// Asks with the token. If that is of a hub that has ended, the file may have the one of the next.
    async fn authorised(&self, asked: Asked) -> Result<Exchange, ClientError> {
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(known) = known else { return self.exchange_anew(asked, self.read_token()?).await };
        match self.exchange(asked.clone().token(&known)).await {
            Err(error @ (ClientError::Unproven(_) | ClientError::Unauthorised)) => {
                match self.read_token() {
                    Ok(token) if !token.is(known.reveal().as_bytes()) => {
                        self.exchange_anew(asked, token).await
                    }
                    _ => Err(error),
                }
            }
            done => done,
        }
    }

    async fn exchange_anew(&self, asked: Asked, token: Token) -> Result<Exchange, ClientError> {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        self.exchange(asked.token(&token)).await
    }

    fn read_token(&self) -> Result<Token, ClientError> {
        let path = || self.token_file.clone();
        let text = corner::read_small(&self.token_file)
            .map_err(|source| ClientError::File { path: path(), source })?;
        Token::read(&text).ok_or_else(|| ClientError::File {
            path: path(),
            source: std::io::Error::other("there is no token in it"),
        })
    }

    async fn exchange(&self, asked: Asked) -> Result<Exchange, ClientError> {
        exchange::ask(&self.authority, asked).await
    }
}

/// A name that can stand in a path as it is.
fn word(text: &str) -> Result<&str, ClientError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let fits = !text.is_empty() && text.bytes().all(plain);
    if fits { Ok(text) } else { Err(ClientError::Name(text.to_owned())) }
}
