//! Tests of the crate from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod client_configs;
mod docs_table;
mod properties;
mod toml_reader;
