//! Exports traces and metrics to a collector, by OTLP over HTTP.
//!
//! The export never delays a decision: spans wait in a bounded queue and are sent in batches. Spans
//! that do not fit into the queue or that the collector rejects are dropped and counted.

mod encoding;
mod metric_points;
mod span;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tapegate_policy::model::TelemetrySettings;
use tapegate_store::activity::LoggedEvent;
use tapegate_wire::http::upstream::ApiServer;

use crate::metrics::Metrics;
use encoding::{OtlpMessage, OtlpValue, attributes, field};

/// Exports to one collector.
pub(crate) struct OtlpExporter {
    settings: TelemetrySettings,
    collector: ApiServer,
    /// The collector's path without the `/v1/…` suffix of a signal.
    base: String,
    spans: RefCell<VecDeque<Rc<OtlpMessage>>>,
    /// Spans dropped since the count was last taken.
    dropped: Cell<u64>,
}

/// The result of an export.
enum ExportOutcome {
    /// The collector accepted it.
    Taken,
    /// It failed, but may succeed later.
    Later(String),
    /// It will never be accepted.
    Never(String),
}

impl OtlpExporter {
    /// An exporter with these settings; `None` if telemetry is off.
    pub(crate) fn new(settings: &TelemetrySettings) -> Result<Option<Self>, String> {
        let Some(endpoint) = settings.endpoint.as_ref().filter(|_| settings.enabled) else {
            return Ok(None);
        };
        let headers: Vec<String> =
            settings.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let collector = ApiServer::new(endpoint, &headers).map_err(|error| error.to_string())?;
        let path = collector.path().path().trim_end_matches('/');
        let base = path.strip_suffix("/v1/traces").unwrap_or(path).to_owned();
        Ok(Some(Self {
            settings: settings.clone(),
            collector,
            base,
            spans: RefCell::default(),
            dropped: Cell::new(0),
        }))
    }

    /// The settings it was created with.
    pub(crate) fn settings(&self) -> &TelemetrySettings {
        &self.settings
    }

    /// Queues the span of a log line, if it has one.
    pub(crate) fn add_line(&self, line: &LoggedEvent) {
        let Some(span) = span::span(line, self.settings.sample_rate) else { return };
        let mut spans = self.spans.borrow_mut();
        // New spans are dropped, never waited for: no call depends on a collector.
        if spans.len() >= self.settings.queue_max.max(1) {
            return self.dropped.set(self.dropped.get() + 1);
        }
        spans.push_back(Rc::new(span));
    }

    /// Whether a full batch is waiting.
    pub(crate) fn is_full(&self) -> bool {
        self.spans.borrow().len() >= self.settings.batch_max.max(1)
    }

    /// How many spans were dropped since the last call.
    pub(crate) fn take_dropped(&self) -> u64 {
        self.dropped.take()
    }

    /// Sends all queued spans, batch by batch, until one fails.
    pub(crate) async fn send_spans(&self) -> Result<(), String> {
        loop {
            let count = self.spans.borrow().len().min(self.settings.batch_max.max(1));
            if count == 0 {
                return Ok(());
            }
            let batch: Vec<Rc<OtlpMessage>> = self.spans.borrow_mut().drain(..count).collect();
            let scope = vec![
                field(1, "scope", OtlpValue::Message(self.scope())),
                field(2, "spans", OtlpValue::Shared(batch.clone())),
            ];
            let request = vec![field(
                1,
                "resourceSpans",
                OtlpValue::Messages(vec![vec![
                    field(1, "resource", OtlpValue::Message(self.resource())),
                    field(2, "scopeSpans", OtlpValue::Messages(vec![scope])),
                ]]),
            )];
            match self.send("traces", &request).await {
                ExportOutcome::Taken => {}
                // Sending the same batch again would block the queue for good.
                ExportOutcome::Never(reason) => {
                    self.dropped.set(self.dropped.get() + count as u64);
                    return Err(reason);
                }
                ExportOutcome::Later(reason) => {
                    self.put_back(batch);
                    return Err(reason);
                }
            }
        }
    }

    /// Sends the current metrics.
    pub(crate) async fn send_metrics(
        &self,
        metrics: &RefCell<Metrics>,
        start_ns: u64,
        now_ns: u64,
    ) -> Result<(), String> {
        let all = metric_points::metrics(&metrics.borrow(), start_ns, now_ns);
        let scope = vec![
            field(1, "scope", OtlpValue::Message(self.scope())),
            field(2, "metrics", OtlpValue::Messages(all)),
        ];
        let request = vec![field(
            1,
            "resourceMetrics",
            OtlpValue::Messages(vec![vec![
                field(1, "resource", OtlpValue::Message(self.resource())),
                field(2, "scopeMetrics", OtlpValue::Messages(vec![scope])),
            ]]),
        )];
        match self.send("metrics", &request).await {
            ExportOutcome::Taken => Ok(()),
            ExportOutcome::Later(reason) | ExportOutcome::Never(reason) => Err(reason),
        }
    }

    /// Returns spans to the front of the queue.
    fn put_back(&self, batch: Vec<Rc<OtlpMessage>>) {
        let mut spans = self.spans.borrow_mut();
        // Spans that came meanwhile may have filled the queue; the oldest give way.
        for span in batch.into_iter().rev() {
            if spans.len() >= self.settings.queue_max.max(1) {
                self.dropped.set(self.dropped.get() + 1);
            } else {
                spans.push_front(span);
            }
        }
    }

    async fn send(&self, signal: &str, request: &OtlpMessage) -> ExportOutcome {
        let (media_type, body) = match self.settings.json {
            true => ("application/json", encoding::json(request)),
            false => ("application/x-protobuf", encoding::protobuf(request)),
        };
        let path = match PathAndQuery::try_from(format!("{}/v1/{signal}", self.base)) {
            Ok(path) => path,
            Err(error) => return ExportOutcome::Never(error.to_string()),
        };
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
        let sending = self.collector.send(Method::POST, path, headers, Bytes::from(body));
        match tokio::time::timeout(self.settings.timeout, sending).await {
            Err(_) => ExportOutcome::Later("the collector did not answer in time".to_owned()),
            Ok(Err(error)) => ExportOutcome::Later(error.to_string()),
            Ok(Ok(reply)) if reply.status().is_success() => ExportOutcome::Taken,
            Ok(Ok(reply)) => {
                let status = reply.status();
                let message = format!("the collector answered {status}");
                let later = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                if later { ExportOutcome::Later(message) } else { ExportOutcome::Never(message) }
            }
        }
    }

    /// Describes this hub as the source of the telemetry.
    fn resource(&self) -> OtlpMessage {
        let given = |name: &str| self.settings.resource.iter().any(|(key, _)| key == name);
        let own = [
            ("service.name", "tapegate-hub"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("telemetry.sdk.name", "tapegate"),
            ("telemetry.sdk.language", "rust"),
        ];
        // Attribute keys must be unique, and the user's value counts.
        let own = own.into_iter().filter(|(name, _)| !given(name));
        let all = self.settings.resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let pairs = own.chain(all).map(|(key, value)| (key, OtlpValue::Text(value.to_owned())));
        vec![field(1, "attributes", attributes(pairs.collect()))]
    }

    fn scope(&self) -> OtlpMessage {
        vec![
            field(1, "name", OtlpValue::Text("tapegate".to_owned())),
            field(2, "version", OtlpValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ]
    }
}
