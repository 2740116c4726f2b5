//! Reads side effects.

use std::rc::Rc;

use super::{Reading, ms, up_to};
use crate::field::{Fields, choose, expected};
use crate::finding::Findings;
use crate::form::Form;
use crate::generate::Generator;
use crate::model::{Effect, EffectTrigger, SideEffect};
use crate::node::{Node, Value};

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
enum Sort {
    Flood,
    Batch,
    Deadlock,
    Close,
    Duplicates,
}

const SORTS: [(&str, Sort); 5] = [
    ("notification_flood", Sort::Flood),
    ("batch_amplify", Sort::Batch),
    ("pipe_deadlock", Sort::Deadlock),
    ("close_connection", Sort::Close),
    ("duplicate_request_ids", Sort::Duplicates),
];

/// Reads a list of side effects. Invalid ones are reported and left out.
pub(super) fn read_all(list: &Node, how: &Reading, findings: &mut Findings) -> Vec<SideEffect> {
    let Some(elements) = list.as_list() else {
        expected(list, "a list", findings);
        return Vec::new();
    };
    let read = elements.iter().enumerate().filter_map(|(index, element)| {
        findings.within(&format!("[{index}]"), |findings| read(element, how, findings))
    });
    read.collect()
}

fn read(node: &Node, how: &Reading, findings: &mut Findings) -> Option<SideEffect> {
    if node.as_map().is_none() {
        expected(node, "a map", findings);
        return None;
    }
    let fields = Fields::of(node);
    let sort = fields.need("type", findings)?;
    let sort = findings.within("type", |findings| choose(sort, &SORTS, findings))?;
    let trigger = fields.choice("trigger", &TRIGGERS, findings).unwrap_or_default();
    if trigger == EffectTrigger::Continuous && sort != Sort::Flood {
        let words = "only `notification_flood` can be continuous; this runs once, on connect";
        findings.warning(node.spot, words);
    }
    let effect = match sort {
        Sort::Flood => flood(node, &fields, how, findings),
        Sort::Batch => Effect::BatchAmplify {
            count: count(&fields, "batch_size", 10_000, how, findings)?,
            method: method(&fields, findings),
            params: params(&fields, how, findings),
        },
        Sort::Deadlock => Effect::PipeDeadlock {
            bytes: up_to(&fields, "fill_bytes", 1 << 20, how.limits.payload_bytes, findings),
        },
        Sort::Close => Effect::CloseConnection {
            graceful: fields.flag("graceful", findings).unwrap_or(true),
            delay_ns: ms(&fields, "delay_ms", 0, findings),
        },
        Sort::Duplicates => {
            fields.need("method", findings)?;
            Effect::DuplicateRequestIds {
                count: count(&fields, "count", 3, how, findings)?,
                id: id(&fields, findings),
                method: fields.text("method", findings)?.to_owned(),
                params: params(&fields, how, findings),
            }
        }
    };
    Some(SideEffect { trigger, effect })
}

fn flood(node: &Node, fields: &Fields<'_>, how: &Reading, findings: &mut Findings) -> Effect {
    let asked = fields.whole("rate_per_sec", findings).unwrap_or(1000);
    let rate = asked.clamp(1, PER_SECOND_MAX);
    if rate != asked {
        let spot = fields.get("rate_per_sec").map_or(node.spot, |node| node.spot);
        let words = format!("must be from 1 to {PER_SECOND_MAX}; {rate} is used");
        findings.within("rate_per_sec", |findings| findings.warning(spot, words));
    }
    let seconds = fields.whole("duration_sec", findings).unwrap_or(10);
    Effect::NotificationFlood {
        per_second: rate as u32,
        duration_ns: seconds.saturating_mul(SECOND_NS),
        method: method(fields, findings),
        params: params(fields, how, findings),
    }
}

/// Reads a count of at least one.
fn count(
    fields: &Fields<'_>,
    name: &str,
    default: usize,
    how: &Reading,
    findings: &mut Findings,
) -> Option<usize> {
    let count = up_to(fields, name, default, how.limits.count, findings);
    if count == 0 {
        let spot = fields.get(name).map(|node| node.spot).unwrap_or_default();
        findings.within(name, |findings| findings.error(spot, "must be at least 1"));
    }
    (count > 0).then_some(count)
}

fn method(fields: &Fields<'_>, findings: &mut Findings) -> String {
    fields.text("method", findings).unwrap_or("notifications/message").to_owned()
}

fn params(fields: &Fields<'_>, how: &Reading, findings: &mut Findings) -> Option<Form> {
    let params = fields.get("params")?;
    let mut generate = |node: &Node, findings: &mut Findings| {
        Generator::read(node, &how.limits, findings).map(Rc::new)
    };
    Some(findings.within("params", |findings| {
        Form::read_with(params, how.interpolate, &mut generate, findings)
    }))
}

/// The id that the requests share, as JSON.
fn id(fields: &Fields<'_>, findings: &mut Findings) -> String {
    let Some(node) = fields.get("id") else { return "1".to_owned() };
    if let Value::List(_) | Value::Map(_) | Value::Bool(_) = node.value {
        findings.within("id", |findings| expected(node, "a number or text", findings));
    }
    String::from_utf8_lossy(&node.to_json()).into_owned()
}
