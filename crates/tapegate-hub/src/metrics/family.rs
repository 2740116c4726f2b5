//! All metric families: a flat list of names and their help texts.

use super::{Histogram, MetricValue};

/// All series with one name.
#[derive(Debug)]
pub struct MetricFamily {
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The metric type.
    pub kind: MetricKind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// Only increases.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution with these bucket bounds.
    Histogram(&'static [f64]),
}

impl MetricKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }

    pub(super) fn zero(self) -> MetricValue {
        match self {
            Self::Histogram(bounds) => {
                MetricValue::Histogram(Histogram { counts: vec![0; bounds.len() + 1], sum: 0.0 })
            }
            Self::Counter | Self::Gauge => MetricValue::Number(0.0),
        }
    }
}

impl MetricName {
    /// The family of this name.
    pub(super) fn family(self) -> &'static MetricFamily {
        &FAMILIES[self as usize]
    }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricFamily {
    MetricFamily { name, help, kind: MetricKind::Counter, labels }
}

const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricFamily {
    MetricFamily { name, help, kind: MetricKind::Gauge, labels }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    bounds: &'static [f64],
    help: &'static str,
) -> MetricFamily {
    MetricFamily { name, help, kind: MetricKind::Histogram(bounds), labels }
}

const REQUEST_MS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0];
const CEDAR_MS: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];
const WAIT_S: &[f64] = &[1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0];
const PAYLOAD_BYTES: &[f64] =
    &[128.0, 512.0, 2048.0, 8192.0, 32768.0, 131_072.0, 524_288.0, 1_048_576.0];

/// Defines [`MetricName`] and [`FAMILIES`], in the same order.
macro_rules! families {
    ($($name:ident = $family:expr;)*) => {
        /// The name of a metric, without its prefix and suffix.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum MetricName {
            $($name,)*
        }

        impl MetricName {
            /// All names, in the order of [`FAMILIES`].
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }

        /// All metric families.
        pub const FAMILIES: &[MetricFamily] = &[$($family,)*];
    };
}

families! {
    StdioMessages = counter(
        "thoughtgate_stdio_messages_total",
        &["server_id", "direction", "method"],
        "Messages that shims forwarded or refused.",
    );
    StdioGovernanceDecisions = counter(
        "thoughtgate_stdio_governance_decisions_total",
        &["server_id", "decision", "profile"],
        "Decisions made by shims, and by the hub for other callers.",
    );
    StdioFramingErrors = counter(
        "thoughtgate_stdio_framing_errors_total",
        &["server_id", "error_type"],
        "Malformed messages.",
    );
    StdioServerState = gauge(
        "thoughtgate_stdio_server_state",
        &["server_id", "state"],
        "Shims whose server is in this state.",
    );
    StdioApprovalLatencySeconds = histogram(
        "thoughtgate_stdio_approval_latency_seconds",
        &["server_id"],
        WAIT_S,
        "Time that people took to approve or deny a request.",
    );
    StdioActiveServers = gauge("thoughtgate_stdio_active_servers", &[], "Shims with a heartbeat within their lease.");
    StdioApprovalOutcomes = counter(
        "thoughtgate_stdio_approval_outcomes_total",
        &["server_id", "outcome"],
        "Approval requests that ended, by outcome.",
    );
    StdioApprovalDurationSeconds = histogram(
        "thoughtgate_stdio_approval_duration_seconds",
        &["server_id", "outcome"],
        WAIT_S,
        "Time that approval requests were open.",
    );
    Requests = counter(
        "thoughtgate_requests_total",
        &["method", "tool_name", "status"],
        "Calls that were decided, by decision.",
    );
    Decisions = counter("thoughtgate_decisions_total", &["gate", "outcome"], "Decisions, by gate.");
    Errors = counter(
        "thoughtgate_errors_total",
        &["error_type", "method"],
        "Requests that the hub refused, and malformed messages.",
    );
    CedarEvaluations = counter(
        "thoughtgate_cedar_evaluations_total",
        &["decision", "policy_id"],
        "Cedar decisions, by the policy that decided.",
    );
    ApprovalRequests = counter(
        "thoughtgate_approval_requests_total",
        &["channel", "outcome"],
        "Approval requests, by channel.",
    );
    TasksCreated = counter("thoughtgate_tasks_created_total", &["task_type"], "Tasks that were created.");
    TasksCompleted = counter(
        "thoughtgate_tasks_completed_total",
        &["task_type", "outcome"],
        "Tasks that ended, by outcome.",
    );
    BlockingApprovals = counter(
        "thoughtgate_blocking_approvals_total",
        &["outcome"],
        "Calls that were held for approval, by outcome.",
    );
    DrainTimeout = counter("thoughtgate_drain_timeout_total", &[], "Shutdowns that timed out waiting for shims.");
    ApprovalsCancelledShutdown = counter(
        "thoughtgate_approvals_cancelled_shutdown_total",
        &[],
        "Approval requests that were open when the hub shut down.",
    );
    CedarReload = counter("thoughtgate_cedar_reload_total", &["status"], "Cedar policy loads.");
    ConfigLoad = counter("thoughtgate_config_load_total", &["status"], "Policy loads.");
    RuleMatches = counter("thoughtgate_rule_matches_total", &["action"], "Calls that matched a rule.");
    TelemetryDropped = counter(
        "thoughtgate_telemetry_dropped_total",
        &["signal"],
        "Spans and metric exports that did not reach the collector.",
    );
    RequestDurationMs = histogram(
        "thoughtgate_request_duration_ms",
        &["method", "tool_name"],
        REQUEST_MS,
        "Time taken by decisions.",
    );
    CedarEvaluationDurationMs = histogram(
        "thoughtgate_cedar_evaluation_duration_ms",
        &["decision"],
        CEDAR_MS,
        "Time taken by decisions that Cedar evaluated.",
    );
    ApprovalWaitDurationS = histogram(
        "thoughtgate_approval_wait_duration_s",
        &["channel", "outcome"],
        WAIT_S,
        "Time spent waiting for approvers.",
    );
    RequestPayloadSizeBytes = histogram(
        "thoughtgate_request_payload_size_bytes",
        &["direction", "method"],
        PAYLOAD_BYTES,
        "Size of the params that the hub evaluated.",
    );
    BlockingHoldDurationSeconds = histogram(
        "thoughtgate_blocking_hold_duration_seconds",
        &["outcome"],
        WAIT_S,
        "Time that calls were held for approval.",
    );
    ConnectionsActive = gauge("thoughtgate_connections_active", &["transport"], "Open event streams to shims.");
    TasksPending = gauge("thoughtgate_tasks_pending", &["task_type"], "Tasks that are not decided yet.");
    CedarPoliciesLoaded = gauge("thoughtgate_cedar_policies_loaded", &[], "Cedar policies in force.");
    UptimeSeconds = gauge("thoughtgate_uptime_seconds", &[], "Time since the hub started.");
    ConfigReloadTimestamp = gauge("thoughtgate_config_reload_timestamp", &[], "Time of the last policy load.");
    StartupDurationSeconds = gauge("thoughtgate_startup_duration_seconds", &[], "Time that the hub took to start.");
    ActiveRequests = gauge("thoughtgate_active_requests", &[], "Requests in progress.");
    LifecycleState = gauge("thoughtgate_lifecycle_state", &["state"], "1 for the current state, 0 for others.");
}
