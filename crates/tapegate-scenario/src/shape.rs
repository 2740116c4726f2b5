//! The language's tables, and the schema and reference made from them.
//!
//! [`language`] is the single source of the keys and their values: scenarios are checked against
//! it, and the JSON Schema and the reference are generated from it.

mod item_kind;
/// The tables.
pub mod language;
mod strict;
mod table_fields;

use tapegate_yaml::shape::schema::SchemaInfo;
pub use tapegate_yaml::shape::{
    CheckedWord, Shape, Table, TableEntry, UnknownKeys, accepts, nearest_name, nearest_name_within,
};
use tapegate_yaml::shape::{StrayKeys, reference as page};

use crate::finding::Findings;
use crate::node::Node;

pub(crate) use item_kind::ResponseTables;
pub use strict::report_own_keys;
pub(crate) use table_fields::TableFields;

/// Keys that are valid only next to a directive.
const STRAYS: StrayKeys = &[("override", "`override` needs `$include`, which is missing")];

/// The start of the reference.
const HEAD: &str = "\
# Scenarios: every key

<!-- Generated from the tables of the language (crates/tapegate-scenario/src/shape/language.rs) by a test:
     UPDATE_GOLDEN=1 cargo test -p tapegate-scenario reference -->

Keys in **bold** are required. Keys with ⁺ are extensions that TJ-SPEC-001 does not define.
";

/// Reports everything in `node` that does not match `shape`.
pub fn check(node: &Node, shape: &Shape, findings: &mut Findings) {
    tapegate_yaml::shape::check(node, shape, STRAYS, findings);
}

/// The JSON Schema of a scenario, as it is published.
pub fn schema() -> String {
    let about = "A scenario for `tapegate serve` and `tapegate check`. Generated from the tables of the language.";
    let top = &language::SCENARIO;
    SchemaInfo { title: "Tapegate scenario", about, top, elsewhere: true }.write()
}

/// The reference of the language, in Markdown.
pub fn reference() -> String {
    page::write(HEAD, &language::SCENARIO)
}

#[cfg(test)]
mod tests;
