//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write;

use super::{Histogram, MetricFamily, MetricKind, MetricValue, Metrics};

pub(super) fn write(metrics: &Metrics) -> String {
    let mut out = String::new();
    for (family, series) in metrics.families() {
        let MetricFamily { name, help, kind, .. } = family;
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "# HELP {name} {}", escape(help, false));
        let _ = writeln!(out, "# TYPE {name} {}", kind.as_str());
        for (values, value) in series.into_iter().flatten() {
            match value {
                MetricValue::Number(number) => line(&mut out, family, "", values, None, *number),
                MetricValue::Histogram(histogram) => lines(&mut out, family, values, histogram),
            }
        }
    }
    out
}

fn lines(out: &mut String, family: &MetricFamily, values: &[String], histogram: &Histogram) {
    let MetricKind::Histogram(bounds) = family.kind else { return };
    let mut total = 0;
    for (index, count) in histogram.counts.iter().enumerate() {
        total += count;
        let bound = bounds.get(index).map_or("+Inf".to_owned(), ToString::to_string);
        line(out, family, "_bucket", values, Some(&bound), total as f64);
    }
    line(out, family, "_sum", values, None, histogram.sum);
    line(out, family, "_count", values, None, total as f64);
}

fn line(
    out: &mut String,
    family: &MetricFamily,
    suffix: &str,
    values: &[String],
    bound: Option<&str>,
    number: f64,
) {
    out.push_str(family.name);
    out.push_str(suffix);
    let named = family.labels.iter().copied().zip(values.iter().map(String::as_str));
    let pairs: Vec<String> = named
        .chain(bound.map(|bound| ("le", bound)))
        .map(|(label, value)| format!("{label}=\"{}\"", escape(value, true)))
        .collect();
    if !pairs.is_empty() {
        let _ = write!(out, "{{{}}}", pairs.join(","));
    }
    let _ = writeln!(out, " {number}");
}

fn escape(text: &str, quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quoted { text.replace('"', "\\\"") } else { text }
}
