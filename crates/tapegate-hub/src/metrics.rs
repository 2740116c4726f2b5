//! Metrics, in the text format of Prometheus and, through `otlp`, as OTLP.
//!
//! Names and labels are those that existing governance dashboards expect, each counter with one
//! `_total` suffix. Clients cannot make the hub's memory grow: each label has a bounded number of
//! values of bounded length, and further values are counted as `__other__`.

mod bounds;
mod family;
mod text;

use std::collections::BTreeMap;

use bounds::LabelBounds;
pub use family::{FAMILIES, MetricFamily, MetricKind, MetricName};

/// All metrics of a hub.
#[derive(Debug, Default)]
pub struct Metrics {
    series: BTreeMap<MetricName, MetricSeries>,
    bounds: LabelBounds,
}

/// The value of one series.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricValue {
    /// A counter or a gauge.
    Number(f64),
    /// A distribution.
    Histogram(Histogram),
}

/// A distribution over buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// How many values fell into each bucket; the last bucket is unbounded.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl Metrics {
    /// Adds `count` to a counter.
    pub fn add(&mut self, name: MetricName, labels: &[&str], count: u64) {
        if let MetricValue::Number(number) = self.value(name, labels) {
            *number += count as f64;
        }
    }

    /// Adds one to a counter.
    pub fn count(&mut self, name: MetricName, labels: &[&str]) {
        self.add(name, labels, 1);
    }

    /// Sets a gauge.
    pub fn set(&mut self, name: MetricName, labels: &[&str], value: f64) {
        if let MetricValue::Number(number) = self.value(name, labels) {
            *number = value;
        }
    }

    /// Raises a gauge.
    pub fn increase_gauge(&mut self, name: MetricName, labels: &[&str], by: f64) {
        if let MetricValue::Number(number) = self.value(name, labels) {
            *number += by;
        }
    }

    /// Removes all series of a family, before they are set again.
    pub fn clear(&mut self, name: MetricName) {
        self.series.remove(&name);
    }

    /// Adds a value to a histogram.
    pub fn observe(&mut self, name: MetricName, labels: &[&str], size: f64) {
        let MetricKind::Histogram(bounds) = name.family().kind else { return };
        if let MetricValue::Histogram(histogram) = self.value(name, labels) {
            let index = bounds.iter().position(|bound| size <= *bound).unwrap_or(bounds.len());
            histogram.counts[index] += 1;
            histogram.sum += size;
        }
    }

    /// Every family and its series, in the order of [`FAMILIES`].
    pub fn families(&self) -> impl Iterator<Item = (&'static MetricFamily, Option<&MetricSeries>)> {
        MetricName::ALL.iter().map(|name| (name.family(), self.series.get(name)))
    }

    /// All metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        text::write(self)
    }

    fn value(&mut self, name: MetricName, labels: &[&str]) -> &mut MetricValue {
        let family = name.family();
        debug_assert_eq!(family.labels.len(), labels.len(), "{name:?}");
        let named = family.labels.iter().zip(labels);
        let labels = named.map(|(label, value)| self.bounds.bound_value(label, value)).collect();
        let series = self.series.entry(name).or_default();
        series.entry(labels).or_insert_with(|| family.kind.zero())
    }
}

/// The series of a family, by the values of its labels.
pub type MetricSeries = BTreeMap<Vec<String>, MetricValue>;

#[cfg(test)]
mod tests;
