//! Every variable that the code reads is documented, and none that it does not read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::tapegate;
use crate::tidy::{root, sources};

const PREFIXES: [&str; 5] =
    ["TAPEGATE_", "THOUGHTGATE_", "THOUGHTJACK_", "OVERWATCH_", "OPENCUFF_"];

/// The names of our variables in a text.
fn ours(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let is_ours = |word: &&str| {
        let rest = PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix));
        rest.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()))
    };
    words.filter(is_ours).map(str::to_owned).collect()
}

/// The names that stand first in the rows of the table.
fn documented() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/environment.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.flat_map(|row| row.split(" | ").next().unwrap().split("`, `"));
    names.map(|name| name.trim_end_matches('`').to_owned()).collect()
}

/// Code without comments and without the unit tests at the end of a file.
fn code() -> String {
    let is_code = |path: &Path| {
        let name = path.to_str().unwrap();
        name.contains("/src/") && !name.ends_with("tests.rs") && !name.contains("/tests/")
    };
    let files = sources().into_iter().filter(|(path, _)| is_code(path));
    let lines = |text: String| {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
        let code: Vec<String> = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(str::to_owned)
            .collect();
        code.join("\n")
    };
    files.map(|(_, text)| lines(text)).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_variable_that_the_code_reads_is_in_the_table() {
    let (code, documented) = (code(), documented());
    let read = ours(&code);
    assert!(read.len() > 15, "{read:?}");
    let missing: Vec<&String> = read.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/environment.md has no row for {missing:?}");
    for call in ["env::var(\"", "env::var_os(\""] {
        for name in code.split(call).skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(documented.contains(name) || name == "UPDATE_GOLDEN", "no row for {name}");
        }
    }
}

#[test]
fn every_variable_in_the_table_is_read() {
    let code = code();
    for name in documented() {
        assert!(code.contains(&format!("\"{name}\"")), "nothing reads {name}");
    }
}

#[test]
fn help_and_manual_name_the_variables_that_users_set() {
    let documented = documented();
    for arguments in [&["--help"][..], &["man"]] {
        let done = tapegate().args(arguments).output().unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let named = ours(&text);
        let unknown: Vec<&String> = named.difference(&documented).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let is_listed = |name: &&String| {
            name.starts_with("TAPEGATE_")
                && !name.starts_with("TAPEGATE_MAX_")
                && *name != "TAPEGATE_ACTIVE"
        };
        let missing: Vec<&String> =
            documented.iter().filter(is_listed).filter(|name| !named.contains(*name)).collect();
        assert!(missing.is_empty(), "{arguments:?} lacks {missing:?}");
    }
}
