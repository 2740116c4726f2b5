//! Read-only pictures of what the core has found: for people on a terminal, for machines in files.
//!
//! A view turns data into text and does nothing else: it prints nothing, reads nothing, and what
//! comes from a tape or a peer never reaches a terminal unseen.

#![allow(dead_code, reason = "each command uses the views it has a use for")]

/// Differences between two texts, as lines.
pub(crate) mod diff;
/// A request that the tape has no answer to, in words.
pub(crate) mod divergence;
/// Colours, or none.
pub(crate) mod palette;
/// What came of a replay, in words.
pub(crate) mod summary;
/// Text that can be seen, and that does nothing to a terminal.
pub(crate) mod visible;

mod lines;

#[cfg(test)]
mod golden;
