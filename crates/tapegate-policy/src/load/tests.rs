//! Policies in an in-memory folder.

mod channels;
mod defects;
mod env;
mod files;
mod hostile_policies;
mod rule_checks;
mod rules;
mod samples;
mod unbuilt_features;
mod unused_keys;

use tapegate_yaml::files::MemoryFiles;
use tapegate_yaml::finding::{Finding, Severity};

use super::*;

/// What every policy needs, before the part under test.
const HEAD: &str = "schema: 1\ngovernance: {defaults: {action: deny}}\n";

/// Loads a single text.
fn read(text: &str) -> PolicyLoadResult {
    load("tapegate.yaml", &MemoryFiles::default().with_file("tapegate.yaml", text))
}

/// The policy in a text without findings.
#[track_caller]
fn good(text: &str) -> Policy {
    let loaded = read(text);
    assert_eq!(told(&loaded), [""; 0], "{text}");
    loaded.policy.unwrap()
}

/// All findings, one per line: position, severity, path, message.
fn told(loaded: &PolicyLoadResult) -> Vec<String> {
    loaded.findings.iter().map(|finding| finding_line(finding, &loaded.sources)).collect()
}

/// A finding on one line: position, severity, path, message. The first file is not named.
fn finding_line(finding: &Finding, sources: &[String]) -> String {
    let Finding { severity, spot, path, message } = finding;
    let severity = if *severity == Severity::Error { "error" } else { "warning" };
    let file = match spot.file {
        0 => String::new(),
        file => format!("{}:", sources[usize::from(file)]),
    };
    let path = if path.is_empty() { String::new() } else { format!(" {path}:") };
    format!("{file}{}:{} {severity}:{path} {message}", spot.line, spot.column)
}

/// Asserts that exactly these findings are reported for a text.
#[track_caller]
fn finds(text: &str, wanted: &[&str]) {
    let loaded = read(text);
    assert_eq!(told(&loaded), wanted, "{text}");
    let bad = wanted.iter().any(|line| line.contains(" error: ") || line.contains(" error:"));
    assert_eq!(loaded.policy.is_none(), bad, "{text}");
}

/// The same, after what every policy needs.
#[track_caller]
fn finds_in(text: &str, wanted: &[&str]) {
    finds(&format!("{HEAD}{text}"), wanted);
}

#[test]
fn no_table_has_a_key_twice_and_every_key_says_what_it_means() {
    let (tables, faults) = tapegate_yaml::shape::schema::check_tables(&language::POLICY);
    assert!(tables > 20, "{tables}");
    assert_eq!(faults, [""; 0]);
}
