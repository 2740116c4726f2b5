//! Scenarios: YAML that says how an MCP server behaves, and the engine that plays it.
//!
//! Like the core, this crate does no I/O and reads no clock and no environment: files and variables
//! come through [`files::Files`], moments with every cue.

/// How a server behaves: reading `behavior`.
pub mod behave;
/// From a tape to a scenario.
pub mod convert;
/// How what is said at one seat travels.
pub mod courier;
/// Scenarios as YAML that people read and edit.
pub mod emit;
/// A scenario in the role of the server.
pub mod engine;
/// What a safe agent does and does not do.
pub mod expect;
/// Text with holes that are filled when it is sent.
pub mod form;
/// Payloads that are too large or too odd to be written down.
pub mod generate;
/// From the text of a scenario to the scenario.
pub mod load;
/// A scenario, read and checked.
pub mod model;
mod pattern;
/// The tables of the language, and what they are good for.
pub mod shape;
/// What a request must look like.
pub mod when;

mod read;
#[cfg(test)]
mod trees;

use tapegate_yaml::{amount, field};
pub use tapegate_yaml::{files, finding, node, yaml};
