//! Reads side effects.

use std::rc::Rc;

use super::{BehaviorContext, read_bounded, read_ms};
use crate::field::{MapFields, choose, report_expected};
use crate::finding::Findings;
use crate::generate::Generator;
use crate::model::{EffectTrigger, ServerEffect, SideEffect};
use crate::node::{Node, NodeValue};
use crate::template::JsonTemplate;

const SECOND_NS: u64 = 1_000_000_000;
/// The highest rate of a flood, in notifications per second.
const PER_SECOND_MAX: u64 = 10_000;

const TRIGGERS: [(&str, EffectTrigger); 5] = [
    ("on_request", EffectTrigger::OnRequest),
    ("on_connect", EffectTrigger::OnConnect),
    ("on_subscribe", EffectTrigger::OnSubscribe),
    ("on_unsubscribe", EffectTrigger::OnUnsubscribe),
    ("continuous", EffectTrigger::Continuous),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EffectKind {
    Flood,
    Batch,
    Deadlock,
    Close,
    Duplicates,
}

const SORTS: [(&str, EffectKind); 5] = [
    ("notification_flood", EffectKind::Flood),
    ("batch_amplify", EffectKind::Batch),
    ("pipe_deadlock", EffectKind::Deadlock),
    ("close_connection", EffectKind::Close),
    ("duplicate_request_ids", EffectKind::Duplicates),
];

/// Reads a list of side effects. Invalid ones are reported and left out.
pub(super) fn read_all(
    list: &Node,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Vec<SideEffect> {
    let Some(elements) = list.as_list() else {
        report_expected(list, "a list", findings);
        return Vec::new();
    };
    let read = elements.iter().enumerate().filter_map(|(index, element)| {
        findings.with_step(&format!("[{index}]"), |findings| read(element, how, findings))
    });
    read.collect()
}

fn read(node: &Node, how: &BehaviorContext, findings: &mut Findings) -> Option<SideEffect> {
    if node.as_map().is_none() {
        report_expected(node, "a map", findings);
        return None;
    }
    let fields = MapFields::of(node);
    let sort = fields.required("type", findings)?;
    let sort = findings.with_step("type", |findings| choose(sort, &SORTS, findings))?;
    let trigger = fields.choice("trigger", &TRIGGERS, findings).unwrap_or_default();
    if trigger == EffectTrigger::Continuous && sort != EffectKind::Flood {
        let message = "only `notification_flood` can be continuous; this runs once, on connect";
        findings.warning(node.spot, message);
    }
    let effect = match sort {
        EffectKind::Flood => flood(node, &fields, how, findings),
        EffectKind::Batch => ServerEffect::BatchAmplify {
            count: count(&fields, "batch_size", 10_000, how, findings)?,
            method: method(&fields, findings),
            params: params(&fields, how, findings),
        },
        EffectKind::Deadlock => ServerEffect::PipeDeadlock {
            bytes: read_bounded(&fields, "fill_bytes", 1 << 20, how.limits.payload_bytes, findings),
        },
        EffectKind::Close => ServerEffect::CloseConnection {
            graceful: fields.flag("graceful", findings).unwrap_or(true),
            delay_ns: read_ms(&fields, "delay_ms", 0, findings),
        },
        EffectKind::Duplicates => {
            fields.required("method", findings)?;
            ServerEffect::DuplicateRequestIds {
                count: count(&fields, "count", 3, how, findings)?,
                id: id(&fields, findings),
                method: fields.text("method", findings)?.to_owned(),
                params: params(&fields, how, findings),
            }
        }
    };
    Some(SideEffect { trigger, effect })
}

fn flood(
    node: &Node,
    fields: &MapFields<'_>,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> ServerEffect {
    let requested_rate = fields.whole_number("rate_per_sec", findings).unwrap_or(1000);
    let rate = requested_rate.clamp(1, PER_SECOND_MAX);
    if rate != requested_rate {
        let spot = fields.get("rate_per_sec").map_or(node.spot, |node| node.spot);
        let message = format!("must be from 1 to {PER_SECOND_MAX}; {rate} is used");
        findings.with_step("rate_per_sec", |findings| findings.warning(spot, message));
    }
    let seconds = fields.whole_number("duration_sec", findings).unwrap_or(10);
    ServerEffect::NotificationFlood {
        per_second: rate as u32,
        duration_ns: seconds.saturating_mul(SECOND_NS),
        method: method(fields, findings),
        params: params(fields, how, findings),
    }
}

/// Reads a count of at least one.
fn count(
    fields: &MapFields<'_>,
    name: &str,
    default: usize,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Option<usize> {
    let count = read_bounded(fields, name, default, how.limits.count, findings);
    if count == 0 {
        let spot = fields.get(name).map(|node| node.spot).unwrap_or_default();
        findings.with_step(name, |findings| findings.error(spot, "must be at least 1"));
    }
    (count > 0).then_some(count)
}

fn method(fields: &MapFields<'_>, findings: &mut Findings) -> String {
    fields.text("method", findings).unwrap_or("notifications/message").to_owned()
}

fn params(
    fields: &MapFields<'_>,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Option<JsonTemplate> {
    let params = fields.get("params")?;
    let mut generate = |node: &Node, findings: &mut Findings| {
        Generator::read(node, &how.limits, findings).map(Rc::new)
    };
    Some(findings.with_step("params", |findings| {
        JsonTemplate::read_with(params, how.interpolate, &mut generate, findings)
    }))
}

/// The id that the requests share, as JSON.
fn id(fields: &MapFields<'_>, findings: &mut Findings) -> String {
    let Some(node) = fields.get("id") else { return "1".to_owned() };
    if let NodeValue::List(_) | NodeValue::Map(_) | NodeValue::Bool(_) = node.value {
        findings.with_step("id", |findings| report_expected(node, "a number or text", findings));
    }
    String::from_utf8_lossy(&node.to_json()).into_owned()
}
