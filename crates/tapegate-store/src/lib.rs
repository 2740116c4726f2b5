//! Files on disk: tapes, the activity log, approvals and the user's private state.
//!
//! Files are the source of truth. A tape is written by one process at a time. Each entry is handed
//! to the kernel before the message it records is sent, and synced to disk by another thread.
//! Readers never modify a file.

/// Accepted policies.
pub mod accepted_policies;
/// The activity log of a project.
pub mod activity;
/// Approval requests and their decisions.
pub mod approvals;
/// Files other than tapes, such as reports.
pub mod atomic_file;
/// Reads the message bodies of a tape.
pub mod body_reader;
/// Follows a tape while it is being written.
pub mod followed_tape;
/// Files and pipes that a user names as input.
pub mod input;
/// What was installed in the configs of clients.
pub mod installed_configs;
/// A tape that is ready to be replayed.
pub mod loaded_tape;
/// A new tape with its header.
pub mod new_tape;
/// A log whose lines are sent to a remote hub.
pub mod outbox;
/// Random numbers from the system.
pub mod random;
/// The sessions whose tapes are in a state folder.
pub mod recorded_sessions;
/// Writes a whole tape, replacing an existing one.
pub mod replacement;
/// Reads a tape once, on several threads.
pub mod sections;
/// Private folders that exist for one session.
pub mod session_folder;
/// Checks folders that no other user may write.
pub mod state_dir;
/// Reads a tape.
pub mod tape_source;
/// Writes a tape.
pub mod tape_writer;
/// The user's own state, outside every project: private folders and keys.
pub mod user_state;

mod anomaly_file;
mod chunk_reader;
mod flusher;
mod folder_watcher;
mod gzip;
mod path_folders;
mod private_folder;
mod tape_file;
mod tape_numbering;
mod temporary_file;

pub use folder_watcher::FolderWatcher;
pub use tape_file::OpenError;
