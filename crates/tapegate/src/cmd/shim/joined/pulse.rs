//! The connection to the hub: heartbeats, pushed events, and the end of the session without them.

use std::sync::Arc;
use std::time::Duration;

use tapegate_hub::api::{HeartbeatRequest, Push, Snapshot};
use tapegate_hub::client::{Client, ClientError, Pushes};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::journal::Journal;
use super::super::plan::Plan;
use super::super::reload::Reload;
use super::load;
use crate::exit::Exit;
use crate::logs::Level;

/// How long to wait before reopening a broken stream.
const AGAIN: Duration = Duration::from_millis(200);

/// Keeps the session in contact with the hub.
pub(super) struct Pulse<'a> {
    pub(super) client: &'a Arc<Client>,
    pub(super) plan: &'a Plan,
    pub(super) reload: &'a Reload<'a>,
    pub(super) journal: &'a Journal,
    pub(super) stop: mpsc::Sender<()>,
}

/// What happened on the connection to the hub.
enum News {
    Push(Push),
    /// The stream has ended, and events may have been missed.
    Broken,
    /// A heartbeat is due.
    Due,
}

impl Pulse<'_> {
    /// Stays in contact until the hub requests the end or is gone, then ends the session.
    pub(super) async fn run(&self, snapshot: &Snapshot) {
        let why = self.listen(snapshot).await;
        self.journal.say(Level::Warn, &why);
        self.stop.send(()).await.ok();
    }

    /// Returns the reason to end the session.
    async fn listen(&self, snapshot: &Snapshot) -> String {
        let mut lease = Instant::now() + Duration::from_millis(snapshot.lease_ms);
        let mut beat = tokio::time::interval(tapegate_hub::HEARTBEAT);
        let mut pushes: Option<Pushes> = None;
        loop {
            let news = tokio::select! {
                _ = beat.tick() => News::Due,
                news = self.next(&mut pushes) => news,
                () = self.reload.hang_up.notified() => News::Due,
            };
            match news {
                News::Push(Push::Shutdown) => return asked(),
                News::Push(Push::Policy { version }) => self.catch_up(&version).await,
                News::Push(Push::Task { .. }) => {}
                // A heartbeat tells immediately whether the hub is gone.
                News::Broken | News::Due => match self.beat().await {
                    Ok((true, ..)) => return asked(),
                    Ok((false, version, lease_ms)) => {
                        lease = Instant::now() + Duration::from_millis(lease_ms);
                        self.catch_up(&version).await;
                    }
                    Err(error) if error.is_gone() => {
                        return format!("the hub is gone: {error}; the session ends");
                    }
                    Err(error) if Instant::now() >= lease => {
                        return format!("the hub has not answered for too long: {error}");
                    }
                    Err(error) => self.journal.say(Level::Warn, &error.to_string()),
                },
            }
        }
    }

    /// Waits for the next pushed event; opens a new stream if the last one broke.
    async fn next(&self, pushes: &mut Option<Pushes>) -> News {
        if pushes.is_none() {
            match self.client.pushes(&self.plan.connection_id).await {
                Ok(stream) => *pushes = Some(stream),
                Err(_) => {
                    tokio::time::sleep(AGAIN).await;
                    return News::Broken;
                }
            }
        }
        let Some(stream) = pushes else { return News::Broken };
        match stream.next().await {
            Ok(push) => News::Push(push),
            Err(_) => {
                *pushes = None;
                News::Broken
            }
        }
    }

    /// Sends a heartbeat; returns whether to end, the policy version in force and its lease.
    async fn beat(&self) -> Result<(bool, String, u64), ClientError> {
        let answer = self.client.heartbeat(&self.heartbeat("running")).await?;
        Ok((answer.shutdown, answer.policy_version, answer.lease_ms))
    }

    fn heartbeat(&self, state: &str) -> HeartbeatRequest {
        HeartbeatRequest {
            server_id: self.plan.server_id.clone(),
            connection_id: Some(self.plan.connection_id.clone()),
            pid: Some(std::process::id()),
            state: Some(state.to_owned()),
            policy_version: Some(self.held()),
            counters: Some(self.journal.tally().counters()),
        }
    }

    fn held(&self) -> String {
        let regime = self.reload.reins.get();
        regime.policy.map(|policy| policy.version.clone()).unwrap_or_default()
    }

    /// Loads the hub's policy if its version differs from ours.
    async fn catch_up(&self, version: &str) {
        if self.held() == version {
            return;
        }
        match self.client.snapshot().await {
            Ok(snapshot) => self.reload.take(load(&snapshot, self.plan)),
            // The next heartbeat tries again.
            Err(error) => self.journal.say(Level::Warn, &error.to_string()),
        }
    }

    /// Tells the hub that the session is over.
    pub(super) async fn farewell(&self, exit: Option<&Exit>) {
        let state = match exit {
            Some(Exit::Ok) => "stopped",
            Some(Exit::Code(code)) if *code > 128 => "stopped",
            _ => "crashed",
        };
        // If the hub is gone, it does not need to be told.
        self.client.heartbeat(&self.heartbeat(state)).await.ok();
    }
}

fn asked() -> String {
    "the hub requests the end of the session".to_owned()
}
