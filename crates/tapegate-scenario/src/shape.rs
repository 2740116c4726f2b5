//! The tables of the language, and what they are good for.
//!
//! [`language`] is the one truth about which keys there are and what they take: a scenario is
//! checked against it, the JSON Schema is written from it, and so is the reference.

/// The tables.
pub mod language;
mod strict;

use tapegate_yaml::shape::schema::Published;
pub use tapegate_yaml::shape::{Entry, Rest, Shape, Table, Word, near, near_within, takes};
use tapegate_yaml::shape::{Strays, reference as page};

use crate::finding::Findings;
use crate::node::Node;

pub use strict::beyond_001;

/// Keys that only mean something next to a directive.
const STRAYS: Strays = &[("override", "`override` goes with `$include`, which is not there")];

/// What the reference begins with.
const HEAD: &str = "\
# Scenarios: every key

<!-- Written from the tables of the language (crates/tapegate-scenario/src/shape/language.rs) by a test:
     UPDATE_GOLDEN=1 cargo test -p tapegate-scenario reference -->

A key in **bold** must be there. A key with ⁺ is ours; TJ-SPEC-001 does not have it.
";

/// Tells everything in `node` that does not fit `shape`.
pub fn check(node: &Node, shape: &Shape, findings: &mut Findings) {
    tapegate_yaml::shape::check(node, shape, STRAYS, findings);
}

/// The schema of a scenario, as it is published.
pub fn schema() -> String {
    let about = "A scenario that `tapegate serve` runs and `tapegate check` looks over. Written from the tables of the language.";
    let top = &language::SCENARIO;
    Published { title: "Tapegate scenario", about, top, elsewhere: true }.write()
}

/// The reference of the language, in Markdown.
pub fn reference() -> String {
    page::write(HEAD, &language::SCENARIO)
}

#[cfg(test)]
mod tests;
