//! What the document promises, through the official SDK clients of Python and TypeScript: each
//! scenario is a list of steps that every client does with a server of its own.
//!
//! `tests/bash-checklist.txt` says which row of the document is tested by which of them.

mod execution;
mod governing;
mod outputs;
mod recorded;
mod settings;
mod support;
