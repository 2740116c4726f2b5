//! Metric names, limits and escaping.

use super::*;

#[test]
fn a_counter_has_one_total_and_nothing_else_has_any() {
    for family in FAMILIES {
        let totals = family.name.matches("_total").count();
        let counter = family.kind == MetricKind::Counter;
        assert_eq!(totals, usize::from(counter), "{}", family.name);
        assert_eq!(family.name.ends_with("_total"), counter, "{}", family.name);
        assert!(family.help.ends_with('.'), "{}", family.name);
    }
}

#[test]
fn tools_and_servers_beyond_the_bound_are_others() {
    let mut metrics = Metrics::default();
    for number in 0..500 {
        let tool = format!("tool{number}");
        metrics.count(MetricName::Requests, &["tools/call", &tool, "forward"]);
        metrics.count(MetricName::StdioFramingErrors, &[&tool, "malformed_json"]);
    }
    metrics.count(MetricName::Requests, &["tools/call", "tool7", "forward"]);
    let series = |name| &metrics.series[&name];
    assert_eq!(series(MetricName::Requests).len(), 201);
    assert_eq!(series(MetricName::StdioFramingErrors).len(), 51);
    let other = ["tools/call", "__other__", "forward"].map(str::to_owned).to_vec();
    assert_eq!(series(MetricName::Requests)[&other], MetricValue::Number(300.0));
    let seventh = ["tools/call", "tool7", "forward"].map(str::to_owned).to_vec();
    assert_eq!(series(MetricName::Requests)[&seventh], MetricValue::Number(2.0));
}

#[test]
fn what_servers_are_called_cannot_break_the_text() {
    let mut metrics = Metrics::default();
    let evil = "a\"} 1\nb{x=\"\\";
    metrics.add(MetricName::StdioFramingErrors, &[evil, "x"], 2);
    metrics.count(MetricName::StdioFramingErrors, &[&"é".repeat(1000), "x"]);
    let text = metrics.text();
    let line =
        r#"thoughtgate_stdio_framing_errors_total{server_id="a\"} 1\nb{x=\"\\",error_type="x"} 2"#;
    assert!(text.lines().any(|found| found == line), "{text}");
    assert!(text.contains(&format!("\"{}\"", "é".repeat(128))));
}

#[test]
fn a_histogram_is_cumulative_and_adds_up() {
    let mut metrics = Metrics::default();
    for size in [0.005, 0.01, 0.2, 99.5] {
        metrics.observe(MetricName::CedarEvaluationDurationMs, &["allow"], size);
    }
    let text = metrics.text();
    for line in [
        r#"_bucket{decision="allow",le="0.01"} 2"#,
        r#"_bucket{decision="allow",le="0.1"} 2"#,
        r#"_bucket{decision="allow",le="0.25"} 3"#,
        r#"_bucket{decision="allow",le="10"} 3"#,
        r#"_bucket{decision="allow",le="+Inf"} 4"#,
        r#"_count{decision="allow"} 4"#,
    ] {
        let line = format!("thoughtgate_cedar_evaluation_duration_ms{line}");
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
