//! Schedules the export of traces and metrics.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Hub, NoticeLevel};
use crate::metrics::MetricName;
use crate::otlp::OtlpExporter;

/// How often to check whether a batch is full.
const LOOK: Duration = Duration::from_millis(100);
/// The limit for the last export, whatever the configured timeout.
const LAST: Duration = Duration::from_secs(2);

impl Hub {
    /// Replaces the exporter if the policy's telemetry settings have changed.
    pub(super) fn update_exporter(&self) {
        let governed = self.active_policy();
        let settings = governed.policy.as_ref().map(|policy| &policy.telemetry);
        let same = match (&*self.exporter.borrow(), settings) {
            (Some(exporter), Some(settings)) => exporter.settings() == settings,
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        let made = settings.map_or(Ok(None), OtlpExporter::new);
        let exporter = made.unwrap_or_else(|reason| {
            (self.options.notice)(NoticeLevel::Error, &format!("telemetry is off: {reason}"));
            None
        });
        self.exporter.replace(exporter.map(Rc::new));
    }

    /// Exports until the hub ends: spans when a batch is full or the delay is over, metrics after
    /// each delay.
    pub(super) async fn export(&self) {
        let mut last = Instant::now();
        let mut complained = false;
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(exporter) = self.exporter.borrow().clone() else { continue };
            let due = last.elapsed() >= exporter.settings().delay;
            if !due && !exporter.is_full() {
                continue;
            }
            let done = self.export_with(&exporter, due).await;
            if due {
                last = Instant::now();
            }
            // A collector that is down is reported once, not every few seconds.
            if let Err(reason) = &done
                && !complained
            {
                let message = format!("telemetry cannot be exported: {reason}");
                (self.options.notice)(NoticeLevel::Warn, &message);
            }
            complained = done.is_err();
            if done.is_err() {
                // Retrying at each look would flood a collector that is struggling.
                tokio::time::sleep(exporter.settings().delay).await;
            }
        }
    }

    /// Exports what is left, for the last time.
    pub(crate) async fn export_rest(&self) {
        let Some(exporter) = self.exporter.borrow().clone() else { return };
        // Lines of the last half second are not queued yet.
        self.count_new_lines();
        // Telemetry that the collector does not accept in time is lost.
        tokio::time::timeout(LAST, self.export_with(&exporter, true)).await.ok();
    }

    async fn export_with(&self, exporter: &OtlpExporter, due: bool) -> Result<(), String> {
        let spans = exporter.send_spans().await;
        if let Err(reason) = &spans {
            tracing::debug!(reason, "spans not exported");
        }
        let dropped = exporter.take_dropped();
        if dropped > 0 {
            self.metrics.borrow_mut().add(MetricName::TelemetryDropped, &["traces"], dropped);
        }
        if due {
            self.update_gauges();
            let now = self.clock.now();
            let now_ns = u64::try_from(now.wall_us).unwrap_or(0).saturating_mul(1000);
            let start_ns = now_ns.saturating_sub(now.mono_ns);
            let sent = exporter.send_metrics(&self.metrics, start_ns, now_ns).await;
            if let Err(reason) = &sent {
                tracing::debug!(reason, "metrics not exported");
                self.metrics.borrow_mut().count(MetricName::TelemetryDropped, &["metrics"]);
            }
            return spans.and(sent);
        }
        spans
    }
}
