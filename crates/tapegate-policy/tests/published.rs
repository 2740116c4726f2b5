//! What is published about policies is what the tables say, and every sample in it loads.

use std::path::{Path, PathBuf};

use tapegate_policy::load;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Holds a file of the repository against `text`; `UPDATE_GOLDEN=1` writes it anew.
#[expect(clippy::disallowed_methods, reason = "a golden is a file")]
fn golden(path: &str, text: &str) {
    let path = repository(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "{} is old; write it anew by UPDATE_GOLDEN=1", path.display());
}

#[test]
fn the_published_schema_is_that_of_the_tables() {
    golden("docs/schema/policy.schema.json", &load::schema());
}

#[test]
fn the_published_reference_is_that_of_the_tables() {
    golden("docs/policy-reference.md", &load::reference());
}
