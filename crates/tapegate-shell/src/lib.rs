//! Reads shell command lines: which programs they run, with which arguments, and what that does.
//!
//! Command lines come from agents and are hostile input. Nothing here runs a command, reads a file
//! or looks at the environment, so what a program does is known only by its name and arguments.
//! Whatever cannot be read or is decided while the line runs is reported as such, never guessed.

/// What commands do, by tables.
pub mod classifier;
/// A command line as a tree.
pub mod command_tree;
/// The commands of a line in a flat list.
pub mod command_use;
/// Groups recorded commands into patterns.
pub mod generate;
/// Reads a command line into a tree.
pub mod reader;
