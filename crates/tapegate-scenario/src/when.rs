//! What a request must look like.

use crate::finding::Findings;
use crate::node::Node;

/// What a request must look like: all of it must fit.
#[derive(Debug, Clone, Default)]
pub struct When {}

impl When {
    /// Reads a condition, as triggers and branches write it.
    pub fn read(_node: &Node, _findings: &mut Findings) -> Self {
        Self {}
    }
}
