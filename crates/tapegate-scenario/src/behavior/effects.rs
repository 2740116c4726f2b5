//! Reads side effects.

use tapegate_yaml::word_choices;

use super::{BehaviorContext, read_bounded, read_ms};
use crate::field::{MapFields, report_expected};
use crate::finding::Findings;
use crate::model::{EffectTrigger, ServerEffect, SideEffect};
use crate::node::{Node, NodeValue};
use crate::shape::{TableFields, language};
use crate::template::JsonTemplate;

const SECOND_NS: u64 = 1_000_000_000;
/// The highest rate of a flood, in notifications per second.
const PER_SECOND_MAX: u64 = 10_000;

word_choices! {
    /// The type of a side effect, as scenarios name it.
    pub(crate) enum EffectType {
        Flood = "notification_flood",
        Batch = "batch_amplify",
        Deadlock = "pipe_deadlock",
        Close = "close_connection",
        Duplicates = "duplicate_request_ids",
    }
}

/// Reads a side effect; `None` if it is invalid, which is then reported.
pub(super) fn read(
    node: &Node,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Option<SideEffect> {
    let at = TableFields::new(node, &language::SIDE_EFFECT);
    let of = at.choice("type")?;
    let trigger = at.choice("trigger").unwrap_or_default();
    if trigger == EffectTrigger::Continuous && of != EffectType::Flood {
        let message = "only `notification_flood` can be continuous; this runs once, on connect";
        findings.warning(node.spot, message);
    }
    let effect = match of {
        EffectType::Flood => flood(&at, how, findings),
        EffectType::Batch => ServerEffect::BatchAmplify {
            count: count(&at, "batch_size", 10_000, how, findings)?,
            method: method(&at),
            params: params(&at, how, findings),
        },
        EffectType::Deadlock => ServerEffect::PipeDeadlock {
            bytes: read_bounded(&at, "fill_bytes", 1 << 20, how.limits.payload_bytes, findings),
        },
        EffectType::Close => ServerEffect::CloseConnection {
            graceful: at.flag("graceful").unwrap_or(true),
            delay_ns: read_ms(&at, "delay_ms", 0),
        },
        EffectType::Duplicates => {
            MapFields::of(node).required("method", findings)?;
            ServerEffect::DuplicateRequestIds {
                count: count(&at, "count", 3, how, findings)?,
                id: id(&at, findings),
                method: at.text("method")?.to_owned(),
                params: params(&at, how, findings),
            }
        }
    };
    Some(SideEffect { trigger, effect })
}

fn flood(at: &TableFields<'_>, how: &BehaviorContext, findings: &mut Findings) -> ServerEffect {
    let requested_rate = at.whole_number("rate_per_sec").unwrap_or(1000);
    let rate = requested_rate.clamp(1, PER_SECOND_MAX);
    if rate != requested_rate
        && let Some(node) = at.get("rate_per_sec")
    {
        let message = format!("must be from 1 to {PER_SECOND_MAX}; {rate} is used");
        findings.with_step("rate_per_sec", |findings| findings.warning(node.spot, message));
    }
    let seconds = at.whole_number("duration_sec").unwrap_or(10);
    ServerEffect::NotificationFlood {
        per_second: rate as u32,
        duration_ns: seconds.saturating_mul(SECOND_NS),
        method: method(at),
        params: params(at, how, findings),
    }
}

/// Reads a count of at least one.
fn count(
    at: &TableFields<'_>,
    name: &str,
    default: usize,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Option<usize> {
    let count = read_bounded(at, name, default, how.limits.count, findings);
    if count == 0 {
        // Without the key if the limit itself is 0.
        let spot = at.get(name).map(|node| node.spot).unwrap_or_default();
        findings.with_step(name, |findings| findings.error(spot, "must be at least 1"));
    }
    (count > 0).then_some(count)
}

fn method(at: &TableFields<'_>) -> String {
    at.text("method").unwrap_or("notifications/message").to_owned()
}

fn params(
    at: &TableFields<'_>,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Option<JsonTemplate> {
    let params = at.get("params")?;
    Some(findings.with_step("params", |findings| {
        JsonTemplate::read(params, &|_| how.interpolate, &how.limits, findings)
    }))
}

/// The id that the requests share, as JSON.
fn id(at: &TableFields<'_>, findings: &mut Findings) -> String {
    let node = at.get("id").filter(|node| node.value != NodeValue::Null);
    let Some(node) = node else { return "1".to_owned() };
    if let NodeValue::List(_) | NodeValue::Map(_) | NodeValue::Bool(_) = node.value {
        findings.with_step("id", |findings| report_expected(node, "a number or text", findings));
    }
    String::from_utf8_lossy(&node.to_json()).into_owned()
}
