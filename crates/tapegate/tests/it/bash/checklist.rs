//! `tests/bash-checklist.txt` names a test for every row of the document.

use std::collections::BTreeSet;
use std::fs;

use crate::tidy::root;

/// The tests that the list names, as `module::name`.
fn listed() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("crates/tapegate/tests/bash-checklist.txt")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.flat_map(|row| {
        let (_, tests) = row.split_once(" | ").unwrap_or_else(|| panic!("no test in `{row}`"));
        tests.split(", ").map(|name| name.trim().to_owned())
    })
    .collect()
}

/// The text of the file of a module.
fn text_of_module(module: &str) -> String {
    let path = format!("crates/tapegate/tests/it/{}.rs", module.replace("::", "/"));
    fs::read_to_string(root().join(&path)).unwrap_or_else(|_| panic!("no {path}"))
}

#[test]
fn every_row_of_the_document_has_a_test_that_exists() {
    for test in listed() {
        let (module, name) = test.rsplit_once("::").unwrap();
        let text = text_of_module(module);
        // The tests of the SDK clients are made by a macro.
        let is_there = text.contains(&format!("#[test]\nfn {name}()"))
            || text.lines().any(|line| line.trim_start().starts_with(&format!("{name}: ")));
        assert!(is_there, "{test} does not exist");
    }
}

#[test]
fn every_scenario_of_the_clients_is_on_the_list() {
    let listed = listed();
    for module in ["execution", "governing", "outputs", "recorded", "settings"] {
        let module = format!("bash::scenarios::{module}");
        let text = text_of_module(&module);
        for rest in text.split("#[test]\nfn ").skip(1) {
            let name = rest.split('(').next().unwrap();
            assert!(listed.contains(&format!("{module}::{name}")), "{module}::{name}");
        }
    }
}
