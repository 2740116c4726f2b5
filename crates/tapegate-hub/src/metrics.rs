//! What is counted, and how it is told: the text format of Prometheus, and OTLP by `otlp`.
//!
//! Names and labels are those that dashboards for governance of this kind ask for, each counter
//! with one `_total`. Whoever is counted cannot make the hub grow: a label has a bounded number of
//! values, of bounded length, and what is beyond is counted as `__other__`.

mod bounds;
mod family;
mod text;

use std::collections::BTreeMap;

use bounds::Bounds;
pub use family::{FAMILIES, Family, Kind};

/// Everything that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    series: BTreeMap<&'static str, BTreeMap<Vec<String>, Value>>,
    bounds: Bounds,
}

/// One number, or several that belong together.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Something that is counted or measured.
    Number(f64),
    /// How often something was how large.
    Histogram(Histogram),
}

/// How often something was how large.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// How many were no larger than each bound, and larger than the one before; then the rest.
    pub counts: Vec<u64>,
    /// All of them together.
    pub sum: f64,
}

impl Metrics {
    /// Counts something `count` times more.
    ///
    /// Names that are not in [`FAMILIES`] are not counted.
    pub fn add(&mut self, name: &'static str, labels: &[&str], count: u64) {
        if let Some(Value::Number(number)) = self.value(name, labels) {
            *number += count as f64;
        }
    }

    /// Counts something once more.
    pub fn count(&mut self, name: &'static str, labels: &[&str]) {
        self.add(name, labels, 1);
    }

    /// Says how large something is now.
    pub fn set(&mut self, name: &'static str, labels: &[&str], value: f64) {
        if let Some(Value::Number(number)) = self.value(name, labels) {
            *number = value;
        }
    }

    /// Says that there is more of something now.
    pub fn raise(&mut self, name: &'static str, labels: &[&str], by: f64) {
        if let Some(Value::Number(number)) = self.value(name, labels) {
            *number += by;
        }
    }

    /// Forgets everything that was said of something, before it is said anew.
    pub fn clear(&mut self, name: &'static str) {
        self.series.remove(name);
    }

    /// Says how large something was.
    pub fn observe(&mut self, name: &'static str, labels: &[&str], size: f64) {
        let Some(Family { kind: Kind::Histogram(bounds), .. }) = family::find(name) else { return };
        if let Some(Value::Histogram(histogram)) = self.value(name, labels) {
            let place = bounds.iter().position(|bound| size <= *bound).unwrap_or(bounds.len());
            histogram.counts[place] += 1;
            histogram.sum += size;
        }
    }

    /// Every family and its numbers, in the order of [`FAMILIES`].
    pub fn families(&self) -> impl Iterator<Item = (&'static Family, Option<&Series>)> {
        FAMILIES.iter().map(|family| (family, self.series.get(family.name)))
    }

    /// All of it in the text format of Prometheus.
    pub fn text(&self) -> String {
        text::write(self)
    }

    fn value(&mut self, name: &'static str, labels: &[&str]) -> Option<&mut Value> {
        let family = family::find(name)?;
        debug_assert_eq!(family.labels.len(), labels.len(), "{name}");
        let named = family.labels.iter().zip(labels);
        let labels = named.map(|(label, value)| self.bounds.bounded(label, value)).collect();
        let series = self.series.entry(name).or_default();
        Some(series.entry(labels).or_insert_with(|| family.kind.zero()))
    }
}

/// The numbers of a family, by the values of its labels.
pub type Series = BTreeMap<Vec<String>, Value>;

#[cfg(test)]
mod tests;
