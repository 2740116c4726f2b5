//! Reads the section `telemetry`.

use std::time::Duration;

use tapegate_yaml::field::{MapFields, to_usize};
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue};

use super::read_under;
use crate::model::TelemetrySettings;

/// The finding for a section that does not set `enabled`.
const OFF: &str = "nothing is sent: telemetry is off until `enabled: true` is set; write `enabled: false` if that \
                   is meant";

/// The default: nothing is exported.
fn default_telemetry() -> TelemetrySettings {
    TelemetrySettings {
        sample_rate: 1.0,
        delay: Duration::from_millis(5_000),
        timeout: Duration::from_millis(30_000),
        queue_max: 2_048,
        batch_max: 512,
        ..TelemetrySettings::default()
    }
}

pub(super) fn read(top: &Node, findings: &mut Findings) -> TelemetrySettings {
    read_under(top, "telemetry", findings, |node, findings| {
        let mut telemetry = default_telemetry();
        let fields = MapFields::of(node);
        telemetry.enabled = fields.flag("enabled", findings).unwrap_or(false);
        read_under(node, "otlp", findings, |node, _| otlp(node, &mut telemetry));
        read_under(node, "sampling", findings, |node, findings| {
            read_sampling(node, &mut telemetry, findings)
        });
        read_under(node, "batch", findings, |node, findings| {
            read_batch(node, &mut telemetry, findings)
        });
        telemetry.resource = pairs(fields.get("resource"));
        if telemetry.enabled && telemetry.endpoint.is_none() && !findings.has_error_at(node.spot) {
            findings.error(node.spot, "`otlp.endpoint` is missing; telemetry is sent there");
        }
        let is_given = node.as_map().is_some_and(|keys| !keys.is_empty());
        if fields.get("enabled").is_none() && is_given && !is_set_by_profile(top) {
            findings.warning(node.spot, OFF);
        }
        telemetry
    })
    .unwrap_or_else(default_telemetry)
}

/// Whether a profile sets whether telemetry is sent.
fn is_set_by_profile(top: &Node) -> bool {
    let profiles = MapFields::of(top).get("profiles").and_then(Node::as_map).unwrap_or_default();
    profiles.iter().any(|(_, profile)| {
        let telemetry = MapFields::of(profile).get("telemetry");
        telemetry.is_some_and(|node| MapFields::of(node).get("enabled").is_some())
    })
}

fn otlp(node: &Node, telemetry: &mut TelemetrySettings) {
    let fields = MapFields::of(node);
    telemetry.endpoint = fields.get("endpoint").and_then(Node::as_text).map(str::to_owned);
    telemetry.headers = pairs(fields.get("headers"));
    let protocol = fields.get("protocol");
    telemetry.json = protocol.and_then(Node::as_text) == Some("http/json");
}

fn read_sampling(node: &Node, telemetry: &mut TelemetrySettings, findings: &mut Findings) {
    let fields = MapFields::of(node);
    if let Some(node) = fields.get("success_sample_rate")
        && let NodeValue::Number(text) = &node.value
    {
        match text.parse::<f64>() {
            Ok(rate) if (0.0..=1.0).contains(&rate) => telemetry.sample_rate = rate,
            _ => findings.with_step("success_sample_rate", |findings| {
                findings.error(node.spot, format!("`{text}` is not a share from 0 to 1"));
            }),
        }
    }
}

fn read_batch(node: &Node, telemetry: &mut TelemetrySettings, findings: &mut Findings) {
    let fields = MapFields::of(node);
    let mut whole = |key: &str| fields.whole_number(key, findings);
    if let Some(most) = whole("max_queue_size") {
        telemetry.queue_max = to_usize(most);
    }
    if let Some(ms) = whole("scheduled_delay_ms") {
        telemetry.delay = Duration::from_millis(ms);
    }
    if let Some(ms) = whole("export_timeout_ms") {
        telemetry.timeout = Duration::from_millis(ms);
    }
    match whole("max_export_batch_size").map(to_usize) {
        Some(most) if most > telemetry.queue_max => {
            let spot = fields.get("max_export_batch_size").map_or(node.spot, |node| node.spot);
            let queue = telemetry.queue_max;
            findings.error(spot, format!("a batch ({most}) is larger than the queue ({queue})"));
        }
        Some(most) => telemetry.batch_max = most,
        None => telemetry.batch_max = telemetry.batch_max.min(telemetry.queue_max),
    }
}

fn pairs(node: Option<&Node>) -> Vec<(String, String)> {
    let entries = node.and_then(Node::as_map).unwrap_or_default();
    entries
        .iter()
        .filter_map(|(key, node)| Some((key.name.clone(), node.as_text()?.to_owned())))
        .collect()
}
