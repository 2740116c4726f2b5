//! How lenient servers may interpret strings, numbers, keys and paths.
//!
//! A rule that blocks a call is matched against each of these readings; a rule that permits one only
//! against the text as written. Rules and Cedar policies both use [`reading`], so that they block the
//! same calls.

/// Lists and objects embedded in strings.
pub mod embedded;
/// Strings that some reader treats as equal.
pub mod equivalence;
/// Folders, and which paths are inside them.
pub mod folder;
/// Keys that some reader treats as equal.
pub mod key;
/// Exact numbers, and the values that readers may turn them into.
pub mod numbers;
/// Globs that were meant to restrict where a path leads.
pub mod path_glob;
/// All readings of a text.
pub mod reading;
/// Alternative spellings of a text.
pub mod spelling;
