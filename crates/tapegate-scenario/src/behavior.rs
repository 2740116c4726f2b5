//! Reads `behavior`: how a server delivers answers, and its side effects.
//!
//! The settings of a delivery may be inside it (`delivery: {type: slow_loris, …}`) or next to it
//! (`delivery: slow_loris`, `byte_delay_ms: 5`). The language's tables check keys and kinds; this
//! module checks the rest.

mod effects;

use tapegate_yaml::choice::WordChoice;
use tapegate_yaml::word_choices;

use crate::field::to_usize;
use crate::finding::Findings;
use crate::generate::GeneratorLimits;
use crate::model::{Behavior, Delivery};
use crate::node::Node;
use crate::shape::{TableFields, language};
use crate::template::InterpolationMode;

pub(crate) use effects::EffectType;

const MS_NS: u64 = 1_000_000;
/// The longest key of a nested answer, in characters.
const KEY_CHARS_MAX: usize = 1024;

word_choices! {
    /// The type of a delivery, as scenarios name it.
    #[derive(Default)]
    pub(crate) enum DeliveryType {
        #[default]
        Normal = "normal",
        SlowLoris = "slow_loris",
        UnboundedLine = "unbounded_line",
        NestedJson = "nested_json",
        ResponseDelay = "response_delay",
    }
}

/// The settings for reading a behaviour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BehaviorContext {
    /// The limits of generated payloads.
    pub(crate) limits: GeneratorLimits,
    /// Whether params may contain `${…}`.
    pub(crate) interpolate: InterpolationMode,
}

/// Reads the value of `behavior`.
pub(crate) fn read(node: &Node, how: &BehaviorContext, findings: &mut Findings) -> Behavior {
    let at = TableFields::new(node, &language::BEHAVIOR);
    let delivery = match at.map("delivery", &language::DELIVERY) {
        Some(inside) => findings.with_step("delivery", |findings| {
            read_delivery(inside.choice("type"), &inside, how, findings)
        }),
        None => read_delivery(at.choice("delivery"), &at, how, findings),
    };
    let side_effects = findings.with_step("side_effects", |findings| {
        let read = |(index, node)| {
            findings.with_step(&format!("[{index}]"), |findings| effects::read(node, how, findings))
        };
        at.list("side_effects").iter().enumerate().filter_map(read).collect()
    });
    Behavior { delivery, side_effects, on_cancel: at.choice("on_cancel").unwrap_or_default() }
}

/// The delivery with this name, with its default settings.
pub fn named_delivery(word: &str) -> Delivery {
    let node = Node::text(word);
    let at = TableFields::new(&node, &language::DELIVERY);
    let how = BehaviorContext {
        limits: GeneratorLimits::default(),
        interpolate: InterpolationMode::None,
    };
    read_delivery(WordChoice::from_word(word), &at, &how, &mut Findings::default())
}

/// Reads a delivery from its settings.
fn read_delivery(
    of: Option<DeliveryType>,
    at: &TableFields<'_>,
    how: &BehaviorContext,
    findings: &mut Findings,
) -> Delivery {
    match of.unwrap_or_default() {
        DeliveryType::Normal => Delivery::Normal,
        DeliveryType::SlowLoris => Delivery::SlowLoris {
            delay_ns: read_ms(at, "byte_delay_ms", 100),
            chunk_bytes: at.whole_number("chunk_size").map_or(1, to_usize),
        },
        DeliveryType::UnboundedLine => Delivery::UnboundedLine {
            bytes: read_bounded(at, "target_bytes", 0, how.limits.payload_bytes, findings),
            padding: padding(at, findings),
        },
        DeliveryType::NestedJson => Delivery::NestedJson {
            depth: read_bounded(at, "depth", 10_000, how.limits.depth, findings),
            key: key(at, findings),
        },
        DeliveryType::ResponseDelay => {
            Delivery::ResponseDelay { delay_ns: read_ms(at, "delay_ms", 5000) }
        }
    }
}

/// A time in milliseconds, as nanoseconds.
fn read_ms(at: &TableFields<'_>, name: &str, default: u64) -> u64 {
    at.whole_number(name).unwrap_or(default).saturating_mul(MS_NS)
}

/// Reads an amount and checks it against a limit.
fn read_bounded(
    at: &TableFields<'_>,
    name: &str,
    default: usize,
    max: usize,
    findings: &mut Findings,
) -> usize {
    let amount = at.amount(name).unwrap_or(default);
    if amount > max {
        report(at, name, &format!("{amount} is over the limit of {max}"), findings);
    }
    amount.min(max)
}

fn padding(at: &TableFields<'_>, findings: &mut Findings) -> char {
    let Some(text) = at.text("padding_char") else { return 'A' };
    let mut characters = text.chars();
    let message = match (characters.next(), characters.next()) {
        (Some('\n'), _) => "must not be a line break, which would end the line",
        (Some(character), None) => return character,
        _ => "expected one character",
    };
    report(at, "padding_char", message, findings);
    'A'
}

fn key(at: &TableFields<'_>, findings: &mut Findings) -> String {
    let key = at.text("key").unwrap_or("a");
    if key.chars().count() > KEY_CHARS_MAX {
        let message = format!("a key must not exceed {KEY_CHARS_MAX} characters");
        report(at, "key", &message, findings);
    }
    key.to_owned()
}

/// Reports an error in the value of a key, if the key is there.
fn report(at: &TableFields<'_>, name: &str, message: &str, findings: &mut Findings) {
    if let Some(node) = at.get(name) {
        findings.with_step(name, |findings| findings.error(node.spot, message));
    }
}

#[cfg(test)]
mod tests;
