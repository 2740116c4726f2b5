//! The client that a shim uses to talk to a hub.
//!
//! Every call has a deadline: half a second to connect, and a limit for each kind of request.
//! [`ClientError`] lets a shim distinguish a hub that is gone from one that hangs. What the shim
//! does then is not decided here.
//!
//! The token is sent only to a peer that has proved, on the same connection, that it holds it.
//!
//! Tasks are spawned on the current runtime; none of them needs a `LocalSet`.

mod error;
mod exchange;
mod push_stream;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use http::uri::Authority;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::api::{
    AnswerRequest, ChannelsAnswer, EventsAnswer, EventsRequest, GovernanceEvaluateRequest,
    GovernanceEvaluateResponse, HeartbeatRequest, HeartbeatResponse, SettleRequest,
    ShutdownResponse, Snapshot, TaskAnswer, TaskStatus,
};
use crate::hub_lock;
use crate::token::HubToken;
pub use error::ClientError;
use exchange::{HubReply, HubRequest};
pub use push_stream::PushStream;

/// How long an evaluation may take, its connection included.
const EVALUATE: Duration = Duration::from_secs(2);
/// How long one request for a task's status may take.
const TASK: Duration = Duration::from_secs(5);
/// How long the hub is asked to wait for a change; the rest is for the round trip.
const TASK_WAIT: Duration = Duration::from_secs(4);
/// How long anything else may take.
const OTHER: Duration = Duration::from_secs(5);
/// How many times the hub is tried before a shim gives up, and the shortest and longest pause.
const READY_TRIES: u32 = 20;
const READY_FIRST: Duration = Duration::from_millis(50);
const READY_MOST: Duration = Duration::from_secs(2);

/// A client of one hub.
#[derive(Debug)]
pub struct HubClient {
    authority: Authority,
    token_file: PathBuf,
    /// The token as last read from the file: a restarted hub has a new one.
    token: Mutex<Option<HubToken>>,
}

impl HubClient {
    /// A client of the hub at `endpoint`, such as `http://127.0.0.1:19090`, with a token in
    /// `token_file`. Neither connects nor reads the file yet.
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

