//! The connection to the hub: heartbeats, pushed events, and the end of the session without them.

use std::sync::Arc;
use std::time::Duration;

use tapegate_core::activity::EventLevel;
use tapegate_hub::api::{HeartbeatRequest, HubPush, Snapshot};
use tapegate_hub::client::{ClientError, HubClient, PushStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::load;
use crate::journal::ShimJournal;
use crate::plan::ShimPlan;
use crate::policy_updater::PolicyUpdater;

/// How long to wait before reopening a broken stream.
const AGAIN: Duration = Duration::from_millis(200);

/// Keeps the session in contact with the hub.
pub(super) struct Heartbeat<'a> {
    pub(super) client: &'a Arc<HubClient>,
    pub(super) plan: &'a ShimPlan,
    pub(super) updater: &'a PolicyUpdater<'a>,
    /// Notified when the user asks for a reload.
    pub(super) hang_up: &'a Notify,
    pub(super) journal: &'a ShimJournal,
    pub(super) stop: mpsc::Sender<()>,
}

/// What happened on the connection to the hub.
enum HubEvent {
    Push(HubPush),
    /// The stream has ended, and events may have been missed.
    Broken,
    /// A heartbeat is due.
    Due,
}

impl Heartbeat<'_> {
    /// Stays in contact until the hub requests the end or is gone, then ends the session.
    pub(super) async fn run(&self, snapshot: &Snapshot) {
        let reason = self.listen(snapshot).await;
        self.journal.print_message(EventLevel::Warn, &reason);
        self.stop.send(()).await.ok();
    }

    /// Returns the reason to end the session.
    async fn listen(&self, snapshot: &Snapshot) -> String {
        let mut lease = Instant::now() + Duration::from_millis(snapshot.lease_ms);
        let mut beat = tokio::time::interval(tapegate_hub::HEARTBEAT);
        let mut pushes: Option<PushStream> = None;
        loop {
            let news = tokio::select! {
                _ = beat.tick() => HubEvent::Due,
                news = self.next(&mut pushes) => news,
                // The policy is the hub's, so SIGHUP can only ask for it sooner.
                () = self.hang_up.notified() => HubEvent::Due,
            };
            match news {
                HubEvent::Push(HubPush::Shutdown) => return stop_reason(),
                HubEvent::Push(HubPush::Policy { version }) => self.update_policy(&version).await,
                // Held calls wait for their tasks on connections of their own.
                HubEvent::Push(HubPush::Task { .. }) => {}
                // A heartbeat tells immediately whether the hub is gone.
                HubEvent::Broken | HubEvent::Due => match self.send_heartbeat().await {
                    Ok((true, ..)) => return stop_reason(),
                    Ok((false, version, lease_ms)) => {
                        lease = Instant::now() + Duration::from_millis(lease_ms);
                        self.update_policy(&version).await;
                    }
                    // At once, not with the lease: no shim enforces a policy that has no owner.
                    Err(error) if error.is_gone() => {
                        return format!("the hub is gone: {error}; the session ends");
                    }
                    Err(error) if Instant::now() >= lease => {
                        return format!("the hub has not answered for too long: {error}");
                    }
                    Err(error) => self.journal.print_message(EventLevel::Warn, &error.to_string()),
                },
            }
        }
    }

    /// Waits for the next pushed event; opens a new stream if the last one broke.
    async fn next(&self, pushes: &mut Option<PushStream>) -> HubEvent {
        if pushes.is_none() {
            match self.client.pushes(&self.plan.connection_id).await {
                Ok(stream) => *pushes = Some(stream),
                Err(_) => {
                    tokio::time::sleep(AGAIN).await;
                    return HubEvent::Broken;
                }
            }
        }
        let Some(stream) = pushes else { return HubEvent::Broken };
        match stream.next().await {
            Ok(push) => HubEvent::Push(push),
            Err(_) => {
                *pushes = None;
                HubEvent::Broken
            }
        }
    }

    /// Sends a heartbeat; returns whether to end, the policy version in force and its lease.
    async fn send_heartbeat(&self) -> Result<(bool, String, u64), ClientError> {
        let answer = self.client.heartbeat(&self.heartbeat("running")).await?;
        Ok((answer.shutdown, answer.policy_version, answer.lease_ms))
    }

    fn heartbeat(&self, state: &str) -> HeartbeatRequest {
        HeartbeatRequest {
            server_id: self.plan.server_id.clone(),
            connection_id: Some(self.plan.connection_id.clone()),
            pid: Some(std::process::id()),
            state: Some(state.to_owned()),
            policy_version: Some(self.policy_version()),
            counters: Some(self.journal.counters().counters()),
        }
    }

    fn policy_version(&self) -> String {
        let active_policy = self.updater.policy_handle.get();
        active_policy.policy.map(|policy| policy.version.clone()).unwrap_or_default()
    }

    /// Loads the hub's policy if its version differs from ours.
    async fn update_policy(&self, version: &str) {
        if self.policy_version() == version {
            return;
        }
        match self.client.snapshot().await {
            Ok(snapshot) => self.updater.apply(load(&snapshot, self.plan)),
            // The next heartbeat tries again.
            Err(error) => self.journal.print_message(EventLevel::Warn, &error.to_string()),
        }
    }

    /// Tells the hub that the session is over.
    pub(super) async fn report_end(&self, has_crashed: bool) {
        let state = if has_crashed { "crashed" } else { "stopped" };
        // If the hub is gone, it does not need to be told.
        self.client.heartbeat(&self.heartbeat(state)).await.ok();
    }
}

fn stop_reason() -> String {
    "the hub requests the end of the session".to_owned()
}
