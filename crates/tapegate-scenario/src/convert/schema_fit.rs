//! Whether recorded values are valid where a scenario would put them.
//!
//! A tape may hold anything, a scenario may not. The language's tables decide, so that the loader
//! accepts everything that is written.

use super::tape_contents::OperationKind;
use crate::finding::Findings;
use crate::node::Node;
use crate::shape::{self, Shape, Table, language};

/// Whether a node is valid by a table.
pub(super) fn is_valid(node: &Node, table: &'static Table) -> bool {
    let mut findings = Findings::default();
    shape::check(node, &Shape::Table(table), &mut findings);
    !findings.has_errors()
}

/// Whether a value is valid under a key of a table.
pub(super) fn fits_key(key: &str, node: &Node, table: &'static Table) -> bool {
    let mut findings = Findings::default();
    let Some(entry) = table.entry(key).filter(|entry| entry.name == key) else { return false };
    shape::check(node, &entry.shape, &mut findings);
    !findings.has_errors()
}

/// The table for answers.
pub(super) fn answer(of: OperationKind) -> &'static Table {
    match of {
        OperationKind::Item(kind) => kind.info().tables.answer,
        OperationKind::Method => &language::METHOD_ANSWER,
    }
}
