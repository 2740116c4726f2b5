//! Reloads the policy and announces the result.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_store::activity;

use super::{Hub, NoticeLevel, journal};
use crate::api::HubPush;
use crate::hub_policy::HubPolicy;
use crate::metrics::MetricName;

/// The event that there is no policy.
const NO_POLICY: &str = "no_policy";

impl Hub {
    /// Reloads the policy. A policy with faults is reported and changes nothing.
    pub fn reload(&self) {
        let loading = (self.options.load)();
        if !loading.faults.is_empty() {
            let name = self.active_policy().name().to_owned();
            let faults = loading.faults.join("\n");
            let message = format!("the new policy does not load; {name} stays in force:\n{faults}");
            (self.options.notice)(NoticeLevel::Error, &message);
            self.trouble.replace(loading.faults);
            return self.report_load("refused", EventLevel::Error, &message);
        }
        for warning in &loading.warnings {
            (self.options.notice)(NoticeLevel::Warn, warning);
        }
        // After a faulty version, the same policy as before is news: `/readyz` is clean again.
        let recovered = !self.trouble.take().is_empty();
        let new = Rc::new(HubPolicy::new(loading, self.options.profile));
        let old = self.governed.replace(Rc::clone(&new));
        self.journal.apply_policy(new.policy.as_deref(), &self.tasks.key);
        self.update_exporter();
        self.update_channels();
        // Workflows may name other channels now.
        self.sweep();
        if old.version() != new.version() || recovered {
            let message = format!("policy {} is now in force", new.name());
            (self.options.notice)(NoticeLevel::Info, &message);
            let word = if new.policy.is_some() { "reloaded" } else { NO_POLICY };
            self.report_load(word, EventLevel::Info, &message);
            self.push(HubPush::Policy { version: new.version().to_owned() });
        }
    }

    /// Logs the policy that the hub starts with.
    pub(super) fn report_first_load(&self) {
        let governed = self.active_policy();
        let (word, what) = match &governed.policy {
            Some(policy) => ("loaded", format!("policy {} loaded", policy.version)),
            None => (NO_POLICY, "no policy: observing only".to_owned()),
        };
        let message = format!("{what}; profile {}", governed.profile.as_str());
        self.report_load(word, EventLevel::Info, &message);
    }

    /// Counts and logs the result of loading a policy; `word` is the event.
    fn report_load(&self, word: &str, level: EventLevel, message: &str) {
        let (now, governed) = (self.clock.now(), self.active_policy());
        let is_success = level != EventLevel::Error;
        let status = if is_success { "success" } else { "failure" };
        tracing::debug!(status, message, "policy loaded");
        let mut metrics = self.metrics.borrow_mut();
        metrics.count(MetricName::ConfigLoad, &[status]);
        if let Some(cedar) = governed.policy.as_ref().and_then(|policy| policy.cedar.as_ref()) {
            metrics.count(MetricName::CedarReload, &[status]);
            metrics.set(MetricName::CedarPoliciesLoaded, &[], cedar.len() as f64);
        }
        if is_success {
            let seconds = (now.wall_us / 1_000_000) as f64;
            metrics.set(MetricName::ConfigReloadTimestamp, &[], seconds);
        }
        drop(metrics);
        let extra = activity::extra(&json!({ "event": word }));
        self.write_event(level, ActivityKind::Policy, message, extra);
    }

    /// Logs an event about the hub itself.
    pub(super) fn log(&self, level: EventLevel, kind: ActivityKind, message: &str) {
        self.write_event(level, kind, message, Cow::Borrowed(""));
    }

    fn write_event(
        &self,
        level: EventLevel,
        kind: ActivityKind,
        message: &str,
        extra: Cow<'_, str>,
    ) {
        let (now, governed) = (self.clock.now(), self.active_policy());
        let version = governed.version();
        let event = ActivityEvent {
            policy_version: (!version.is_empty()).then(|| version.into()),
            policy_reason: Some(message.into()),
            extra,
            ..journal::event(now.wall_us, level, kind, governed.profile)
        };
        if let Err(reason) = self.journal.write(&[event]) {
            (self.options.notice)(NoticeLevel::Error, &reason);
        }
    }
}
