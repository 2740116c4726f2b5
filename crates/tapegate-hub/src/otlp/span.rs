//! Spans made from lines of the activity log.
//!
//! The ids are derived from the line's hash, which is unique; a trace context sent by the caller
//! takes precedence. So a line yields the same span no matter which process reads it.

use std::borrow::Cow;

use tapegate_core::hex;
use tapegate_core::time::read_rfc3339;
use tapegate_store::activity::LoggedEvent;

use super::encoding::{OtlpMessage, OtlpValue, attributes, field};

const INTERNAL: u32 = 1;
const CONSUMER: u32 = 5;
const STATUS_ERROR: u32 = 2;

/// W3C trace context, from a `traceparent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceContext {
    pub(super) trace: Vec<u8>,
    pub(super) parent: Vec<u8>,
}

impl TraceContext {
    /// Parses a `traceparent`; `None` if it is malformed.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (parent, flags) = (parts.next()?, parts.next()?);
        let more = parts.next().is_some();
        let (trace, parent) = (read_bytes(trace, 16)?, read_bytes(parent, 8)?);
        let known = read_bytes(version, 1)? != [0xff] && read_bytes(flags, 1).is_some();
        let whole = known && (version != "00" || !more);
        let set = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
        (whole && set(&trace) && set(&parent)).then_some(Self { trace, parent })
    }
}

/// The span of a line that records a decision. Only forwarded messages are subject to sampling.
pub(super) fn span(line: &LoggedEvent, sample_rate: f64) -> Option<OtlpMessage> {
    let text = |key| line.str(key).unwrap_or_default();
    let (kind, word) = (text("kind"), text("governance_decision"));
    let (name, role) = match &*kind {
        "decision" | "framing" => ("thoughtgate.decision", INTERNAL),
        "approval" if line.raw("decided_by").is_some() => {
            ("thoughtgate.approval.callback", CONSUMER)
        }
        "approval" => ("thoughtgate.approval.dispatch", 4),
        _ => return None,
    };
    let uid = line.uid();
    let context = line.str("traceparent").and_then(|text| TraceContext::read(&text));
    let trace = context.as_ref().map_or_else(|| uid[..16].to_vec(), |it| it.trace.clone());
    let passed =
        matches!(&*word, "forward" | "approved") || line.bool_value("forwarded") == Some(true);
    if passed && !is_sampled(&trace, sample_rate) {
        return None;
    }
    let end_ns = u64::try_from(read_rfc3339(&text("timestamp"))?).ok()?.saturating_mul(1000);
    let took_ns = line.number("latency_us").unwrap_or(0).saturating_mul(1000);
    let mut span = vec![
        field(1, "traceId", OtlpValue::Id(trace)),
        field(2, "spanId", OtlpValue::Id(uid[16..24].to_vec())),
    ];
    if let Some(context) = context {
        span.push(field(4, "parentSpanId", OtlpValue::Id(context.parent)));
    }
    span.push(field(5, "name", OtlpValue::Text(name.to_owned())));
    span.push(field(6, "kind", OtlpValue::Enum(role)));
    span.push(field(7, "startTimeUnixNano", OtlpValue::Fixed64(end_ns.saturating_sub(took_ns))));
    span.push(field(8, "endTimeUnixNano", OtlpValue::Fixed64(end_ns)));
    span.push(field(9, "attributes", attributes(pairs(line, passed))));
    if !passed && word != "pending_approval" {
        let status = vec![
            field(2, "message", OtlpValue::Text(word.into_owned())),
            field(3, "code", OtlpValue::Enum(STATUS_ERROR)),
        ];
        span.push(field(15, "status", OtlpValue::Message(status)));
    }
    Some(span)
}

/// The attributes of a decision's span.
fn pairs(line: &LoggedEvent, passed: bool) -> Vec<(&'static str, OtlpValue)> {
    const TEXTS: &[(&str, &str)] = &[
        ("mcp.method.name", "method"),
        ("mcp.message.id", "message_id"),
        ("gen_ai.tool.name", "tool"),
        ("thoughtgate.request_id", "request_id"),
        ("thoughtgate.server_id", "server_id"),
        ("thoughtgate.decision", "governance_decision"),
        ("thoughtgate.gate", "gate"),
        ("thoughtgate.profile", "profile"),
        ("thoughtgate.component", "component"),
        ("thoughtgate.policy.version", "policy_version"),
        ("thoughtgate.connection_id", "connection_id"),
        ("governance.rule_id", "rule"),
        ("task.id", "approval_id"),
        ("approval.user", "decided_by"),
    ];
    let named = TEXTS.iter().filter_map(|(name, key)| {
        let text: Cow<'_, str> = line.str(key).filter(|text| !text.is_empty())?;
        Some((*name, OtlpValue::Text(text.into_owned())))
    });
    let mut pairs: Vec<_> = named.collect();
    if line.str("method").as_deref() == Some("tools/call") {
        pairs.push(("gen_ai.operation.name", OtlpValue::Text("execute_tool".to_owned())));
    }
    if let Some(forwarded) = line.bool_value("forwarded") {
        pairs.push(("thoughtgate.forwarded", OtlpValue::Bool(forwarded)));
    }
    if let Some(latency_us) = line.number("latency_us") {
        pairs.push(("thoughtgate.latency_us", OtlpValue::Int64(latency_us as i64)));
    }
    if !passed && let Some(gate) = line.str("gate") {
        pairs.push(("error.type", OtlpValue::Text(gate.into_owned())));
    }
    pairs
}

/// Whether a trace is sampled. Depends on its id alone, so every process agrees.
fn is_sampled(trace: &[u8], rate: f64) -> bool {
    let tail = trace.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    rate >= 1.0 || (tail as f64) < rate * u64::MAX as f64
}

fn read_bytes(digits: &str, count: usize) -> Option<Vec<u8>> {
    hex::decode(digits).filter(|bytes| bytes.len() == count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_trace_context_is_taken_for_one() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = TraceContext::read(good).unwrap();
        assert_eq!((read.trace[0], read.parent[7]), (0x0a, 0x31));
        assert!(TraceContext::read(&good.replace("00-0af", "cc-0af")).is_some());
        assert!(TraceContext::read(&format!("cc{}-more", &good[2..])).is_some());
        for bad in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0af7651916cd43dd8448eb211c8031é-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_share_of_traces_is_kept_and_always_the_same_ones() {
        let trace = |number: u64| {
            let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            [[0; 8], spread.to_be_bytes()].concat()
        };
        let kept = |rate| (1..=1000).filter(|it| is_sampled(&trace(*it), rate)).count();
        assert_eq!((kept(0.0), kept(1.0)), (0, 1000));
        assert!((200..300).contains(&kept(0.25)), "{}", kept(0.25));
    }
}
