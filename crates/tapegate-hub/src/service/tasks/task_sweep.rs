//! Notices how requests end, no matter which process decided.

use std::collections::BTreeSet;
use std::time::Duration;

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel};
use tapegate_store::activity::{escalated_event, refused_file_event};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalEntry, ApprovalError, ApprovalOutcome, ApprovalRecord, ApprovalState,
    RequestStamp,
};
use tapegate_wire::port::StreamPort;
use tokio::io::Interest;
use tokio::time::Instant;

use crate::api::{HubPush, TaskStatus};
use crate::metrics::MetricName;
use crate::service::{Hub, NoticeLevel};

/// The shortest pause between two checks of the folder. One decision changes it several times.
const LOOK_PAUSE_MIN: Duration = Duration::from_millis(2);
/// How many times longer than a check the pause after it is, so that many requests that wait do not
/// keep a CPU busy.
const LOOK_PAUSE_SHARE: u32 = 4;
/// How often the folder is checked where changes cannot be watched.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The longest interval where changes are watched.
const LOOK_LEAST: Duration = Duration::from_secs(60);
/// How long requests are kept after they can no longer be decided, as by a shim without a hub.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

impl Hub {
    /// Checks the folder whenever it changes or a request expires. Never returns.
    pub(in crate::service) async fn watch_tasks(&self) {
        // Before the first sweep, so that no change falls in between.
        let watcher = self.tasks.approvals.watch();
        let notifier = watcher.handle().and_then(|handle| handle.try_clone_to_owned().ok());
        let notifier = notifier
            .and_then(|handle| StreamPort::from_own_descriptor(handle, Interest::READABLE).ok());
        let mut news = [0; 4096];
        loop {
            let began = Instant::now();
            self.sweep();
            let expiry = self.log_expired_grants();
            let next_look = Instant::now() + LOOK_PAUSE_MIN.max(began.elapsed() * LOOK_PAUSE_SHARE);
            let pause = match &notifier {
                Some(_) => {
                    LOOK_LEAST.min(self.next_expiry()).min(self.next_escalation()).min(expiry)
                }
                None => watcher.pause().unwrap_or(LOOK_INTERVAL),
            };
            let changed = async {
                match &notifier {
                    Some(notifier) => notifier.read(&mut news).await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            tokio::time::timeout(pause, changed).await.ok();
            // A change after a pause is seen at once; many in a row are batched into one check.
            tokio::time::sleep_until(next_look).await;
        }
    }

    fn next_expiry(&self) -> Duration {
        let now_us = self.clock.now().wall_us;
        let open = self.tasks.open.borrow();
        let first = open.values().map(|request| request.expires_us).min();
        let left_us = first.map_or(i64::MAX, |first| first.saturating_sub(now_us).max(0));
        Duration::from_micros(left_us as u64)
    }

    fn next_escalation(&self) -> Duration {
        let stamps = self.tasks.stamps.borrow();
        let first = stamps.values().map(|(_, until)| *until).min();
        first.map_or(LOOK_LEAST, |first| first.saturating_duration_since(Instant::now()))
    }

    /// Counts new requests and decisions, expires overdue requests, and wakes waiting clients.
    pub(in crate::service) fn sweep(&self) {
        let now_us = self.clock.now().wall_us;
        let ids = match self.tasks.approvals.ids() {
            Ok(ids) => BTreeSet::from_iter(ids),
            Err(error) => {
                return (self.options.notice)(NoticeLevel::Error, &error.to_string());
            }
        };
        // Finished requests are not read again: there may be thousands.
        let unread: Vec<&String> =
            ids.iter().filter(|id| !self.tasks.done.borrow().contains(*id)).collect();
        for id in unread {
            // Before it is read, so that a change in between is noticed next time.
            let stamp = self.tasks.approvals.stamp(id);
            if self.is_unchanged(id, stamp, now_us) {
                continue;
            }
            match self.tasks.approvals.entry(id) {
                Ok(entry) => {
                    self.note_stamp(&entry, stamp, now_us);
                    self.note_entry(entry, now_us);
                }
                Err(ApprovalError::Unknown { .. }) => {}
                Err(error) => (self.options.notice)(NoticeLevel::Error, &error.to_string()),
            }
        }
        self.report_refused();
        self.log_unlogged();
        self.tasks.open.borrow_mut().retain(|id, _| ids.contains(id));
        self.tasks.done.borrow_mut().retain(|id| ids.contains(id));
        self.tasks.answered.borrow_mut().retain(|id, _| ids.contains(id));
        self.tasks.stamps.borrow_mut().retain(|id, _| self.tasks.open.borrow().contains_key(id));
        self.tasks.changes.send_replace(());
    }

    /// Whether a request that was pending still is, with the same callers.
    fn is_unchanged(&self, id: &str, stamp: Option<RequestStamp>, now_us: i64) -> bool {
        let open = self.tasks.open.borrow();
        let is_in_time = open.get(id).is_some_and(|request| now_us < request.expires_us);
        let known = self.tasks.stamps.borrow().get(id).copied();
        is_in_time
            && known.is_some_and(|(known, until)| Some(known) == stamp && Instant::now() < until)
    }

    /// Remembers what the files about a request were when it was read, until it expires or escalates.
    fn note_stamp(&self, entry: &ApprovalEntry, stamp: Option<RequestStamp>, now_us: i64) {
        let asker_now_us = entry.asker_now_us(now_us);
        let second_us = entry.request.escalation.as_ref().map(|second| second.at_us);
        let next_us = second_us.filter(|at_us| *at_us > asker_now_us);
        let next_us = next_us.unwrap_or(i64::MAX).min(entry.request.expires_us);
        let left_us = next_us.saturating_sub(asker_now_us).max(0);
        let until = Instant::now() + Duration::from_micros(left_us as u64);
        let stamp = stamp.map(|stamp| (entry.request.id.clone(), (stamp, until)));
        self.tasks.stamps.borrow_mut().extend(stamp);
    }

    /// Records the state of a request.
    fn note_entry(&self, entry: ApprovalEntry, now_us: i64) {
        let is_pending = entry.is_pending(now_us);
        // `next_expiry` compares with the hub's clock, so the expiry is converted to it.
        let asker_now_us = entry.asker_now_us(now_us);
        let left_us = entry.request.expires_us.saturating_sub(asker_now_us);
        let ApprovalEntry { request, decided, .. } = entry;
        match decided {
            Some(decided) => self.report_settled(&request, &decided),
            None if !is_pending => self.expire(&request),
            None => {
                self.announce_request(&request, asker_now_us);
                self.log_escalation(&request, asker_now_us);
                let id = request.id.clone();
                let request =
                    ApprovalRecord { expires_us: now_us.saturating_add(left_us), ..request };
                if self.tasks.open.borrow_mut().insert(id, request).is_none() {
                    self.metrics.borrow_mut().count(MetricName::TasksCreated, &["approval"]);
                }
            }
        }
    }

    /// Logs that a request has gone to its second workflow, once for all processes.
    fn log_escalation(&self, request: &ApprovalRecord, asker_now_us: i64) {
        if request.escalated_to(asker_now_us).is_none()
            || !self.tasks.approvals.mark_escalated(&request.id)
        {
            return;
        }
        let (component, profile) = (Some(EventComponent::Hub), Some(self.active_policy().profile));
        let event = escalated_event(request, self.clock.now().wall_us);
        if let Err(reason) = self.journal.write(&[ActivityEvent { component, profile, ..event }]) {
            (self.options.notice)(NoticeLevel::Error, &reason);
        }
    }

    /// Reports and logs every approval file that was set aside.
    pub(super) fn report_refused(&self) {
        for file in self.tasks.approvals.take_refused() {
            let (component, profile) =
                (Some(EventComponent::Hub), Some(self.active_policy().profile));
            let event = refused_file_event(&file, self.clock.now().wall_us);
            let event = ActivityEvent { component, profile, ..event };
            let message = event.policy_reason.as_deref().unwrap_or_default();
            (self.options.notice)(NoticeLevel::Error, message);
            if let Err(reason) = self.journal.write(&[event]) {
                (self.options.notice)(NoticeLevel::Error, &reason);
            }
        }
    }

    /// Takes the callers of a lost connection off their requests, which can still be decided: an
    /// approval lets the same call pass once.
    pub(in crate::service) fn release_callers(&self, connection: &str) {
        let lane = |id: &str| {
            let rest = id.strip_prefix(connection)?;
            (rest.is_empty() || rest.starts_with('.')).then_some(())
        };
        let open = self.tasks.open.borrow();
        let waiting: Vec<(String, String)> = open
            .values()
            .filter(|request| lane(&request.connection_id).is_some())
            .map(|request| (request.id.clone(), request.connection_id.clone()))
            .collect();
        drop(open);
        let now_us = self.clock.now().wall_us;
        let mut count = 0;
        for (id, connection_id) in waiting {
            match self.tasks.approvals.remove_waiters_of(&id, &connection_id, now_us) {
                Ok(had_waiters) => count += usize::from(had_waiters),
                Err(ApprovalError::Unknown { .. }) => {}
                Err(error) => (self.options.notice)(NoticeLevel::Error, &error.to_string()),
            }
        }
        if count > 0 {
            let message =
                format!("a shim has disconnected; requests that have no caller any more: {count}");
            self.log(EventLevel::Warn, ActivityKind::Hub, &message);
        }
    }

    /// Removes requests that expired long ago, and excludes earlier decisions from the metrics.
    pub(in crate::service) fn load_existing_tasks(&self) {
        let now_us = self.clock.now().wall_us;
        if let Err(error) = self.tasks.approvals.remove_expired(now_us, KEPT) {
            (self.options.notice)(NoticeLevel::Warn, &error.to_string());
        }
        if let Err(error) = self.tasks.approvals.remove_stale_unmasked(now_us) {
            (self.options.notice)(NoticeLevel::Warn, &error.to_string());
        }
        let entries = self.tasks.approvals.entries().unwrap_or_default();
        let decided = entries.into_iter().filter(|entry| entry.decided.is_some());
        // Counters start at zero with each run, so decisions of earlier runs must not count.
        self.tasks.done.borrow_mut().extend(decided.map(|entry| entry.request.id));
        self.sweep();
    }

    /// Marks a request as expired.
    pub(super) fn expire(&self, request: &ApprovalRecord) {
        let decided = self.new_decision(ApprovalOutcome::Expired, "tapegate", None);
        // A shim logs by itself that the call expired which it holds.
        let log = || match request.connection_id.is_empty() || request.waiting == 0 {
            true => self.log_settled(request, &decided, ""),
            false => Ok(()),
        };
        match self.tasks.approvals.decide_and_log(&request.id, &decided, log) {
            Ok(_) => {
                self.report_settled(request, &decided);
            }
            Err(ApprovalError::AlreadyDecided { decided, .. }) => {
                self.report_settled(request, &decided)
            }
            Err(error) => (self.options.notice)(NoticeLevel::Error, &error.to_string()),
        }
    }

    /// Counts and announces the end of a request, once.
    fn report_settled(&self, request: &ApprovalRecord, decided: &ApprovalDecision) {
        if !self.tasks.done.borrow_mut().insert(request.id.clone()) {
            return;
        }
        let known = self.tasks.open.borrow_mut().remove(&request.id).is_some();
        self.conclude_request(request, decided);
        let channel = self.tasks.decided_through.borrow().get(&request.id).copied();
        let channel = channel.unwrap_or("cli");
        let status = TaskStatus::from(ApprovalState::of(decided.ruling));
        let mut metrics = self.metrics.borrow_mut();
        if !known {
            metrics.count(MetricName::TasksCreated, &["approval"]);
        }
        let (server, outcome) = (request.server_id.as_str(), status.name());
        let waited = (decided.at_us - request.created_us).max(0) as f64 / 1e6;
        metrics.count(MetricName::TasksCompleted, &["approval", outcome]);
        metrics.count(MetricName::ApprovalRequests, &[channel, outcome]);
        metrics.count(MetricName::BlockingApprovals, &[outcome]);
        metrics.count(MetricName::StdioApprovalOutcomes, &[server, outcome]);
        metrics.observe(MetricName::ApprovalWaitDurationS, &[channel, outcome], waited);
        metrics.observe(MetricName::BlockingHoldDurationSeconds, &[outcome], waited);
        metrics.observe(MetricName::StdioApprovalDurationSeconds, &[server, outcome], waited);
        if matches!(status, TaskStatus::Approved | TaskStatus::Rejected) {
            metrics.observe(MetricName::StdioApprovalLatencySeconds, &[server], waited);
        }
        drop(metrics);
        self.push(HubPush::Task { task_id: request.id.clone(), status });
    }
}
