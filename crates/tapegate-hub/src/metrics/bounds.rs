//! How many values a label may have.

use std::collections::{BTreeMap, BTreeSet};

/// What everything beyond is counted as.
const OTHER: &str = "__other__";
/// The longest value.
const CHARS_MAX: usize = 128;

/// The values that labels have had.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    seen: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Bounds {
    /// The value that is counted for `value`.
    pub(super) fn bounded(&mut self, label: &'static str, value: &str) -> String {
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
        // As many as the protocol has, and some that others have made up.
        "method" => 100,
        _ => 50,
    }
}
