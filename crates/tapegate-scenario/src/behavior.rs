//! Reads `behavior`: how a server delivers answers, and its side effects.
//!
//! The settings of a delivery may be inside it (`delivery: {type: slow_loris, …}`) or next to it
//! (`delivery: slow_loris`, `byte_delay_ms: 5`). The language's tables check keys and kinds; this
//! module checks the rest.

mod effects;

use crate::field::{MapFields, choose, to_usize};
use crate::finding::Findings;
use crate::generate::GeneratorLimits;
use crate::model::{Behavior, Delivery, OnCancel};
use crate::node::{Node, NodeValue};
use crate::template::InterpolationMode;

const MS_NS: u64 = 1_000_000;
const DELIVERIES: [(&str, BehaviorMode); 5] = [
    ("normal", BehaviorMode::Normal),
    ("slow_loris", BehaviorMode::SlowLoris),
    ("unbounded_line", BehaviorMode::UnboundedLine),
    ("nested_json", BehaviorMode::NestedJson),
    ("response_delay", BehaviorMode::ResponseDelay),
];
/// The longest key of a nested answer, in characters.
const KEY_CHARS_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BehaviorMode {
    Normal,
    SlowLoris,
    UnboundedLine,
    NestedJson,
    ResponseDelay,
}

/// The settings for reading a behaviour.
#[derive(Debug, Clone, Copy)]
pub struct BehaviorContext {
    /// The limits of generated payloads.
    pub limits: GeneratorLimits,
    /// Whether params may contain `${…}`.
    pub interpolate: InterpolationMode,
}

/// Reads the value of `behavior`.
pub fn read(node: &Node, how: &BehaviorContext, findings: &mut Findings) -> Behavior {
    let fields = MapFields::of(node);
    let delivery = match fields.get("delivery") {
        Some(inside) if inside.as_map().is_some() => findings.with_step("delivery", |findings| {
            let word = MapFields::of(inside).required("type", findings);
            let mode = word.and_then(|word| {
                findings.with_step("type", |findings| choose(word, &DELIVERIES, findings))
            });
            read_mode(mode, inside, how, findings)
        }),
        Some(_) => read_mode(fields.choice("delivery", &DELIVERIES, findings), node, how, findings),
        None => Delivery::Normal,
    };
    let on_cancel = [("stop", OnCancel::Stop), ("ignore", OnCancel::Ignore)];
    let on_cancel = fields.choice("on_cancel", &on_cancel, findings).unwrap_or_default();
    let side_effects = match fields.get("side_effects") {
        Some(list) => {
            findings.with_step("side_effects", |findings| effects::read_all(list, how, findings))
        }
        None => Vec::new(),
    };
    Behavior { delivery, side_effects, on_cancel }
}

/// Parses the name of a delivery; its settings take their defaults.
pub fn read_word(word: &str) -> Result<Delivery, String> {
    let mut findings = Findings::default();
    let mode = choose(&Node::text(word), &DELIVERIES, &mut findings);
    let how = BehaviorContext {
        limits: GeneratorLimits::default(),
        interpolate: InterpolationMode::None,
    };
    let nothing = Node::new(NodeValue::Map(Vec::new()));
    let delivery = read_mode(mode, &nothing, &how, &mut findings);
    match findings.into_list().into_iter().next() {
        Some(finding) => Err(finding.message),
        None => Ok(delivery),
    }
}

/// Reads a delivery from its settings.
fn read_mode(
    mode: Option<BehaviorMode>,
    settings: &Node,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Delivery {
    let fields = MapFields::of(settings);
    match mode.unwrap_or(BehaviorMode::Normal) {
        BehaviorMode::Normal => Delivery::Normal,
        BehaviorMode::SlowLoris => Delivery::SlowLoris {
            delay_ns: read_ms(&fields, "byte_delay_ms", 100, findings),
            chunk_bytes: read_chunk_size(&fields, findings),
        },
        BehaviorMode::UnboundedLine => Delivery::UnboundedLine {
            bytes: read_bounded(&fields, "target_bytes", 0, how.limits.payload_bytes, findings),
            padding: padding(&fields, findings),
        },
        BehaviorMode::NestedJson => Delivery::NestedJson {
            depth: read_bounded(&fields, "depth", 10_000, how.limits.depth, findings),
            key: key(&fields, findings),
        },
        BehaviorMode::ResponseDelay => {
            Delivery::ResponseDelay { delay_ns: read_ms(&fields, "delay_ms", 5000, findings) }
        }
    }
}

/// A time in milliseconds, as nanoseconds.
fn read_ms(fields: &MapFields<'_>, name: &str, default: u64, findings: &mut Findings) -> u64 {
    fields.whole_number(name, findings).unwrap_or(default).saturating_mul(MS_NS)
}

/// Reads an amount and checks it against a limit.
fn read_bounded(
    fields: &MapFields<'_>,
    name: &str,
    default: usize,
    max: usize,
    findings: &mut Findings,
) -> usize {
    let amount = fields.bytes(name, findings).unwrap_or(default);
    if amount > max
        && let Some(node) = fields.get(name)
    {
        let message = format!("{amount} is over the limit of {max}");
        findings.with_step(name, |findings| findings.error(node.spot, message));
    }
    amount.min(max)
}

fn read_chunk_size(fields: &MapFields<'_>, findings: &mut Findings) -> usize {
    let bytes = fields.whole_number("chunk_size", findings).map_or(1, to_usize);
    if let (0, Some(node)) = (bytes, fields.get("chunk_size"))
        && !findings.has_error_at(node.spot)
    {
        let message = "must be at least 1";
        findings.with_step("chunk_size", |findings| findings.error(node.spot, message));
    }
    bytes.max(1)
}

fn padding(fields: &MapFields<'_>, findings: &mut Findings) -> char {
    let Some(text) = fields.text("padding_char", findings) else { return 'A' };
    let mut characters = text.chars();
    match (characters.next(), characters.next(), fields.get("padding_char")) {
        (Some('\n'), _, Some(node)) => {
            let message = "must not be a line break, which would end the line";
            findings.with_step("padding_char", |findings| findings.error(node.spot, message));
            'A'
        }
        (Some(character), None, _) => character,
        (_, _, Some(node)) => {
            let message = "expected one character";
            findings.with_step("padding_char", |findings| findings.error(node.spot, message));
            'A'
        }
        (_, _, None) => 'A',
    }
}

fn key(fields: &MapFields<'_>, findings: &mut Findings) -> String {
    let key = fields.text("key", findings).unwrap_or("a");
    if key.chars().count() > KEY_CHARS_MAX
        && let Some(node) = fields.get("key")
    {
        let message = format!("a key must not exceed {KEY_CHARS_MAX} characters");
        findings.with_step("key", |findings| findings.error(node.spot, message));
    }
    key.to_owned()
}

#[cfg(test)]
mod tests;
