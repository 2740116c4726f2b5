//! YAML with source positions, and the tables it is checked by.
//!
//! Shared by scenarios and policies: a tree of nodes with their positions, findings that are
//! reported all at once, and the tables of a language, from which texts are checked and the JSON
//! Schema and the reference are generated. Like the core, this crate does no I/O and reads no clock
//! and no environment: files and variables come through [`files::Files`].

/// Parses durations and sizes.
pub mod amount;
/// Enums whose values are words of a document.
pub mod choice;
/// Reads single fields of a map.
pub mod field;
/// The source of files and variables.
pub mod files;
/// Problems found in a text, with their positions.
pub mod finding;
/// A parsed text as a tree of nodes with source positions.
pub mod node;
/// The tables of a language, and the checks and documents made from them.
pub mod shape;
/// Parses YAML into nodes with source positions.
pub mod yaml;
