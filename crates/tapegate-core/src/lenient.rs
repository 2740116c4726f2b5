//! What servers that are careless about spelling make of texts, numbers, keys and paths.
//!
//! Whatever stops a call is held against each of these readings, whatever lets one pass against what is
//! written alone. Rules and Cedar policies both read by [`reading`], so that they stop the same.

/// Texts that are the same to some reader.
pub mod alike;
/// Lists and objects that are written as a text.
pub mod embedded;
/// Folders, and which paths lie in them.
pub mod folder;
/// Keys that are the same to some reader.
pub mod key;
/// Numbers to the last digit, and what becomes of them.
pub mod numbers;
/// Globs that were meant to say where a path lies.
pub mod path_glob;
/// Everything that a text may be read as.
pub mod reading;
/// Other ways to spell a text.
pub mod spelling;
