//! Schedules the export of traces and metrics.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Hub, Level};
use crate::otlp::Exporter;

/// How often to check whether a batch is full.
const LOOK: Duration = Duration::from_millis(100);
/// The limit for the last export, whatever the configured timeout.
const LAST: Duration = Duration::from_secs(2);

impl Hub {
    /// Replaces the exporter if the policy's telemetry settings have changed.
    pub(super) fn refit(&self) {
        let governed = self.governed();
        let settings = governed.policy.as_ref().map(|policy| &policy.telemetry);
        let same = match (&*self.exporter.borrow(), settings) {
            (Some(exporter), Some(settings)) => exporter.settings() == settings,
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        let made = settings.map_or(Ok(None), Exporter::new);
        let exporter = made.unwrap_or_else(|why| {
            (self.options.notice)(Level::Error, &format!("telemetry is off: {why}"));
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
            let done = self.export_by(&exporter, due).await;
            if due {
                last = Instant::now();
            }
            // A collector that is down is reported once, not every few seconds.
            if let Err(why) = &done
                && !complained
            {
                let words = format!("telemetry cannot be exported: {why}");
                (self.options.notice)(Level::Warn, &words);
            }
            complained = done.is_err();
            if done.is_err() {
                tokio::time::sleep(exporter.settings().delay).await;
            }
        }
    }

    /// Exports what is left, for the last time.
    pub(crate) async fn last_export(&self) {
        let Some(exporter) = self.exporter.borrow().clone() else { return };
        self.catch_up();
        // Telemetry that the collector does not accept in time is lost.
        tokio::time::timeout(LAST, self.export_by(&exporter, true)).await.ok();
    }

    async fn export_by(&self, exporter: &Exporter, due: bool) -> Result<(), String> {
        let spans = exporter.send_spans().await;
        let dropped = exporter.dropped();
        if dropped > 0 {
            let name = "thoughtgate_telemetry_dropped_total";
            self.metrics.borrow_mut().add(name, &["traces"], dropped);
        }
        if due {
            self.measure();
            let now = self.clock.now();
            let now_ns = u64::try_from(now.wall_us).unwrap_or(0).saturating_mul(1000);
            let start_ns = now_ns.saturating_sub(now.mono_ns);
            let sent = exporter.send_metrics(&self.metrics, start_ns, now_ns).await;
            if sent.is_err() {
                let name = "thoughtgate_telemetry_dropped_total";
                self.metrics.borrow_mut().count(name, &["metrics"]);
            }
            return spans.and(sent);
        }
        spans
    }
}
