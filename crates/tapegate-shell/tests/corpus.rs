//! A corpus of command lines with their classes, checked against bash itself.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the tests run bash in scratch folders and compare what is there"
)]

mod scratch;

use scratch::{changes, is_accepted};
use tapegate_shell::classifier::CommandClass;
use tapegate_shell::command_use::read_line;

const CORPUS: &str = include_str!("corpus/commands.txt");

fn corpus() -> Vec<(CommandClass, String)> {
    let mut class = None;
    let mut lines = Vec::new();
    for line in CORPUS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("== ") {
            Some(name) => class = Some(CommandClass::parse(name).unwrap()),
            None => {
                if let Some(class) = class {
                    lines.push((class, line.replace('⏎', "\n")));
                }
            }
        }
    }
    lines
}

#[test]
fn every_line_has_the_class_that_the_corpus_gives_it() {
    let mut wrong = Vec::new();
    for (class, line) in corpus() {
        let report = read_line(&line);
        let found = report.effects().class();
        if found != class {
            wrong.push(format!("{class} expected, {found} found: {line:?} {:?}", report.reasons()));
        }
    }
    assert!(corpus().len() > 500, "{} lines", corpus().len());
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_line_that_counts_as_read_only_changes_a_file() {
    for (class, line) in corpus() {
        if class == CommandClass::ReadOnly {
            assert_eq!(changes(&line), Vec::<String>::new(), "{line:?}");
        }
    }
}

#[test]
fn bash_accepts_every_line_that_is_read() {
    for (_, line) in corpus() {
        if tapegate_shell::reader::read_commands(&line).is_ok() {
            assert!(is_accepted(&line), "{line:?}");
        }
    }
}
