//! Metrics as OTLP data points: cumulative sums and histograms, and gauges.

use super::encoding::{OtlpMessage, OtlpValue, attributes, field};
use crate::metrics::{MetricFamily, MetricKind, MetricValue, Metrics};

const CUMULATIVE: u32 = 2;

/// All families that have series.
pub(super) fn metrics(metrics: &Metrics, start_ns: u64, now_ns: u64) -> Vec<OtlpMessage> {
    let families = metrics.families().filter_map(|(family, series)| Some((family, series?)));
    let metric = |(family, series): (&'static MetricFamily, &crate::metrics::MetricSeries)| {
        let points = series.iter().map(|(labels, counted)| {
            let mut point = match counted {
                MetricValue::Number(number) => {
                    vec![field(4, "asDouble", OtlpValue::Double(*number))]
                }
                MetricValue::Histogram(histogram) => {
                    let bounds = match family.kind {
                        MetricKind::Histogram(bounds) => bounds.to_vec(),
                        MetricKind::Counter | MetricKind::Gauge => Vec::new(),
                    };
                    vec![
                        field(4, "count", OtlpValue::Fixed64(histogram.counts.iter().sum())),
                        field(5, "sum", OtlpValue::Double(histogram.sum)),
                        field(6, "bucketCounts", OtlpValue::Counts(histogram.counts.clone())),
                        field(7, "explicitBounds", OtlpValue::Doubles(bounds)),
                    ]
                }
            };
            let named = family.labels.iter().copied().zip(labels);
            let pairs =
                named.map(|(label, value)| (label, OtlpValue::Text(value.clone()))).collect();
            let histogram = matches!(family.kind, MetricKind::Histogram(_));
            let number = if histogram { 9 } else { 7 };
            point.push(field(number, "attributes", attributes(pairs)));
            point.push(field(2, "startTimeUnixNano", OtlpValue::Fixed64(start_ns)));
            point.push(field(3, "timeUnixNano", OtlpValue::Fixed64(now_ns)));
            point
        });
        let mut data = vec![field(1, "dataPoints", OtlpValue::Messages(points.collect()))];
        let (number, name) = match family.kind {
            MetricKind::Gauge => (5, "gauge"),
            MetricKind::Counter => (7, "sum"),
            MetricKind::Histogram(_) => (9, "histogram"),
        };
        if family.kind != MetricKind::Gauge {
            data.push(field(2, "aggregationTemporality", OtlpValue::Enum(CUMULATIVE)));
        }
        if family.kind == MetricKind::Counter {
            data.push(field(3, "isMonotonic", OtlpValue::Bool(true)));
        }
        vec![
            field(1, "name", OtlpValue::Text(family.name.to_owned())),
            field(2, "description", OtlpValue::Text(family.help.to_owned())),
            field(number, name, OtlpValue::Message(data)),
        ]
    };
    families.map(metric).collect()
}
