//! Files on disk: tapes, the activity log, approvals and the user's private state.
//!
//! Files are the source of truth. A tape is written by one process at a time. Each entry is handed
//! to the kernel before the message it records is sent, and synced to disk by another thread.
//! Readers never modify a file.

/// Accepted policies.
pub mod accepted;
/// The activity log of a project.
pub mod activity;
/// Approval requests and their decisions.
pub mod approvals;
/// Files other than tapes, such as reports.
pub mod document;
/// Follows a tape while it is being written.
pub mod followed;
/// Files and pipes that a user names as input.
pub mod input;
/// A tape that is ready to be replayed.
pub mod loaded;
/// A log whose lines are sent to a remote hub.
pub mod outbox;
/// Reads the message bodies of a tape.
pub mod reel;
/// Writes a whole tape, replacing an existing one.
pub mod replacement;
/// Reads a tape once, on several threads.
pub mod sections;
/// Reads a tape.
pub mod source;
/// Checks folders that no other user may write.
pub mod state_dir;
/// The user's own state, outside every project: private folders and keys.
pub mod user_state;
/// Writes a tape.
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
