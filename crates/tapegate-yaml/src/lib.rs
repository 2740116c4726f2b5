//! YAML that knows where everything stands, and the tables it is checked by.
//!
//! What scenarios and policies share: a tree of nodes with their places, findings that are told all
//! at once, and tables of a language from which a text is checked, its JSON Schema written and its
//! reference printed. Like the core, this crate does no I/O and reads no clock and no environment:
//! files and variables come through [`files::Files`].

/// Times and sizes, as people write them.
pub mod amount;
/// Reading single fields of a map.
pub mod field;
/// Where the parts of a text come from.
pub mod files;
/// What is wrong with a text, and where.
pub mod finding;
/// What a text says, before anybody knows what it means.
pub mod node;
/// The tables of a language, and what they are good for.
pub mod shape;
/// YAML as a tree that knows where everything stands.
pub mod yaml;
