//! Where tapes lie.
//!
//! Files are the truth. A tape is written by one process at a time, handed to the kernel before
//! anything it tells of is sent, and synced to the disk by another thread. Readers never modify a
//! file.

/// Policies that were accepted.
pub mod accepted;
/// What was decided, asked and done in a project.
pub mod activity;
/// Requests for approval, and their decisions.
pub mod approvals;
/// A file of ours that is no tape.
pub mod document;
/// A tape that is read while it is written.
pub mod followed;
/// Files and pipes that a user names as input.
pub mod input;
/// A tape that is ready to be played.
pub mod loaded;
/// A log whose lines go to a hub elsewhere.
pub mod outbox;
/// The bodies of a tape.
pub mod reel;
/// A tape that is written anew as a whole.
pub mod replacement;
/// A tape that is read once, by several threads.
pub mod sections;
/// A tape that is read.
pub mod source;
/// Folders of ours, which no one else may write.
pub mod state_dir;
/// The user's own state, out of every project: private folders and keys.
pub mod user_state;
/// A tape that is being written.
pub mod writer;

mod beside;
mod file;
mod flusher;
mod gzip;
mod numbering;
mod private;
mod stretches;
mod temporary;
mod watch;

pub use file::OpenError;
pub use watch::Watcher;
