//! The published schema and reference match the tables.

use std::path::Path;

use super::*;

/// Compares a file of the repository with `text`; `UPDATE_GOLDEN=1` rewrites it.
#[expect(clippy::disallowed_methods, reason = "a golden is a file")]
fn golden(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "{} is out of date; regenerate it with UPDATE_GOLDEN=1", path.display());
}

#[test]
fn the_published_schema_is_that_of_the_tables() {
    golden("docs/schema/scenario.schema.json", &schema());
}

#[test]
fn the_published_reference_is_that_of_the_tables() {
    golden("docs/scenario-reference.md", &reference());
}

#[test]
fn no_table_has_a_key_twice_and_every_key_says_what_it_means() {
    let (tables, faults) = tapegate_yaml::shape::schema::check_tables(&language::SCENARIO);
    assert!(tables > 40, "{tables}");
    assert_eq!(faults, [""; 0]);
}
