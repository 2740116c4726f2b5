//! The tie to the hub: heartbeats, what it pushes, and what happens when it falls silent.

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

/// How long it takes until a stream that broke is asked for again.
const AGAIN: Duration = Duration::from_millis(200);

/// Who keeps in touch with the hub.
pub(super) struct Pulse<'a> {
    pub(super) client: &'a Arc<Client>,
    pub(super) plan: &'a Plan,
    pub(super) reload: &'a Reload<'a>,
    pub(super) journal: &'a Journal,
    pub(super) stop: mpsc::Sender<()>,
}

/// What the hub had to say.
enum News {
    Push(Push),
    /// The stream is over, and something may have been missed.
    Broken,
    /// It is time for a heartbeat.
    Due,
}

impl Pulse<'_> {
    /// Keeps in touch until the hub wants an end or is gone; then has the session end.
    pub(super) async fn run(&self, snapshot: &Snapshot) {
        let why = self.listen(snapshot).await;
        self.journal.say(Level::Warn, &why);
        self.stop.send(()).await.ok();
    }

    /// Comes back with the reason to end.
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
                // Whether it is gone is told by a heartbeat, at once.
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

    /// Waits for what is pushed, over a stream that is made anew when it breaks.
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

    /// Whether to end, the policy that holds, and how long it does.
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

    /// Takes another policy, if the hub has one.
    async fn catch_up(&self, version: &str) {
        if self.held() == version {
            return;
        }
        match self.client.snapshot().await {
            Ok(snapshot) => self.reload.take(load(&snapshot, self.plan)),
            // The next heartbeat finds the same.
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
        // A hub that is gone needs not be told.
        self.client.heartbeat(&self.heartbeat(state)).await.ok();
    }
}

fn asked() -> String {
    "the hub asks for the end of the session".to_owned()
}
