//! Reads `behavior`: how a server delivers answers, and its side effects.
//!
//! The settings of a delivery may be inside it (`delivery: {type: slow_loris, …}`) or next to it
//! (`delivery: slow_loris`, `byte_delay_ms: 5`). The language's tables check keys and kinds; this
//! module checks the rest.

mod effects;

use crate::field::{Fields, choose, to_usize};
use crate::finding::Findings;
use crate::form::Interpolate;
use crate::generate::GeneratorLimits;
use crate::model::{Behavior, Delivery, OnCancel};
use crate::node::{Node, Value};

const MS_NS: u64 = 1_000_000;
const DELIVERIES: [(&str, Mode); 5] = [
    ("normal", Mode::Normal),
    ("slow_loris", Mode::SlowLoris),
    ("unbounded_line", Mode::UnboundedLine),
    ("nested_json", Mode::NestedJson),
    ("response_delay", Mode::ResponseDelay),
];
/// The longest key of a nested answer, in characters.
const KEY_CHARS_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Normal,
    SlowLoris,
    UnboundedLine,
    NestedJson,
    ResponseDelay,
}

/// The settings for reading a behaviour.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The limits of generated payloads.
    pub limits: GeneratorLimits,
    /// Whether params may contain `${…}`.
    pub interpolate: Interpolate,
}

/// Reads the value of `behavior`.
pub fn read(node: &Node, how: &Reading, findings: &mut Findings) -> Behavior {
    let fields = Fields::of(node);
    let delivery = match fields.get("delivery") {
        Some(inside) if inside.as_map().is_some() => findings.within("delivery", |findings| {
            let word = Fields::of(inside).need("type", findings);
            let mode = word.and_then(|word| {
                findings.within("type", |findings| choose(word, &DELIVERIES, findings))
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
            findings.within("side_effects", |findings| effects::read_all(list, how, findings))
        }
        None => Vec::new(),
    };
    Behavior { delivery, side_effects, on_cancel }
}

/// Parses the name of a delivery; its settings take their defaults.
pub fn read_word(word: &str) -> Result<Delivery, String> {
    let mut findings = Findings::default();
    let mode = choose(&Node::text(word), &DELIVERIES, &mut findings);
    let how = Reading { limits: GeneratorLimits::default(), interpolate: Interpolate::None };
    let nothing = Node::new(Value::Map(Vec::new()));
    let delivery = read_mode(mode, &nothing, &how, &mut findings);
    match findings.into_list().into_iter().next() {
        Some(finding) => Err(finding.words),
        None => Ok(delivery),
    }
}

/// Reads a delivery from its settings.
fn read_mode(
    mode: Option<Mode>,
    settings: &Node,
    how: &Reading,
    findings: &mut Findings,
) -> Delivery {
    let fields = Fields::of(settings);
    match mode.unwrap_or(Mode::Normal) {
        Mode::Normal => Delivery::Normal,
        Mode::SlowLoris => Delivery::SlowLoris {
            delay_ns: ms(&fields, "byte_delay_ms", 100, findings),
            chunk_bytes: chunk(&fields, findings),
        },
        Mode::UnboundedLine => Delivery::UnboundedLine {
            bytes: up_to(&fields, "target_bytes", 0, how.limits.payload_bytes, findings),
            padding: padding(&fields, findings),
        },
        Mode::NestedJson => Delivery::NestedJson {
            depth: up_to(&fields, "depth", 10_000, how.limits.depth, findings),
            key: key(&fields, findings),
        },
        Mode::ResponseDelay => {
            Delivery::ResponseDelay { delay_ns: ms(&fields, "delay_ms", 5000, findings) }
        }
    }
}

/// A time in milliseconds, as nanoseconds.
fn ms(fields: &Fields<'_>, name: &str, default: u64, findings: &mut Findings) -> u64 {
    fields.whole(name, findings).unwrap_or(default).saturating_mul(MS_NS)
}

/// Reads an amount and checks it against a limit.
fn up_to(
    fields: &Fields<'_>,
    name: &str,
    default: usize,
    max: usize,
    findings: &mut Findings,
) -> usize {
    let amount = fields.bytes(name, findings).unwrap_or(default);
    if amount > max
        && let Some(node) = fields.get(name)
    {
        let words = format!("{amount} is over the limit of {max}");
        findings.within(name, |findings| findings.error(node.spot, words));
    }
    amount.min(max)
}

fn chunk(fields: &Fields<'_>, findings: &mut Findings) -> usize {
    let bytes = fields.whole("chunk_size", findings).map_or(1, to_usize);
    if let (0, Some(node)) = (bytes, fields.get("chunk_size"))
        && !findings.has_error_at(node.spot)
    {
        let words = "must be at least 1";
        findings.within("chunk_size", |findings| findings.error(node.spot, words));
    }
    bytes.max(1)
}

fn padding(fields: &Fields<'_>, findings: &mut Findings) -> char {
    let Some(text) = fields.text("padding_char", findings) else { return 'A' };
    let mut characters = text.chars();
    match (characters.next(), characters.next(), fields.get("padding_char")) {
        (Some('\n'), _, Some(node)) => {
            let words = "must not be a line break, which would end the line";
            findings.within("padding_char", |findings| findings.error(node.spot, words));
            'A'
        }
        (Some(character), None, _) => character,
        (_, _, Some(node)) => {
            let words = "expected one character";
            findings.within("padding_char", |findings| findings.error(node.spot, words));
            'A'
        }
        (_, _, None) => 'A',
    }
}

fn key(fields: &Fields<'_>, findings: &mut Findings) -> String {
    let key = fields.text("key", findings).unwrap_or("a");
    if key.chars().count() > KEY_CHARS_MAX
        && let Some(node) = fields.get("key")
    {
        let words = format!("a key must not exceed {KEY_CHARS_MAX} characters");
        findings.within("key", |findings| findings.error(node.spot, words));
    }
    key.to_owned()
}

#[cfg(test)]
mod tests;
