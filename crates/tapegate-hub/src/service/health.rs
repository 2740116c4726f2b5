//! Health, readiness and metrics of the hub.

use std::net::SocketAddr;

use http::header::HOST;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::Hub;
use super::auth::single_header;
use super::channel_set::ChannelHealth;
use super::response::{ApiBody, json, text_reply};
use crate::metrics::MetricName;
use crate::proof::{self, CHALLENGE, Challenge, PROOF};

/// The answer of `/healthz`.
#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    uptime_seconds: u64,
}

/// The answer of `/readyz`.
#[derive(Serialize)]
struct Readiness {
    status: &'static str,
    policy_version: String,
    profile: &'static str,
    /// Faults of the policy that was last loaded; an older one is still in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policy_faults: Vec<String>,
    /// Why the activity log cannot be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_fault: Option<String>,
    active_servers: usize,
    pending_approvals: usize,
    /// The channels of the policy; one with a fault does not keep the hub from being ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<ChannelHealth>,
}

impl Hub {
    pub(super) fn healthz(&self, headers: &HeaderMap) -> Response<ApiBody> {
        let uptime_seconds = self.clock.now().mono_ns / 1_000_000_000;
        let version = env!("CARGO_PKG_VERSION");
        let mut response = json(&Health { status: "healthy", version, uptime_seconds });
        for proof in self.proofs(headers).iter().flatten() {
            if let Ok(proof) = HeaderValue::try_from(proof) {
                response.headers_mut().append(PROOF, proof);
            }
        }
        response
    }

    /// The answers to a challenge, one for each token. None if the challenge names another address.
    fn proofs(&self, headers: &HeaderMap) -> Option<[String; 2]> {
        let challenge = Challenge::read(single_header(headers, CHALLENGE)?)?;
        let host = std::str::from_utf8(single_header(headers, HOST)?).ok()?;
        // Digits only: a name could resolve to another address for the shim than for the hub.
        let named: SocketAddr = host.parse().ok()?;
        let tokens = &self.options.tokens;
        let prove = |token| challenge.proof(token, named);
        // Without this, a program elsewhere could relay a shim's challenge here and pass for the
        // hub.
        proof::is_own(self.options.address, named)
            .then(|| [&tokens.shims, &tokens.approvers].map(prove))
    }

    pub(super) fn readyz(&self) -> Response<ApiBody> {
        let governed = self.active_policy();
        let (active_servers, _) = self.shims.borrow_mut().count_active(self.clock.now());
        let log_fault = self.journal.failure();
        let status = match (self.is_stopping(), &log_fault) {
            (true, _) => "shutting_down",
            (_, Some(_)) => "not_ready",
            _ => "ready",
        };
        let mut response = json(&Readiness {
            status,
            policy_version: governed.version().to_owned(),
            profile: governed.profile.as_str(),
            policy_faults: self.trouble.borrow().clone(),
            log_fault,
            active_servers,
            pending_approvals: self.tasks.pending_count(),
            channels: self.channels.health(),
        });
        if status != "ready" {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        response
    }

    pub(super) fn metrics_text(&self) -> Response<ApiBody> {
        self.update_gauges();
        let text = self.metrics.borrow().text();
        text_reply("text/plain; version=0.0.4; charset=utf-8", text.into_bytes())
    }

    pub(super) fn update_gauges(&self) {
        self.sweep();
        self.count_new_lines();
        let now = self.clock.now();
        let mut shims = self.shims.borrow_mut();
        let (active, _) = shims.count_active(now);
        let mut metrics = self.metrics.borrow_mut();
        metrics.set(MetricName::StdioActiveServers, &[], active as f64);
        // Servers that are gone must not keep their last state.
        metrics.clear(MetricName::StdioServerState);
        for (server, state) in shims.states() {
            metrics.increase_gauge(MetricName::StdioServerState, &[server, state], 1.0);
        }
        metrics.set(MetricName::UptimeSeconds, &[], now.mono_ns as f64 / 1e9);
        metrics.set(MetricName::TasksPending, &["approval"], self.tasks.pending_count() as f64);
        metrics.set(MetricName::ActiveRequests, &[], self.busy.get() as f64);
        let streams = self.pushes.receiver_count() as f64;
        metrics.set(MetricName::ConnectionsActive, &["stream"], streams);
        for state in ["starting", "ready", "shutting_down", "stopped"] {
            let is = (state == "shutting_down") == self.is_stopping();
            let is = is && matches!(state, "ready" | "shutting_down");
            metrics.set(MetricName::LifecycleState, &[state], f64::from(u8::from(is)));
        }
    }
}
