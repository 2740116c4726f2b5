//! All metric families: a flat list of names and their help texts.

use super::{Histogram, Value};

/// All series with one name.
#[derive(Debug)]
pub struct Family {
    /// The name.
    pub name: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The metric type.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Only increases.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution with these bucket bounds.
    Histogram(&'static [f64]),
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }

    pub(super) fn zero(self) -> Value {
        match self {
            Self::Histogram(bounds) => {
                Value::Histogram(Histogram { counts: vec![0; bounds.len() + 1], sum: 0.0 })
            }
            Self::Counter | Self::Gauge => Value::Number(0.0),
        }
    }
}

pub(super) fn find(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, help, kind: Kind::Counter, labels }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Family {
    Family { name, help, kind: Kind::Gauge, labels }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    bounds: &'static [f64],
    help: &'static str,
) -> Family {
    Family { name, help, kind: Kind::Histogram(bounds), labels }
}

const REQUEST_MS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 5000.0];
const CEDAR_MS: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];
const WAIT_S: &[f64] = &[1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0];
const PAYLOAD_BYTES: &[f64] =
    &[128.0, 512.0, 2048.0, 8192.0, 32768.0, 131_072.0, 524_288.0, 1_048_576.0];

/// All metric families.
pub const FAMILIES: &[Family] = &[
    counter(
        "thoughtgate_stdio_messages_total",
        &["server_id", "direction", "method"],
        "Messages that shims have passed on or refused.",
    ),
    counter(
        "thoughtgate_stdio_governance_decisions_total",
        &["server_id", "decision", "profile"],
        "Decisions of shims, and of the hub for others.",
    ),
    counter(
        "thoughtgate_stdio_framing_errors_total",
        &["server_id", "error_type"],
        "Messages that were not well-formed.",
    ),
    gauge(
        "thoughtgate_stdio_server_state",
        &["server_id", "state"],
        "Shims whose server is in this state.",
    ),
    histogram(
        "thoughtgate_stdio_approval_latency_seconds",
        &["server_id"],
        WAIT_S,
        "How long people took to approve or deny.",
    ),
    gauge("thoughtgate_stdio_active_servers", &[], "Shims that were heard of within their lease."),
    counter(
        "thoughtgate_stdio_approval_outcomes_total",
        &["server_id", "outcome"],
        "Requests for approval that came to an end.",
    ),
    histogram(
        "thoughtgate_stdio_approval_duration_seconds",
        &["server_id", "outcome"],
        WAIT_S,
        "How long requests for approval were open.",
    ),
    counter(
        "thoughtgate_requests_total",
        &["method", "tool_name", "status"],
        "Calls that were decided about, by what was decided.",
    ),
    counter("thoughtgate_decisions_total", &["gate", "outcome"], "Decisions, by the gate."),
    counter(
        "thoughtgate_errors_total",
        &["error_type", "method"],
        "Requests to the hub that were refused, and messages at fault.",
    ),
    counter(
        "thoughtgate_cedar_evaluations_total",
        &["decision", "policy_id"],
        "Decisions of Cedar, by the policies that decided.",
    ),
    counter(
        "thoughtgate_approval_requests_total",
        &["channel", "outcome"],
        "Requests for approval, by where people were asked.",
    ),
    counter("thoughtgate_tasks_created_total", &["task_type"], "Tasks that were opened."),
    counter(
        "thoughtgate_tasks_completed_total",
        &["task_type", "outcome"],
        "Tasks that came to an end.",
    ),
    counter(
        "thoughtgate_blocking_approvals_total",
        &["outcome"],
        "Calls that were held, by how that ended.",
    ),
    counter("thoughtgate_drain_timeout_total", &[], "Ends for which shims were waited in vain."),
    counter(
        "thoughtgate_approvals_cancelled_shutdown_total",
        &[],
        "Requests for approval that were open when the hub ended.",
    ),
    counter("thoughtgate_cedar_reload_total", &["status"], "Loads of Cedar policies."),
    counter("thoughtgate_config_load_total", &["status"], "Loads of the policy."),
    counter("thoughtgate_rule_matches_total", &["action"], "Calls that a rule matched."),
    counter(
        "thoughtgate_telemetry_dropped_total",
        &["signal"],
        "Spans and exports of metrics that the collector did not get.",
    ),
    histogram(
        "thoughtgate_request_duration_ms",
        &["method", "tool_name"],
        REQUEST_MS,
        "How long decisions took.",
    ),
    histogram(
        "thoughtgate_cedar_evaluation_duration_ms",
        &["decision"],
        CEDAR_MS,
        "How long decisions took in which Cedar was asked.",
    ),
    histogram(
        "thoughtgate_approval_wait_duration_s",
        &["channel", "outcome"],
        WAIT_S,
        "How long people were waited for.",
    ),
    histogram(
        "thoughtgate_request_payload_size_bytes",
        &["direction", "method"],
        PAYLOAD_BYTES,
        "How large the params were that the hub decided about.",
    ),
    histogram(
        "thoughtgate_blocking_hold_duration_seconds",
        &["outcome"],
        WAIT_S,
        "How long calls were held.",
    ),
    gauge("thoughtgate_connections_active", &["transport"], "Streams that shims listen to."),
    gauge("thoughtgate_tasks_pending", &["task_type"], "Tasks that nobody has decided about."),
    gauge("thoughtgate_cedar_policies_loaded", &[], "Cedar policies that hold."),
    gauge("thoughtgate_uptime_seconds", &[], "How long the hub has been running."),
    gauge("thoughtgate_config_reload_timestamp", &[], "When the policy was last loaded."),
    gauge("thoughtgate_startup_duration_seconds", &[], "How long the hub took to start."),
    gauge("thoughtgate_active_requests", &[], "Requests that are being answered."),
    gauge("thoughtgate_lifecycle_state", &["state"], "1 for the state the hub is in."),
];
