//! Metrics as OTLP data points: cumulative sums and histograms, and gauges.

use super::tree::{Message, Value, attributes, field};
use crate::metrics::{Family, Kind, Metrics, Value as Counted};

const CUMULATIVE: u32 = 2;

/// All families that have series.
pub(super) fn metrics(metrics: &Metrics, start_ns: u64, now_ns: u64) -> Vec<Message> {
    let families = metrics.families().filter_map(|(family, series)| Some((family, series?)));
    let metric = |(family, series): (&'static Family, &crate::metrics::Series)| {
        let points = series.iter().map(|(labels, counted)| {
            let mut point = match counted {
                Counted::Number(number) => vec![field(4, "asDouble", Value::Double(*number))],
                Counted::Histogram(histogram) => {
                    let bounds = match family.kind {
                        Kind::Histogram(bounds) => bounds.to_vec(),
                        Kind::Counter | Kind::Gauge => Vec::new(),
                    };
                    vec![
                        field(4, "count", Value::Fixed64(histogram.counts.iter().sum())),
                        field(5, "sum", Value::Double(histogram.sum)),
                        field(6, "bucketCounts", Value::Counts(histogram.counts.clone())),
                        field(7, "explicitBounds", Value::Doubles(bounds)),
                    ]
                }
            };
            let named = family.labels.iter().copied().zip(labels);
            let pairs = named.map(|(label, value)| (label, Value::Text(value.clone()))).collect();
            let histogram = matches!(family.kind, Kind::Histogram(_));
            let number = if histogram { 9 } else { 7 };
            point.push(field(number, "attributes", attributes(pairs)));
            point.push(field(2, "startTimeUnixNano", Value::Fixed64(start_ns)));
            point.push(field(3, "timeUnixNano", Value::Fixed64(now_ns)));
            point
        });
        let mut data = vec![field(1, "dataPoints", Value::Messages(points.collect()))];
        let (number, name) = match family.kind {
            Kind::Gauge => (5, "gauge"),
            Kind::Counter => (7, "sum"),
            Kind::Histogram(_) => (9, "histogram"),
        };
        if family.kind != Kind::Gauge {
            data.push(field(2, "aggregationTemporality", Value::Enum(CUMULATIVE)));
        }
        if family.kind == Kind::Counter {
            data.push(field(3, "isMonotonic", Value::Bool(true)));
        }
        vec![
            field(1, "name", Value::Text(family.name.to_owned())),
            field(2, "description", Value::Text(family.help.to_owned())),
            field(number, name, Value::Message(data)),
        ]
    };
    families.map(metric).collect()
}
