//! Reports about recordings: which commands ran, how often, and how they ended.

/// Names that group commands which differ only in their arguments.
pub mod command_label;
/// Recordings as CSV and SQLite.
pub mod export;
/// Finds sessions by a part of their id.
pub mod session_lookup;
/// Points in time as people write them.
pub mod since;
mod sqlite_file;
/// Counts over many sessions.
pub mod statistics;
