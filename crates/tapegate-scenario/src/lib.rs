//! Scenarios: YAML that describes how an MCP server behaves, and the engine that runs it.
//!
//! Like the core, this crate does no I/O and reads no clock and no environment: files and variables
//! come through [`files::Files`], and each event carries its time.

/// Reading `behavior`: how a server delivers answers, and its side effects.
pub mod behavior;
/// Converts a tape to a scenario.
pub mod convert;
/// Delivery of the messages to one client.
pub mod delivery_queue;
/// Writes scenarios as readable YAML.
pub mod emit;
/// Plays the server side of a scenario.
pub mod engine;
/// Expectations of how a safe agent acts.
pub mod expect;
/// Generated payloads, too large or too odd to be written out.
pub mod generate;
/// Loads a scenario from its text.
pub mod load;
/// A scenario, parsed and validated.
pub mod model;
mod pattern;
/// Conditions on requests.
pub mod request_matcher;
/// The language's tables, and the schema and reference made from them.
pub mod shape;
/// Templates that are filled when they are sent.
pub mod template;

mod read;
#[cfg(test)]
mod test_trees;

use tapegate_yaml::{amount, field};
pub use tapegate_yaml::{files, finding, node, yaml};
