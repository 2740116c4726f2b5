//! Every variable that the code reads is documented, and no others are.

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

/// The names in the first column of the table.
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
        // The table of known variables reads none of them.
        let is_table = name.ends_with("tapegate/src/environment.rs");
        name.contains("/src/")
            && !name.ends_with("tests.rs")
            && !name.contains("/tests/")
            && !is_table
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
fn the_variables_that_are_known_are_those_in_the_table() {
    let text = fs::read_to_string(root().join("crates/tapegate/src/environment.rs")).unwrap();
    let code = text.split("#[cfg(test)]").next().unwrap();
    let known: BTreeSet<String> =
        code.split('"').filter(|word| ours(word).contains(*word)).map(str::to_owned).collect();
    let documented: BTreeSet<String> =
        documented().into_iter().filter(|name| !ours(name).is_empty()).collect();
    assert_eq!(known, documented);
}

#[test]
fn a_misspelt_variable_is_told_with_the_one_that_was_meant() {
    let log = |name: &str, value: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = tapegate();
        command.args(["log"]).env("TAPEGATE_HOME", folder.path()).env(name, value);
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = log("TAPEGATE_REQIRE_POLICY", "1");
    assert_eq!(code, Some(0));
    let message = "warning: the variable `TAPEGATE_REQIRE_POLICY` is not known; did you mean `TAPEGATE_REQUIRE_POLICY`?";
    assert!(said.contains(message), "{said}");
    assert!(log("TAPEGATE_WHATEVER", "1").1.contains("`TAPEGATE_WHATEVER` is not known"));
    assert!(!log("TAPEGATE_WHATEVER", "").1.contains("not known"));
    assert!(!log("THOUGHTGATE_LISTEN", "1").1.contains("not known"));
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
                && !["TAPEGATE_ACTIVE", "TAPEGATE_BEHIND_SHIM"].contains(&name.as_str())
        };
        let missing: Vec<&String> =
            documented.iter().filter(is_listed).filter(|name| !named.contains(*name)).collect();
        assert!(missing.is_empty(), "{arguments:?} lacks {missing:?}");
    }
}
