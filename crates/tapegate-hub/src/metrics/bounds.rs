//! Limits on the values of a label.

use std::collections::{BTreeMap, BTreeSet};

/// The value that stands for all values beyond the limit.
const OTHER: &str = "__other__";
/// The longest value.
const CHARS_MAX: usize = 128;

/// The label values seen so far.
#[derive(Debug, Default)]
pub(super) struct LabelBounds {
    seen: BTreeMap<&'static str, BTreeSet<String>>,
}

impl LabelBounds {
    /// The value to count `value` under.
    pub(super) fn bound_value(&mut self, label: &'static str, value: &str) -> String {
        let value: String = value.chars().take(CHARS_MAX).collect();
        let seen = self.seen.entry(label).or_default();
        if seen.contains(&value) {
            return value;
        }
        if seen.len() >= values_max(label) {
            return OTHER.to_owned();
        }
        seen.insert(value.clone());
        value
    }
}

fn values_max(label: &str) -> usize {
    match label {
        "tool_name" | "policy_id" => 200,
        // Those of the protocol, and some for extensions.
        "method" => 100,
        _ => 50,
    }
}