    /// The URL of the hub.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// Waits until something answers at the endpoint: 20 attempts, about half a minute if each is
    /// refused. Whether it is the hub is verified with the first request that needs the token.
    pub async fn wait_until_ready(&self) -> Result<(), ClientError> {
        let mut pause = READY_FIRST;
        let mut tries = 1;
        loop {
            match self
                .exchange(HubRequest::new(Method::GET, "/healthz", OTHER.min(READY_MOST)))
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) if tries == READY_TRIES => return Err(error),
                Err(_) => tokio::time::sleep(pause).await,
            }
            tries += 1;
            pause = (pause * 2).min(READY_MOST);
        }
    }

    /// Fetches the policy in force.
    pub async fn snapshot(&self) -> Result<Snapshot, ClientError> {
        self.get("/governance/snapshot", OTHER).await
    }

    /// Reports that a shim is alive.
    pub async fn heartbeat(
        &self,
        beat: &HeartbeatRequest,
    ) -> Result<HeartbeatResponse, ClientError> {
        self.post("/governance/heartbeat", beat, OTHER).await
    }

    /// Asks for a decision about a message; if approval is needed, the answer names the task.
    pub async fn evaluate(
        &self,
        request: &GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, ClientError> {
        self.post("/governance/evaluate", request, EVALUATE).await
    }

    /// The status of a task as soon as it is no longer pending, or after a few seconds.
    pub async fn wait_for_task(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        let wait_ms = TASK_WAIT.as_millis();
        self.get(&format!("/governance/task/{}?wait_ms={wait_ms}", path_segment(id)?), TASK).await
    }

    /// Waits until a task is no longer pending or the hub shuts down. Only the task's own expiry
    /// limits the wait.
    pub async fn wait_until_settled(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        loop {
            let started = Instant::now();
            let answer = self.wait_for_task(id).await?;
            if answer.status != TaskStatus::Pending || answer.shutdown {
                return Ok(answer);
            }
            // Limits the request rate if the hub does not honour `wait_ms`.
            tokio::time::sleep_until(started + Duration::from_millis(100)).await;
        }
    }

    /// Whether an approved call may still be sent under the policy in force now.
    pub async fn revalidate(
        &self,
        id: &str,
        request: &GovernanceEvaluateRequest,
    ) -> Result<GovernanceEvaluateResponse, ClientError> {
        self.post(&format!("/governance/task/{}/revalidate", path_segment(id)?), request, EVALUATE)
            .await
    }

    /// Withdraws a task.
    pub async fn cancel(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        self.post(&format!("/governance/task/{}/cancel", path_segment(id)?), &(), OTHER).await
    }

    /// Reports that a caller has given up. The task can still be approved; the same call is then
    /// sent once.
    pub async fn abandon_task(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        let path = format!("/governance/task/{}/cancel?abandoned=true", path_segment(id)?);
        self.post(&path, &(), OTHER).await
    }

    /// Decides as the user of a client has answered in it.
    pub async fn answer(
        &self,
        id: &str,
        answer: &AnswerRequest,
    ) -> Result<TaskAnswer, ClientError> {
        self.post(&format!("/governance/task/{}/answer", path_segment(id)?), answer, OTHER).await
    }

    /// The status of a task.
    pub async fn task(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        self.get(&format!("/governance/task/{}", path_segment(id)?), OTHER).await
    }

    /// Reports that no decision came in time, by the clock of the caller's shim.
    pub async fn expire_task(&self, id: &str) -> Result<TaskAnswer, ClientError> {
        let path = format!("/governance/task/{}/cancel?timed_out=true", path_segment(id)?);
        self.post(&path, &(), OTHER).await
    }

    /// Writes events to the hub's activity log.
    pub async fn events(&self, events: &EventsRequest) -> Result<EventsAnswer, ClientError> {
        self.post("/governance/events", events, OTHER).await
    }

    /// Approves a request.
    pub async fn approve(&self, id: &str, who: &SettleRequest) -> Result<TaskAnswer, ClientError> {
        self.post(&format!("/approvals/{}/approve", path_segment(id)?), who, OTHER).await
    }

    /// Denies a request.
    pub async fn deny(&self, id: &str, who: &SettleRequest) -> Result<TaskAnswer, ClientError> {
        self.post(&format!("/approvals/{}/deny", path_segment(id)?), who, OTHER).await
    }

    /// How the channels of a request's workflow stand to it.
    pub async fn channel_states(&self, id: &str) -> Result<ChannelsAnswer, ClientError> {
        self.get(&format!("/approvals/{}/channels", path_segment(id)?), OTHER).await
    }

    /// Shuts down the hub and every shim.
    pub async fn shutdown(&self) -> Result<ShutdownResponse, ClientError> {
        self.post("/governance/shutdown", &(), OTHER).await
    }

    /// Opens the stream of pushes for this connection of this shim.
    pub async fn pushes(&self, connection_id: &str) -> Result<PushStream, ClientError> {
        let path = format!("/governance/stream?connection_id={}", path_segment(connection_id)?);
        let answer =
            self.send_authorized(HubRequest::new(Method::GET, &path, OTHER).stream()).await?;
        Ok(PushStream::new(answer))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        patience: Duration,
    ) -> Result<T, ClientError> {
        self.send_authorized(HubRequest::new(Method::GET, path, patience)).await?.json()
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        patience: Duration,
    ) -> Result<T, ClientError> {
        let text = serde_json::to_vec(body).map_err(|error| ClientError::Answer(error.to_string()));
        let hub_request = HubRequest::new(Method::POST, path, patience).body(text?);
        self.send_authorized(hub_request).await?.json()
    }

    /// Sends a request with the token. After a restart of the hub, the token is read again from its
    /// file.
    async fn send_authorized(&self, hub_request: HubRequest) -> Result<HubReply, ClientError> {
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(known) = known else {
            return self.exchange_with_new_token(hub_request, self.read_token()?).await;
        };
        match self.exchange(hub_request.clone().token(&known)).await {
            // A hub that was restarted has new tokens, and can prove only those.
            Err(error @ (ClientError::Unproven(_) | ClientError::Unauthorised)) => {
                match self.read_token() {
                    // The same token again would fail again.
                    Ok(token) if !token.matches(known.reveal().as_bytes()) => {
                        self.exchange_with_new_token(hub_request, token).await
                    }
                    _ => Err(error),
                }
            }
            done => done,
        }
    }

    async fn exchange_with_new_token(
        &self,
        hub_request: HubRequest,
        token: HubToken,
    ) -> Result<HubReply, ClientError> {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        self.exchange(hub_request.token(&token)).await
    }

    fn read_token(&self) -> Result<HubToken, ClientError> {
        let path = || self.token_file.clone();
        let text = hub_lock::read_small(&self.token_file)
            .map_err(|source| ClientError::File { path: path(), source })?;
        HubToken::read(&text).ok_or_else(|| ClientError::File {
            path: path(),
            source: std::io::Error::other("it contains no token"),
        })
    }

    async fn exchange(&self, hub_request: HubRequest) -> Result<HubReply, ClientError> {
        exchange::send_request(&self.authority, hub_request).await
    }
}

/// Checks that a name can be used in a path unescaped.
fn path_segment(text: &str) -> Result<&str, ClientError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    // The hub chose the id; it must not add a query or lead to another route.
    let fits = !text.is_empty() && text.bytes().all(plain);
    if fits { Ok(text) } else { Err(ClientError::Name(text.to_owned())) }
}
