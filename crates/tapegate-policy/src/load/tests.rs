//! Policies in a folder that is only remembered.

mod defects;
mod env;
mod files;
mod hostile;
mod rules;
mod samples;

use tapegate_yaml::files::Held;
use tapegate_yaml::finding::Severity;

use super::*;

/// What every policy needs, in front of what a test is about.
const HEAD: &str = "schema: 1\ngovernance: {defaults: {action: deny}}\n";

/// Loads a text that stands alone.
fn read(text: &str) -> Loaded {
    load("tapegate.yaml", &Held::default().with("tapegate.yaml", text))
}

/// The policy in a text in which nothing is found.
#[track_caller]
fn good(text: &str) -> Policy {
    let loaded = read(text);
    assert_eq!(told(&loaded), [""; 0], "{text}");
    loaded.policy.unwrap()
}

/// Everything that is found, one line a finding: place, severity, path, words.
fn told(loaded: &Loaded) -> Vec<String> {
    let show = |finding: &Finding| {
        let Finding { severity, spot, path, words } = finding;
        let severity = if *severity == Severity::Error { "error" } else { "warning" };
        let file = match spot.file {
            0 => String::new(),
            file => format!("{}:", loaded.sources[usize::from(file)]),
        };
        let path = if path.is_empty() { String::new() } else { format!(" {path}:") };
        format!("{file}{}:{} {severity}:{path} {words}", spot.line, spot.column)
    };
    loaded.findings.iter().map(show).collect()
}

/// Asserts that these and no other things are found in a text.
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
    let mut tables = Vec::new();
    shape::schema::gather(&language::POLICY, &mut tables);
    assert!(tables.len() > 20, "{}", tables.len());
    for table in tables {
        let names: Vec<&str> = table
            .entries()
            .flat_map(|e| std::iter::once(e.name).chain(e.aliases.iter().copied()))
            .collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{}.{name}", table.name);
        }
        for entry in table.entries() {
            assert!(entry.about.ends_with('.'), "{}.{}: {}", table.name, entry.name, entry.about);
        }
    }
}
