//! The metrics as Prometheus would read them, with a parser that knows only the format.

use std::collections::BTreeMap;

use super::HubFolder;

/// A sample: its name, its labels, and the number.
type MetricSamples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Parses the text format strictly.
fn read(text: &str) -> (BTreeMap<String, String>, MetricSamples) {
    let (mut types, mut samples) = (BTreeMap::new(), MetricSamples::new());
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (what, name, rest) =
                (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            if what == "TYPE" {
                assert!(types.insert(name.to_owned(), rest.to_owned()).is_none(), "{line}");
            }
            continue;
        }
        let end = line.find(['{', ' ']).unwrap();
        let (name, mut rest) = line.split_at(end);
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{line}");
        let mut labels = BTreeMap::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                rest = rest.strip_prefix(',').unwrap_or(rest);
                let (label, quoted) = rest.split_once("=\"").unwrap();
                let (value, after) = quoted_text(quoted);
                assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
                rest = after;
            }
            rest = &rest[1..];
        }
        let number = rest.strip_prefix(' ').unwrap().parse().unwrap();
        assert!(samples.insert((name.to_owned(), labels), number).is_none(), "{line} twice");
    }
    (types, samples)
}

/// The text up to the closing quote, unescaped, and the rest.
fn quoted_text(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    loop {
        match letters.next().unwrap() {
            (at, '"') => return (value, &text[at + 1..]),
            (_, '\\') => value.push(match letters.next().unwrap().1 {
                'n' => '\n',
                other => other,
            }),
            (_, letter) => value.push(letter),
        }
    }
}

#[test]
fn metrics_can_be_read_by_the_book_and_say_what_happened() {
    let place = HubFolder::new();
    let hub = place.start();
    for tool in ["rm", "rm", "ls", "pay"] {
        hub.evaluate(tool);
    }
    let evil = r#"{"server_id":"a\"b\\c\nd","state":"crashed","counters":{"framing_errors":[{"error_type":"smuggling","count":3}]}}"#;
    assert_eq!(hub.post("/governance/heartbeat", evil).status, 200);
    let reply = hub.get("/metrics");
    assert!(reply.head.contains("text/plain; version=0.0.4"), "{}", reply.head);
    let (types, samples) = read(&reply.body);
    for (name, _) in samples.keys() {
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let known = types.contains_key(name) || family.is_some_and(|it| types.contains_key(it));
        assert!(known, "{name} has no type");
    }
    for (name, kind) in &types {
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        assert!(!name.contains("_total_total"), "{name}");
    }
    let of = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let key = (format!("thoughtgate_{name}"), labels.collect());
        *samples.get(&key).unwrap_or_else(|| panic!("{key:?} is not in\n{}", reply.body))
    };
    let call = [("method", "tools/call"), ("status", "deny"), ("tool_name", "rm")];
    assert_eq!(of("requests_total", &call), 2.0);
    let decided =
        [("decision", "pending_approval"), ("profile", "production"), ("server_id", "fs")];
    assert_eq!(of("stdio_governance_decisions_total", &decided), 1.0);
    assert_eq!(of("tasks_pending", &[("task_type", "approval")]), 1.0);
    let fault = [("error_type", "smuggling"), ("server_id", "a\"b\\c\nd")];
    assert_eq!(of("stdio_framing_errors_total", &fault), 3.0);
    assert_eq!(of("stdio_active_servers", &[]), 0.0);
    assert_eq!(of("lifecycle_state", &[("state", "ready")]), 1.0);
    histograms_add_up(&types, &samples);
}

fn histograms_add_up(types: &BTreeMap<String, String>, samples: &MetricSamples) {
    let mut checked = 0;
    for (name, _) in types.iter().filter(|(_, kind)| *kind == "histogram") {
        let all = samples.iter().filter(|((other, _), _)| *other == format!("{name}_count"));
        for ((_, labels), count) in all {
            let mut bounds: Vec<(f64, f64)> = samples
                .iter()
                .filter(|((other, _), _)| *other == format!("{name}_bucket"))
                .filter(|((_, own), _)| labels.iter().all(|(key, value)| own[key] == *value))
                .map(|((_, own), number)| (own["le"].parse().unwrap(), *number))
                .collect();
            bounds.sort_by(|one, two| one.0.total_cmp(&two.0));
            assert!(bounds.is_sorted_by(|one, two| one.1 <= two.1), "{name}");
            assert_eq!(bounds.last(), Some(&(f64::INFINITY, *count)), "{name}");
            checked += 1;
        }
    }
    assert!(checked > 2);
}
