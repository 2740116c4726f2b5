//! Payloads that are too large or too odd to be written down.

use crate::finding::Findings;
use crate::node::Node;

/// Makes a payload, always the same.
#[derive(Debug)]
pub struct Generator {}

/// How much a generator may make.
#[derive(Debug, Clone, Copy)]
pub struct GeneratorLimits {
    /// Bytes of one payload.
    pub payload_bytes: usize,
    /// Levels of nesting.
    pub depth: usize,
    /// Notifications, keys or sequences.
    pub count: usize,
}

impl Generator {
    /// Reads what stands under `$generate`.
    pub fn read(_node: &Node, _limits: &GeneratorLimits, _findings: &mut Findings) -> Option<Self> {
        Some(Self {})
    }
}
