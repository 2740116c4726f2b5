//! How a held call becomes a task of ours.

/// A task of ours that stands for a held call, as the gate chooses it. Revision 2025-11-25 lets a
/// client ask for one with its call, and poll it instead of waiting for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHandle {
    /// The id that the client is given.
    pub task_id: String,
    /// The id of our own request to the server, once the call is released. The client's own id has
    /// been answered by then.
    pub request_id: String,
    /// How long the task is kept at least, as the client is told.
    pub ttl_ms: u64,
    /// How long it is kept at least after it has ended.
    pub keep_ms: u64,
    /// How often the client should ask.
    pub poll_ms: u64,
}
